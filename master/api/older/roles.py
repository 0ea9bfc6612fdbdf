"""What /roles says that each role has, together with those below it.

Amounts are in thousandths; of ports and of the items of sets their number is counted, as
Mesos counts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from master.core.cluster import Cluster
from mesos_py import ranges
from mesos_py.http.shapes import reserved_by_role
from mesos_py.policy import ancestors
from mesos_py.resources import Resources


@dataclass(slots=True)
class Standing:
    """Of one role.  `held` has the offers in it; `unused` is what of the reserved is offered
    at most."""

    offered: Counter[str] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)
    reserved: Counter[str] = field(default_factory=Counter)
    unused: Counter[str] = field(default_factory=Counter)


class Standings:
    """Of all roles, as they are now."""

    def __init__(self, c: Cluster) -> None:
        self._ledger = c.ledger
        self._found: dict[str, Standing] = {}
        for offer in c.offers.values():
            plain = offer.resources.plain
            counted = _counted(plain)
            for standing in self._of(offer.role):
                standing.offered.update(plain.scalars)
                standing.offered.update(counted)
                standing.held.update(counted)
        # By the very role first, so that the tree is gone up once for each role: there may be
        # tens of thousands of agents.
        held: dict[str, Counter[str]] = {}
        for agent in c.agents.values():
            for holder, bundle in c.ledger.allocations(agent.agent_id).items():
                plain = bundle.plain
                if plain.ranges or plain.sets:
                    held.setdefault(holder.role, Counter()).update(_counted(plain))
            if agent.total.has_reserved and agent.unreachable is None:
                unused = agent.total - c.ledger.allocated(agent.agent_id)
                self._reserve(agent.total, unused)

        for role, counted in held.items():
            for standing in self._of(role):
                standing.held.update(counted)

    def of(self, role: str) -> Standing:
        found = self._found.get(role, Standing())
        held = found.held + Counter(self._ledger.held_under(role))
        return Standing(found.offered, held, found.reserved, found.unused)

    def _of(self, role: str) -> list[Standing]:
        return [self._found.setdefault(name, Standing()) for name in ancestors(role)]

    def _reserve(self, whole: Resources, unused: Resources) -> None:
        for role, own in reserved_by_role(whole).items():
            for standing in self._of(role):
                standing.reserved.update({**own.plain.scalars, **_counted(own.plain)})
        for role, own in reserved_by_role(unused).items():
            for standing in self._of(role):
                standing.unused.update({**own.plain.scalars, **_counted(own.plain)})


def _counted(plain: Resources) -> Mapping[str, int]:
    """Of what has no amount, how much it is."""
    return {
        **{name: 1000 * ranges.count(some) for name, some in plain.ranges.items()},
        **{name: 1000 * len(items) for name, items in plain.sets.items()},
    }
