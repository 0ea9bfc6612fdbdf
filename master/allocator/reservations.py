"""Agents that operators keep for a role."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mesos_py.allocation import AgentRow
from mesos_py.policy import RolePolicy, ancestors
from mesos_py.reserved import before_all
from mesos_py.resources import Resources


class Reservations:
    """Which roles have which agents for themselves (`RolePolicy.agents`).

    A name is a host name or an agent's id.  Where a role and one above it name the same
    agent it is the lower one's, since both say that nobody else gets it.  Roles of which
    none is above the other, which operators are not let name one agent, share it.
    """

    def __init__(self, policies: Mapping[str, RolePolicy]) -> None:
        owners: dict[str, list[str]] = {}
        for role, policy in policies.items():
            for name in policy.agents:
                owners.setdefault(name, []).append(role)
        self._owners = {name: frozenset(roles) for name, roles in owners.items()}

    def __bool__(self) -> bool:
        return bool(self._owners)

    def owners(self, agent: AgentRow) -> frozenset[str]:
        """The roles that have it for themselves; empty: it is everybody's."""
        if not self._owners:
            return _NOBODY
        by_id = self._owners.get(agent.agent_id, _NOBODY)
        by_host = self._owners.get(agent.host.hostname, _NOBODY)
        named = by_id | by_host if by_id and by_host else by_id or by_host
        return named if len(named) < 2 else _lowest(named)


def may_use(role: str, owners: Iterable[str]) -> bool:
    """Whether the role is one of the owners, or below one of them."""
    above = ancestors(role)
    return any(owner in above for owner in owners)


def _lowest(roles: frozenset[str]) -> frozenset[str]:
    """Without those that are above another one."""
    return roles - {above for role in roles for above in ancestors(role)[1:]}


_NOBODY: frozenset[str] = frozenset()


def shared_scalars(total: Resources) -> Mapping[str, int]:
    """Scalars of an agent as its operator has divided it.  What was reserved since counts: else
    a part of what is not would be less each time that somebody reserves the rest."""
    if not total.has_reserved:
        return total.scalars
    shared: dict[str, int] = {}
    for key, milli in total.scalars.items():
        name = before_all(key)
        shared[name] = shared.get(name, 0) + milli
    return shared
