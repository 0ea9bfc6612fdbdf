"""How many servers there are to be, by the sessions per second that come in.  Pure.

There are three samples in a period.  What counts is what two of the last three agree on (their
median), so that a single odd one changes nothing, a step is followed with its second sample,
and after one period the whole of it is.  There are more servers as soon as those there are
would each get more than the target.  There are fewer only when the
highest load of a whole while would have fitted on fewer with a margin to spare: between the two
thresholds is a gap that a load swinging by a tenth cannot cross.

What was not measured is not a small load: without a sample nothing changes, and the while that
has to be calm begins anew.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from statistics import median_low
from typing import Final

from mesos_py.errors import InvalidValue

# In a period, and those that the median is of: after a period no sample of before counts.
SAMPLES: Final = 3
# 300 sessions at 150 each are two servers, whatever the last bit of a division says.
_TINY: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """
    minimum, maximum: servers, never fewer or more.
    target: sessions per second that one server is to get at most.
    margin: there are fewer servers when the load is at most this part of what they would be
        to get; below 0.81, or a swing of a tenth up and down can cross both thresholds.
    calm_s: the load has to have been so low for so long.
    cool_down_s: after any change, before there are fewer.
    step_up: so many more at a time, or twice as many if that is more.
    step_down: so many fewer at a time.
    """

    minimum: int = 1
    maximum: int = 8
    target: float = 150.0
    margin: float = 0.8
    calm_s: float = 60.0
    cool_down_s: float = 60.0
    step_up: int = 8
    step_down: int = 1

    def __post_init__(self) -> None:
        """Raises InvalidValue."""
        if self.minimum < 1:
            raise InvalidValue("min", self.minimum, "must be at least 1")
        if self.maximum < self.minimum:
            raise InvalidValue("max", self.maximum, f"must be at least min ({self.minimum})")
        if not 0 < self.target < math.inf:
            raise InvalidValue("target-sessions", self.target, "must be above zero")
        if not 0 < self.margin < 1:
            raise InvalidValue("margin", self.margin, "must be between 0 and 1")
        for name in ("calm_s", "cool_down_s"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InvalidValue(name, getattr(self, name), "must be zero or more seconds")
        for name in ("step_up", "step_down"):
            if getattr(self, name) < 1:
                raise InvalidValue(name, getattr(self, name), "must be at least 1")

    def clamped(self, servers: int) -> int:
        return max(self.minimum, min(self.maximum, servers))


@dataclass(frozen=True, slots=True)
class Decision:
    """So many servers from now on, and in words why."""

    servers: int
    why: str


class Meter:
    """Sessions per second from a counter that may begin anew."""

    __slots__ = ("_epoch", "_read_s", "_total")

    def __init__(self) -> None:
        self._epoch = ""
        self._read_s = 0.0
        self._total: int | None = None

    def read(self, now_s: float, epoch: str, total: int) -> float | None:
        """The rate since the last reading; None when that cannot be known.

        epoch: names this life of the counter (a process): a counter that begins anew has
        another one, or is smaller than it was.  A reading that fails is simply not made: the
        next rate is over the whole time since the last.
        """
        before, since_s = self._total, now_s - self._read_s
        same = epoch == self._epoch
        self._epoch, self._read_s, self._total = epoch, now_s, total
        if before is None or not same or total < before or since_s <= 0:
            return None
        return (total - before) / since_s


class Policy:
    """Decides from samples, `SAMPLES` in each period."""

    def __init__(self, limits: Limits, servers: int) -> None:
        """servers: as many as there are now (brought between the limits)."""
        self.limits = limits
        self._servers = limits.clamped(servers)
        self._recent: deque[float] = deque(maxlen=SAMPLES)
        # Samples without a gap, not older than `calm_s`; and since when there is none.
        self._window: deque[tuple[float, float]] = deque()
        self._calm_since_s: float | None = None
        self._changed_s: float | None = None

    @property
    def servers(self) -> int:
        """What was decided last."""
        return self._servers

    def decide(self, now_s: float, sessions_per_s: float | None) -> Decision:
        """sessions_per_s: of all servers together; None: it was not measured.

        Called once for each sample, with a clock that does not go back.
        """
        if sessions_per_s is None or not 0 <= sessions_per_s < math.inf:
            self._window.clear()
            self._calm_since_s = None
            return Decision(self._servers, "the load was not measured")
        self._recent.append(sessions_per_s)
        load = median_low(self._recent)
        self._remember(now_s, load)
        needed = self.limits.clamped(self._fitting(load, self.limits.target))
        if needed > self._servers:
            step = max(self.limits.step_up, self._servers)
            return self._change(now_s, min(needed, self._servers + step), load)
        peak = max(each for _, each in self._window)
        enough = self.limits.clamped(self._fitting(peak, self.limits.target * self.limits.margin))
        if enough < self._servers and self._may_shrink(now_s):
            return self._change(now_s, max(enough, self._servers - self.limits.step_down), peak)
        return Decision(self._servers, f"{load:.1f} sessions/s need {needed}")

    def _remember(self, now_s: float, load: float) -> None:
        if self._calm_since_s is None:
            self._calm_since_s = now_s
        self._window.append((now_s, load))
        while self._window[0][0] < now_s - self.limits.calm_s:
            self._window.popleft()

    def _fitting(self, load: float, each: float) -> int:
        """Servers on which the load comes to at most `each` per server."""
        # Also for loads whose quotient is no whole number of any sense.
        return math.ceil(min(load / each, float(self.limits.maximum)) - _TINY)

    def _may_shrink(self, now_s: float) -> bool:
        limits = self.limits
        assert self._calm_since_s is not None  # there is a sample
        cool = self._changed_s is None or now_s - self._changed_s >= limits.cool_down_s
        return cool and now_s - self._calm_since_s >= limits.calm_s

    def _change(self, now_s: float, servers: int, load: float) -> Decision:
        why = f"{load:.1f} sessions/s: {servers} servers instead of {self._servers}"
        self._servers = servers
        self._changed_s = now_s
        return Decision(servers, why)


__all__ = ["SAMPLES", "Decision", "Limits", "Meter", "Policy"]
