"""What every framework is guaranteed, per resource.

A role for which an operator has set a guarantee gets that, and divides it: what roles
below it have set for themselves is theirs, the rest goes by weight to the other roles
below and to its own frameworks, which together weigh as much as one role of weight 1.
All that no guarantee takes, whether it is used or not, is divided in the same way from
the top (`fair_guarantee`), but scarce resources, of which nobody has a fair share.
Inside a role all frameworks get the same.

Only those count that compete, hold something or state needs: so a guarantee is what a
framework gets when everybody who is there wants as much as he can have, the sharing
incentive of dominant resource fairness (Ghodsi et al., NSDI 2011, section 3).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from math import frexp, ldexp
from typing import TypeAlias

from master.allocator.revocation.amounts import Amounts, add
from master.allocator.roles import Contender, Role, Roster
from mesos_py.allocation import AllocatorOptions, ClusterView
from mesos_py.policy import DEFAULT_POLICY, RolePolicy, ancestors

_NOTHING: Amounts = {}
# Whether a framework states needs in a role of its.
States: TypeAlias = Callable[[str, str], bool]
OnFailure: TypeAlias = Callable[[str, Exception], None]


@dataclass(slots=True)
class _Node:
    name: str
    policy: RolePolicy = DEFAULT_POLICY
    children: list[_Node] = field(default_factory=list)
    members: list[Contender] = field(default_factory=list)
    # All that it and those below get.
    amounts: dict[str, int] = field(default_factory=dict)

    def set_aside(self, name: str) -> int:
        """What guarantees of this role, or else of those below, take of the resource."""
        own = self.policy.guarantee.get(name)
        return own if own is not None else sum(child.set_aside(name) for child in self.children)

    def shares(self, name: str) -> bool:
        """Whether somebody here or below has no guarantee of the resource but this."""
        return bool(self.members) or any(
            name not in child.policy.guarantee and child.shares(name) for child in self.children
        )


class Guarantees:
    """The guarantees of one moment.  Takes as long as there are roles and frameworks."""

    def __init__(
        self,
        roster: Roster,
        view: ClusterView,
        options: AllocatorOptions,
        states_needs: States,
        on_failure: OnFailure,
        reserved: Amounts = _NOTHING,
    ) -> None:
        """`reserved`: so much of the cluster is somebody's already, and nobody's fair share."""
        self._view = view
        self._states_needs = states_needs
        self._on_failure = on_failure
        self._by_pair: dict[tuple[str, str], dict[str, int]] = {}
        self._by_framework: dict[str, dict[str, int]] = {}
        self._nodes: dict[str, _Node] = {}
        root = self._tree(roster.roles.values())
        totals = view.cluster_total()
        named = {name for role in roster.roles.values() for name in role.policy.guarantee}
        for name in sorted({name for name, total in totals.items() if total > 0} | named):
            left = 0
            if options.fair_guarantee and name not in options.unfair:
                shared = totals.get(name, 0) - reserved.get(name, 0)
                left = max(0, shared - root.set_aside(name))
            self._give(root, name, left, options.fair_guarantee)

    def of(self, framework_id: str, role: str) -> Amounts:
        """Of the framework in that role.  Names that are absent are nobody's business:
        neither an operator nor a fair share says anything of them."""
        return self._by_pair.get((framework_id, role), _NOTHING)

    def of_framework(self, framework_id: str) -> Amounts:
        """In all its roles together."""
        return self._by_framework.get(framework_id, _NOTHING)

    def of_role(self, role: str) -> Amounts:
        """Of the role with those below it: what its operator set, else what they get."""
        node = self._nodes.get(role)
        return {**node.amounts, **node.policy.guarantee} if node is not None else _NOTHING

    def by_framework(self) -> dict[str, dict[str, int]]:
        """All that are guaranteed something."""
        found = {}
        for framework_id, amounts in self._by_framework.items():
            some = {name: milli for name, milli in amounts.items() if milli}
            if some:
                found[framework_id] = some
        return found

    def _tree(self, roles: Collection[Role]) -> _Node:
        root = _Node("")
        for role in roles:
            below: _Node | None = None
            for name in ancestors(role.name):
                node = self._nodes.get(name)
                known = node is not None
                if node is None:
                    node = self._nodes[name] = _Node(name)
                if below is not None:
                    node.children.append(below)
                if known:
                    below = None
                    break
                below = node
            if below is not None:
                root.children.append(below)
            node = self._nodes[role.name]
            node.policy = role.policy
            node.members = [one for one in role.members.values() if self._counts(one)]
        return root

    def _counts(self, contender: Contender) -> bool:
        try:
            return (
                contender.contending
                or self._states_needs(contender.framework_id, contender.role)
                or any(self._view.held(contender.framework_id, contender.role).values())
            )
        except Exception as error:
            self._on_failure(contender.framework_id, error)
            return False

    def _give(self, node: _Node, name: str, amount: int, said: bool) -> None:
        """Divide the amount among those that have no guarantee of their own below."""
        sharing = [
            child
            for child in node.children
            if name not in child.policy.guarantee and child.shares(name)
        ]
        parts = _parts([child.policy.weight for child in sharing], bool(node.members))
        weight = sum(parts)
        if node.members and said:
            each = int(amount * parts[-1] / weight) // len(node.members)
            for member in node.members:
                pair = member.framework_id, member.role
                self._by_pair.setdefault(pair, {})[name] = each
                add(self._by_framework.setdefault(member.framework_id, {}), {name: each})
            node.amounts[name] = each * len(node.members)
        part_of = dict(zip((child.name for child in sharing), parts, strict=False))
        for child in node.children:
            own = child.policy.guarantee.get(name)
            if own is not None:
                below = sum(grandchild.set_aside(name) for grandchild in child.children)
                self._give(child, name, max(0, own - below), said=True)
            elif child.name in part_of:
                self._give(child, name, int(amount * part_of[child.name] / weight), said)
            else:
                self._give(child, name, 0, said)
            if name in child.amounts:
                add(node.amounts, {name: child.amounts[name]})


def _parts(weights: list[float], own: bool) -> list[float]:
    """In the proportion of the weights, and at the end of 1 for the `own` frameworks of the
    role; none above 1, so that no sum is infinite.  Powers of two round nothing."""
    both = [*weights, 1.0] if own else weights
    _, exponent = frexp(max(both, default=1.0))
    return [ldexp(weight, -exponent) for weight in both]
