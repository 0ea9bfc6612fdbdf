"""Agents that operators keep for a role."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mesos_py.allocation import AgentRow
from mesos_py.policy import RolePolicy, ancestors


class Reservations:
    """Which roles have which agents for themselves (`RolePolicy.agents`).

    A name is a host name or an agent's id.  Several roles may name one agent: each of
    them, with the roles below it, may use it then, and nobody else.
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
        return by_id | by_host if by_id and by_host else by_id or by_host


def may_use(role: str, owners: Iterable[str]) -> bool:
    """Whether the role is one of the owners, or below one of them."""
    above = ancestors(role)
    return any(owner in above for owner in owners)


_NOBODY: frozenset[str] = frozenset()
