"""What the workload has still to do, as its ledger says."""

from __future__ import annotations

from tests.kit.chaos.book import Book, works
from tests.kit.chaos.ledger import Entry, LedgerFile, read


def launch(work: str, number: int = 1, at: float = 1.0) -> Entry:
    return {"at": at, "kind": "launch", "work": work, "task": f"{work}.{number}", "agent": "A1"}


def update(task_id: str, state: str, at: float = 2.0) -> Entry:
    return {"at": at, "kind": "update", "task": task_id, "state": state}


def test_work_is_done_when_an_attempt_has_finished():
    book = Book(works(1, 1))
    assert book.next_work() == ("long0", "long0.1")
    book.enter([launch("long0"), launch("short0"), update("short0.1", "FINISHED")])
    assert (book.done, book.wants_offers, book.finished) == ({"short0"}, False, False)
    book.enter([update("long0.1", "FINISHED")])
    assert book.finished


def test_an_attempt_that_ended_otherwise_is_followed_by_another_one_with_an_id_of_its_own():
    book = Book(works(1, 0))
    book.enter([launch("short0"), update("short0.1", "LOST")])
    assert book.next_work() == ("short0", "short0.2")
    book.enter([launch("short0", 2)])
    # Late news of the first attempt changes nothing.
    book.enter([update("short0.1", "LOST")])
    assert not book.wants_offers


def test_what_is_unreachable_is_waited_for():
    book = Book(works(1, 0))
    book.enter([launch("short0"), update("short0.1", "UNREACHABLE")])
    assert not book.wants_offers
    assert not book.finished


def test_what_was_not_heard_of_is_known():
    book = Book(works(2, 0))
    book.enter([launch("short0"), launch("short1"), update("short1.1", "RUNNING", at=5.0)])
    assert book.unheard(3.0) == [("short0.1", "A1")]


def test_enough_is_what_was_begun():
    book = Book(works(3, 0))
    book.enter([launch("short0"), launch("short1"), update("short1.1", "GONE")])
    book.enter([{"at": 3.0, "kind": "enough"}])
    assert book.next_work() == ("short1", "short1.2")
    book.enter([launch("short1", 2)])
    assert not book.wants_offers


def test_a_line_that_was_not_written_to_its_end_was_never_there(tmp_path):
    path = tmp_path / "ledger"
    first = LedgerFile(path)
    first.write([{"at": 1.0, "kind": "done"}])
    first.close()
    with path.open("a") as torn:
        torn.write('{"at": 2.0, "ki')
    assert read(path) == [{"at": 1.0, "kind": "done"}]
    second = LedgerFile(path)
    second.write([{"at": 3.0, "kind": "enough"}])
    second.close()
    assert [entry["kind"] for entry in read(path)] == ["done", "enough"]
