"""The allocators against slow and simple models of what is fair."""

import random
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from master.allocator.drf import DrfAllocator
from master.allocator.lottery import LotteryAllocator
from master.allocator.priority import PriorityAllocator
from mesos_py.allocation import Allocator, AllocatorOptions, Grant
from mesos_py.policy import RolePolicy
from mesos_py.testing.allocator_harness import AllocatorHarness
from mesos_py.testing.allocator_runs import RandomRun
from tests.property.model_fairness import Fairness, below, child

POLICIES = {
    "r": RolePolicy(priority=1),
    "r/x": RolePolicy(weight=3.0),
    "s": RolePolicy(weight=2.0),
    "t": RolePolicy(weight=3.0, priority=1),
}
BY_SHARES: dict[str, Callable[[AllocatorOptions], Allocator]] = {
    "drf": DrfAllocator,
    "priority": PriorityAllocator,
}
EVERYBODY = {**BY_SHARES, "lottery": LotteryAllocator}
# By shares all take turns; by lot somebody has bad luck now and then: 20 times the mean
# once in half a billion draws.
_SPREAD = {"drf": 2, "priority": 2, "lottery": 20}
# The fast profile plays less of what is long.
_WHOLE = settings().max_examples >= 100


class FairHarness(AllocatorHarness):
    """Checks of each grant that it goes to the lowest weighted dominant share among
    those that can use the agent, all along the tree of roles, with exact numbers and
    all grants before counted; with priorities, among those of the highest."""

    def __init__(
        self, name: str, seed: int, unfair: frozenset[str] = frozenset(), exact: bool = False
    ) -> None:
        options = AllocatorOptions(policies=POLICIES, unfair=unfair, seed=seed)
        super().__init__(BY_SHARES[name](options), options)
        self.model = Fairness(
            held=self.held,
            policies=self.policies,
            totals=self.cluster.cluster_total(),
            unfair=unfair,
            strict=name == "priority",
        )
        self.exact = exact
        self.checked = 0

    def check(self, grant: Grant) -> None:
        super().check(grant)
        free = self.cluster.free(grant.agent_id)
        assert grant.resources == free, "the agent was split"
        able = [
            (framework_id, role)
            for framework_id, role in self.competing()
            if not self.hindrance(framework_id, role, grant.agent_id, free)
        ]
        self.model.contending = set(self.competing())
        self.model.priorities = {one: row.priority for one, row in self.frameworks.items()}
        pair = grant.framework_id, grant.role
        if self.exact:
            assert pair == self.model.first(able)
            self.model.declined.discard(pair)
            self.model.granted.append(pair)
        else:
            assert pair in self.model.lowest(able)
        self.checked += len(able) > 1

    def decline(self, grant: Grant, seconds: float = 5.0) -> None:
        if (grant.framework_id, grant.role) in set(self.competing()):
            self.model.declined.add((grant.framework_id, grant.role))
        super().decline(grant, seconds)

    def revive(self, framework_id: str, *roles: str) -> None:
        super().revive(framework_id, *roles)
        for role in roles or self.frameworks[framework_id].roles:
            self.model.declined.discard((framework_id, role))


@pytest.mark.parametrize("name", BY_SHARES)
@given(
    seed=st.integers(0, 2**32),
    steps=st.integers(1, 400),
    unfair=st.sampled_from([frozenset(), frozenset({"gpus"}), frozenset({"cpus", "mem"})]),
    explain=st.booleans(),
)
def test_each_grant_goes_to_the_lowest_weighted_share_that_can_use_it(
    name, seed, steps, unfair, explain
):
    RandomRun(FairHarness(name, seed, unfair), random.Random(seed), explain=explain).go(steps)


@pytest.mark.parametrize("name", BY_SHARES)
def test_thousands_of_small_clusters_are_dealt_out_as_the_model_says_ties_included(name):
    checked = 0
    clusters = (20 if _WHOLE else 5) * settings().max_examples  # 2,000 but in the fast profile
    for seed in range(clusters):
        checked += dealt(name, seed)
    assert checked > clusters / 2, "too poor to show anything"


ROLES = ("a", "a/b", "a/b/c", "a/d", "e/f", "e/g/h", "i")


