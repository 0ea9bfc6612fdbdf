"""Long work of the event loop, a little at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

# A quarter of a round of the master (master.api.turns).
SLICE_S: Final = 0.005
# While others have little to do: what arrives then takes several rounds of the loop to its
# answer, and waits for a slice in each.
LEAST_S: Final = 0.0005
SHARE: Final = 0.25

T = TypeVar("T")
M = TypeVar("M")


class Pace:
    """Gives others their turn in work that is done in steps.

    A slice is a part (SHARE) of what they have just taken: whoever is busy shall not wait for
    much longer than he works, and long work shall end beside him, too.  It lasts LEAST_S at
    least, and `slice_s` at most.
    """

    def __init__(self, slice_s: float = SLICE_S) -> None:
        self._loop = asyncio.get_running_loop()
        self._slice_s = slice_s
        self._until_s = self._loop.time() + min(LEAST_S, slice_s)

    async def step(self) -> None:
        """A step is done: whoever waits is let in if it is their turn."""
        now_s = self._loop.time()
        if now_s >= self._until_s:
            await asyncio.sleep(0)
            later_s = self._loop.time()
            wanted_s = max(LEAST_S, SHARE * (later_s - now_s))
            self._until_s = later_s + min(wanted_s, self._slice_s)


async def sliced(
    convert: Callable[[T], M | None], items: Iterable[T], slices: float | Pace
) -> list[M]:
    """What `convert` makes of each, without the Nones; others have their turn meanwhile.

    `slices`: how long one lasts at most, in seconds; or the pace of the work that this is a
    part of, since many short parts are a long work, too.
    """
    pace = slices if isinstance(slices, Pace) else Pace(slices)
    found: list[M] = []
    for item in items:
        made = convert(item)
        if made is not None:
            found.append(made)
        await pace.step()
    return found
