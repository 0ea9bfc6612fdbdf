"""From one round to the next: patience, holds, what is called off, what comes too late."""

import pytest

from mesos_py.allocation import FrameworkRemoved, RevocationEnded
from mesos_py.policy import RolePolicy
from mesos_py.resources import Resources
from mesos_py.testing.allocator_harness import winners
from tests.kit.revocable import RevocableHarness, need, victims


def full(tasks=8, **options):
    """An agent that `greedy` has filled; `f` wants something and has nothing."""
    h = RevocableHarness(**options)
    h.framework("greedy", "g", suppressed=frozenset({"g"}))
    h.agent("a", "cpus:8;mem:512")
    h.fill("greedy", "a", "cpus:1;mem:64", tasks, role="g")
    h.framework("f")
    return h


def wants(h, count, text="cpus:1;mem:64"):
    h.change_framework("f", needs=(need(text, count),))


# ---- When -------------------------------------------------------------------------


def test_a_lack_is_acted_on_when_it_has_lasted_and_the_wake_up_is_announced():
    h = full(revocation_patience_s=2.0)
    wants(h, 1)
    assert h.round() == []
    assert h.allocator.next_wake_s() == h.now_s + 2.0
    h.advance(1.9)
    assert h.round() == []
    h.advance_to_wake()
    assert len(victims(h.round())) == 1


def test_a_lack_that_ends_in_time_kills_nobody_and_the_next_one_waits_as_long():
    h = full(revocation_patience_s=2.0)
    wants(h, 1)
    h.round()
    h.advance(1.0)
    h.end("t1")
    (grant,) = h.cycle()
    (mine,) = h.launch(grant, "cpus:1;mem:64")
    assert h.revocations() == []
    h.advance(5.0)
    h.end(mine)
    h.task("greedy", "a", "cpus:1;mem:64", role="g")
    assert h.round() == []
    h.advance(1.9)
    assert h.round() == []
    h.advance(0.1)
    assert len(victims(h.round())) == 1


def test_rounds_are_an_interval_apart():
    h = full(revocation_interval_s=5.0)
    wants(h, 1)
    assert len(victims(h.round())) == 1
    h.advance(1.0)
    wants(h, 2)
    assert h.round() == []
    h.advance_to_wake()
    assert h.now_s == pytest.approx(1005.0)
    assert len(victims(h.round())) == 1


def test_what_cannot_be_helped_is_tried_less_and_less_often():
    h = full(revocation_interval_s=1.0)
    wants(h, 1, "cpus:100")
    wakes = []
    for _ in range(6):
        assert h.round() == []
        before_s = h.now_s
        h.advance_to_wake()
        wakes.append(h.now_s - before_s)
    assert wakes == [1, 2, 4, 8, 8, 8]


def test_needs_that_change_are_tried_at_once():
    h = full(revocation_interval_s=1.0)
    wants(h, 1, "cpus:100")
    for _ in range(6):
        h.round()
        h.advance_to_wake()
    h.round()
    h.advance(0.5)
    wants(h, 1)
    assert len(victims(h.round())) == 1


# ---- What was freed is kept ----------------------------------------------------------


def kept(h, name="other", role="o"):
    """A framework that has less than `f` and would come before it."""
    h.framework(name, role)
    return h


def test_what_was_freed_goes_to_whom_it_was_freed_for():
    h = full()
    wants(h, 2)
    revocations = h.round()
    h.revive("greedy")
    kept(h)
    assert h.cycle() == []
    h.carry_out(revocations)
    assert winners(h.cycle()) == [("f", "a")]
    assert h.held_by("f") == 2


def test_it_is_kept_though_others_come_first():
    h = full(tasks=6)
    h.fill("f", "a", "cpus:1;mem:64", 2)
    kept(h)
    wants(h, 3)
    h.change_framework("greedy", suppressed=frozenset())
    found = h.round()
    assert len(victims(found)) == 1
    h.carry_out(found)
    # `other` has nothing, and so the lower share.
    assert winners(h.cycle()) == [("f", "a")]


def test_what_becomes_free_meanwhile_is_kept_as_well():
    h = full()
    wants(h, 1, "cpus:4;mem:256")
    found = h.round()
    kept(h)
    one, two, three, four = victims(found)
    h.end(one)
    # Not half of it to the one who needs all of it either.
    assert h.cycle() == []
    for name in (two, three, four):
        h.end(name)
    h.answer(found[0], freed=True)
    assert winners(h.cycle()) == [("f", "a")]


