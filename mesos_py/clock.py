"""Time as a value that is handed in.

The cores never read a clock.  Two clocks matter: durations and time-outs are
measured on the monotonic one, which no clock step can disturb; what people read
(`TaskStatus.timestamp`, "last offer at") is wall-clock time.
"""

from __future__ import annotations

import time
from typing import NamedTuple, Protocol


class Now(NamedTuple):
    """One moment on both clocks, in seconds."""

    monotonic_s: float
    wall_s: float


class Clock(Protocol):
    def now(self) -> Now: ...


class SystemClock:
    """The clocks of this machine."""

    def now(self) -> Now:
        return Now(time.monotonic(), time.time())


class ManualClock:
    """A clock that stands still until it is told to move; for tests and simulations."""

    def __init__(self, monotonic_s: float = 1000.0, wall_s: float = 1_700_000_000.0) -> None:
        self.monotonic_s = monotonic_s
        self.wall_s = wall_s

    def now(self) -> Now:
        return Now(self.monotonic_s, self.wall_s)

    def advance(self, seconds: float) -> Now:
        """Move both clocks on by `seconds` and return the new moment."""
        self.monotonic_s += seconds
        self.wall_s += seconds
        return self.now()
