"""Faults that people met in systems of this kind, as they would show in the allocator."""

import random

import pytest

from master.allocator.drf import DrfAllocator
from master.allocator.priority import PriorityAllocator
from mesos_py.allocation import (
    AgentChanged,
    AllocatorOptions,
    Freed,
    Grant,
    Need,
    PolicyChanged,
    Refusal,
)
from mesos_py.constraints import Host
from mesos_py.policy import RolePolicy
from mesos_py.resources import Resources
from mesos_py.testing.allocator_harness import (
    AllocatorHarness,
    RaisingConstraint,
    only_hosts,
    winners,
)

WINDOW_S = 0.05


def harness(**options) -> AllocatorHarness:
    chosen = AllocatorOptions(**options)
    return AllocatorHarness(DrfAllocator(chosen), chosen)


class Counting:
    """A view that counts how often it was asked what is free somewhere."""

    def __init__(self, h: AllocatorHarness) -> None:
        self.cluster = h.cluster
        self.looks = 0

    def free(self, agent_id):
        self.looks += 1
        return self.cluster.free(agent_id)

    def __getattr__(self, name):
        return getattr(self.cluster, name)


def answered(h: AllocatorHarness, busy: str = "busy") -> Grant | None:
    """One cycle; everybody but `busy` declines at once with the default filter."""
    h.advance(WINDOW_S)
    h.cycle()
    for grant in list(h.held):
        if grant.framework_id == busy:
            return grant
        h.decline(grant)
    return None


def cycles_until_offered(h: AllocatorHarness, busy: str = "busy") -> int:
    return next(number for number in range(1, 100) if answered(h, busy) is not None)


