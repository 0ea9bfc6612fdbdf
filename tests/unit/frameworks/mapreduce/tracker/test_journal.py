"""The tracker's journal: what is written is there for the next one, and for no former one."""

from __future__ import annotations

from pathlib import Path

import pytest

from frameworks.mapreduce.tracker import journal as module
from frameworks.mapreduce.tracker.journal import Entry, Journal
from frameworks.mapreduce.tracker.place import Place
from mesos_py.errors import AlreadyExists, Superseded


def entry(owner: str, number: int) -> Entry:
    return Entry(owner, b'{"n":%d}' % number)


def begun(place: Place, writer: str) -> tuple[Journal, list[Entry]]:
    journal, found = Journal.take_over(place, writer, pause=lambda _: None)
    journal.begin(found)
    return journal, found


def is_long(journal: Journal) -> bool:
    return journal.is_long


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(str(tmp_path / "state"))


class Failing(Place):
    """Fails to create as often as it is told, before or after the file is there."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.before = 0
        self.after = 0

    def create(self, name: str, data: bytes) -> None:
        if self.before:
            self.before -= 1
            raise OSError(28, "No space left on device")
        super().create(name, data)
        if self.after:
            self.after -= 1
            raise OSError(110, "Connection timed out")


def test_the_next_tracker_reads_what_was_written_in_order(place):
    first, found = begun(place, "one")
    assert found == []
    first.append([entry("a", 1), entry("b", 2)])
    first.append([])
    first.append([entry("a", 3)])
    second, found = begun(place, "two")
    assert found == [entry("a", 1), entry("b", 2), entry("a", 3)]
    second.append([entry("c", 4)])
    assert begun(place, "three")[1] == [*found, entry("c", 4)]


def test_a_tracker_that_was_replaced_cannot_write_any_more(place):
    first, _ = begun(place, "one")
    first.append([entry("a", 1)])
    assert not first.is_over()
    second, _ = begun(place, "two")
    assert first.is_over()
    with pytest.raises(Superseded) as refused:
        first.append([entry("a", 2)])
    assert (refused.value.epoch, refused.value.newer) == (1, 2)
    # It is not let in by the removal of what it had written, either.
    second.compact(lambda _: True)
    with pytest.raises(Superseded):
        first.append([entry("a", 2)])
    assert begun(place, "three")[1] == [entry("a", 1)]


def test_what_a_late_writer_wrote_before_the_seal_counts(place):
    first, _ = begun(place, "one")
    second, found = Journal.take_over(place, "two")
    with pytest.raises(Superseded):
        first.append([entry("a", 1)])
    second.begin(found)
    assert begun(place, "three")[1] == []


def test_of_two_that_take_over_at_once_the_later_one_has_it(place):
    first, _ = begun(place, "one")
    first.append([entry("a", 1)])
    second, found_by_second = Journal.take_over(place, "two")
    third, found_by_third = Journal.take_over(place, "three")
    assert found_by_second == found_by_third == [entry("a", 1)]
    with pytest.raises(Superseded):
        second.begin(found_by_second)
    third.begin(found_by_third)
    third.append([entry("a", 2)])
    assert begun(place, "four")[1] == [entry("a", 1), entry("a", 2)]


def test_one_that_died_before_its_snapshot_takes_nothing_with_it(place):
    first, _ = begun(place, "one")
    first.append([entry("a", 1)])
    for dead in ("two", "three"):
        Journal.take_over(place, dead)
    assert begun(place, "four")[1] == [entry("a", 1)]


def test_one_that_died_while_it_made_its_directory_keeps_nobody_out(place, tmp_path):
    first, _ = begun(place, "one")
    first.append([entry("a", 1)])
    (tmp_path / "state" / "journal" / "000002").mkdir()
    third, found = begun(place, "three")
    assert (third.epoch, found) == (3, [entry("a", 1)])
    # If it is not dead: it claims another epoch, and the one with less is over.
    with pytest.raises(AlreadyExists):
        place.create("journal/000002/00000000", b"")
    third.append([entry("a", 2)])


def test_a_torn_last_file_is_left_out(place, tmp_path):
    first, _ = begun(place, "one")
    first.append([entry("a", 1)])
    first.append([entry("a", 2)])
    last = sorted((tmp_path / "state/journal/000001").iterdir())[-1]
    for size in (0, 1, 30, last.stat().st_size - 1):
        torn = last.read_bytes()[:size]
        (last.parent / f"{int(last.name) + 1:08}").write_bytes(torn)
    last.write_bytes(last.read_bytes()[:-3])
    assert begun(place, "two")[1] == [entry("a", 1)]


def test_a_write_that_fails_is_tried_again(tmp_path):
    place = Failing(str(tmp_path))
    journal, _ = begun(place, "one")
    place.before = len(module.PAUSES)
    journal.append([entry("a", 1)])
    place.before = len(module.PAUSES) + 1
    with pytest.raises(OSError, match="No space"):
        journal.append([entry("a", 2)])


def test_a_write_whose_answer_was_lost_is_not_written_twice(tmp_path):
    place = Failing(str(tmp_path))
    journal, _ = begun(place, "one")
    place.after = 1
    journal.append([entry("a", 1)])
    journal.append([entry("a", 2)])
    assert begun(place, "two")[1] == [entry("a", 1), entry("a", 2)]


def test_compaction_keeps_what_it_is_told_and_few_files(place, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "FILES", 5)
    journal, _ = begun(place, "one")
    for number in range(5):
        assert not is_long(journal)
        journal.append([entry("a" if number % 2 else "b", number)])
    assert is_long(journal)
    journal.compact(lambda owner: owner == "a")
    assert not is_long(journal)
    assert len(list((tmp_path / "state/journal/000001").iterdir())) == 1
    journal.append([entry("a", 9)])
    assert begun(place, "two")[1] == [entry("a", 1), entry("a", 3), entry("a", 9)]


def test_a_tracker_dying_in_a_compaction_loses_nothing(place, tmp_path):
    journal, _ = begun(place, "one")
    journal.append([entry("a", 1)])
    before = {one.name: one.read_bytes() for one in (tmp_path / "state/journal/000001").iterdir()}
    journal.compact(lambda _: True)
    journal.append([entry("a", 2)])
    # The snapshot is there, and what it replaces as well.
    for name, data in before.items():
        (tmp_path / "state/journal/000001" / name).write_bytes(data)
    assert begun(place, "two")[1] == [entry("a", 1), entry("a", 2)]


def test_of_former_epochs_only_seals_are_kept(place, tmp_path):
    first, _ = begun(place, "one")
    for number in range(10):
        first.append([entry("a", number)])
    begun(place, "two")
    assert len(list((tmp_path / "state/journal/000001").iterdir())) == 1


def test_also_where_files_are_made_otherwise():
    place = Place("memory://journal-test")
    first, _ = begun(place, "one")
    first.append([entry("a", 1)])
    assert begun(place, "two")[1] == [entry("a", 1)]
    with pytest.raises(Superseded):
        first.append([entry("a", 2)])
    with pytest.raises(AlreadyExists):
        place.create("journal/000002/00000001", b"")
    place.remove_tree("journal")
