"""What operators say of roles: merged, checked, stored, and then in effect.

Several changes at once are carried out together or not at all.  What is decided is
stored before anything follows from it; until then the next change builds on it
(`decided_policies`), and offers are still made by what was stored before (`policies`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from google.protobuf.message import Message

from master.allocator.base import PolicyChanged
from master.core import needs
from master.core import offers as offering
from master.core.cluster import Cluster
from master.core.feasibility import Problem, Side, problems
from master.core.records import Agent
from master.core.registry import ROLE, WEIGHT
from mesos_py.clock import Now
from mesos_py.errors import Conflict, InsufficientResources, InvalidValue, shown
from mesos_py.ids import check_role
from mesos_py.policy import (
    DEFAULT_POLICY,
    RolePolicy,
    is_under,
    policy_from_proto,
    policy_to_proto,
)
from mesos_py.resources import Resources
from mesos_py.v1 import registry_pb2 as reg
from mesos_py.v1 import types_pb2 as pb

# The fields of a RolePolicy on the wire, and their names here.
FIELDS: Final = {
    "weight": "weight",
    "priority": "priority",
    "guarantees": "guarantee",
    "limits": "limit",
    "need_limits": "need_limit",
    "agents": "agents",
}
_WIRE: Final = {ours: wire for wire, ours in FIELDS.items()}


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be said of one role from now on, under `fields` (empty: under all).

    `where` is what errors call it.
    """

    role: str
    policy: pb.RolePolicy
    fields: tuple[str, ...] = ()
    where: str = ""


def weight_changes(weights: Mapping[str, float]) -> list[Change]:
    """As changes that say nothing but weights."""
    return [
        Change(role, pb.RolePolicy(weight=weight), ("weight",), f"weight_infos[{role}]")
        for role, weight in weights.items()
    ]


def update(
    c: Cluster,
    changes: Iterable[Change],
    force: bool,
    then: Callable[[Now], None],
    now: Now,
) -> None:
    """Carry out all changes, or none of them; `then` follows once they are in effect.

    `force`: take guarantees that the agents of now cannot keep together.  Raises
    InvalidValue for what cannot be said, Conflict (InsufficientResources, where agents
    that come would do) for what cannot hold together, and TooLarge; nothing has changed
    then.
    """
    decided = dict(c.decided_policies)
    records: dict[str, Message | None] = {}
    changed: dict[str, RolePolicy] = {}
    names: dict[str, str] = {}
    for change in changes:
        role = check_role("role", change.role)
        if role in changed:
            raise InvalidValue("role", role, "is in the call twice")
        names[role] = change.where or f"changes[{role}].policy"
        merged = changed[role] = _merged(c, change, names[role])
        records.update(_records(c, change, merged))
        decided[role] = merged
        if merged.is_default:
            del decided[role]
    _require_feasible(c, decided, names, force)
    before, c.decided_policies = c.decided_policies, decided

    def stored(now: Now) -> None:
        take_effect(c, changed, now)
        then(now)

    try:
        c.registry.write(records, stored, now)
    except Exception:
        c.decided_policies = before
        raise


def _merged(c: Cluster, change: Change, where: str) -> RolePolicy:
    """All that is said of the role with the change.  Raises InvalidValue."""
    for name in change.fields:
        if name not in FIELDS:
            known = ", ".join(FIELDS)
            raise InvalidValue(f"changes[{change.role}].fields", name, f"is none of {known}")
    given = policy_from_proto(where, change.policy)
    if not change.policy.HasField("weight"):
        # Nothing is said of it any more: what the flags of this master say holds.
        given = replace(given, weight=c.unspoken_policy(change.role).weight)
    old = c.decided_policies.get(change.role, DEFAULT_POLICY)
    kept = {FIELDS[name] for name in FIELDS if change.fields and name not in change.fields}
    merged = replace(given, **{name: getattr(old, name) for name in kept})
    try:
        merged.check(change.role)
    except InvalidValue as error:
        raise InvalidValue(
            f"{where}.{_wire_field(error.field)}", error.value, error.reason
        ) from None
    return merged


def _wire_field(field: str) -> str:
    """What RolePolicy.check calls `roles[web].limit.cpus` is `limits.cpus` on the wire."""
    if field.startswith("weights["):
        return "weight"
    ours, dot, name = field.rpartition("].")[2].partition(".")
    return f"{_WIRE[ours]}{dot}{name}"


