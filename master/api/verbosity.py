"""How much is logged, and for how long: the operator's word, which ends by itself."""

from __future__ import annotations

import asyncio
from typing import Final

from mesos_py import logs
from mesos_py.errors import InvalidValue
from mesos_py.v1 import operator_pb2 as op

log = logs.get("master.operator")

# Above what the flags say there is one step: all.
_ALL: Final = "debug"
_NS: Final = 10**9
_LONGEST_S: Final = 365 * 86400.0


class Verbosity:
    """The part of OperatorService that is about the log.  Used from one event loop."""

    def __init__(self) -> None:
        self._level = 0
        # What the flags of this master say.
        self._usual = ""
        self._ending: asyncio.TimerHandle | None = None

    def get(self, _: op.Call) -> op.Response:
        answer = op.Response.GetLoggingLevel(level=self._level)
        return op.Response(type=op.Response.GET_LOGGING_LEVEL, get_logging_level=answer)

    def set(self, call: op.Call) -> op.Response:
        """Log all (any level above 0), until the duration has passed.

        Raises InvalidValue for a duration that is none."""
        asked = call.set_logging_level
        duration_s = asked.duration.nanoseconds / _NS
        if not 0 <= duration_s <= _LONGEST_S:
            given = asked.duration.nanoseconds
            raise InvalidValue("duration.nanoseconds", given, "must be from 0 to those of a year")
        self.end()
        if asked.level:
            self._level, self._usual = asked.level, logs.level()
            logs.set_level(_ALL)
            self._ending = asyncio.get_running_loop().call_later(duration_s, self.end)
        log.info("logging level", level=asked.level, duration_s=duration_s)
        return op.Response(type=op.Response.DONE)

    def end(self) -> None:
        """Back to what the flags say.  Idempotent."""
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None
            self._level = 0
            logs.set_level(self._usual)


__all__ = ["Verbosity"]
