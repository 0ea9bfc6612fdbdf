"""What operators say of a role: weight, priority, guarantee, limits, agents of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from mesos_py.errors import InvalidValue
from mesos_py.resources import MAX_SCALAR, MILLI

_NOTHING: Final[Mapping[str, int]] = {}


@dataclass(frozen=True, slots=True)
class RolePolicy:
    """Amounts are scalars in thousandths; a name that is absent says nothing of it.

    `weight`: roles with one parent share in this proportion.  `priority`: the highest
    comes first, with an allocator that knows priorities.  `guarantee`: what the role,
    with the roles below it, gets whenever it wants it.  `limit`: what it never gets
    more of.  `need_limit`: the most that one framework of the role may state as its
    needs.  `agents`: host names or agent ids that are offered to this role, and those
    below it, only.
    """

    weight: float = 1.0
    priority: int = 0
    guarantee: Mapping[str, int] = field(default_factory=dict)
    limit: Mapping[str, int] = field(default_factory=dict)
    need_limit: Mapping[str, int] = field(default_factory=dict)
    agents: frozenset[str] = frozenset()

    def check(self, role: str) -> None:
        """Raises InvalidValue, naming the role and the field, for what cannot be."""
        check_weight(role, self.weight)
        if not -(2**31) <= self.priority < 2**31:
            raise InvalidValue(f"roles[{role}].priority", self.priority, "must be a 32-bit number")
        for what in ("guarantee", "limit", "need_limit"):
            for name, milli in getattr(self, what).items():
                if not 0 <= milli <= MAX_SCALAR * MILLI:
                    text = f"roles[{role}].{what}.{name}"
                    raise InvalidValue(text, milli / MILLI, f"must be from 0 to {MAX_SCALAR}")
        for name, milli in self.guarantee.items():
            most = self.limit.get(name)
            if most is not None and most < milli:
                text = f"roles[{role}].guarantee.{name}"
                raise InvalidValue(text, milli / MILLI, f"is above the limit, {most / MILLI:g}")

    @property
    def is_default(self) -> bool:
        """Whether it says nothing."""
        return self == DEFAULT_POLICY


DEFAULT_POLICY: Final = RolePolicy()


def check_weight(role: str, weight: float) -> None:
    """Raises InvalidValue for a weight that is not a finite number above zero."""
    if not 0 < weight < math.inf:
        raise InvalidValue(f"weights[{role}]", weight, "must be a finite number above zero")


def ancestors(role: str) -> tuple[str, ...]:
    """The role itself and those above it, the nearest first: a/b/c, a/b, a."""
    found = [role]
    while "/" in role:
        role = role.rpartition("/")[0]
        found.append(role)
    return tuple(found)