def _records(c: Cluster, change: Change, merged: RolePolicy) -> dict[str, Message | None]:
    """How the registry is to hold it: what is as if nothing had been said has no record."""
    made: dict[str, Message | None] = {}
    fields = change.fields or tuple(FIELDS)
    if "weight" in fields:
        said = change.policy.HasField("weight")
        # What the flags say comes back with the next master, unless it is told otherwise.
        default = merged.weight == c.unspoken_policy(change.role).weight == DEFAULT_POLICY.weight
        weight = reg.Weight(weight=merged.weight) if said and not default else None
        made[WEIGHT + change.role] = weight
    if set(fields) - {"weight"}:
        made[ROLE + change.role] = role_record(merged)
    return made


def role_record(policy: RolePolicy) -> reg.Role | None:
    """All but the weight, which has a record of its own; None if that says nothing."""
    rest = replace(policy, weight=DEFAULT_POLICY.weight)
    if rest.is_default:
        return None
    message = policy_to_proto(rest)
    message.ClearField("weight")
    return reg.Role(policy=message)


def read_role(role: str, record: reg.Role) -> RolePolicy:
    """What a record says of the role.  Raises InvalidValue for what cannot be."""
    policy = replace(policy_from_proto("policy", record.policy), weight=DEFAULT_POLICY.weight)
    policy.check(role)
    return policy


# ---- What can hold -------------------------------------------------------------------


def _require_feasible(
    c: Cluster, decided: Mapping[str, RolePolicy], names: Mapping[str, str], force: bool
) -> None:
    """Raises for what cannot hold and could before, or has become worse by the changes:
    what agents that went have made impossible must not stand in the way of others."""
    total, hosts = {}, {}
    if any(policy.guarantee for policy in decided.values()):
        total = _cluster_total(c)
    if any(policy.agents for policy in decided.values()):
        hosts = _hosts(c)
    before = {each.rule: each.excess for each in problems(c.decided_policies, total, hosts)}
    for problem in problems(decided, total, hosts):
        worse = problem.excess > before.get(problem.rule, 0)
        if worse and not (force and problem.forceable):
            raise _error(problem, names)


def _error(problem: Problem, names: Mapping[str, str]) -> Conflict:
    side = next((each for each in problem.sides if each.role in names), problem.sides[0])
    field = f"{names.get(side.role, f'roles[{side.role}]')}.{side.field}"
    value = side.value if problem.name else shown(side.value)
    text = f"{field}: {value}: {side.reason}"
    if not problem.forceable:
        return Conflict(text, field=field, value=side.value)
    return InsufficientResources(
        f"{text} (can be forced)",
        field=field,
        value=side.value,
        name=problem.name,
        wanted=problem.wanted / 1000,
        there=problem.there / 1000,
    )


def _cluster_total(c: Cluster) -> dict[str, int]:
    """What the agents have that are here, and those that are to come back."""
    amounts = dict(c.ledger.cluster_total())
    for expected in c.expected.values():
        there = Resources.from_proto("agent_info.resources", expected.info.resources)
        for name, milli in there.plain.scalars.items():
            amounts[name] = amounts.get(name, 0) + milli
    return amounts


def _hosts(c: Cluster) -> dict[str, list[str]]:
    hosts: dict[str, list[str]] = {}
    known = [(agent_id, agent.info) for agent_id, agent in c.agents.items()]
    known.extend((agent_id, expected.info) for agent_id, expected in c.expected.items())
    for agent_id, info in known:
        hosts.setdefault(info.hostname, []).append(agent_id)
    return hosts


def unknown_agents(c: Cluster, policy: RolePolicy) -> list[str]:
    """Agents that the policy names and of which nothing is known here (yet)."""
    if not policy.agents:
        return []
    hosts = _hosts(c)
    known = {agent_id for ids in hosts.values() for agent_id in ids}
    return sorted(text for text in policy.agents if text not in hosts and text not in known)


# ---- Effects -------------------------------------------------------------------------


