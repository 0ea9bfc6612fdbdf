"""What frameworks say they need, and what of it they lack.

A need counts in total: all that a framework holds in the role, offers too, counts
towards it, wherever it is.  It counts towards the first lines first, mandatory ones
before others, since nobody knows which of its tasks belongs to which line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from master.allocator.revocation.amounts import Amounts, add, covers
from mesos_py.allocation import FrameworkRow, Need
from mesos_py.resources import EMPTY, Resources


class Bundle(NamedTuple):
    """`resources` on one agent; `agent_id`: on that one, empty: on any."""

    resources: Resources
    agent_id: str = ""


@dataclass(slots=True)
class Demand:
    """All that a framework needs in one role: how many of each bundle, and in total."""

    bundles: dict[Bundle, int] = field(default_factory=dict)
    total: dict[str, int] = field(default_factory=dict)
    # What was asked for last, and the answer: each cycle asks, and little has changed.
    _last: tuple[Amounts, Mapping[Bundle, int]] | None = field(default=None, compare=False)

    def lacking(self, held: Amounts) -> Mapping[Bundle, int]:
        """The bundles that are not covered by what is held."""
        if self._last is None or self._last[0] != held:
            self._last = dict(held), self._lacking(dict(held))
        return self._last[1]

    def _lacking(self, pool: dict[str, int]) -> dict[Bundle, int]:
        found = {}
        for bundle, count in self.bundles.items():
            scalars = bundle.resources.scalars
            covered = 0
            if covers(pool, scalars):
                covered = min(count, *(pool[name] // milli for name, milli in scalars.items()))
                add(pool, scalars, -covered)
            if covered < count:
                found[bundle] = count - covered
        return found


@dataclass(slots=True)
class Lacking:
    """What a framework is granted before it is anybody else's turn: the bundles that it
    lacks, and no more of each resource than `most`, up to its guarantee."""

    bundles: list[Bundle]
    most: dict[str, int]
    # Whatever it refused before: that was when it lacked less.
    anew: bool = False

    def of(self, agent_id: str, free: Resources) -> Resources:
        """What of the free room there that is; EMPTY if no whole bundle is.  Resources that
        it did not speak of go along, as with any offer."""
        scalars = {name: min(m, self.most.get(name, m)) for name, m in free.scalars.items()}
        scalars = {name: milli for name, milli in scalars.items() if milli}
        part = Resources(scalars, free.ranges, free.sets) if scalars else EMPTY
        fits = any(
            one.agent_id in ("", agent_id) and part.contains(one.resources) for one in self.bundles
        )
        return part if fits else EMPTY

    def take(self, resources: Resources) -> bool:
        """So much was granted; false if nothing is left to be granted.  What is reserved
        counts, as it does once it is held."""
        granted = resources.plain.scalars
        for name in self.most:
            self.most[name] = max(0, self.most[name] - granted.get(name, 0))
        return any(covers(self.most, one.resources.scalars) for one in self.bundles)


def demands(row: FrameworkRow) -> dict[str, Demand]:
    """By role.  Lines without a scalar say nothing that could be counted."""
    found: dict[str, Demand] = {}
    for need in _mandatory_first(row.needs):
        if need.role in row.roles and need.count > 0 and need.resources.scalars:
            demand = found.setdefault(need.role, Demand())
            bundle = Bundle(need.resources, need.agent_id)
            demand.bundles[bundle] = demand.bundles.get(bundle, 0) + need.count
            add(demand.total, need.resources.scalars, need.count)
    return found


def _mandatory_first(needs: Iterable[Need]) -> list[Need]:
    return sorted(needs, key=lambda need: not need.mandatory)
