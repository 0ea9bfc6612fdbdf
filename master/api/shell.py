"""The core in an event loop: hands inputs in with their moment, wakes it when due."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, ParamSpec

from master.api.certainty import LOOK_S, Certainty
from master.api.turns import Turns
from master.core.master import Master
from mesos_py import logs
from mesos_py.clock import Clock, Now

log = logs.get("master")

RETRY_S: Final = 1.0
P = ParamSpec("P")


class Shell:
    """Owns the core's timer.  All calls from the event loop's thread."""

    def __init__(
        self,
        core: Master,
        clock: Clock,
        certainty: Certainty | None = None,
        turns: Turns | None = None,
    ) -> None:
        """Without `certainty` this master leads, and nobody can dispute it.  `turns`: of
        all that arrives in this loop."""
        self.core = core
        self.certainty = certainty if certainty is not None else Certainty()
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None
        self._armed_s = float("inf")
        self._rearming = self._stopped = False
        self.failures = 0
        self.turns = turns if turns is not None else Turns()

    def now(self) -> Now:
        return self._clock.now()

    def guarded(self, what: str, step: Callable[P, None], *args: P.args, **kw: P.kwargs) -> bool:
        """Run one step of the core; an exception is logged and counted, and ends there.

        One bad record or message must not stop the master.  False if it failed.
        """
        try:
            step(*args, **kw)
        except Exception:
            self.failures += 1
            log.exception("step failed", step=what)
            return False
        return True

    def rearm(self) -> None:
        """To be called after each batch of inputs: the next deadline may be earlier."""
        try:
            deadline_s = self.core.next_deadline_s()
        except Exception:
            # An allocator's fault, and the core would never be woken again.
            self.failures += 1
            log.exception("step failed", step="deadline")
            deadline_s = self.now().monotonic_s + RETRY_S
        if deadline_s is None or (self._timer is not None and self._armed_s <= deadline_s):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._armed_s = deadline_s
        # The loop's clock is time.monotonic, the same that `now` reads.
        self._timer = asyncio.get_running_loop().call_at(deadline_s, self._wake)

    def rearm_soon(self) -> None:
        """The same, once for all that is handed in during this round of the loop."""
        if not self._rearming:
            self._rearming = True
            asyncio.get_running_loop().call_soon(self._rearm_now)

    def _rearm_now(self) -> None:
        self._rearming = False
        if not self._stopped:
            self.rearm()

    def stop(self) -> None:
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake(self) -> None:
        self._timer = None
        if not self.certainty.certain():
            # What is due stays due.  The core is told how late it is, and forgives.
            if not self.certainty.over.is_set():
                loop = asyncio.get_running_loop()
                self._armed_s = loop.time() + LOOK_S
                self._timer = loop.call_at(self._armed_s, self._wake)
            return
        self.guarded("tick", self.core.tick, self.now(), time.thread_time, self.turns.late)
        self.rearm()
