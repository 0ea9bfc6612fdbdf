"""Work on file systems that is tried until it is done."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from frameworks.mapreduce.core.views import Trouble
from frameworks.mapreduce.tracker import labour as module
from frameworks.mapreduce.tracker.labour import THREADS, Labour
from mesos_py.errors import NotFound


@pytest.fixture
def labour(monkeypatch: pytest.MonkeyPatch) -> Iterator[Labour]:
    monkeypatch.setattr(module, "PAUSES", (0.0,))
    made = Labour()
    yield made
    made.close()


class Work:
    """Fails so often, then succeeds; notes what is told of it."""

    def __init__(self, failures: int, error: Exception | None = None) -> None:
        self.left = failures
        self.tries = 0
        self.error = error or OSError(28, "No space left on device")
        self.told = threading.Event()
        self.failed = ""
        self.given_up: Trouble | None = None

    def __call__(self) -> None:
        self.tries += 1
        if self.left:
            self.left -= 1
            raise self.error

    def fail(self, why: str, given_up: Trouble | None) -> None:
        self.failed = why
        self.given_up = given_up
        self.told.set()


def test_what_must_be_done_is_tried_until_it_is(labour):
    work = Work(5)
    labour.begin("x", work, work.told.set)
    assert work.told.wait(30)
    assert work.tries == 6


def test_what_may_fail_is_tried_as_long_as_there_is_patience(labour):
    work = Work(5)
    troubles: list[Trouble] = []
    labour.attempt("x", work, work.told.set, work.fail, patience_s=3600, trouble=troubles.append)
    assert work.told.wait(30)
    assert (work.tries, work.failed) == (6, "")
    assert [each.tries for each in troubles] == [1, 2, 3, 4, 5]
    first, last = troubles[0], troubles[-1]
    assert (last.what, last.why) == ("x", "OSError: [Errno 28] No space left on device")
    assert last.since_s == first.since_s == first.next_s
    assert last.until_s == first.since_s + 3600


def test_what_fails_when_patience_has_ended_is_given_up(labour):
    work = Work(5)
    labour.attempt("x", work, work.told.set, work.fail, patience_s=0)
    assert work.told.wait(30)
    assert (work.tries, work.failed) == (1, "OSError: [Errno 28] No space left on device")
    assert work.given_up is not None
    assert (work.given_up.what, work.given_up.tries) == ("x", 1)


def test_what_cannot_be_is_not_tried_again(labour):
    work = Work(5, NotFound("file", "/x", "is not there"))
    labour.attempt("x", work, work.told.set, work.fail, patience_s=3600)
    assert work.told.wait(30)
    assert (work.tries, work.failed) == (1, "file '/x': is not there")
    assert work.given_up is None


def test_one_that_goes_on_failing_does_not_keep_the_end_waiting():
    labour = Labour()
    begun = threading.Event()

    def work() -> None:
        begun.set()
        raise OSError

    labour.begin("x", work)
    assert begun.wait(30)
    labour.close()
    late = Work(0)
    labour.begin("x", late, late.told.set)
    assert late.tries == 0


def test_what_goes_on_failing_keeps_nothing_else_waiting(labour, monkeypatch):
    """As the outputs of jobs whose file system is away, more of them than there are threads."""
    monkeypatch.setattr(module, "PAUSES", (3600.0,))
    for _ in range(2 * THREADS):
        labour.begin("away", Work(1))
    done = threading.Event()
    labour.begin("it", lambda: None, done.set)
    assert done.wait(30)
