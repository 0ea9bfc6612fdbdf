"""Workers that were told to end, until it is known that they have.  Pure.

The order to end is lost with a link, and does not reach an agent that is cut off; a worker
that never got it would keep its resources for as long as the framework lives.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from frameworks.mapreduce.tracker.cleaning import Spot

AGAIN_S: Final = 30.0
# One that has not answered for so long was gone before it was asked; of an agent that is cut
# off, when it does not come back for so long.
FORGET_S: Final = 600.0
CUT_OFF_S: Final = 24 * 3600.0


class Departures:
    def __init__(self) -> None:
        self._until: dict[Spot, float] = {}
        self._next_s: dict[Spot, float] = {}

    def asked(self, spot: Spot, now_s: float, *, told: bool) -> None:
        """It is to end.  told: the order has just been sent; else it is due."""
        self._until[spot] = now_s + FORGET_S
        self._next_s[spot] = now_s + AGAIN_S if told else now_s

    def heard(self, spot: Spot, now_s: float) -> None:
        """It speaks, and should not be there: it was started once more, by a launch that met its
        end, and nobody counts on it."""
        if spot not in self._until:
            self.asked(spot, now_s, told=False)

    def cut_off(self, spots: Iterable[Spot], now_s: float) -> None:
        """They are to end when their agent is there again, of which nobody is told."""
        for spot in spots:
            self._until[spot] = now_s + CUT_OFF_S
            self._next_s[spot] = now_s + AGAIN_S

    def ended(self, spot: Spot) -> None:
        self._until.pop(spot, None)
        self._next_s.pop(spot, None)

    def linked(self, now_s: float) -> None:
        """Orders sent before may have been lost."""
        self._next_s = dict.fromkeys(self._until, now_s)

    def due(self, now_s: float) -> list[Spot]:
        """Those to be told (again)."""
        for spot in [each for each, until_s in self._until.items() if now_s >= until_s]:
            self.ended(spot)
        found = [spot for spot, at_s in self._next_s.items() if now_s >= at_s]
        for spot in found:
            self._next_s[spot] = now_s + AGAIN_S
        return found

    def next_s(self) -> float | None:
        return min(self._next_s.values(), default=None)


__all__ = ["Departures"]
