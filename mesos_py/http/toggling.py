"""`/logging/toggle`: how much is logged, and for how long."""

from __future__ import annotations

import re
from typing import Final

from aiohttp import web

from mesos_py.config_kinds import parse_duration
from mesos_py.errors import InvalidValue
from mesos_py.http.server import empty, text
from mesos_py.verbosity import Verbosity

PATH: Final = "/logging/toggle"

_LEVEL: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
_DURATION: Final = re.compile(
    r"[0-9]{1,18}(\.[0-9]{1,18})?(ns|us|ms|secs|mins|hrs|days|weeks)", re.ASCII
)


class LoggingToggle:
    """Answers any method, as Mesos does."""

    def __init__(self) -> None:
        self._verbosity = Verbosity()

    async def answer(self, request: web.Request) -> web.Response:
        """The level, if no other is asked for.  Raises InvalidValue."""
        level, duration = request.query.get("level"), request.query.get("duration")
        if level is None and duration is None:
            return text(200, f"{self._verbosity.level}\n")
        if level is None:
            raise InvalidValue("level", "", "is missing: level=VALUE")
        if duration is None:
            raise InvalidValue("duration", "", "is missing: duration=VALUE")
        if not _LEVEL.fullmatch(level):
            raise InvalidValue("level", level, "must be a whole number from 0 up")
        if not _DURATION.fullmatch(duration):
            raise InvalidValue("duration", duration, "is no duration, such as 5secs")
        try:
            seconds = parse_duration(duration)
        except ValueError as error:
            raise InvalidValue("duration", duration, str(error)) from None
        self._verbosity.set(int(level), seconds)
        return empty(200)


__all__ = ["PATH", "LoggingToggle"]
