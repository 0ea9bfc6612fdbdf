"""Whether this master may act: it leads, and nobody else can have been elected yet."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Final

# Doubt is short and rare, so its end is looked for; see `wait`.
LOOK_S: Final = 0.05


class Certainty:
    """Asked before each step of a leadership, and before each message that leaves.

    Not only the word of the election counts (`doubt`, `trust`), which a process that was
    stopped hears too late, but also the moment until which it is good: `until_s` gives
    it on the monotonic clock, which went on meanwhile.

    All methods are for the event loop's thread.
    """

    def __init__(
        self,
        until_s: Callable[[], float] = lambda: math.inf,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._until_s = until_s
        self._monotonic_s = monotonic_s
        self._doubtful = False
        # Set once the leadership has ended: it is never certain again.
        self.over = asyncio.Event()
        # How often something had to wait or was refused for want of certainty.
        self.held = 0

    @property
    def doubtful(self) -> bool:
        """Whether the election has told of doubt, and not yet of its end."""
        return self._doubtful

    def certain(self) -> bool:
        """Whether to act now."""
        if self._doubtful or self.over.is_set():
            return False
        return self._monotonic_s() < self._until_s()

    async def wait(self) -> bool:
        """Until it is certain (True), or the leadership is over (False)."""
        if self.certain():
            return True
        self.held += 1
        while not self.over.is_set():
            # `until_s` moves on without a word, so it is looked at.
            try:
                async with asyncio.timeout(LOOK_S):
                    await self.over.wait()
            except TimeoutError:
                if self.certain():
                    return True
        return False

    def doubt(self) -> None:
        """The election says that it may be lost: nothing is done until `trust`."""
        self._doubtful = True

    def trust(self) -> None:
        """The election is sure again."""
        self._doubtful = False

    def end(self) -> None:
        """The leadership is over.  Idempotent."""
        self.over.set()


__all__ = ["Certainty"]
