"""The rules of operators against simple models, and how they leave alone who makes none."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from master.allocator.admission import Packing
from master.allocator.drf import DrfAllocator
from master.allocator.quota import Quota
from master.allocator.reservations import Reservations
from master.allocator.room import Part, Room
from mesos_py.allocation import AgentRow, AllocatorOptions, FrameworkRow, Need
from mesos_py.constraints import Host
from mesos_py.policy import RolePolicy, ancestors
from mesos_py.resources import Resources
from mesos_py.testing.allocator_harness import AllocatorHarness
from mesos_py.testing.allocator_rules_runs import RuledRun, random_options
from mesos_py.testing.allocator_runs import RandomRun

ROLES = ("a", "a/x", "a/x/u", "a/y", "b", "b/z/w")


@given(seed=st.integers(0, 2**32), steps=st.integers(1, 300), explain=st.booleans())
@settings(max_examples=min(40, settings().max_examples))
def test_rules_are_kept_and_nobody_is_left_out(seed, steps, explain):
    dice = random.Random(seed)
    options = random_options(dice)
    RuledRun(AllocatorHarness(DrfAllocator(options), options), dice, explain=explain).go(steps)


class PlainRoom(Room):
    """Whoever comes first gets all that is free."""

    def part(self, contender, agent, free, stage="long", taken=None, *, enough=True):
        return Part(free, whole=free)


class PlainAllocator(DrfAllocator):
    def __init__(self, options):
        super().__init__(options)
        self._room = PlainRoom(self.options, self.roster, self._agents)


@pytest.mark.parametrize("seed", range(8))
def test_without_rules_grants_are_those_of_an_allocator_that_knows_none(seed):
    histories = []
    steps = min(1000, 15 * settings().max_examples)  # 1,000 but in the fast profile
    for make in (DrfAllocator, PlainAllocator):
        options = AllocatorOptions(policies={"s": RolePolicy(weight=2.0)}, seed=seed)
        h = AllocatorHarness(make(options), options)
        run = RandomRun(h, random.Random(seed), explain=seed % 2 == 0)
        run.go(steps)
        histories.append(run.history)
    assert histories[0] == histories[1]
    # Little is granted at first, when there are few agents.
    assert sum(map(len, histories[0])) > (100 if steps == 1000 else 10)


amount = st.integers(0, 6)
policies = st.dictionaries(
    st.sampled_from(ROLES),
    st.tuples(amount, amount, st.booleans()).map(
        lambda drawn: RolePolicy(
            guarantee={"cpus": drawn[0]} if drawn[0] else {},
            limit={"cpus": max(drawn[:2])} if drawn[2] else {},
        )
    ),
)


class View:
    """What roles hold, from what was granted one by one."""

    def __init__(self):
        self.taken = {}

    def take(self, role, amount):
        self.taken[role] = self.taken.get(role, 0) + amount

    def held_under(self, role):
        return {"cpus": sum(n for one, n in self.taken.items() if role in ancestors(one))}


@given(
    policies=policies,
    free=st.integers(0, 30),
    takes=st.lists(st.tuples(st.sampled_from(ROLES), st.integers(1, 6)), max_size=12),
)
def test_grants_told_one_by_one_come_to_the_same_as_a_new_cycle(policies, free, takes):
    view, told = View(), Quota(policies)
    told.begin(view, {"": {"cpus": free}})
    for role, wanted in takes:
        cap = told.caps(role, own=False).get("cpus")
        amount = wanted if cap is None else min(wanted, cap.most)
        amount = min(amount, free)
        told.charge(role, {"cpus": amount}, "")
        view.take(role, amount)
        free -= amount
        anew = Quota(policies)
        anew.begin(view, {"": {"cpus": free}})
        for one in ROLES:
            assert told.caps(one, own=False) == anew.caps(one, own=False)
            assert told.owed(one) == anew.owed(one)


@given(
    policies=policies,
    free=st.integers(0, 30),
    takes=st.lists(st.sampled_from(ROLES), max_size=40),
)
def test_taking_all_that_may_be_had_breaks_no_limit_and_no_guarantee(policies, free, takes):
    view, quota, total = View(), Quota(policies), free
    for role in takes:
        quota.begin(view, {"": {"cpus": free}})
        cap = quota.caps(role, own=False).get("cpus")
        amount = free if cap is None else min(free, cap.most)
        view.take(role, amount)
        free -= amount
    for role, policy in policies.items():
        held = view.held_under(role)["cpus"]
        assert held <= policy.limit.get("cpus", held)
    quota.begin(view, {"": {"cpus": free}})
    still_needed = quota.surplus("cpus")[1]
    needed_first = Quota(policies)
    needed_first.begin(View(), {"": {"cpus": total}})
    if needed_first.surplus("cpus")[1] <= total:
        # What was feasible at first is so still, whoever came when.
        assert still_needed <= free


@given(
    agents=st.lists(st.integers(1, 8), min_size=1, max_size=4),
    items=st.lists(st.integers(1, 8), min_size=1, max_size=5),
)
def test_whoever_is_let_in_can_be_packed_and_nobody_waits_who_fits_alone(agents, items):
    rows = {
        f"a{n}": AgentRow(f"a{n}", Host(f"a{n}", {}), Resources.of(cpus=cpus))
        for n, cpus in enumerate(agents)
    }
    packing = Packing(rows, {}, Reservations({}))
    admitted = []
    for number, cpus in enumerate(items):
        need = Need("*", Resources.of(cpus=cpus), mandatory=True)
        row = FrameworkRow(f"f{number}", "", ("*",), needs=(need,))
        if not packing.admit(row):
            admitted.append(cpus)
        elif not admitted:
            assert cpus > max(agents)
    assert fits(tuple(agents), tuple(admitted))


def fits(bins, items) -> bool:
    """By trying every place for every item."""
    for places in itertools.product(range(len(bins)), repeat=len(items)):
        left = list(bins)
        for item, place in zip(items, places, strict=True):
            left[place] -= item
        if min(left) >= 0:
            return True
    return False
