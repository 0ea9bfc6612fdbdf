"""The one thread that owns a core."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from frameworks.runtime.rounds import Rounds
from mesos_py.errors import NotFound, Unavailable


class World:
    """settled: what had been done by the end of each round."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.settled: list[list[str]] = []
        self.pause_s: float | None = None
        self.fault: BaseException | None = None
        self.failure: BaseException | None = None
        self.failed = threading.Event()
        self.rounds = Rounds(self.settle, self.fail, "test")

    def settle(self) -> float | None:
        if self.fault is not None:
            raise self.fault
        if self.done:
            self.settled.append(self.done)
            self.done = []
        return self.pause_s

    def fail(self, error: BaseException) -> None:
        self.failure = error
        self.failed.set()


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.rounds.stop()
    world.rounds.join()


def test_what_waits_is_done_in_order_in_one_round(world):
    for word in ("a", "b", "c"):
        world.rounds.post(lambda word=word: world.done.append(word))
    last = world.rounds.ask(lambda: world.done.append("d"))
    world.rounds.start()
    last.result(30)
    assert world.settled == [["a", "b", "c", "d"]]


def test_an_answer_comes_when_its_round_is_settled(world):
    world.rounds.start()
    assert world.rounds.call(lambda: world.done.append("a") or 7, 30) == 7
    assert world.settled == [["a"]]


def test_a_refusal_goes_to_who_asked_and_ends_nothing(world):
    world.rounds.start()

    def refuse() -> None:
        raise NotFound("job", "x")

    with pytest.raises(NotFound):
        world.rounds.call(refuse, 30)
    assert world.rounds.call(lambda: 1, 30) == 1


def test_a_round_comes_when_it_is_due(world):
    rounds = threading.Semaphore(0)

    def settle() -> float | None:
        rounds.release()
        return 0.001

    world.rounds = Rounds(settle, world.fail, "test")
    world.rounds.start()
    for _ in range(3):
        assert rounds.acquire(timeout=30)


@pytest.mark.parametrize("where", ["settle", "post"])
def test_a_fault_ends_it_and_everybody_who_waits_is_told(world, where):
    fault = ValueError("broken")
    if where == "settle":
        world.fault = fault
    else:

        def broken() -> None:
            raise fault

        world.rounds.post(broken)
    before = world.rounds.ask(lambda: 1)
    world.rounds.start()
    assert world.failed.wait(30)
    assert world.failure is fault
    with pytest.raises(Unavailable):
        before.result(30)
    with pytest.raises(Unavailable):
        world.rounds.call(lambda: 1, 30)


def test_what_was_put_before_the_end_is_done_and_nothing_after_it(world):
    world.rounds.start()
    before = world.rounds.ask(lambda: 1)
    world.rounds.stop()
    world.rounds.stop()
    assert before.result(30) == 1
    world.rounds.join()
    world.rounds.post(lambda: world.done.append("late"))
    with pytest.raises(Unavailable):
        world.rounds.call(lambda: 1, 30)
    assert world.done == []
    assert world.failure is None
