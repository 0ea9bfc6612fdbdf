"""Who waits does not stand in the way of others who do.  Pure.

What a framework is guaranteed depends on who competes.  Two jobs that need the whole cluster,
and both compete, are guaranteed half of it each, for ever.  So a job that is guaranteed
less than it needs withdraws now and then, for times that the caller draws: sooner or
later one competes alone, and runs.

The same with offers.  Jobs that each hold a part of what they need get no further as long
as there are many of them, so each withdraws with what it gives back, for twice as long
each time, as stations on an Ethernet do: sooner or later few enough are left.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from frameworks.common.gang import Ask, over
from mesos_py import Resources

# Guarantees are told about once a second.
CONTEND_S: Final = 2.5
REST_S: Final = 1.0
# A pause of 0.7 s becomes one of 22 s at most: enough for dozens of jobs.
MOST_DOUBLINGS: Final = 5


class Turn(Enum):
    """What to do now."""

    CONTEND = "contend"
    REST = "rest"


class Contest:
    """Takes turns for one job; begins by competing."""

    def __init__(self, ask: Ask, *, beyond: bool) -> None:
        """beyond: the guaranteed share does not matter."""
        self._ask = ask
        self._beyond = beyond
        self.contending = True
        self._until_s: float | None = None
        self._collisions = 0

    def short(self, share: Resources) -> str:
        """Why the job is not to run with this share; "" if it may."""
        if self._beyond:
            return ""
        if not share:
            return f"needs {self._ask.whole}; is guaranteed nothing at the moment"
        return over(self._ask, share, "is guaranteed at the moment")

    def collided(self, now_s: float, hold_s: float, draw: float) -> None:
        """What was held was not enough, and is given back: withdraw, which `look` ends.

        hold_s: for how long such is held at least.  draw: a random number from 0 to 1.
        """
        pause_s = hold_s * (0.5 + draw) * 2 ** min(self._collisions, MOST_DOUBLINGS)
        self._collisions += 1
        self.contending, self._until_s = False, now_s + pause_s

    def look(self, share: Resources, now_s: float, draw: float) -> Turn | None:
        """What to do differently from now on; draw: a random number from 0 to 1."""
        if not self.contending:
            if self._until_s is not None and now_s >= self._until_s:
                self.contending, self._until_s = True, None
                return Turn.CONTEND
            return None
        if not self.short(share):
            self._until_s = None
            return None
        if self._until_s is None:
            self._until_s = now_s + CONTEND_S * (1 + draw)
        if now_s < self._until_s:
            return None
        self.contending, self._until_s = False, now_s + REST_S * (0.5 + 3 * draw)
        return Turn.REST
