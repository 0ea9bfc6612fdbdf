"""Deadlines by key."""

from agent.core.timers import Timers


def test_deadlines_come_in_order_once():
    timers = Timers()
    timers.set(("a",), 3)
    timers.set(("b",), 1)
    assert timers.next_s() == 1
    assert list(timers.due(5)) == [("b",), ("a",)]
    assert list(timers.due(5)) == []
    assert timers.next_s() is None


def test_setting_again_moves_and_cancelling_removes():
    timers = Timers()
    timers.set(("a",), 1)
    timers.set(("a",), 9)
    timers.set(("b",), 2)
    timers.cancel(("b",))
    timers.cancel(("unknown",))
    assert timers.at_s(("a",)) == 9
    assert list(timers.due(5)) == []
    assert list(timers.due(9)) == [("a",)]


def test_many_moved_deadlines_do_not_pile_up():
    timers = Timers()
    for at in range(20_000):
        timers.set((str(at % 10),), at)
    assert len(timers._heap) < 2_000
    assert len(list(timers.due(1e9))) == 10


def test_what_is_not_asked_for_since_a_step_raised_stays_due():
    timers = Timers()
    timers.set(("a",), 1)
    timers.set(("b",), 2)
    assert next(timers.due(5)) == ("a",)
    assert timers.next_s() == 2