def test_what_is_more_than_was_needed_is_for_everybody():
    h = RevocableHarness()
    h.framework("greedy", "g", suppressed=frozenset({"g"}))
    h.agent("a", "cpus:9;mem:900")
    h.fill("greedy", "a", "cpus:3;mem:300", 3, role="g")
    h.framework("f")
    h.framework("other", "o")
    wants(h, 1, "cpus:1;mem:100")
    found = h.round()
    assert len(victims(found)) == 1
    h.carry_out(found)
    first, second = h.cycle()
    assert first.framework_id == "f"
    assert first.resources.scalar("cpus") == 1
    assert second.framework_id == "other"
    assert second.resources.scalar("cpus") == 2


def test_a_hold_ends_after_its_time_and_others_are_woken_for_it():
    h = full(revocation_hold_s=30.0)
    wants(h, 2)
    found = h.round()
    # It is away at the wrong moment; its needs are not withdrawn.
    kept(h)
    h.change_framework("f", min_free={"*": [need("cpus:5").resources]})
    h.carry_out(found)
    assert h.cycle() == []
    ends_s = h.now_s + 30.0
    while h.now_s < ends_s:
        assert h.cycle() == []
        h.revocations()
        wake_s = h.allocator.next_wake_s()
        assert wake_s is not None
        assert wake_s <= ends_s
        h.now_s = wake_s
    assert winners(h.cycle()) == [("other", "a")]


def test_a_hold_ends_when_what_was_freed_is_declined_and_nothing_is_killed_again_soon():
    h = full(revocation_hold_s=30.0, revocation_interval_s=1.0)
    wants(h, 2)
    h.carry_out(h.round())
    (grant,) = h.cycle()
    kept(h)
    h.decline(grant, seconds=5)
    assert winners(h.cycle()) == [("other", "a")]
    for _ in range(29):
        h.advance(1.0)
        assert h.revocations() == []
        h.cycle()
    h.advance(1.0)
    h.cycle()
    assert h.revocations() != []


def test_a_hold_ends_when_its_framework_needs_it_no_more():
    h = full()
    wants(h, 2)
    found = h.round()
    kept(h)
    h.carry_out(found)
    h.change_framework("f", needs=())
    h.suppress("f")
    assert winners(h.cycle()) == [("other", "a")]


def test_a_hold_ends_when_its_framework_leaves():
    h = full()
    wants(h, 2)
    found = h.round()
    kept(h)
    h.carry_out(found)
    h.remove_framework("f")
    assert winners(h.cycle()) == [("other", "a")]


def test_a_framework_that_is_away_keeps_its_hold_for_a_moment_only():
    h = full(revocation_patience_s=1.0)
    wants(h, 2)
    h.round()
    h.advance(1.0)
    h.carry_out(h.round())
    kept(h)
    h.change_framework("f", active=False)
    assert h.cycle() == []
    h.advance_to_wake()
    assert winners(h.cycle()) == [("other", "a")]


def test_others_are_told_for_whom_it_is_kept():
    h = full()
    wants(h, 2)
    h.carry_out(h.round())
    kept(h)
    (skip,) = h.allocator.explain("other", h.cluster, h.now_s)
    assert skip.code == "held"
    assert "'F' (f)" in skip.message
    assert h.allocator.explain("f", h.cluster, h.now_s) == []


def test_the_one_it_is_kept_for_is_told_that_it_is_not_complete():
    h = full(tasks=7)
    kept(h, "f2", "f2")
    h.suppress("f2")
    wants(h, 1, "cpus:4;mem:256")
    h.revocations()
    skips = h.allocator.explain("f", h.cluster, h.now_s)
    assert {skip.code for skip in skips} == {"held"}
    assert "itself" in skips[0].message


# ---- Called off --------------------------------------------------------------------


def test_needs_that_shrink_call_off_what_is_in_progress():
    h = full()
    wants(h, 2)
    (revocation,) = h.round()
    wants(h, 0)
    assert h.round() == []
    assert h.stopped == [revocation]
    assert h.revocations() == []
    assert h.stopped == [revocation], "told twice"


