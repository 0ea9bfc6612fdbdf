"""What was freed for somebody, until it is taken or kept no more."""

from master.allocator.engine import MAX_AGENTS
from mesos_py.testing.allocator_harness import winners
from tests.kit.revocable import RevocableHarness, need, victims


def taken_back(**options):
    """`greedy` has filled an agent, and `f` runs on a cpu that was taken back for it."""
    h = RevocableHarness(**options)
    h.framework("greedy", "g", suppressed=frozenset({"g"}))
    h.agent("a", "cpus:8;mem:512")
    h.fill("greedy", "a", "cpus:1;mem:64", 8, role="g")
    h.framework("f")
    h.change_framework("f", needs=(need("cpus:1;mem:64"),))
    h.carry_out(h.round())
    (grant,) = h.cycle()
    return h, h.launch(grant, "cpus:1;mem:64")[0]


def test_who_took_what_was_freed_may_refuse_another_offer_there_later():
    h, mine = taken_back(revocation_hold_s=30.0)
    h.advance(3600.0)
    h.end(mine)
    (grant,) = h.cycle()
    h.decline(grant)
    h.task("greedy", "a", "cpus:1;mem:64", role="g")
    h.advance(6.0)
    assert len(victims(h.round())) == 1


def test_an_old_refusal_lets_go_of_nothing_that_is_being_freed():
    h, mine = taken_back(revocation_hold_s=30.0)
    h.advance(3600.0)
    h.end(mine)
    (grant,) = h.cycle()
    h.change_framework("f", needs=(need("cpus:1;mem:64", 3),))
    found = h.round()
    assert len(victims(found)) == 2
    h.decline(grant)
    h.revocations()
    assert h.stopped == []


def test_what_was_freed_does_not_wait_for_what_is_being_freed_for_others():
    h = RevocableHarness(revocation_hold_s=30.0)
    h.framework("greedy", "g", suppressed=frozenset({"g"}))
    h.agent("a", "cpus:8;mem:512")
    h.fill("greedy", "a", "cpus:1;mem:64", 8, role="g")
    h.framework("f", needs=(need("cpus:2;mem:128"),))
    first = h.round()
    h.advance(1.0)
    h.framework("e", needs=(need("cpus:2;mem:128"),))
    second = h.round()
    assert len(victims(first)) == len(victims(second)) == 2
    # Whoever asks for the second ones lets the tasks end in their own time.
    h.carry_out(first)
    assert winners(h.cycle()) == [("f", "a")]
    assert h.held_by("f") == 2
    h.carry_out(second)
    assert winners(h.cycle()) == [("e", "a")]


def test_nobody_takes_a_part_of_what_one_before_it_waits_for():
    h = RevocableHarness(revocation_hold_s=30.0)
    h.framework("greedy", "g", suppressed=frozenset({"g"}))
    h.agent("a", "cpus:8;mem:512")
    h.fill("greedy", "a", "cpus:1;mem:64", 8, role="g")
    h.framework("f", needs=(need("cpus:3;mem:192"),))
    first = h.round()
    h.advance(1.0)
    h.framework("e", needs=(need("cpus:1;mem:64"),))
    second = h.round()
    h.end(victims(first)[0])
    assert h.cycle() == []
    h.carry_out(second)
    assert h.cycle() == []
    h.carry_out(first)
    assert sorted(winners(h.cycle())) == [("e", "a"), ("f", "a")]
    assert (h.held_by("f"), h.held_by("e")) == (3, 1)


def test_nobody_has_to_go_for_what_is_free_and_was_refused_far_off_in_a_large_cluster():
    h = RevocableHarness()
    h.framework("greedy", "g", suppressed=frozenset({"g"}))
    for number in range(600):
        h.agent(f"a{number}", "cpus:1;mem:64")
        if number < 599:
            h.task("greedy", f"a{number}", "cpus:1;mem:64", 5.0, "g")
    h.framework("f", needs=(need("cpus:1;mem:64"),))
    (grant,) = [grant for _ in range(600 // MAX_AGENTS + 1) for grant in h.cycle()]
    h.decline(grant, 600.0)
    assert victims(h.round()) == []
    # It is asked anew there, and for the second one somebody goes.
    h.change_framework("f", needs=(need("cpus:1;mem:64", 2),))
    assert len(h.cycle()) == 1
    assert len(victims(h.revocations())) == 1
