"""How long a framework may think about an offer, and what its silence costs it.

The time begins short, doubles when an offer is left unanswered until it is over, and is
halved by answers that came in half of it or less: what half the time would have cut off
does not shorten it, or a framework that always needs three seconds would lose every
second offer.  Offers are judged by the time that they were given themselves, so that many
which end together count once.

Whoever lets an offer expire, and has answered none since it was made, is offered nothing
for a while, in proportion to how long he may sit on the next one: at no time has he kept
more than `DUTY` of the cluster from the others since then.  Whoever has answered others
is there, and just did not want that one: it counts as declined, for twice the time that
he sat on it.
"""

from __future__ import annotations

import math
from typing import Final

# The part of the time in which a framework that never answers may hold offers.
DUTY: Final = 0.04


class Patience:
    """With one framework.  Times in seconds; `most_s` 0: offers never expire."""

    __slots__ = ("_answered_s", "_first_s", "_most_s", "silent_until_s", "timeout_s")

    def __init__(self, first_s: float, most_s: float) -> None:
        """`first_s` is never above `most_s`; 0: it does not adapt."""
        self._most_s = max(0.0, most_s)
        self._first_s = min(first_s, self._most_s) if first_s > 0 else self._most_s
        # What the next offer is given.
        self.timeout_s = self._first_s
        # When it last answered an offer.
        self._answered_s = -math.inf
        # Until when nothing is offered, on the monotonic clock; None: it is.
        self.silent_until_s: float | None = None

    @property
    def silent(self) -> bool:
        return self.silent_until_s is not None

    def expired(self, given_s: float, made_s: float, now_s: float) -> float | None:
        """An offer that was given `given_s` was not answered.  Until when nothing is
        offered now; None: it answered others since `made_s`, so it is there."""
        self.timeout_s = max(self.timeout_s, min(self._most_s, 2 * given_s))
        if self._answered_s >= made_s:
            return None
        until_s = now_s + self.timeout_s * (1 / DUTY - 1)
        self.silent_until_s = max(until_s, self.silent_until_s or until_s)
        return self.silent_until_s

    def answered(self, given_s: float, took_s: float, now_s: float) -> None:
        """An offer that was given `given_s` was accepted or declined after `took_s`."""
        self._answered_s = now_s
        if took_s <= given_s / 2:
            self.timeout_s = min(self.timeout_s, max(self._first_s, given_s / 2))

    def heard(self) -> bool:
        """It has said something.  Whether it was being left alone."""
        was = self.silent
        self.silent_until_s = None
        return was