def test_a_framework_that_leaves_calls_off_what_is_in_progress_for_it():
    h = full()
    wants(h, 2)
    (revocation,) = h.round()
    h.remove_framework("f")
    h.round()
    assert h.stopped == [revocation]


def test_room_found_elsewhere_calls_off_when_it_lasts():
    h = full(revocation_patience_s=1.0)
    wants(h, 1)
    h.round()
    h.advance(1.0)
    (revocation,) = h.round()
    h.agent("b", "cpus:1;mem:64")
    (grant,) = h.cycle()
    h.revocations()
    # It is on offer: it may not be taken.
    assert h.stopped == []
    h.launch(grant, "cpus:1;mem:64")
    h.cycle()
    h.advance_to_wake()
    h.round()
    assert h.stopped == [revocation]


def test_only_what_is_needless_is_called_off():
    h = RevocableHarness()
    for name in ("x", "y"):
        h.framework(name, name, suppressed=frozenset({name}))
    h.agent("a", "cpus:8;mem:512")
    h.fill("x", "a", "cpus:1;mem:64", 4, role="x")
    h.fill("y", "a", "cpus:1;mem:64", 4, role="y")
    h.framework("f")
    wants(h, 2)
    found = h.round()
    assert len(victims(found)) == 2
    wants(h, 1)
    h.round()
    if len(found) == 2:
        assert len(h.stopped) == 1
    else:
        assert h.stopped == []


def test_what_is_called_off_too_late_is_free_for_everybody():
    h = full()
    wants(h, 2)
    found = h.round()
    h.change_framework("f", needs=())
    kept(h)
    h.suppress("f")
    h.round()
    assert h.stopped == found
    h.carry_out(found)
    assert winners(h.cycle()) == [("other", "a")]


# ---- Late, twice, never ---------------------------------------------------------------


def test_a_victim_that_ended_by_itself_is_no_fault():
    h = full()
    wants(h, 2)
    found = h.round()
    for name in victims(found):
        h.end(name)
    h.carry_out(found)
    assert winners(h.cycle()) == [("f", "a")]


def test_an_answer_that_comes_twice_or_for_nothing_is_harmless():
    h = full()
    wants(h, 2)
    found = h.round()
    h.carry_out(found)
    for freed in (True, False):
        h.allocator.tell(RevocationEnded(found[0], freed))
    assert winners(h.cycle()) == [("f", "a")]


def test_an_agent_that_is_lost_takes_its_revocations_along():
    h = full()
    wants(h, 2)
    found = h.round()
    h.remove_agent("a")
    assert h.round() == []
    h.answer(found[0], freed=False)
    h.agent("a", "cpus:8;mem:512")
    assert winners(h.round() or h.held) == [("f", "a")]


def test_a_revocation_that_the_master_gives_up_is_planned_again():
    h = full()
    wants(h, 2)
    (first,) = h.round()
    h.answer(first, freed=False)
    h.advance(1.0)
    (second,) = h.round()
    assert len(second.task_ids) == 2


def test_one_that_is_never_answered_is_forgotten_in_the_end():
    h = full()
    wants(h, 2)
    h.round()
    h.advance(599.0)
    assert h.round() == []
    h.advance(1.0)
    assert len(victims(h.round())) == 2


def test_a_framework_that_is_removed_twice_is_harmless():
    h = full()
    wants(h, 2)
    h.round()
    h.remove_framework("f")
    h.allocator.tell(FrameworkRemoved("f"))
    assert h.round() == []


# ---- No thrashing -----------------------------------------------------------------------


def test_two_who_want_everything_even_out_and_then_leave_each_other_alone():
    h = RevocableHarness(revocation_interval_s=1.0)
    h.agent("a", "cpus:8;mem:512")
    h.agent("b", "cpus:8;mem:512")
    h.framework("x", "x", needs=(need("cpus:1;mem:64", 16, "x"),))
    for grant in h.cycle():
        h.launch(grant, "cpus:1;mem:64", 8)
    h.framework("y", "y", needs=(need("cpus:1;mem:64", 16, "y"),))
    killed = []
    for _ in range(50):
        killed.append(len(h.carry_out(h.round())))
        for grant in h.cycle():
            h.launch(grant, "cpus:1;mem:64", int(grant.resources.scalar("cpus")))
        h.advance(1.0)
    assert sum(killed) == 8
    assert not any(killed[5:])
    assert (h.held_by("x"), h.held_by("y")) == (8, 8)


