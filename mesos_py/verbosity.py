"""How much is logged, and for how long: the operator's word, which ends by itself."""

from __future__ import annotations

import asyncio
from typing import ClassVar, Final

from mesos_py import logs
from mesos_py.errors import InvalidValue

log = logs.get("log")

# Above what the flags say there is one step: all.
_ALL: Final = "debug"
_LONGEST_S: Final = 365 * 86400.0


class Verbosity:
    """One who may ask for more; of several in a process the newest word counts.

    Used from one event loop.
    """

    # Who has changed what is logged, as long as that holds.
    _newest: ClassVar[Verbosity | None] = None

    def __init__(self) -> None:
        self._level = 0
        self._usual = ""
        self._ending: asyncio.TimerHandle | None = None

    @property
    def level(self) -> int:
        """Of the process; as in Mesos, 0 is what the flags say."""
        return 0 if Verbosity._newest is None else Verbosity._newest._level

    def set(self, level: int, duration_s: float) -> None:
        """Log all (any level above 0) until the duration has passed.

        Raises InvalidValue for a duration that is none.
        """
        if not 0 <= duration_s <= _LONGEST_S:
            raise InvalidValue("duration", duration_s, "must be from 0 to a year, in seconds")
        if Verbosity._newest is not None:
            Verbosity._newest.end()
        if level:
            Verbosity._newest = self
            self._level, self._usual = level, logs.level()
            logs.set_level(_ALL)
            self._ending = asyncio.get_running_loop().call_later(duration_s, self.end)
        log.info("logging level", level=level, duration_s=duration_s)

    def end(self) -> None:
        """Back to what the flags say, if this one's word has counted.  Idempotent."""
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None
            Verbosity._newest = None
            logs.set_level(self._usual)
