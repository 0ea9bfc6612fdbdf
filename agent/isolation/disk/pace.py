"""When to look again at how much a container stores.  Pure."""

from __future__ import annotations

from typing import Final

# From this part of its limit on a container is looked at more often, and how much more.
NEAR: Final = 0.8
HASTE: Final = 10
# Looking takes no more than one part in so many of a thread's time, however large the tree.
SPARE: Final = 20


def next_look_s(
    interval_s: float, took_s: float, used: int, limit: int | None, growth: float = 0
) -> float:
    """From the end of one look to the next.

    took_s: how long the last look took; used, limit: bytes; growth: bytes per second
    since the look before.
    """
    wait_s = interval_s
    if limit is not None and used + max(0.0, growth) * interval_s >= NEAR * limit:
        wait_s = interval_s / HASTE
    return max(wait_s, took_s * SPARE)