def dealt(name: str, seed: int) -> int:
    """One small cluster, where frameworks neither come nor leave.  How many grants had
    somebody else who was able."""
    dice = random.Random(seed)
    h = FairHarness(name, seed, exact=True)
    for number in range(dice.randint(1, 6)):
        h.agent(f"a{number}", f"cpus:{dice.randint(1, 4)};mem:{dice.choice((64, 512))}")
    for number in range(dice.randint(1, 6)):
        roles = dice.sample(ROLES, dice.randint(1, 3))
        h.framework(f"f{number}", *roles, priority=dice.choice((0, 0, 1, -1)))
    for _ in range(dice.randint(1, 30)):
        happens(h, dice)
        h.cycle()
    return h.checked


def happens(h: FairHarness, dice: random.Random) -> None:
    match dice.randint(0, 5):
        case 0:
            weight, priority = dice.choice((0.5, 1.0, 2.0, 3.0)), dice.choice((0, 0, 1, -1))
            role = dice.choice((*ROLES, "e", "e/g"))
            h.rule(role, weight=weight, priority=priority)
        case 1:
            h.revive(dice.choice(list(h.frameworks)))
        case 2 if h.held:
            h.decline(dice.choice(h.held), dice.choice((0.0, 5.0)))
        case 3:
            h.advance(dice.choice((1.0, 5.0)))
        case 4:
            framework_id = dice.choice(list(h.frameworks))
            h.change_framework(framework_id, priority=dice.choice((0, 1)))
        case _ if h.held:
            h.give_back(dice.choice(h.held))


def test_100_000_random_events_keep_the_rules_and_leave_nobody_out():
    # 100,000 but in the fast profile
    steps = (1000 if _WHOLE else 250) * settings().max_examples
    run = RandomRun(AllocatorHarness(DrfAllocator()), random.Random(1))
    run.go(steps)
    assert sum(map(len, run.history)) > steps / 10, "the run was too poor to show anything"


@given(
    weights=st.lists(st.integers(1, 5), min_size=2, max_size=4),
    agents=st.integers(1, 60),
)
@settings(max_examples=min(50, settings().max_examples))
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


@pytest.mark.parametrize("name", ["drf", "priority", "lottery"])
def test_nobody_starves_under_constant_demand(name):
    for seed in range(settings().max_examples // 2):
        kept_waiting(name, seed)


def kept_waiting(name: str, seed: int) -> None:
    """All want all that they can get, and keep it for as long.  Nobody waits for more
    grants to others than some times the number in which chance would have one for it."""
    dice = random.Random(seed)
    policies = {role: RolePolicy(weight=dice.choice((1.0, 2.0, 4.0))) for role in ROLES}
    options = AllocatorOptions(policies=policies, seed=seed)
    h = AllocatorHarness(EVERYBODY[name](options), options)
    roles = {}
    for number in range(dice.randint(2, 8)):
        roles[f"f{number}"] = dice.choice(ROLES)
        h.framework(f"f{number}", roles[f"f{number}"])
    # With priorities those below get nothing while the others want it: that is no fault.
    h.framework("low", "low")
    h.rule("low", priority=-1, weight=0.1)
    for number in range(dice.randint(1, 6)):
        h.agent(f"a{number}", "cpus:1;mem:100")
    waited = dict.fromkeys(roles, 0)
    patience = {
        framework_id: _SPREAD[name] * expected_wait(role, [*roles.values(), "low"], policies)
        + len(h.agents)
        for framework_id, role in roles.items()
    }
    for _ in range(500):
        for grant in h.cycle():
            for framework_id in waited:
                waited[framework_id] += 1
                assert waited[framework_id] <= patience[framework_id]
            if grant.framework_id in waited:
                waited[grant.framework_id] = 0
        h.give_back(h.held[0])


def expected_wait(role: str, all_roles: list[str], policies: dict[str, RolePolicy]) -> float:
    """For one grant, in grants: by weight, or as often as the others where all hold
    nothing, whichever is longer."""
    by_weight, by_turns, above = 1.0, 1.0, ""
    while not above.endswith("/."):
        beside = {child(other, above) for other in all_roles if below(other, above)}
        mine = child(role, above)
        weights = {each: policies.get(each, RolePolicy()).weight for each in beside}
        by_weight *= sum(weights.values()) / weights[mine]
        by_turns *= len(beside)
        above = mine
    return max(by_weight, by_turns) * all_roles.count(role)
