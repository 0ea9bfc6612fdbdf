import math

import pytest

from master.allocator.drf import DrfAllocator
from master.allocator.filters import MAX_PER_AGENT
from mesos_py.allocation import AllocatorOptions, PolicyChanged, Refusal
from mesos_py.policy import RolePolicy
from mesos_py.resources import Resources
from mesos_py.testing.allocator_harness import AllocatorHarness, winners


def harness(**options) -> AllocatorHarness:
    chosen = AllocatorOptions(**options)
    return AllocatorHarness(DrfAllocator(chosen), chosen)


def test_works_without_options():
    h = AllocatorHarness(DrfAllocator())
    h.agent("a")
    h.framework("f")
    assert winners(h.cycle()) == [("f", "a")]


def test_the_first_who_can_use_an_agent_gets_everything_there():
    h = harness()
    h.framework("f")
    h.framework("g")
    h.agent("a", "cpus:64;mem:1000;ports:[1-9];names:{x,y}")
    (grant,) = h.cycle()
    assert grant.resources == Resources.parse("cpus:64;mem:1000;ports:[1-9];names:{x,y}")


def test_unfair_resources_do_not_count():
    for unfair, second in ((frozenset(), "g"), (frozenset({"gpus"}), "f")):
        h = harness(unfair=unfair)
        h.agent("a", "cpus:1;gpus:8")
        h.framework("f", gpu_capable=True)
        h.cycle()
        h.framework("g", gpu_capable=True)
        h.agent("b", "cpus:100")
        h.use(h.cycle()[0], "cpus:50", seconds=0)
        (grant,) = h.cycle()
        assert grant.framework_id == second


def test_a_changed_weight_counts_from_the_next_cycle():
    h = harness()
    h.framework("f", "r")
    h.framework("g", "s")
    for number in range(4):
        h.agent(f"a{number}")
    h.cycle()
    h.allocator.tell(PolicyChanged("r", RolePolicy(weight=3.0)))
    assert h.allocator.shares(h.cluster) == {"r": 0.5 / 3, "s": 0.5}
    for number in range(4, 8):
        h.agent(f"a{number}")
    assert [name for name, _ in winners(h.cycle())] == ["f", "f", "f", "f"]


def test_one_who_used_part_of_its_offer_is_no_decliner():
    h = harness()
    h.agent("a", "cpus:4;mem:400")
    h.framework("f")
    h.framework("g")
    (grant,) = h.cycle()
    assert grant.framework_id == "f"
    task = h.use(grant, "cpus:1;mem:100")
    (grant,) = h.cycle()
    assert grant.framework_id == "g"
    h.decline(grant, seconds=0)
    h.give_back(task)
    # Both hold nothing, g was asked last and did not want it.
    (grant,) = h.cycle()
    assert grant.framework_id == "f"


def test_a_grant_ends_the_memory_of_a_decline():
    h = harness()
    h.agent("a")
    h.framework("f")
    h.framework("g")
    for name in ("f", "g"):
        (grant,) = h.cycle()
        assert grant.framework_id == name
        h.decline(grant, seconds=0)
    (grant,) = h.cycle()
    assert grant.framework_id == "f"
    h.give_back(grant)
    # f used all of it and is done; g's last word is still that it wants nothing.
    (grant,) = h.cycle()
    assert grant.framework_id == "f"


def test_revive_ends_the_memory_of_a_decline():
    h = harness()
    h.agent("a")
    h.framework("f")
    h.framework("g")
    for name in ("f", "g"):
        (grant,) = h.cycle()
        assert grant.framework_id == name
        h.decline(grant, seconds=0)
    h.revive("g")
    assert winners(h.cycle()) == [("g", "a")]


