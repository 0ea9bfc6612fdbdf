"""Attempts of which the master has said nothing since the link is there.  Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Final

# They are asked for again after these pauses.
PAUSES_S: Final = (2.0, 5.0, 10.0, 20.0, 40.0, 60.0)


class Unheard:
    def __init__(self) -> None:
        # By attempt, on which agent it was.
        self._agents: dict[str, str] = {}
        self._times = 0
        self._next_s = 0.0

    def linked(self, attempts: Iterable[tuple[str, str]], now_s: float) -> None:
        """A link begins: nothing was heard of these (attempt, agent), and they are due."""
        self._agents = dict(attempts)
        self._times = 0
        self._next_s = now_s

    def heard(self, attempt: str) -> None:
        self._agents.pop(attempt, None)

    def due(self, living: Container[str], now_s: float) -> list[tuple[str, str]]:
        """Those to be asked for now; of those that are not `living` nothing is wanted any more."""
        if not self._agents or now_s < self._next_s:
            return []
        self._agents = {key: agent for key, agent in self._agents.items() if key in living}
        self._next_s = now_s + PAUSES_S[min(self._times, len(PAUSES_S) - 1)]
        self._times += 1
        return list(self._agents.items())

    def next_s(self) -> float | None:
        return self._next_s if self._agents else None


__all__ = ["Unheard"]
