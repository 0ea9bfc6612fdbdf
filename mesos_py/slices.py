"""Long work of the event loop, a little at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

# A quarter of a round of the master (master.api.turns).
SLICE_S: Final = 0.005

T = TypeVar("T")
M = TypeVar("M")


class Pace:
    """Gives others their turn in work that is done in steps."""

    def __init__(self, slice_s: float = SLICE_S) -> None:
        self._loop = asyncio.get_running_loop()
        self._slice_s = slice_s
        self._until_s = self._loop.time() + slice_s

    async def step(self) -> None:
        """A step is done: whoever waits is let in if `slice_s` has passed since that was so."""
        if self._loop.time() >= self._until_s:
            await asyncio.sleep(0)
            self._until_s = self._loop.time() + self._slice_s


async def sliced(convert: Callable[[T], M | None], items: Iterable[T], slice_s: float) -> list[M]:
    """What `convert` makes of each, without the Nones; others have their turn every `slice_s`."""
    pace = Pace(slice_s)
    found: list[M] = []
    for item in items:
        made = convert(item)
        if made is not None:
            found.append(made)
        await pace.step()
    return found
