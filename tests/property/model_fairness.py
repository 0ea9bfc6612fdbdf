"""Weighted DRF over the tree of roles, slow and simple: exact numbers, nothing kept.

For each question everything is added up anew from the grants that are out.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from mesos_py.allocation import Grant
from mesos_py.policy import RolePolicy

Pair = tuple[str, str]  # (framework, role)


@dataclass(frozen=True, order=True)
class Place:
    """Ordered as they are to be asked."""

    level: int
    share: Fraction
    declined: bool
    granted: int
    name: str


@dataclass
class Fairness:
    """`strict`: priorities come before shares.  `declined`, `granted`: what decides
    among equals; whoever is not in them never declined, never got anything."""

    held: list[Grant]
    policies: Mapping[str, RolePolicy]
    totals: Mapping[str, int]
    unfair: Collection[str] = ()
    strict: bool = False
    priorities: Mapping[str, int] = field(default_factory=dict)
    contending: Collection[Pair] = ()
    declined: set[Pair] = field(default_factory=set)
    granted: list[Pair] = field(default_factory=list)

    def first(self, able: Collection[Pair]) -> Pair:
        """Who is to be granted something that all of `able` can use."""
        (winner,) = self._best(able, "", lambda place: place)
        return winner

    def lowest(self, able: Collection[Pair]) -> list[Pair]:
        """The same, but all among whom only what came before decides."""
        return self._best(able, "", lambda place: (place.level, place.share))

    def _best(self, able: Collection[Pair], above: str, key: Callable[[Place], Any]) -> list[Pair]:
        siblings: dict[str, list[Pair]] = {}
        for pair in able:
            siblings.setdefault(child(pair[1], above), []).append(pair)
        found: list[Pair] = []
        for name in _minima(siblings, lambda name: key(self.role(name))):
            inside = siblings[name]
            if all(role == name.removesuffix("/.") for _, role in inside):
                found += _minima(inside, lambda pair: key(self.framework(pair)))
            else:
                found += self._best(inside, name, key)
        return found

    def role(self, name: str) -> Place:
        own = name.endswith("/.")
        role = name.removesuffix("/.")

        def inside(other: str) -> bool:
            return other == role or (not own and other.startswith(role + "/"))

        policy = RolePolicy() if own else self.policies.get(role, RolePolicy())
        share = self._share([grant for grant in self.held if inside(grant.role)])
        willing = [pair for pair in self.contending if inside(pair[1])]
        return Place(
            level=-policy.priority if self.strict else 0,
            share=share / Fraction(policy.weight),
            declined=all(pair in self.declined for pair in willing),
            granted=self._last(pair for pair in self.granted if inside(pair[1])),
            name=name,
        )

    def framework(self, pair: Pair) -> Place:
        own = [grant for grant in self.held if (grant.framework_id, grant.role) == pair]
        return Place(
            level=-self.priorities.get(pair[0], 0) if self.strict else 0,
            share=self._share(own),
            declined=pair in self.declined,
            granted=self._last(each for each in self.granted if each == pair),
            name=pair[0],
        )

    def _last(self, pairs: Iterable[Pair]) -> int:
        wanted = set(pairs)
        return max((n for n, pair in enumerate(self.granted, 1) if pair in wanted), default=0)

    def _share(self, grants: list[Grant]) -> Fraction:
        amounts: dict[str, int] = {}
        for grant in grants:
            for name, milli in grant.resources.scalars.items():
                amounts[name] = amounts.get(name, 0) + milli
        return max(
            (
                Fraction(amount, self.totals[name])
                for name, amount in amounts.items()
                if self.totals.get(name) and name not in self.unfair
            ),
            default=Fraction(0),
        )


def _minima(of: Iterable[Any], key: Callable[[Any], Any]) -> list[Any]:
    keys = {each: key(each) for each in of}
    least = min(keys.values())
    return [each for each in keys if keys[each] == least]


def child(role: str, above: str) -> str:
    """The sibling below `above` to which the role belongs: itself, one above it, or
    "above/." where the role is `above`."""
    if role == above:
        return above + "/."
    rest = role[len(above) + 1 :] if above else role
    first = rest.partition("/")[0]
    return f"{above}/{first}" if above else first


def below(role: str, above: str) -> bool:
    """Whether the role is `above`, or below it; "" is above all."""
    return not above or role == above or role.startswith(above + "/")