def test_who_lost_something_takes_it_back_only_from_above_what_the_other_needs():
    h = full()
    wants(h, 4)
    h.carry_out(h.round())
    for grant in h.cycle():
        h.launch(grant, "cpus:1;mem:64", 4)
    # A third one comes: now everybody is guaranteed less, and f is above that.
    h.framework("third", "t", needs=(need("cpus:1;mem:64", 1, "t"),))
    h.carry_out(h.round())
    h.change_framework("greedy", suppressed=frozenset(), needs=(need("cpus:1", 8, "g"),))
    h.cycle()
    for _ in range(3):
        assert [one for one in h.round() if one.beneficiary == "greedy"] == []
        h.advance(1.0)


def test_what_was_freed_of_the_room_for_tasks_of_any_length_is_granted_for_such():
    h = RevocableHarness(short_share=0.5, policies={"b": RolePolicy(weight=4.0)})
    h.framework("greedy", "g", suppressed=frozenset({"g"}))
    h.agent("a", "cpus:8;mem:800")
    h.fill("greedy", "a", "cpus:1;mem:100", 4, role="g")
    h.framework("brief", "b")
    (grant,) = h.cycle()
    h.launch(grant, "cpus:1;mem:100", 4)
    h.framework("f", needs=(need("cpus:1;mem:64"),))
    assert h.carry_out(h.round()) == ["t1"]
    grant, rest = h.cycle()
    assert (grant.framework_id, grant.max_task_s) == ("f", None)
    assert grant.resources.scalar("cpus") == 1
    assert rest.resources.scalar("cpus") == 0


# ---- What happened long ago ------------------------------------------------------------


def test_who_once_lost_something_takes_back_its_guarantee_later_from_what_is_needed():
    h = full(revocation_hold_s=30.0)
    wants(h, 4)
    h.carry_out(h.round())
    (grant,) = h.cycle()
    h.launch(grant, "cpus:1;mem:64", 4)
    # `greedy` leaves the rest, too, and `f` states that it needs it all.
    for name in [one for one, task in h.tasks.items() if task.framework_id == "greedy"]:
        h.end(name)
    wants(h, 8)
    (grant,) = h.cycle()
    h.launch(grant, "cpus:1;mem:64", 4)
    h.round()
    h.advance(31.0)
    h.change_framework("greedy", suppressed=frozenset(), needs=(need("cpus:1", 4, "g"),))
    assert len(victims(h.round())) == 4


def test_a_claim_that_takes_up_whole_rounds_in_vain_does_not_keep_others_from_theirs():
    h = RevocableHarness()
    h.framework("greedy", "g", suppressed=frozenset({"g"}))
    for number in range(500):
        h.agent(f"a{number}", "cpus:4;mem:256")
        h.fill("greedy", f"a{number}", "cpus:2;mem:128", 2, role="g")
    # Both hold nothing; the first by name wants more at a time than any agent has.
    h.framework("first", "a")
    ask = need("cpus:1;mem:64", role="a")
    h.change_framework("first", needs=(ask,), min_free={"a": [Resources.parse("cpus:5")]})
    h.framework("second", "b", needs=(need("cpus:1;mem:64", role="b"),))
    beneficiaries = set()
    for _ in range(3):
        beneficiaries |= {one.beneficiary for one in h.round()}
        h.advance_to_wake()
    assert beneficiaries == {"second"}


def test_needs_of_a_thousand_kinds_are_no_longer_round_for_those_behind_them():
    h = RevocableHarness()
    h.framework("greedy", "g", suppressed=frozenset({"g"}))
    for number in range(100):
        h.agent(f"a{number}", "cpus:2;mem:128")
        h.fill("greedy", f"a{number}", "cpus:1;mem:64", 2, role="g")
    kinds = tuple(need(f"cpus:1;mem:{129 + kind}", role="a") for kind in range(1000))
    h.framework("first", "a", needs=kinds)
    h.framework("second", "b", needs=(need("cpus:1;mem:64", role="b"),))
    found = []
    for _ in range(2):
        found.append({one.beneficiary for one in h.round()})
        h.advance(1.0)
    # The first round is over before all that was stated has been looked at.
    assert found == [set(), {"second"}]
