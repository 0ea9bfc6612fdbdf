"""Deadlines by key."""

from master.core.timers import Timers


def due(timers, now_s):
    return list(timers.due(now_s))


def test_nothing_is_due_without_deadlines():
    timers = Timers()
    assert timers.next_s() is None
    assert due(timers, 1e12) == []
    assert timers.all() == []


def test_what_has_come_is_handed_out_once_the_earliest_first():
    timers = Timers()
    timers.set("offer", "o1", 5.0)
    timers.set("ping", "a1", 3.0)
    timers.set("offer", "o2", 9.0)
    assert timers.next_s() == 3.0
    assert due(timers, 2.999) == []
    assert due(timers, 5.0) == [("ping", "a1"), ("offer", "o1")]
    assert due(timers, 5.0) == []
    assert timers.all() == [("offer", "o2", 9.0)]


def test_setting_again_moves_a_deadline():
    timers = Timers()
    timers.set("offer", "o1", 5.0)
    timers.set("offer", "o1", 8.0)
    assert due(timers, 7.0) == []
    timers.set("offer", "o1", 7.5)
    assert timers.next_s() == 7.5
    assert due(timers, 9.0) == [("offer", "o1")]
    assert timers.next_s() is None


def test_setting_the_same_moment_twice_is_one_deadline():
    timers = Timers()
    timers.set("offer", "o1", 5.0)
    timers.set("offer", "o1", 5.0)
    assert due(timers, 5.0) == [("offer", "o1")]


def test_a_cancelled_deadline_never_comes():
    timers = Timers()
    timers.set("offer", "o1", 5.0)
    timers.cancel("offer", "o1")
    timers.cancel("offer", "o1")
    assert timers.next_s() is None
    assert due(timers, 6.0) == []
    timers.set("offer", "o1", 7.0)
    assert due(timers, 7.0) == [("offer", "o1")]


def test_what_a_step_that_failed_did_not_come_to_is_still_due():
    timers = Timers()
    for number in range(3):
        timers.set("ping", f"a{number}", 1.0 + number)
    for key in timers.due(10.0):
        assert key == ("ping", "a0")
        break
    assert due(timers, 10.0) == [("ping", "a1"), ("ping", "a2")]


def test_a_deadline_that_is_set_while_others_are_handed_out_comes_in_its_turn():
    timers = Timers()
    timers.set("ping", "a", 1.0)
    found = []
    for kind, name in timers.due(10.0):
        found.append(name)
        if len(found) < 3:
            timers.set(kind, name, 1.0 + len(found))
    assert found == ["a", "a", "a"]
    assert timers.next_s() is None


def test_deadlines_that_move_for_ever_take_no_more_room():
    timers = Timers()
    for number in range(10_000):
        timers.set("heartbeat", f"f{number % 10}", 1.0 + number)
    assert len(timers._heap) <= 64
    assert timers.next_s() == 9991.0
    assert len(due(timers, 1e6)) == 10


def test_whether_there_is_one_of_a_kind_is_known_without_a_look_at_all():
    timers = Timers()
    kinds = frozenset({"a", "b"})
    assert not timers.any_of(kinds)
    timers.set("a", "x", 1.0)
    timers.set("a", "x", 2.0)
    timers.set("b", "y", 3.0)
    timers.set("c", "z", 4.0)
    timers.cancel("a", "x")
    timers.cancel("a", "x")
    assert timers.any_of(kinds)
    assert list(timers.due(3.0)) == [("b", "y")]
    assert not timers.any_of(kinds)
    assert timers.any_of(frozenset({"c"}))
