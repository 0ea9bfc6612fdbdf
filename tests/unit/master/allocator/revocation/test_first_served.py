"""Who lacks what he needs, and is guaranteed it, comes before anybody else."""

from master.allocator.drf import DrfAllocator
from mesos_py.resources import Resources
from mesos_py.testing.allocator_harness import winners
from tests.kit.revocable import RevocableHarness, need

SLOT = "cpus:1;mem:64"


def beside_a_greedy_one(count, disk=0, **options):
    """`f` runs `count` tasks, as many as it needs, and `greedy` all others."""
    h = RevocableHarness(**options)
    h.framework("greedy", "g")
    h.agent("a", f"cpus:8;mem:512;disk:{disk}" if disk else "cpus:8;mem:512")
    h.fill("greedy", "a", SLOT, 8 - count, role="g")
    names = h.fill("f", "a", SLOT, count)
    h.framework("f", needs=(need(SLOT, count),))
    for grant in h.cycle():
        h.decline(grant, 3600.0)
    return h, names


def got(grants, framework_id):
    return sum(one.resources.scalar("cpus") for one in grants if one.framework_id == framework_id)


def test_an_offer_of_all_the_disk_puts_nobody_behind_for_the_slots_that_he_needs():
    h, (one, two) = beside_a_greedy_one(2, disk=1000)
    h.end(one)
    h.change_framework("greedy", suppressed=frozenset({"g"}))
    (grant,) = h.cycle()
    # It keeps that offer, and its share of the disk is 1 now.
    assert grant.resources.scalar("disk") == 1000
    h.change_framework("greedy", suppressed=frozenset())
    h.end(two)
    assert winners(h.cycle()) == [("f", "a")]


def test_beyond_what_it_needs_or_is_guaranteed_it_comes_when_it_is_its_turn():
    h = RevocableHarness()
    h.framework("poor", "p")
    h.agent("a", "cpus:8;mem:512")
    h.fill("f", "a", SLOT, 2)
    # Its guarantee is 4, which leaves it 2 of the 3 that it lacks.
    h.framework("f", needs=(need(SLOT, 5),))
    grants = h.cycle()
    assert got(grants, "f") == 2
    assert got(grants, "poor") == 4


def test_what_is_too_little_for_anything_that_it_needs_goes_to_whoever_is_next():
    h = RevocableHarness()
    h.framework("poor", "p")
    h.agent("a", "cpus:8;mem:512")
    h.fill("f", "a", SLOT, 2)
    h.fill("poor", "a", SLOT, 1, role="p")
    h.fill("g", "a", SLOT, 4, role="g")
    h.framework("f", needs=(need("cpus:2;mem:64", 2),))
    assert winners(h.cycle()) == [("poor", "a")]


def test_what_it_refused_when_it_had_enough_it_is_offered_when_a_task_of_its_ends():
    h, (one, _) = beside_a_greedy_one(2)
    h.end("t1")
    (grant,) = [each for each in h.cycle() if each.framework_id == "f"]
    h.decline(grant, 3600.0)
    (grant,) = h.cycle()
    assert grant.framework_id == "greedy"
    h.launch(grant, SLOT)
    h.cycle()
    h.end(one)
    # What `f` refused is as large.
    assert h.hindrance("f", "*", "a", Resources.parse(SLOT)) == "refused by the framework"
    assert winners(h.cycle()) == [("f", "a")]


def test_whoever_refuses_what_he_lacks_is_not_asked_again_and_does_not_starve_others():
    h, (one, _) = beside_a_greedy_one(2)
    h.revive("greedy")
    h.end(one)
    (grant,) = h.cycle()
    assert grant.framework_id == "f"
    h.decline(grant, 3600.0)
    assert winners(h.cycles()) == [("greedy", "a")]


def test_of_a_large_agent_it_gets_all_parts_that_it_lacks_before_others_get_one():
    h, (one, two, three) = beside_a_greedy_one(3, max_offer=Resources.parse(SLOT))
    h.revive("greedy")
    for name in (one, two, three):
        h.end(name)
    grants = h.cycle()
    assert winners(grants) == [("f", "a")]
    assert got(grants, "f") == 3


def test_what_is_free_where_something_is_taken_back_is_kept_with_it():
    h = RevocableHarness()
    h.agent("a", "cpus:7;mem:448")
    h.fill("greedy", "a", "cpus:2;mem:128", 3, role="g")
    h.framework("greedy", "g", suppressed=frozenset({"g"}))
    h.framework("f", needs=(need(SLOT, 2),))
    (grant,) = h.cycle()
    h.decline(grant, 3600.0)
    # One slot is free, though `f` did not want it alone, and one task has to go.
    (found,) = h.round()
    assert len(found.task_ids) == 1
    assert isinstance(h.allocator, DrfAllocator)
    assert h.allocator.revoker.progress.holds.kept("a")["cpus"] == 2000


def test_what_it_is_granted_of_what_is_reserved_for_it_is_not_lacking_on_the_next_agent():
    # With this seed the cycle begins with the reserved one.
    h = RevocableHarness(max_offer=Resources.parse(SLOT), seed=1)
    h.agent("reserved", "cpus(r):4;mem(r):256")
    h.agent("plain", "cpus:8;mem:512")
    h.framework("f", "r", needs=(need(SLOT, 4, role="r"),))
    grants = h.cycle()
    assert [(one.agent_id, one.resources.plain) for one in grants] == [
        ("reserved", Resources.parse("cpus:4;mem:256")),
        ("plain", Resources.parse(SLOT)),
    ]


def test_whose_lack_is_made_good_by_what_is_reserved_for_it_comes_before_nobody():
    h = RevocableHarness(seed=1)
    h.agent("reserved", "cpus(r):4;mem(r):256")
    h.agent("plain", "cpus:8;mem:512")
    h.framework("f", "r", needs=(need(SLOT, 4, role="r"),))
    h.framework("g", "g")
    assert winners(h.cycle()) == [("f", "reserved"), ("g", "plain")]