@pytest.mark.parametrize("own_roles", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_idle_frameworks_absorb_cycles_a_newcomer_with_work_waits(seed, own_roles):
    h = harness(seed=seed)
    h.agent("a")
    for number in range(10):
        h.framework(f"idle{number}", f"r{number}" if own_roles else "r")
    for _ in range(random.Random(seed).randint(11, 300)):
        answered(h)
    h.framework("busy", "r")
    assert cycles_until_offered(h) <= 2


@pytest.mark.parametrize("own_roles", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_idle_frameworks_absorb_cycles_one_that_worked_a_moment_ago_waits(seed, own_roles):
    dice = random.Random(seed)
    h = harness(seed=seed)
    h.agent("a")
    for number in range(10):
        h.framework(f"idle{number}", f"r{number}" if own_roles else "r")
    for _ in range(20):
        answered(h)
    h.framework("busy", "r")
    for _ in range(300):
        # It works through one short task after the other, while the filters of the
        # others run out again and again and they are asked about the rest.
        assert cycles_until_offered(h) <= 2
        task = h.use(h.held[0], "cpus:1;mem:128")
        for _ in range(dice.randint(0, 8)):
            h.advance(WINDOW_S)
            for grant in h.cycle():
                h.decline(grant)
        h.give_back(task)


def test_idle_frameworks_with_shorter_and_shorter_filters_still_let_one_with_work_in():
    h = harness()
    h.agent("a")
    for number in range(10):
        h.framework(f"idle{number}")
    for _ in range(30):
        for grant in h.cycle():
            h.decline(grant, seconds=0)
    h.framework("busy")
    for _ in range(2):
        (grant,) = h.cycle()
        if grant.framework_id == "busy":
            return
        h.decline(grant, seconds=0)
    pytest.fail("the one with work was not asked")


def test_revive_racing_an_offer_in_flight():
    for seed in range(200):
        race(seed)


def race(seed: int) -> None:
    dice = random.Random(seed)
    h = harness(seed=seed)
    h.agent("a")
    for number in range(3):
        h.framework(f"idle{number}")
    h.framework("busy")
    while not any(grant.framework_id == "busy" for grant in h.held):
        answered(h)
    # Its decline and its revive are on the way, in this order; cycles fall in between.
    (in_flight,) = h.held
    for _ in range(dice.randint(0, 3)):
        answered(h)
    h.decline(in_flight)
    for _ in range(dice.randint(0, 150)):
        if answered(h) is not None:
            h.decline(h.held[0])
    if dice.random() < 0.5:
        h.suppress("busy")
        answered(h)
    h.revive("busy")
    assert cycles_until_offered(h) <= 2


def test_revive_comes_before_the_decline_of_an_older_offer_of_somebody_else():
    h = harness()
    h.agent("a")
    h.framework("f")
    (grant,) = h.cycle()
    h.framework("g")
    h.revive("g")
    assert h.cycle() == []
    h.decline(grant)
    assert winners(h.cycle()) == [("g", "a")]


def test_a_silent_framework_whose_offer_expires_is_asked_after_the_one_that_waits():
    h = harness()
    h.agent("a")
    h.framework("waits")
    h.give_back(h.cycle()[0])
    h.framework("silent")
    (offer,) = h.cycle()
    assert offer.framework_id == "silent"
    h.advance(5)
    # The master tells of the expiry as of a refusal that blocks nothing.
    h.decline(offer, seconds=0)
    assert winners(h.cycle()) == [("waits", "a")]


@pytest.mark.parametrize(
    "roles", [("r", "r"), ("r", "s"), ("r/x", "r/y"), ("r", "r/y"), ("r/x", "r"), ("r/x", "s/y/z")]
)
@pytest.mark.parametrize("kind", [DrfAllocator, PriorityAllocator])
def test_shares_not_recomputed_after_each_grant(kind, roles):
    """4 equal slots, A holds 2; A wants 1 more, B wants 2: both go to B."""
    h = AllocatorHarness(kind())
    for number in range(2):
        h.agent(f"a{number}", "cpus:1;mem:100")
    h.framework("a", roles[0])
    assert len(h.cycle()) == 2
    h.framework("b", roles[1])
    for number in range(2, 4):
        h.agent(f"a{number}", "cpus:1;mem:100")
    assert [name for name, _ in winners(h.cycle())] == ["b", "b"]


def test_grants_of_one_cycle_count_at_once():
    h = harness()
    h.framework("a")
    h.framework("b")
    for number in range(6):
        h.agent(f"a{number}")
    assert [name for name, _ in winners(h.cycle())] == ["a", "b", "a", "b", "a", "b"]


def test_weights_two_to_one_give_shares_two_to_one():
    h = harness(policies={"heavy": RolePolicy(weight=2.0)})
    h.framework("a", "heavy")
    h.framework("b", "light")
    for number in range(30):
        h.agent(f"a{number:02}")
    got = [name for name, _ in winners(h.cycle())]
    assert (got.count("a"), got.count("b")) == (20, 10)
    assert h.allocator.shares(h.cluster) == {"heavy": 1 / 3, "light": 1 / 3}


def test_a_suppressed_framework_gets_none_however_poor_it_is():
    h = harness()
    h.framework("rich")
    h.framework("poor")
    h.suppress("poor")
    for number in range(5):
        h.agent(f"a{number}")
    assert {name for name, _ in winners(h.cycle())} == {"rich"}


@pytest.mark.parametrize("seconds", [0.001, 1, 5, 3600])
def test_lost_wake_ups_everyone_is_granted_within_one_cycle_of_the_announced_moment(seconds):
    h = harness()
    names = [f"f{number}" for number in range(5)]
    for name in names:
        h.framework(name)
    h.agent("a")
    asked = set()
    for number in range(5):
        (grant,) = h.cycle()
        asked.add(grant.framework_id)
        h.decline(grant, seconds=seconds * (number + 1))
    assert asked == set(names)
    again = set()
    while h.cycle() == []:
        h.advance_to_wake()
        (grant,) = h.cycle()
        again.add(grant.framework_id)
        h.decline(grant, seconds=31536000)
        if again == asked:
            return


def test_lost_wake_ups_two_causes_at_once():
    """A constraint and a refusal both keep the agent away; both end, one after the other."""
    h = harness()
    h.agent("a")
    h.framework("f")
    h.decline(h.cycle()[0], seconds=10)
    h.change_framework("f", constraints={"*": only_hosts("b")})
    h.advance(11)
    assert h.cycle() == []
    h.change_framework("f", constraints={})
    assert winners(h.cycle()) == [("f", "a")]


def test_an_agent_that_everybody_refused_is_not_looked_at_before_something_changes():
    h = harness()
    h.framework("f")
    h.agent("a")
    h.decline(h.cycle()[0], seconds=5)
    assert h.cycle() == []
    view = Counting(h)
    for _ in range(10):
        h.advance(0.1)
        assert h.allocator.allocate(view, h.now_s) == []
    assert view.looks == 0
    h.advance_to_wake()
    assert len(h.allocator.allocate(view, h.now_s)) == 1
    assert view.looks == 1


def test_agents_with_nothing_left_are_not_looked_at_for_one_who_wakes():
    h = harness()
    h.framework("f", active=False)
    h.agent("a")
    h.agent("b")
    assert h.cycle() == []
    h.change_framework("f", active=True)
    assert len(h.cycle()) == 2
    h.framework("g")
    view = Counting(h)
    assert h.allocator.allocate(view, h.now_s) == []
    assert view.looks == 0


def test_a_record_that_raises_is_looked_at_once_per_cycle():
    class Counted(RaisingConstraint):
        def allows(self, host):
            looks.append(host)
            return super().allows(host)

    looks: list[Host] = []
    h = harness()
    h.framework("bad", constraints={"*": Counted(())})
    for number in range(10):
        h.agent(f"a{number}")
    assert h.cycle() == []
    assert len(looks) == 1


def test_suppressed_and_inactive_frameworks_cost_nothing():
    class Watching:
        def __init__(self, cluster):
            self.cluster = cluster
            self.asked = set()

        def held(self, framework_id, role):
            self.asked.add(framework_id)
            return self.cluster.held(framework_id, role)

        def __getattr__(self, name):
            return getattr(self.cluster, name)

    h = harness()
    for number in range(100):
        h.framework(f"idle{number}", active=number % 2 == 0, suppressed=frozenset({"*"}))
    h.framework("busy")
    h.agent("a")
    view = Watching(h.cluster)
    assert winners(h.allocator.allocate(view, h.now_s)) == [("busy", "a")]
    assert view.asked == {"busy"}


def test_a_grant_that_the_ledger_refused_is_made_again_after_the_agent_is_told_as_changed():
    h = harness()
    h.agent("a")
    h.framework("f")
    assert len(h.allocator.allocate(h.cluster, h.now_s)) == 1
    h.allocator.tell(AgentChanged(h.agents["a"]))
    assert winners(h.cycle()) == [("f", "a")]


def test_an_exception_while_a_framework_is_looked_at_passes_and_it_is_tried_again():
    class Flaky:
        broken = True

        def __init__(self, cluster):
            self.cluster = cluster

        def held(self, framework_id, role):
            if self.broken and framework_id == "f":
                raise OSError("not now")
            return self.cluster.held(framework_id, role)

        def __getattr__(self, name):
            return getattr(self.cluster, name)

    h = harness()
    view = Flaky(h.cluster)
    h.agent("a")
    h.framework("f")
    assert h.allocator.allocate(view, h.now_s) == []
    assert h.allocator.failures()["f"].reason == "OSError: 'not now'"
    view.broken = False
    h.advance_to_wake()
    assert winners(h.allocator.allocate(view, h.now_s)) == [("f", "a")]
    assert h.allocator.failures()["f"].count == 1
    assert h.allocator.next_wake_s() is None


def test_an_agent_of_which_nothing_can_be_told_does_not_stop_the_others():
    class Flaky:
        broken = True

        def __init__(self, cluster):
            self.cluster = cluster

        def free(self, agent_id):
            if self.broken and agent_id == "b":
                raise OSError("not now")
            return self.cluster.free(agent_id)

        def __getattr__(self, name):
            return getattr(self.cluster, name)

    h = harness()
    view = Flaky(h.cluster)
    for name in "abc":
        h.agent(name)
    h.framework("f")
    assert sorted(winners(h.allocator.allocate(view, h.now_s))) == [("f", "a"), ("f", "c")]
    assert h.allocator.failures()["b"].count == 1
    view.broken = False
    h.advance_to_wake()
    assert winners(h.allocator.allocate(view, h.now_s)) == [("f", "b")]
    h.remove_agent("b")
    assert h.allocator.failures() == {}


def test_a_role_whose_shares_cannot_be_told_does_not_stop_the_others():
    class Flaky:
        def __init__(self, cluster):
            self.cluster = cluster

        def held_under(self, role):
            if role == "bad":
                raise OSError("not now")
            return self.cluster.held_under(role)

        def __getattr__(self, name):
            return getattr(self.cluster, name)

    h = harness()
    h.framework("f", "bad")
    h.framework("g", "good")
    h.agent("a")
    assert winners(h.allocator.allocate(Flaky(h.cluster), h.now_s)) == [("g", "a")]
    assert set(h.allocator.failures()) == {"f"}


def test_a_row_that_cannot_be_taken_over_leaves_its_framework_out_and_nobody_else():
    class Poisoned(dict):
        def get(self, key, default=None):
            raise RuntimeError("poison")

    h = harness()
    h.framework("f")
    h.framework("g")
    h.change_framework("f", roles=("*", "new"), min_free=Poisoned())
    h.agent("a")
    assert winners(h.cycle()) == [("g", "a")]
    assert h.allocator.failures()["f"].count == 1
    (skip,) = h.allocator.explain("f", h.cluster, h.now_s)
    assert skip.code == "error"
    assert "poison" in skip.message
    h.give_back(h.held[0])
    h.change_framework("f", roles=("*",), min_free={})
    assert winners(h.cycle()) == [("f", "a")]


def test_refusals_from_a_flood_of_agents_and_ends_stay_bounded_in_memory():
    allocator = DrfAllocator()
    h = AllocatorHarness(allocator)
    h.framework("f")
    h.agent("a")
    for number in range(4000):
        resources = Resources.of(cpus=1 + number % 50, mem=100 - number % 50)
        h.allocator.tell(Refusal("f", "*", "a", resources, h.now_s + 1000 + number))
        h.allocator.tell(Freed("a"))
        if number % 500 == 0:
            h.cycles()
    # The bound is a promise, and shows nowhere else.
    assert len(allocator._filters) <= 8
    assert len(allocator._filters._heap) <= 300
    assert len(allocator._loose) <= 1


def test_an_urgent_task_waits_behind_fifty_thousand_others():
    """Each pass weighed the whole queue, and acted on old facts when it was through."""
    options = AllocatorOptions()
    h = AllocatorHarness(PriorityAllocator(options), options)
    h.agent("a", "cpus:2;mem:2048")
    one = Resources.of(cpus=1, mem=128)
    for number in range(50):
        role = f"role{number}"
        needs = tuple(Need(role, one, name=f"t{n}") for n in range(1000))
        h.framework(f"f{number}", role, needs=needs)
    h.cycles()
    assert not h.cluster.free("a")
    h.allocator.tell(PolicyChanged("urgent", RolePolicy(priority=9)))
    h.framework("urgent", "urgent", needs=(Need("urgent", one),))
    counting = Counting(h)
    h.give_back(h.held[0])
    grants = [g for _ in range(2) for g in h.allocator.allocate(counting, h.now_s)]
    assert winners(grants) == [("urgent", "a")]
    # What is free is asked for the agent that changed, not for each of those who wait.
    assert counting.looks <= 4
