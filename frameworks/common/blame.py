"""Agents on which too much fails are left alone for a while."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

# Failures so close to each other have one cause.
TOGETHER_S: Final = 1.0


class Blame:
    """Failures per agent, of one job or of all: with `limit` of them within `window_s` the
    agent is excluded for `window_s`.  Those within a second are one: a worker that ends takes
    all that ran in it along, and each is told by itself."""

    def __init__(self, limit: int, window_s: float) -> None:
        self._limit = limit
        self._window_s = window_s
        self._failures: dict[str, deque[float]] = {}
        self._until_s: dict[str, float] = {}

    def failed(self, agent_id: str, at_s: float) -> bool:
        """Whether the agent is excluded because of this failure."""
        times = self._failures.setdefault(agent_id, deque(maxlen=self._limit))
        if not times or at_s - times[-1] >= TOGETHER_S:
            times.append(at_s)
        if len(times) < self._limit or at_s - times[0] > self._window_s:
            return False
        # It begins anew afterwards: one more failure alone does not exclude it again.
        del self._failures[agent_id]
        self._until_s[agent_id] = max(at_s + self._window_s, self._until_s.get(agent_id, at_s))
        return True

    def excluded(self, agent_id: str, now_s: float) -> bool:
        until_s = self._until_s.get(agent_id)
        return until_s is not None and now_s < until_s

    def __bool__(self) -> bool:
        """Whether there may be any exclusion."""
        return bool(self._until_s)

    def until_s(self, agent_id: str) -> float:
        """When its exclusion ends; 0.0 if there is none."""
        return self._until_s.get(agent_id, 0.0)

    def failures(self, agent_id: str) -> int:
        """Those that count towards the next exclusion."""
        return len(self._failures.get(agent_id, ()))

    def agents(self) -> set[str]:
        """Those with failures or an exclusion."""
        return {*self._failures, *self._until_s}

    def expire(self, now_s: float) -> bool:
        """Drop what is over.  Whether any exclusion has ended."""
        over = [agent for agent, until_s in self._until_s.items() if until_s <= now_s]
        for agent in over:
            del self._until_s[agent]
        return bool(over)

    def forget(self, agent_id: str) -> None:
        """It will not be there again."""
        self._failures.pop(agent_id, None)
        self._until_s.pop(agent_id, None)

    def lift(self, agents: Iterable[str]) -> None:
        """End the exclusions of these: there is nobody else."""
        for agent in agents:
            self._until_s.pop(agent, None)
