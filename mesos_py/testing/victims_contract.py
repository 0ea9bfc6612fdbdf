"""The contract of victim policies, as tests.  For people who write one.

Subclass it in a test module of yours and name your function::

    class TestMyPolicy(VictimsContract):
        policy = staticmethod(my_policy)
"""

from __future__ import annotations

import itertools
import math

from mesos_py.allocation import Tenant
from mesos_py.resources import Resources
from mesos_py.victims import Victim, VictimPolicy

_VICTIMS = [
    Victim(Tenant("f", "*", "t", Resources.of(cpus=1), -math.inf, cost), ran_s, share, over)
    for cost, ran_s, share, over in itertools.product(
        (None, 0.0, 7.5, 1e12), (0.0, 0.25, 1e9, math.inf), (0.0, 0.01, 1.0), (0.0, 0.5, 1.0)
    )
]


class VictimsContract:
    """See the module's docstring."""

    policy: VictimPolicy

    def test_every_victim_has_a_cost_that_can_be_compared_and_added(self) -> None:
        for victim in _VICTIMS:
            assert 0 <= self.policy(victim) <= math.inf, victim

    def test_the_same_victim_costs_the_same(self) -> None:
        assert [self.policy(victim) for victim in _VICTIMS] == [
            self.policy(victim) for victim in _VICTIMS
        ]

    def test_it_becomes_no_cheaper_while_its_framework_is_taken_from(self) -> None:
        for before, after in itertools.pairwise(_VICTIMS):
            if before.over < after.over:
                assert self.policy(before) >= self.policy(after), after
