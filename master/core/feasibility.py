"""Whether what operators say of roles can hold together.

Pure: policies and totals in, what is wrong out.  Amounts are scalars in thousandths.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from mesos_py.policy import DEFAULT_POLICY, RolePolicy, ancestors, is_under
from mesos_py.resources import milli_text

Policies = Mapping[str, RolePolicy]


class Side(NamedTuple):
    """One role that a problem is about, and how the problem looks from there."""

    role: str
    field: str
    value: str
    reason: str


class Problem(NamedTuple):
    """Something that cannot hold.

    `rule` names it for good; `excess` is by how much it fails, so that what was so
    before can be told from what has become worse.  `forceable`: agents that come may
    make it hold.  `name` is the scalar, `wanted` and `there` its amounts.
    """

    rule: tuple[str, ...]
    excess: int
    sides: tuple[Side, ...]
    name: str = ""
    wanted: int = 0
    there: int = 0
    forceable: bool = False


def problems(
    policies: Policies, total: Mapping[str, int], hosts: Mapping[str, Collection[str]]
) -> Iterator[Problem]:
    """All that cannot hold of `policies`.

    `total`: what the cluster has.  `hosts`: the known agents, ids by host name.
    """
    names = sorted({name for policy in policies.values() for name in policy.guarantee})
    for name in names:
        yield from _guarantees(policies, name, total.get(name, 0))
    yield from _limits(policies)
    yield from _reservations(policies, hosts)


def _above(role: str) -> tuple[str, ...]:
    return ancestors(role)[1:]


def _guarantees(policies: Policies, name: str, total: int) -> Iterator[Problem]:
    """Of one scalar: each is part of the nearest one above it, or of the cluster."""
    # By role, and "" for the cluster: the guarantees below it with no other between.
    below: dict[str, list[str]] = {}
    for role in sorted(role for role, policy in policies.items() if name in policy.guarantee):
        for above in _above(role):
            below.setdefault(above, []).append(role)
            if above in policies and name in policies[above].guarantee:
                break
        else:
            below.setdefault("", []).append(role)
    for parent, roles in sorted(below.items()):
        wanted = sum(policies[role].guarantee[name] for role in roles)
        come_to = f"come to {milli_text(wanted)} {name}"
        policy = policies.get(parent, DEFAULT_POLICY)
        if not parent:
            what, there = "", total
            reason = f"all guarantees {come_to}, the cluster has {milli_text(there)}"
        elif name in policy.guarantee:
            what, there = "guarantees", policy.guarantee[name]
            reason = f"the guarantees below {parent} {come_to}, {parent} has {milli_text(there)}"
        elif name in policy.limit:
            what, there = "limits", policy.limit[name]
            reason = f"the guarantees below {parent} {come_to}, its limit is {milli_text(there)}"
        else:
            continue
        if wanted <= there:
            continue
        sides = [_side(role, "guarantees", name, policies, reason) for role in roles]
        if parent:
            sides.append(_side(parent, what, name, policies, f"the guarantees below it {come_to}"))
        rule = ("guarantees", parent, what, name)
        excess = wanted - there
        yield Problem(rule, excess, tuple(sides), name, wanted, there, forceable=not parent)


def _limits(policies: Policies) -> Iterator[Problem]:
    for role, policy in sorted(policies.items()):
        for above in _above(role):
            theirs = policies[above].limit if above in policies else {}
            for name in sorted(policy.limit.keys() & theirs.keys()):
                wanted, there = policy.limit[name], theirs[name]
                if wanted <= there:
                    continue
                high = f"is above the limit of {above}, {milli_text(there)}"
                low = f"is below the limit of {role}, {milli_text(wanted)}"
                sides = (
                    _side(role, "limits", name, policies, high),
                    _side(above, "limits", name, policies, low),
                )
                rule = ("limits", role, above, name)
                yield Problem(rule, wanted - there, sides, name, wanted, there)


def _side(role: str, what: str, name: str, policies: Policies, reason: str) -> Side:
    policy = policies[role]
    amounts = policy.guarantee if what == "guarantees" else policy.limit
    return Side(role, f"{what}.{name}", milli_text(amounts[name]), reason)


def _reservations(policies: Policies, hosts: Mapping[str, Collection[str]]) -> Iterator[Problem]:
    """An agent may be named by its id or its host; both are the same agent."""
    kept: dict[str, list[tuple[str, str]]] = {}
    for role, policy in sorted(policies.items()):
        for text in sorted(policy.agents):
            for agent in (text, *hosts.get(text, ())):
                kept.setdefault(agent, []).append((role, text))
    seen: set[tuple[str, ...]] = set()
    for pairs in kept.values():
        for at, (role, text) in enumerate(pairs):
            for other, theirs in pairs[:at]:
                rule = ("agents", other, role, theirs, text)
                if is_under(role, other) or is_under(other, role) or rule in seen:
                    continue
                seen.add(rule)
                sides = (
                    Side(role, "agents", text, f"is reserved for {other}"),
                    Side(other, "agents", theirs, f"is reserved for {role}"),
                )
                yield Problem(rule, 1, sides)
