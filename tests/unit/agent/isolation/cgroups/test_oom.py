"""The thread that waits for the kernel, with descriptors of our own."""

from __future__ import annotations

import os
import queue
import select

import pytest

from agent.isolation.cgroups.files import Notice
from agent.isolation.cgroups.oom import OomWatch

WITHIN_S = 10


class Looks:
    """Keeps what was looked at, and answers as told."""

    def __init__(self) -> None:
        self.seen: queue.Queue[tuple[str, bool]] = queue.Queue()
        self.answers: list[float | Exception | None] = []

    def __call__(self, container_id: str, woken: bool) -> float | None:
        self.seen.put((container_id, woken))
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def next(self) -> tuple[str, bool]:
        return self.seen.get(timeout=WITHIN_S)


@pytest.fixture
def looks() -> Looks:
    return Looks()


@pytest.fixture
def watch(looks):
    made = OomWatch(looks)
    yield made
    made.close()


def notice() -> tuple[Notice, int]:
    fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
    return Notice(fd, select.EPOLLIN, counter=True), fd


def test_what_the_kernel_tells_is_looked_at_once(watch, looks):
    one, fd = notice()
    other, _ = notice()
    watch.add("c1", one)
    watch.add("c2", other)
    os.eventfd_write(fd, 1)
    assert looks.next() == ("c1", True)
    os.eventfd_write(fd, 1)
    assert looks.next() == ("c1", True)
    assert looks.seen.empty()


def test_it_is_looked_at_again_when_that_is_wanted(watch, looks):
    one, fd = notice()
    watch.add("c1", one)
    looks.answers = [0.001, 0.001, None]
    os.eventfd_write(fd, 1)
    assert [looks.next() for _ in range(3)] == [("c1", True), ("c1", False), ("c1", False)]


def test_one_can_ask_for_a_look(watch, looks):
    watch.add("c1", notice()[0])
    watch.look_soon("c1")
    assert looks.next() == ("c1", True)


def test_a_look_that_fails_harms_no_other(watch, looks):
    one, fd = notice()
    watch.add("c1", one)
    looks.answers = [RuntimeError("odd")]
    os.eventfd_write(fd, 1)
    looks.next()
    os.eventfd_write(fd, 1)
    assert looks.next() == ("c1", True)


def test_what_is_removed_is_closed_and_may_be_removed_again(watch, looks):
    one, fd = notice()
    watch.add("c1", one)
    watch.remove("c1")
    watch.remove("c1")
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(fd)


def test_a_group_that_is_gone_is_watched_no_more(watch, looks):
    # A pipe whose other end is closed shows for ever; as the counter it is none, reading fails.
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    watch.add("c1", Notice(reading, select.EPOLLIN, counter=False))
    os.write(writing, b"x")
    assert looks.next() == ("c1", True)
    os.close(writing)
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(reading)


def test_to_close_what_never_began_is_fine(looks):
    OomWatch(looks).close()
