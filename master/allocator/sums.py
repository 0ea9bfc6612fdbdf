"""What is free in all, kept up to date agent by agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# What is free on such an agent is in no sum.
UNCOUNTED: Final = None
# It is everybody's.
SHARED: Final = ""


class FreeSums:
    """Scalars, in thousandths, that are free on active agents, without a scan.

    Each agent counts to one pool: what everybody may have (SHARED), what one role has
    for itself (the role's name), or none (UNCOUNTED).
    """

    def __init__(self) -> None:
        self._agents: dict[str, tuple[str | None, Mapping[str, int]]] = {}
        self._pools: dict[str, dict[str, int]] = {}

    def put(self, agent_id: str, pool: str | None, free: Mapping[str, int]) -> None:
        """All that is free there now.  `free` is kept; nobody may change it."""
        known = self._agents.get(agent_id)
        if known is not None:
            if known[0] == pool and known[1] is free:
                return
            self._add(known[0], known[1], -1)
        self._agents[agent_id] = (pool, free)
        self._add(pool, free, 1)

    def drop(self, agent_id: str) -> None:
        known = self._agents.pop(agent_id, None)
        if known is not None:
            self._add(known[0], known[1], -1)

    def pools(self) -> Mapping[str, Mapping[str, int]]:
        return self._pools

    def _add(self, pool: str | None, free: Mapping[str, int], sign: int) -> None:
        if pool is None or not free:
            return
        sums = self._pools.setdefault(pool, {})
        for name, milli in free.items():
            left = sums.get(name, 0) + sign * milli
            if left:
                sums[name] = left
            else:
                sums.pop(name, None)
        if not sums:
            del self._pools[pool]
