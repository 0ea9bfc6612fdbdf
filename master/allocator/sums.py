"""What is free in all, kept up to date agent by agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mesos_py.reserved import is_reserved, plain_name, role_of
from mesos_py.resources import Resources

# What is free on such an agent is in no sum.
UNCOUNTED: Final = None
# It is everybody's.
SHARED: Final = ""


class ReservedSums:
    """Scalars by plain name, in thousandths, that are reserved for roles and free, on active
    agents: by the role that each is reserved for."""

    def __init__(self) -> None:
        self._agents: dict[str, dict[str, dict[str, int]]] = {}
        self._roles: dict[str, dict[str, int]] = {}

    def put(self, agent_id: str, free: Resources) -> None:
        """All that is free there now."""
        for role, amounts in self._agents.pop(agent_id, {}).items():
            _add(self._roles, role, amounts, -1)
        if not free.has_reserved:
            return
        found = self._agents[agent_id] = reserved_scalars(free)
        for role, amounts in found.items():
            _add(self._roles, role, amounts, 1)

    def by_role(self) -> Mapping[str, Mapping[str, int]]:
        return self._roles


def reserved_scalars(bundle: Resources) -> dict[str, dict[str, int]]:
    """What of it is reserved: by role, and by plain name."""
    found: dict[str, dict[str, int]] = {}
    for key, milli in bundle.scalars.items():
        if is_reserved(key):
            amounts, name = found.setdefault(role_of(key), {}), plain_name(key)
            amounts[name] = amounts.get(name, 0) + milli
    return found


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
        if pool is not None and free:
            _add(self._pools, pool, free, sign)


def _add(
    sums_of: dict[str, dict[str, int]], key: str, amounts: Mapping[str, int], sign: int
) -> None:
    """What comes to zero is not kept, neither an amount nor whose it was."""
    sums = sums_of.setdefault(key, {})
    for name, milli in amounts.items():
        left = sums.get(name, 0) + sign * milli
        if left:
            sums[name] = left
        else:
            sums.pop(name, None)
    if not sums:
        del sums_of[key]
