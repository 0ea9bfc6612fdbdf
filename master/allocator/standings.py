"""Where everybody stands, for people who ask.  Slow, and nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from master.allocator.ranking import Positions, Shares
from master.allocator.roles import Role, Roster
from mesos_py.allocation import ClusterView, Standing


class Amounts(NamedTuple):
    """Scalars, in thousandths, as a Standing has them."""

    guarantee: Mapping[str, int] = {}
    limit: Mapping[str, int] = {}
    lacking: Mapping[str, int] = {}


# Of (role, framework id), the id empty for the role itself.
Entitled: TypeAlias = Callable[[str, str], Amounts]


def from_policies(roster: Roster) -> Entitled:
    """What operators say of roles, and nothing of frameworks."""

    def entitled(role: str, framework_id: str) -> Amounts:
        known = roster.roles.get(role) if not framework_id else None
        return Amounts(known.policy.guarantee, known.policy.limit) if known else Amounts()

    return entitled


def standings(
    roster: Roster, positions: Positions, shares: Shares, view: ClusterView, entitled: Entitled
) -> list[Standing]:
    """Of all roles, also those that nobody named, each before its frameworks and the
    roles below it.  Whoever cannot be told of is left out."""
    found = []
    for name in sorted(roster.tree, key=lambda name: name.split("/")):
        role = roster.tree[name]
        for framework_id in ("", *sorted(role.members)):
            try:
                found.append(_standing(role, framework_id, positions, shares, view, entitled))
            except Exception:  # somebody's broken record is not the question here
                continue
    return found


def _standing(
    role: Role,
    framework_id: str,
    positions: Positions,
    shares: Shares,
    view: ClusterView,
    entitled: Entitled,
) -> Standing:
    if framework_id:
        held, weight = view.held(framework_id, role.name), 1.0
        priority = role.members[framework_id].priority
    else:
        held, weight = view.held_under(role.name), role.weight
        priority = role.policy.priority
    out = 0, _beside(role, framework_id)
    position, contenders = positions.get((role.name, framework_id), out)
    amounts = entitled(role.name, framework_id)
    return Standing(
        role=role.name,
        framework_id=framework_id,
        share=shares.of(held),
        weighted_share=shares.of(held, weight),
        weight=weight,
        position=position,
        contenders=contenders,
        priority=priority,
        held={name: milli for name, milli in held.items() if milli},
        guarantee=amounts.guarantee,
        limit=amounts.limit,
        lacking=amounts.lacking,
    )


def _beside(role: Role, framework_id: str) -> int:
    """Among how many it would stand, if it did."""
    if framework_id:
        return len(role.contending)
    above = role.parent
    if above is None:
        return 0
    own = above.parent is not None and bool(above.contending)
    return sum(child.competing > 0 for child in above.children.values()) + own