@pytest.mark.parametrize("until_s", [math.nan, math.inf, -1.0])
def test_odd_ends_of_refusals_do_no_harm(until_s):
    h = harness()
    h.agent("a")
    h.framework("f")
    h.cycles()
    for grant in list(h.held):
        h.give_back(grant)
    h.allocator.tell(Refusal("f", "*", "a", Resources.parse("cpus:4;mem:4096"), until_s))
    assert h.allocator.next_wake_s() == (None if math.isnan(until_s) else until_s)
    assert len(h.allocator.allocate(h.cluster, h.now_s)) == (0 if until_s == math.inf else 1)


def test_among_equals_not_always_the_same_agent_goes_to_the_same_framework():
    h = harness()
    h.framework("f")
    h.framework("g")
    h.agent("big", "cpus:8;mem:100")
    h.agent("small", "cpus:1;mem:100")
    got_big = set()
    for _ in range(20):
        for grant in h.cycle():
            if grant.agent_id == "big":
                got_big.add(grant.framework_id)
        for grant in list(h.held):
            h.give_back(grant)
    assert got_big == {"f", "g"}


def test_a_second_cycle_without_an_event_looks_at_nothing():
    h = harness()
    h.agent("a")
    h.framework("f")
    h.cycle()
    assert h.allocator.allocate(None, h.now_s) == []  # type: ignore[arg-type]


def test_next_wake_is_none_where_nothing_can_end():
    h = harness()
    h.framework("f")
    h.agent("a")
    assert h.allocator.next_wake_s() is None
    h.decline(h.cycle()[0])
    assert h.allocator.next_wake_s() is not None
    h.suppress("f")
    assert h.allocator.next_wake_s() is None


def test_one_who_went_quiet_after_it_woke_is_not_looked_at():
    h = harness()
    h.agent("a")
    h.framework("f")
    h.suppress("f")
    assert h.cycle() == []
    h.revive("f")
    h.suppress("f")
    assert h.allocator.allocate(None, h.now_s) == []  # type: ignore[arg-type]


def test_a_wake_up_of_one_does_not_hide_another_whose_refusal_ends_on_the_same_agent():
    h = harness()
    h.agent("a", "cpus:4")
    h.framework("f")
    h.framework("g")
    for seconds in (5, 1000):
        (grant,) = h.cycle()
        h.decline(grant, seconds)
    # f has refused even more until later, and still cannot use it when the first ends.
    h.allocator.tell(Refusal("f", "*", "a", Resources.of(cpus=4, mem=1), h.now_s + 3))
    h.allocator.tell(Refusal("f", "*", "a", Resources.of(cpus=5), h.now_s + 4))
    assert h.cycle() == []
    h.advance(4)
    h.revive("g")
    assert winners(h.cycle()) == [("g", "a")]


def test_a_refusal_that_had_to_be_forgotten_blocks_no_more_in_the_very_next_cycle():
    h = harness()
    h.agent("a", "cpus:4")
    h.framework("f")
    h.decline(h.cycle()[0], seconds=5)
    assert h.cycle() == []
    for number in range(MAX_PER_AGENT):
        other = Resources.of(cpus=1 + number / 100, mem=100 - number)
        h.allocator.tell(Refusal("f", "*", "a", other, h.now_s + 1000))
    assert [grant.framework_id for grant in h.allocator.allocate(h.cluster, h.now_s)] == ["f"]


def test_events_of_a_kind_that_it_does_not_know_are_ignored():
    h = harness()
    h.allocator.tell(object())  # type: ignore[arg-type]
    assert h.cycle() == []


def test_a_refusal_that_was_forgotten_for_a_framework_that_left_harms_nobody():
    h = harness()
    h.agent("a", "cpus:4")
    h.framework("f")
    h.decline(h.cycle()[0], seconds=5)
    assert h.cycle() == []
    for number in range(MAX_PER_AGENT):
        other = Resources.of(cpus=1 + number / 100, mem=100 - number)
        h.allocator.tell(Refusal("f", "*", "a", other, h.now_s + 1000))
    h.remove_framework("f")
    assert h.cycle() == []
