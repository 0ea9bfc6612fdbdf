"""The order in which frameworks are asked: weighted dominant resource fairness.

A dominant share is the largest part of any one resource of the whole cluster that
somebody holds, offered or allocated.  The role with the lowest share (divided by
its weight) comes first, and in it the framework with the lowest share.  Where
shares are equal, as they are among all who hold nothing, whoever handed back its
last grant untouched comes last, and else whoever was granted something longest
ago comes first; names decide the rest.

Mesos counts grants instead of looking at the last one.  With counts a newcomer is
preferred until it has caught up with everybody's past, and idle frameworks, whose
filters run out again and again, come before one that has work and held something
a moment ago.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterator, Mapping
from operator import attrgetter
from typing import Final, Protocol, TypeAlias

from master.allocator.roles import Contender, Role
from mesos_py.allocation import ClusterView
from mesos_py.resources import Resources

Key: TypeAlias = tuple[float, bool, int, str]
# Told who failed and how: the framework's id and the exception.
OnFailure: TypeAlias = Callable[[str, Exception], None]

_by_key: Final = attrgetter("key")
# From how many candidates per one wanted it pays to sort the wanted ones instead of
# walking over all.
_SPARSE: Final = 8


class Shares:
    """Dominant shares against the totals of one moment."""

    def __init__(self, totals: Mapping[str, int], unfair: Collection[str]) -> None:
        self._totals = {
            name: total for name, total in totals.items() if total > 0 and name not in unfair
        }

    def scaled(self, weight: float) -> Mapping[str, float]:
        """The totals times the weight: one division gives a weighted share, and
        equal shares stay equal where weights are whole."""
        return {name: total * weight for name, total in self._totals.items()}

    def of(self, held: Mapping[str, int], weight: float = 1.0) -> float:
        return dominant(held, self.scaled(weight))


def dominant(held: Mapping[str, int], totals: Mapping[str, float]) -> float:
    share = 0.0
    if held:
        for name, total in totals.items():
            share = max(share, held.get(name, 0) / total)
    return share


class Standing:
    """Where one role, or one framework in its role, stands during a cycle."""

    __slots__ = ("_held", "_own", "_totals", "key", "share")

    def __init__(
        self, held: Mapping[str, int], totals: Mapping[str, float], tie: tuple[bool, int, str]
    ) -> None:
        self._held = held
        self._own: dict[str, int] | None = None
        self._totals = totals
        self.share = dominant(held, totals)
        self.key: Key = (self.share, *tie)

    def take(self, granted: Resources, number: int) -> None:
        # What the view showed is not ours to change.
        held = self._own
        if held is None:
            held = self._own = dict(self._held)
        share = self.share
        for name, milli in granted.scalars.items():
            held[name] = amount = held.get(name, 0) + milli
            total = self._totals.get(name)
            if total is not None and amount / total > share:
                share = amount / total
        self.share = share
        self.key = (share, False, number, self.key[3])


class FrameworkStanding(Standing):
    __slots__ = ("contender",)

    contender: Contender


class RoleStanding(Standing):
    __slots__ = ("frameworks", "role")

    role: Role
    # In order; None until somebody wants to know.
    frameworks: list[FrameworkStanding] | None


class Order(Protocol):
    """Who is asked before whom during one cycle."""

    def walk(self, only: Collection[Contender] | None = None) -> Iterator[Contender]:
        """Whoever comes first, first; of `only` these.  Over before the next `charge`."""
        ...

    def charge(self, contender: Contender, granted: Resources) -> None:
        """Note a grant, which the view does not show yet."""
        ...

    def shares_of(self, contender: Contender) -> tuple[float, float]:
        """Of the role, weighted, and of the framework in it."""
        ...


class Ranking:
    """All contenders in order, kept in order while grants are made.

    What the view says is taken once per cycle; grants are added on top, since the
    ledger learns of them only afterwards.  Nothing outside is changed.
    """

    def __init__(
        self,
        roles: Mapping[str, Role],
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
        self._roles: list[RoleStanding] = []
        self._by_role: dict[str, RoleStanding] = {}
        self._by_contender: dict[Contender, FrameworkStanding] = {}
        self._size = 0
        for role in roles.values():
            if role.contending:
                self._size += len(role.contending)
                self._add_role(role)
        self._roles.sort(key=_by_key)

    def walk(self, only: Collection[Contender] | None = None) -> Iterator[Contender]:
        """Whoever comes first, first; of `only` these.  Over before the next `charge`."""
        if only is not None and len(only) * _SPARSE < self._size:
            yield from self._sorted(only)
            return
        for role in self._roles:
            for standing in self._frameworks(role):
                if only is None or standing.contender in only:
                    yield standing.contender

    def charge(self, contender: Contender, granted: Resources) -> None:
        """Note a grant: both shares grow, both standings move back."""
        self._number += 1
        role = self._by_role[contender.role]
        frameworks = self._frameworks(role)
        standing = self._by_contender[contender]
        del frameworks[bisect_left(frameworks, standing.key, key=_by_key)]
        standing.take(granted, self._number)
        insort(frameworks, standing, key=_by_key)
        del self._roles[bisect_left(self._roles, role.key, key=_by_key)]
        role.take(granted, self._number)
        insort(self._roles, role, key=_by_key)

    def shares_of(self, contender: Contender) -> tuple[float, float]:
        """Of the role, weighted, and of the framework in it."""
        role = self._by_role[contender.role]
        self._frameworks(role)
        return role.share, self._by_contender[contender].share

    def _add_role(self, role: Role) -> None:
        try:
            standing = RoleStanding(
                self._view.held_under(role.name),
                self._shares.scaled(role.weight),
                (role.declined(), role.granted_at, role.name),
            )
        except Exception as error:
            for framework_id in role.contending:
                self._on_failure(framework_id, error)
            return
        standing.role = role
        standing.frameworks = None
        self._roles.append(standing)
        self._by_role[role.name] = standing

    def _frameworks(self, role: RoleStanding) -> list[FrameworkStanding]:
        if role.frameworks is None:
            role.frameworks = []
            for framework_id, contender in role.role.contending.items():
                try:
                    standing = FrameworkStanding(
                        self._view.held(framework_id, contender.role),
                        self._totals,
                        (contender.declined, contender.granted_at, framework_id),
                    )
                except Exception as error:
                    self._on_failure(framework_id, error)
                    continue
                standing.contender = contender
                role.frameworks.append(standing)
                self._by_contender[contender] = standing
            role.frameworks.sort(key=_by_key)
        return role.frameworks

    def _sorted(self, only: Collection[Contender]) -> list[Contender]:
        found: list[tuple[Key, Key, Contender]] = []
        for contender in only:
            role = self._by_role.get(contender.role)
            if role is None:
                continue
            self._frameworks(role)
            standing = self._by_contender.get(contender)
            if standing is not None:
                found.append((role.key, standing.key, contender))
        found.sort(key=lambda item: item[:2])
        return [contender for _, _, contender in found]
