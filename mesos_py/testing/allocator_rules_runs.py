"""Random histories in which operators make rules and change them."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from mesos_py.allocation import AllocatorOptions, Need
from mesos_py.policy import RolePolicy
from mesos_py.resources import Resources
from mesos_py.testing.allocator_harness import AllocatorHarness
from mesos_py.testing.allocator_runs import RandomRun


class RuledRun(RandomRun):
    """As RandomRun, with guarantees, limits, reservations and mandatory needs."""

    roles = ("a", "a/x", "a/x/u", "a/y", "b/z", "c")
    ruled_above = ("b",)
    # What is granted on agents of its own lets a role need less elsewhere.
    passing = frozenset({"outranked", "quota"})

    def __init__(
        self, harness: AllocatorHarness, dice: random.Random, explain: bool = False
    ) -> None:
        super().__init__(harness, dice, explain)
        self._choices += [(3, self._rule), (2, self._need)]

    def _rule(self) -> None:
        role = self.dice.choice((*self.roles, *self.ruled_above))
        before = self.harness.policies.get(role, RolePolicy())
        guarantee, limit, agents = before.guarantee, before.limit, before.agents
        weight = before.weight
        match self.dice.randint(0, 4):
            case 0:
                guarantee, limit, agents = {}, {}, frozenset()
                weight = self.dice.choice((1.0, 2.0))
            case 1 | 2:
                guarantee = self._amounts(8)
            case 3:
                limit = self._amounts(16)
            case _:
                known = [*self.harness.agents, "elsewhere"]
                agents = frozenset(self.dice.sample(known, self.dice.randint(0, 1)))
        limit = {name: max(milli, guarantee.get(name, 0)) for name, milli in limit.items()}
        self.harness.rule(role, weight=weight, guarantee=guarantee, limit=limit, agents=agents)

    def _amounts(self, most: int) -> dict[str, int]:
        amounts = {}
        if self.dice.random() < 0.8:
            amounts["cpus"] = 1000 * self.dice.randint(0, most)
        if self.dice.random() < 0.3:
            amounts["mem"] = 1000 * self.dice.choice((100, 1000, 8000))
        if self.dice.random() < 0.1:
            amounts["gpus"] = 1000 * self.dice.randint(0, 2)
        return amounts

    def _need(self) -> None:
        if not self.harness.frameworks:
            return
        framework_id = self._framework()
        role = self.dice.choice(self.harness.frameworks[framework_id].roles)
        cpus = self.dice.randint(1, 8)
        need = Need(role, Resources.of(cpus=cpus), self.dice.randint(1, 3), mandatory=True)
        needs = self.dice.choice(((), (need,), (replace(need, mandatory=False),)))
        self.harness.change_framework(framework_id, needs=needs)


def random_options(dice: random.Random) -> AllocatorOptions:
    """Some of the rules that hold for all roles alike."""
    chosen: dict[str, Any] = {"seed": dice.randint(0, 1000)}
    if dice.random() < 0.3:
        chosen["min_offer_share"] = dice.choice((0.1, 0.5, 1.0))
    if dice.random() < 0.4:
        chosen["max_offer"] = dice.choice(
            (Resources.of(cpus=2), Resources.of(cpus=1, mem=100), Resources.of(mem=1000))
        )
    if dice.random() < 0.4:
        chosen["short_share"] = dice.choice((0.1, 0.25, 0.5))
    return AllocatorOptions(**chosen)
