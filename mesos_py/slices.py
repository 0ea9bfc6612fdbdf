"""Long work of the event loop, a little at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

# A quarter of a round of the master (master.api.turns).
SLICE_S: Final = 0.005

T = TypeVar("T")
M = TypeVar("M")


async def sliced(convert: Callable[[T], M | None], items: Iterable[T], slice_s: float) -> list[M]:
    """What `convert` makes of each, without the Nones; others have their turn every `slice_s`."""
    loop = asyncio.get_running_loop()
    found: list[M] = []
    until_s = loop.time() + slice_s
    for item in items:
        made = convert(item)
        if made is not None:
            found.append(made)
        if loop.time() >= until_s:
            await asyncio.sleep(0)
            until_s = loop.time() + slice_s
    return found
