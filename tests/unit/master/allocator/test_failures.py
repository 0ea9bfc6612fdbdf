from master.allocator.failures import RETRY_S, Failures
from master.allocator.roles import Contender
from mesos_py.allocation import Failure


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no text either")


def test_counts_and_keeps_the_last_reason():
    failures = Failures()
    failures.note("f", ValueError("first"))
    failures.note("f", KeyError("second"))
    assert failures.all() == {"f": Failure(2, """KeyError: "'second'\"""")}
    failures.forget("f")
    assert failures.of("f") is None


def test_an_exception_that_cannot_be_shown_is_counted_all_the_same():
    failures = Failures()
    failures.note("f", Mute())
    assert failures.all()["f"].count == 1


def test_long_reasons_are_cut():
    failures = Failures()
    failures.note("f", ValueError("x" * 10_000))
    assert len(failures.all()["f"].reason) < 300


def test_who_failed_is_tried_again_once_and_later():
    failures = Failures()
    contender, other = Contender("f", "r"), Contender("g", "r")
    failures.retry_later([contender], 100.0)
    failures.retry_later([other], 102.0)
    assert failures.retry_s() == 100.0 + RETRY_S
    assert failures.due(100.0) == []
    assert failures.due(100.0 + RETRY_S) == [contender, other]
    assert failures.retry_s() is None
    assert failures.due(1000.0) == []
