"""The order in which frameworks are asked: weighted dominant resource fairness.

A dominant share is the largest part of any one resource of the whole cluster that
somebody holds, offered or allocated (Ghodsi et al., NSDI 2011, section 4).  Roles form
a tree ("a/b" is below "a"), and siblings compete: the one with the lowest share of all
that is held in it and below it, divided by its weight, comes first; then it is the turn
of those below it, and in a role without others below it that of the framework with the
lowest share.  A role with frameworks of its own and with roles below it competes there
as one more sibling, of weight 1, with what its own frameworks hold (the virtual leaf
"." of Mesos, sorter/drf/sorter.cpp).

Where shares are equal, as they are among all who hold nothing, whoever handed back its
last grant untouched comes last, and else whoever was granted something longest ago
comes first; names decide the rest.  Of a role this is asked with those below it.

Mesos counts grants instead of looking at the last one.  With counts a newcomer is
preferred until it has caught up with everybody's past, and idle frameworks, whose
filters run out again and again, come before one that has work and held something
a moment ago.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterator, Mapping
from operator import attrgetter, itemgetter
from typing import Final, Protocol, TypeAlias

from master.allocator.roles import Contender, Role
from mesos_py.allocation import ClusterView
from mesos_py.policy import ancestors
from mesos_py.resources import Resources

# Level (the lowest first), share, has declined, number of the last grant, name.
Key: TypeAlias = tuple[int, float, bool, int, str]
Tie: TypeAlias = tuple[bool, int, str]
# Told who failed and how: the framework's id and the exception.
OnFailure: TypeAlias = Callable[[str, Exception], None]

_by_key: Final = attrgetter("key")
# (role, framework) -> (position, contenders) as a Standing of the interface has them;
# without a framework: of the role.
Positions: TypeAlias = Mapping[tuple[str, str], tuple[int, int]]

# From how many candidates per one wanted it pays to sort the wanted ones instead of
# walking over all.
_SPARSE: Final = 8


class Shares:
    """Dominant shares against the totals of one moment."""

    def __init__(self, totals: Mapping[str, int], unfair: Collection[str]) -> None:
        self._totals = {
            name: total for name, total in totals.items() if total > 0 and name not in unfair
        }
        self._scaled: dict[float, Mapping[str, float]] = {}

    def scaled(self, weight: float) -> Mapping[str, float]:
        """The totals times the weight: one division gives a weighted share, and
        equal shares stay equal where weights are whole."""
        known = self._scaled.get(weight)
        if known is None:
            known = {name: total * weight for name, total in self._totals.items()}
            self._scaled[weight] = known
        return known

    def of(self, held: Mapping[str, int], weight: float = 1.0) -> float:
        return dominant(held, self.scaled(weight))


def dominant(held: Mapping[str, int], totals: Mapping[str, float]) -> float:
    share = 0.0
    if held:
        for name, total in totals.items():
            share = max(share, held.get(name, 0) / total)
    return share


class Place:
    """Where one role, or one framework in its role, stands during a cycle."""

    __slots__ = ("_held", "_own", "_totals", "key", "share")

    def __init__(
        self, held: Mapping[str, int], totals: Mapping[str, float], level: int, tie: Tie
    ) -> None:
        self._held = held
        self._own: dict[str, int] | None = None
        self._totals = totals
        self.share = dominant(held, totals)
        self.key: Key = (level, self.share, *tie)

    def take(self, granted: Resources, number: int) -> None:
        # What the view showed is not ours to change.
        held = self._own
        if held is None:
            held = self._own = dict(self._held)
        share = self.share
        for name, milli in granted.plain.scalars.items():
            held[name] = amount = held.get(name, 0) + milli
            total = self._totals.get(name)
            if total is not None and amount / total > share:
                share = amount / total
        self.share = share
        self.key = (self.key[0], share, False, number, self.key[4])


class FrameworkPlace(Place):
    """`group`: the place of its role in which it stands."""

    __slots__ = ("contender", "group")

    contender: Contender
    group: RolePlace


class RolePlace(Place):
    """A role with those below it, or (`own`) the frameworks of a role among those."""

    __slots__ = ("above", "below", "branches", "frameworks", "own", "role", "siblings")

    role: Role
    own: bool
    branches: bool
    above: RolePlace | None
    # The list in which it stands.
    siblings: list[RolePlace]
    # In order; None until somebody wants to know.  `below` where it branches.
    below: list[RolePlace] | None
    frameworks: list[FrameworkPlace] | None


class Order(Protocol):
    """Who is asked before whom during one cycle."""

    def walk(
        self, only: Collection[Contender] | None = None, agent_id: str = ""
    ) -> Iterator[Contender]:
        """Whoever comes first on that agent, first; of `only` these.  Over before the
        next `charge`."""
        ...

    def charge(self, contender: Contender, granted: Resources) -> None:
        """Note a grant, which the view does not show yet."""
        ...

    def why_behind(self, contender: Contender, winner: Contender) -> str:
        """What puts the winner before the contender, in words that follow "comes
        first: "."""
        ...

    def positions(self) -> Positions:
        """Where all that contend stand among those beside them.  Slow: for operators."""
        ...


