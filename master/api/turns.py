"""Fair turns: what arrives is dealt with a little at a time.

A loop that first deals with all that has arrived, from hundreds of busy peers, comes
round a few times per second: timers are late, and new streams, of which gRPC accepts one
every other round, wait for minutes.  Here a round has a budget; what does not fit into it
waits, in order, for the next ones, and its peer is read no further meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final

BUDGET_S: Final = 0.02
# After a stream has come, rounds are short for so long: others may be on their way, as
# after a change of leader, and each waits for two rounds more than the one before it.
SHORT_S: Final = 0.003
HURRY_S: Final = 1.0
# What has waited for so long, that is for several rounds, shows that more arrives than is
# dealt with.  A busy master that keeps up always has something waiting, for a round or two.
LATE_S: Final = 0.06


_Waiting = tuple[Callable[[], object], float, asyncio.Future[Any] | None]


class Turns:
    """Of one event loop."""

    def __init__(self, budget_s: float = BUDGET_S, short_s: float = SHORT_S) -> None:
        self._budget_s = budget_s
        self._short_s = min(short_s, budget_s)
        self._hurry_until_s = float("-inf")
        self._loop = asyncio.get_running_loop()
        # When this round's budget ends, in the loop's time; None: nothing done yet.
        self._until_s: float | None = None
        # Steps that are short, which come first, with half of each round for them.
        self._short: deque[Callable[[], object]] = deque()
        # The other steps, each with since when it waits, and who waits for what it returns
        # (None: nobody).
        self._waiting: deque[_Waiting] = deque()

    def free(self) -> bool:
        """Whether a step may be taken at once."""
        if self.behind:
            return False
        if self._until_s is None:
            self._begin()
            return True
        return self._loop.time() < self._until_s

    @property
    def behind(self) -> bool:
        """Whether something waits for its turn."""
        return bool(self._waiting or self._short)

    @property
    def late(self) -> bool:
        """Whether more arrives than is dealt with: something has waited for LATE_S."""
        return bool(self._waiting) and self._loop.time() - self._waiting[0][1] > LATE_S

    def spent(self) -> bool:
        """Whether this round's budget is used up, for a step that can be parted."""
        return self._until_s is not None and self._loop.time() >= self._until_s

    def queue(self, step: Callable[[], object], *, short: bool = False) -> None:
        """Take the step in a later round, in order, but a short one before the others.  It
        must not raise."""
        if self._until_s is None:
            self._begin()
        if short:
            self._short.append(step)
        else:
            self._waiting.append((step, self._loop.time(), None))

    def hurry(self) -> None:
        """A stream has come; see SHORT_S."""
        self._hurry_until_s = self._loop.time() + HURRY_S

    async def take(self, step: Callable[[], bool]) -> bool:
        """Wait for a turn, take the step, return what it does."""
        if self._until_s is None:
            self._begin()
        done: asyncio.Future[bool] = self._loop.create_future()
        self._waiting.append((step, self._loop.time(), done))
        return await done

    def _begin(self) -> float:
        """Begin a round; when its budget ends."""
        now_s = self._loop.time()
        hurried = now_s < self._hurry_until_s
        self._until_s = now_s + (self._short_s if hurried else self._budget_s)
        self._loop.call_soon(self._round)
        return self._until_s

    def _round(self) -> None:
        if not self.behind:
            self._until_s = None
            return
        until_s = self._begin()
        now_s = self._loop.time()
        half_s = now_s + (until_s - now_s) / (2 if self._waiting else 1)
        while self._short:
            self._short.popleft()()
            if self._loop.time() >= half_s:
                break
        while self._waiting:
            step, _, done = self._waiting.popleft()
            if done is None:
                step()
            elif done.done():
                # Its stream has ended meanwhile, and the core was told so: a REGISTER
                # that came after that would never be taken back.
                continue
            else:
                done.set_result(step())
            if self._loop.time() >= until_s:
                return
