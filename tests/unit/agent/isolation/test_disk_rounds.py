"""Keys that come round in threads: in turn, never twice at a time, never after the end."""

import threading

import pytest

from agent.isolation.disk.rounds import Rounds
from tests.kit.waiting import until

LIMIT_S = 10.0


def test_work_is_called_again_as_long_as_it_says_so():
    calls: list[str] = []
    done = threading.Event()

    def work(key):
        calls.append(key)
        if len(calls) == 3:
            done.set()
            return None
        return 0

    rounds = Rounds(work, "test", 2)
    rounds.add("a", 0)
    assert done.wait(LIMIT_S)
    until(lambda: len(rounds) == 0)
    assert calls == ["a"] * 3


def test_what_is_due_first_comes_first():
    order: list[str] = []
    busy, go_on = threading.Event(), threading.Event()

    def work(key):
        order.append(key)
        if key == "first":
            busy.set()
            assert go_on.wait(LIMIT_S)

    rounds = Rounds(work, "test", 1)
    rounds.add("first", 0)
    assert busy.wait(LIMIT_S)
    # The one thread is busy until both are there, however slow this one is.
    rounds.add("late", 0)
    rounds.add("early", -60)
    go_on.set()
    until(lambda: len(rounds) == 0)
    assert order == ["first", "early", "late"]


def test_a_key_that_was_removed_is_not_called_and_its_threads_end():
    rounds = Rounds(pytest.fail, "test-removed", 2)
    rounds.add("a", 3600)
    rounds.add("b", 3600)
    rounds.remove("a")
    rounds.remove("b")
    rounds.remove("never there")
    until(lambda: not any(t.name == "test-removed" for t in threading.enumerate()))


def test_a_key_whose_work_runs_is_not_started_a_second_time_beside_it():
    entered, leave = threading.Semaphore(0), threading.Semaphore(0)
    inside = []
    most = []

    def work(key):
        inside.append(key)
        most.append(len(inside))
        entered.release()
        leave.acquire(timeout=LIMIT_S)
        inside.remove(key)

    rounds = Rounds(work, "test", 4)
    rounds.add("a", 0)
    assert entered.acquire(timeout=LIMIT_S)
    rounds.add("a", 0)
    rounds.add("a", 0)
    leave.release()
    # Asked for while it ran: once more, when that has ended.
    assert entered.acquire(timeout=LIMIT_S)
    leave.release()
    until(lambda: len(rounds) == 0)
    assert most == [1, 1]


def test_a_key_that_is_removed_while_its_work_runs_does_not_come_again():
    entered, leave = threading.Event(), threading.Event()
    calls: list[str] = []

    def work(key):
        calls.append(key)
        entered.set()
        leave.wait(LIMIT_S)
        return 0

    rounds = Rounds(work, "test-gone", 1)
    rounds.add("a", 0)
    assert entered.wait(LIMIT_S)
    rounds.remove("a")
    leave.set()
    until(lambda: not any(t.name == "test-gone" for t in threading.enumerate()))
    assert calls == ["a"]


def test_different_keys_run_side_by_side_but_no_more_than_there_are_threads():
    entered, leave = threading.Semaphore(0), threading.Event()

    def work(key):
        entered.release()
        leave.wait(LIMIT_S)

    rounds = Rounds(work, "test-beside", 2)
    for key in "abc":
        rounds.add(key, 0)
    assert entered.acquire(timeout=LIMIT_S)
    assert entered.acquire(timeout=LIMIT_S)
    assert sum(t.name == "test-beside" for t in threading.enumerate()) == 2
    leave.set()
    until(lambda: len(rounds) == 0)


def test_work_that_raises_stops_nothing_else(capsys):
    done = threading.Event()

    def work(key):
        if key == "bad":
            raise RuntimeError("no")
        done.set()

    rounds = Rounds(work, "test", 1)
    rounds.add("bad", 0)
    rounds.add("good", 0)
    assert done.wait(LIMIT_S)
    rounds.remove("bad")
