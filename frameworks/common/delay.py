"""Delay scheduling: a job that has no input on the host that is offered lets it pass, for a
while, and mostly a better one comes (Zaharia et al., EuroSys 2010).

The clock begins with the first offer that a job lets pass, and stops when something of it is
launched.  Who had to settle for less keeps that level until it gets a better one, so that a
job whose input is nowhere near does not wait before each of its tasks.
"""

from __future__ import annotations

from typing import Final, Literal

Level = Literal["host", "rack", "any"]
LEVELS: Final[tuple[Level, ...]] = ("host", "rack", "any")


class Delay:
    """Of one job.  host_s: it waits so long for the host, then rack_s for the rack."""

    __slots__ = ("_host_s", "_level", "_rack_s", "_since_s")

    def __init__(self, host_s: float, rack_s: float) -> None:
        self._host_s = host_s
        self._rack_s = rack_s
        self._level = 0
        self._since_s: float | None = None

    def allowed(self, now_s: float, racks: bool = True) -> Level:
        """The farthest level at which to launch now.  racks: whether the offer's rack is
        known; if not there is nothing to wait for between host and any."""
        waited_s = 0.0 if self._since_s is None else now_s - self._since_s
        if waited_s >= self._until(2, racks):
            return "any"
        if racks and waited_s >= self._until(1, racks):
            return "rack"
        return "host"

    def skipped(self, now_s: float, racks: bool = True) -> float:
        """It has let an offer pass.  Returns the seconds until it is less choosy."""
        if self._since_s is None:
            self._since_s = now_s
        waited_s = now_s - self._since_s
        steps = (self._until(1, racks), self._until(2, racks))
        return min((step - waited_s for step in steps if step > waited_s), default=0.0)

    def launched(self, level: Level) -> None:
        self._level = LEVELS.index(level)
        self._since_s = None

    def _until(self, level: int, racks: bool) -> float:
        """Seconds of waiting until this level is allowed, as levels go: 1 rack, 2 any."""
        if self._level >= level:
            return 0.0
        if level == 1:
            return self._host_s
        return (self._host_s if self._level == 0 else 0.0) + (self._rack_s if racks else 0.0)