class Ranking:
    """All contenders in order, kept in order while grants are made.

    What the view says is taken once per cycle, and only of roles whose parent's turn
    came; grants are added on top, since the ledger learns of them only afterwards.
    Nothing outside is changed.
    """

    def __init__(
        self,
        root: Role,
        view: ClusterView,
        shares: Shares,
        grants_made: int,
        on_failure: OnFailure,
    ) -> None:
        self._view = view
        self._shares = shares
        self._totals = shares.scaled(1.0)
        self._on_failure = on_failure
        self._number = grants_made
        self._size = root.competing
        # Of roles that branch the places that have their frameworks are in `_own`.
        self._by_role: dict[str, RolePlace] = {}
        self._own: dict[str, RolePlace] = {}
        self._by_contender: dict[Contender, FrameworkPlace] = {}
        self._top = self._children(root, None)

    # ---- What another order may say differently --------------------------

    def level_of_role(self, role: Role) -> int:
        """Among siblings those with the lowest level come first, whatever they hold."""
        return 0

    def level_of(self, contender: Contender) -> int:
        """The same among the frameworks of one role."""
        return 0

    def level_text(self, winner: int, other: int) -> str:
        """What is said where the levels decide."""
        return f"level {winner} before {other}"

    # ---- Order ------------------------------------------------------------

    def walk(
        self, only: Collection[Contender] | None = None, agent_id: str = ""
    ) -> Iterator[Contender]:
        if only is not None and len(only) * _SPARSE < self._size:
            yield from self._sorted(only)
            return
        for frameworks in self._groups():
            for place in frameworks:
                if only is None or place.contender in only:
                    yield place.contender

    def charge(self, contender: Contender, granted: Resources) -> None:
        """Note a grant: the shares of the framework and of all roles on the path to it
        grow, and they move back."""
        self._number += 1
        place = self._place(contender)
        if place is None:
            return
        frameworks = self._frameworks(place.group)
        del frameworks[bisect_left(frameworks, place.key, key=_by_key)]
        place.take(granted, self._number)
        insort(frameworks, place, key=_by_key)
        node: RolePlace | None = place.group
        while node is not None:
            siblings = node.siblings
            del siblings[bisect_left(siblings, node.key, key=_by_key)]
            node.take(granted, self._number)
            insort(siblings, node, key=_by_key)
            node = node.above

    def why_behind(self, contender: Contender, winner: Contender) -> str:
        pairs = zip(self._path(winner), self._path(contender), strict=False)
        for theirs, mine in pairs:
            if theirs is not mine:
                break
        else:
            return "its record can be used"
        text = f"share {theirs.share:.3f} against {mine.share:.3f}"
        if theirs.key[0] != mine.key[0]:
            text = self.level_text(theirs.key[0], mine.key[0])
        elif theirs.share == mine.share:
            text = f"the same share, {mine.share:.3f}, and waiting longer"
        if isinstance(theirs, RolePlace) and isinstance(mine, RolePlace):
            names = theirs.role.name, mine.role.name
            if names != (winner.role, contender.role):
                text += f", of role {names[0]!r} and role {names[1]!r}"
        return text

    def positions(self) -> Positions:
        found: dict[tuple[str, str], tuple[int, int]] = {}
        waiting = [self._top]
        while waiting:
            siblings = waiting.pop()
            for position, node in enumerate(siblings, 1):
                if not node.own:
                    found[node.role.name, ""] = position, len(siblings)
                if node.branches:
                    waiting.append(self._below(node))
                    continue
                frameworks = self._frameworks(node)
                for own_position, place in enumerate(frameworks, 1):
                    key = node.role.name, place.contender.framework_id
                    found[key] = own_position, len(frameworks)
        return found

    # ---- The tree ---------------------------------------------------------

    def _groups(self) -> Iterator[list[FrameworkPlace]]:
        """The frameworks of one role after the other, in order."""
        waiting = [iter(self._top)]
        while waiting:
            for node in waiting[-1]:
                if node.branches:
                    waiting.append(iter(self._below(node)))
                    break
                yield self._frameworks(node)
            else:
                waiting.pop()

    def _below(self, node: RolePlace) -> list[RolePlace]:
        if node.below is None:
            node.below = self._children(node.role, node)
        return node.below

    def _children(self, role: Role, above: RolePlace | None) -> list[RolePlace]:
        siblings: list[RolePlace] = []
        for child in role.children.values():
            if child.competing:
                self._add(child, above, siblings)
        if role.contending:
            self._add(role, above, siblings, own=True)
        siblings.sort(key=_by_key)
        return siblings

    def _add(
        self, role: Role, above: RolePlace | None, siblings: list[RolePlace], own: bool = False
    ) -> None:
        try:
            if own:
                place = RolePlace(
                    self._view.held_by_role(role.name),
                    self._totals,
                    0,
                    (role.own_declined(), role.own_granted_at, role.name + "/."),
                )
            else:
                place = RolePlace(
                    self._view.held_under(role.name),
                    self._shares.scaled(role.weight),
                    self.level_of_role(role),
                    (role.declined(), role.granted_at, role.name),
                )
        except Exception as error:
            for node in (role,) if own else role.subtree():
                for framework_id in node.contending:
                    self._on_failure(framework_id, error)
            return
        place.role = role
        place.own = own
        place.branches = not own and role.branches
        place.above = above
        place.siblings = siblings
        place.below = place.frameworks = None
        siblings.append(place)
        (self._own if own else self._by_role)[role.name] = place

    def _frameworks(self, node: RolePlace) -> list[FrameworkPlace]:
        if node.frameworks is None:
            node.frameworks = []
            for framework_id, contender in node.role.contending.items():
                try:
                    place = FrameworkPlace(
                        self._view.held(framework_id, contender.role),
                        self._totals,
                        self.level_of(contender),
                        (contender.declined, contender.granted_at, framework_id),
                    )
                except Exception as error:
                    self._on_failure(framework_id, error)
                    continue
                place.contender = contender
                place.group = node
                node.frameworks.append(place)
                self._by_contender[contender] = place
            node.frameworks.sort(key=_by_key)
        return node.frameworks

    # ---- One of them --------------------------------------------------------

    def _place(self, contender: Contender) -> FrameworkPlace | None:
        """None: the share of it or of a role above it cannot be told, or it contends no
        more."""
        place = self._by_contender.get(contender)
        if place is None:
            node = self._group(contender.role)
            if node is not None:
                self._frameworks(node)
            place = self._by_contender.get(contender)
        return place

    def _group(self, role_name: str) -> RolePlace | None:
        node = None
        for name in reversed(ancestors(role_name)):
            node = self._by_role.get(name)
            if node is None:
                return None
            if node.branches:
                self._below(node)
        return self._own.get(role_name) if node is not None and node.branches else node

    def _path(self, contender: Contender) -> list[Place]:
        """From the top down to the framework; empty where it cannot be told."""
        place = self._place(contender)
        if place is None:
            return []
        path: list[Place] = [place]
        above: RolePlace | None = place.group
        while above is not None:
            path.append(above)
            above = above.above
        return path[::-1]

    def _sorted(self, only: Collection[Contender]) -> list[Contender]:
        found: list[tuple[tuple[Key, ...], Contender]] = []
        for contender in only:
            place = self._place(contender)
            if place is None:
                continue
            if place.group.above is None:
                found.append(((place.group.key, place.key), contender))
            else:
                found.append((tuple(each.key for each in self._path(contender)), contender))
        found.sort(key=itemgetter(0))
        return [contender for _, contender in found]
