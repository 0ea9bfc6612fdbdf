"""The default allocator against a slow and simple oracle of fairness."""

import random
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from master.allocator.drf import DrfAllocator
from mesos_py.allocation import AllocatorOptions, Grant
from mesos_py.policy import RolePolicy
from mesos_py.testing.allocator_harness import AllocatorHarness
from mesos_py.testing.allocator_runs import RandomRun

WEIGHTS = {"s": 2.0, "t": 3.0}
POLICIES = {role: RolePolicy(weight=weight) for role, weight in WEIGHTS.items()}


class FairHarness(AllocatorHarness):
    """Checks of each grant that it goes to the lowest weighted dominant share among
    those that can use the agent, with exact numbers and all grants before counted."""

    def __init__(self, seed: int, unfair: frozenset[str] = frozenset()) -> None:
        options = AllocatorOptions(policies=POLICIES, unfair=unfair, seed=seed)
        super().__init__(DrfAllocator(options), options)

    def check(self, grant: Grant) -> None:
        super().check(grant)
        free = self.cluster.free(grant.agent_id)
        assert grant.resources == free, "the agent was split"
        able = [
            (framework_id, role)
            for framework_id, role in self.competing()
            if not self.hindrance(framework_id, role, grant.agent_id, free)
        ]
        role_share = self.role_share(grant.role)
        assert role_share == min(self.role_share(role) for _, role in able)
        own_share = self.own_share(grant.framework_id, grant.role)
        assert own_share == min(self.own_share(*pair) for pair in able if pair[1] == grant.role)

    def role_share(self, role: str) -> Fraction:
        weight = Fraction(WEIGHTS.get(role, 1.0))
        return self._share(self.cluster.held_by_role(role)) / weight

    def own_share(self, framework_id: str, role: str) -> Fraction:
        return self._share(self.cluster.held(framework_id, role))

    def _share(self, held) -> Fraction:
        totals = self.cluster.cluster_total()
        parts = [
            Fraction(amount, totals[name])
            for name, amount in held.items()
            if totals.get(name) and name not in self.options.unfair
        ]
        return max(parts, default=Fraction(0))


@given(
    seed=st.integers(0, 2**32),
    steps=st.integers(1, 400),
    unfair=st.sampled_from([frozenset(), frozenset({"gpus"}), frozenset({"cpus", "mem"})]),
    explain=st.booleans(),
)
def test_each_grant_goes_to_the_lowest_weighted_share_that_can_use_it(seed, steps, unfair, explain):
    RandomRun(FairHarness(seed, unfair), random.Random(seed), explain=explain).go(steps)


def test_100_000_random_events_keep_the_rules_and_leave_nobody_out():
    steps = 1000 * settings().max_examples  # 100,000 but in the fast profile
    run = RandomRun(AllocatorHarness(DrfAllocator()), random.Random(1))
    run.go(steps)
    assert sum(map(len, run.history)) > steps / 10, "the run was too poor to show anything"


@given(
    weights=st.lists(st.integers(1, 5), min_size=2, max_size=4),
    agents=st.integers(1, 60),
)
@settings(max_examples=50)
def test_equal_agents_are_dealt_out_by_weight(weights, agents):
    options = AllocatorOptions(
        policies={f"r{n}": RolePolicy(weight=float(w)) for n, w in enumerate(weights)}
    )
    h = AllocatorHarness(DrfAllocator(options), options)
    for number in range(len(weights)):
        h.framework(f"f{number}", f"r{number}")
    for number in range(agents):
        h.agent(f"a{number}", "cpus:1;mem:100")
    h.cycle()
    got = [sum(g.framework_id == f"f{n}" for g in h.held) for n in range(len(weights))]
    for mine, weight in zip(got, weights, strict=True):
        for others, other_weight in zip(got, weights, strict=True):
            # Nobody would have been better served by the other's last agent.
            assert Fraction(mine - 1, weight) <= Fraction(others, other_weight)