def take_effect(c: Cluster, changed: Mapping[str, RolePolicy], now: Now) -> None:
    """From now on offers are made by this.  Offers that are out and should not be are
    rescinded, and no others; what runs is not touched."""
    before = {role: c.policy(role) for role in changed}
    for role, policy in changed.items():
        if policy.is_default:
            c.policies.pop(role, None)
        else:
            c.policies[role] = policy
        c.allocator.tell(PolicyChanged(role, policy))
    needs.policy_changed(c, now)
    if c.offers:
        for role, policy in changed.items():
            _rescind_reserved(c, role, policy.agents - before[role].agents, now)
            _rescind_above_limit(c, role, before[role], policy, now)
        _rescind_outranked(c, before, now)
    c.want_allocation(now)


def _rescind_reserved(c: Cluster, role: str, agents: frozenset[str], now: Now) -> None:
    """Agents are kept for a role that were not before."""
    if not agents:
        return
    for offer in list(c.offers.values()):
        if not is_under(offer.role, role) and _is_one_of(c.agents[offer.agent_id], agents):
            offering.rescind(c, offer, f"the agent is reserved for {role}", now)


def _is_one_of(agent: Agent, named: frozenset[str]) -> bool:
    return agent.agent_id in named or agent.info.hostname in named


def _rescind_above_limit(
    c: Cluster, role: str, before: RolePolicy, policy: RolePolicy, now: Now
) -> None:
    """The newest offers to the role and those below it, until its new limit is kept."""
    lowered = [
        name for name, most in policy.limit.items() if most < before.limit.get(name, math.inf)
    ]

    def above() -> list[str]:
        held = c.ledger.held_under(role)
        return [name for name in lowered if held.get(name, 0) > policy.limit[name]]

    over = above()
    for offer in reversed(list(c.offers.values())) if over else ():
        if is_under(offer.role, role) and any(name in offer.resources.scalars for name in over):
            offering.rescind(c, offer, f"{role} has a lower limit", now)
            over = above()
            if not over:
                return


def _rescind_outranked(c: Cluster, before: Mapping[str, RolePolicy], now: Now) -> None:
    """Offers to roles that stood before one that wants something, and stand behind it by
    the new weights, until they do not (a departure from Mesos, which rescinds all)."""
    changed = {role for role, old in before.items() if old.weight != c.policy(role).weight}
    if not changed:
        return
    shares = c.allocator.shares(c.ledger)

    def old_share(role: str) -> float:
        ratio = c.policy(role).weight / before[role].weight if role in changed else 1.0
        return shares[role] * ratio

    def passed(loser: str, winner: str) -> bool:
        return (
            (winner in changed or loser in changed)
            # Weights decide among equals only, where priorities decide anything.
            and c.policy(winner).priority == c.policy(loser).priority
            and old_share(loser) <= old_share(winner)
            and shares[loser] > shares[winner]
        )

    for parent in {_parent(role) for role in changed}:
        beside = [role for role in shares if _parent(role) == parent]
        winners = [role for role in beside if _wants(c, role)]
        found = ((next((w for w in winners if passed(each, w)), None), each) for each in beside)
        for winner, loser in [(w, each) for w, each in found if w is not None]:
            _rescind_until_behind(c, loser, winner, now)


def _rescind_until_behind(c: Cluster, loser: str, winner: str, now: Now) -> None:
    """The newest offers first, twice as many each time: shares are slow to ask for."""
    offers = [offer for offer in c.offers.values() if is_under(offer.role, loser)]
    count, shares = 1, c.allocator.shares(c.ledger)
    while offers and shares[loser] > shares[winner]:
        offers, newest = offers[:-count], offers[-count:]
        for offer in reversed(newest):
            offering.rescind(c, offer, f"{winner} comes before {loser} by its weight now", now)
        count, shares = 2 * count, c.allocator.shares(c.ledger)


def _parent(role: str) -> str:
    return role.rpartition("/")[0]


def _wants(c: Cluster, role: str) -> bool:
    """Whether somebody in the role, or below it, may be offered something."""
    return any(
        framework.connected
        and any(
            is_under(each, role) and each not in framework.suppressed for each in framework.roles
        )
        for framework in c.frameworks.values()
    )


__all__ = [
    "FIELDS",
    "Change",
    "Side",
    "read_role",
    "role_record",
    "take_effect",
    "unknown_agents",
    "update",
    "weight_changes",
]
