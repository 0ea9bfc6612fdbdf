"""The checkpoint's file: all or nothing, one damaged record, files that are not ours."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from agent.checkpoint import store
from agent.checkpoint.store import Checkpoint, CheckpointUnwritable, forget_all
from agent.core.journal import Change, Kind
from agent.core.recovery import Record
from agent.core.volume_uses import VolumeKey
from mesos_py.errors import InvalidValue
from tests.kit import agent_core
from tests.kit.agent_core import AgentWorld
from tests.kit.agent_volumes import agent_with_disk

TASK, UPDATE = Kind.TASK, Kind.UPDATE
FIXTURES = Path(__file__).parents[3] / "fixtures"


@pytest.fixture
def checkpoint(tmp_path):
    made = Checkpoint(tmp_path)
    yield made
    made.close()


def again(checkpoint: Checkpoint) -> list[Record]:
    """What the next run reads; this one goes on."""
    other = Checkpoint(checkpoint.path.parent)
    try:
        return other.read()
    finally:
        other.close()


def damage(checkpoint: Checkpoint, statement: str) -> None:
    with sqlite3.connect(checkpoint.path) as db:
        db.execute(statement)
    db.close()


def test_what_was_written_is_read_by_the_next_run(checkpoint):
    checkpoint.write([Change(TASK, ("f", "t", "c"), b"one"), Change(UPDATE, ("f", "t", "0"), b"")])
    assert again(checkpoint) == [
        Record(TASK, ("f", "t", "c"), b"one"),
        Record(UPDATE, ("f", "t", "0"), b""),
    ]


def test_a_later_change_replaces_and_removes(checkpoint):
    checkpoint.write([Change(TASK, ("a",), b"1"), Change(TASK, ("b",), b"1")])
    checkpoint.write([Change(TASK, ("a",), b"2"), Change(TASK, ("b",), None)])
    assert again(checkpoint) == [Record(TASK, ("a",), b"2")]


def test_removing_what_is_not_there_does_nothing(checkpoint):
    checkpoint.write([Change(TASK, ("a",), None)])
    assert again(checkpoint) == []


def test_a_damaged_record_is_known_as_such_and_costs_no_other(checkpoint):
    checkpoint.write([Change(TASK, ("a",), b"1"), Change(TASK, ("b",), b"2")])
    damage(checkpoint, "UPDATE records SET data = x'00' WHERE key = 'a'")
    assert again(checkpoint) == [Record(TASK, ("a",), None), Record(TASK, ("b",), b"2")]


def test_a_record_of_another_type_is_damaged(checkpoint):
    checkpoint.write([Change(TASK, ("a",), b"1")])
    damage(checkpoint, "UPDATE records SET data = 17")
    assert again(checkpoint) == [Record(TASK, ("a",), None)]


def test_records_of_a_kind_that_is_not_known_are_left_alone(checkpoint):
    damage(checkpoint, "INSERT INTO records VALUES ('novelty', 'x', 0, x'00')")
    assert again(checkpoint) == []


def test_a_step_that_cannot_be_written_leaves_nothing_of_it(checkpoint):
    checkpoint.write([Change(TASK, ("a",), b"1")])
    # A full disk, as SQLite sees it.
    checkpoint._db.execute("PRAGMA max_page_count = 1")
    with pytest.raises(CheckpointUnwritable, match="full"):
        checkpoint.write([Change(TASK, ("a",), None), Change(TASK, ("b",), b"x" * 100_000)])
    assert again(checkpoint) == [Record(TASK, ("a",), b"1")]
    checkpoint._db.execute("PRAGMA max_page_count = 100000")
    checkpoint.write([Change(TASK, ("b",), b"2")])
    assert len(again(checkpoint)) == 2


def test_the_log_is_folded_into_the_file(checkpoint, monkeypatch):
    monkeypatch.setattr(store, "_FOLD_AFTER", 3)
    for number in range(3):
        checkpoint.write([Change(TASK, (str(number),), b"x" * 10_000)])
    checkpoint._folding.join()
    assert checkpoint.path.stat().st_size > 30_000
    assert len(again(checkpoint)) == 3


def test_the_log_does_not_grow_for_ever_though_no_fold_finds_all_of_it(checkpoint, monkeypatch):
    """A reader stands for what is written while the thread folds: it stops there."""
    monkeypatch.setattr(store, "_FOLD_AFTER", 5)
    wal = checkpoint.path.with_name(f"{store.NAME}-wal")
    sizes = []
    for _ in range(20):
        reader = sqlite3.connect(checkpoint.path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM records").fetchone()
        checkpoint.write([Change(TASK, ("a",), b"x" * 1000)])
        while checkpoint._folding is None:
            checkpoint.write([Change(TASK, ("a",), b"x" * 1000)])
        checkpoint._folding.join()
        reader.close()
        checkpoint.write([Change(TASK, ("a",), b"x" * 1000)])
        sizes.append(wal.stat().st_size)
    assert sizes[-1] == sizes[2]


def test_only_its_user_can_read_it(checkpoint):
    assert checkpoint.path.stat().st_mode & 0o077 == 0


def test_another_programs_file_is_not_taken_for_ours(tmp_path):
    with sqlite3.connect(tmp_path / store.NAME) as db:
        db.execute("CREATE TABLE records (x)")
    db.close()
    with pytest.raises(InvalidValue, match="is not a checkpoint"):
        Checkpoint(tmp_path)


def test_a_later_format_is_refused_by_its_number(checkpoint):
    damage(checkpoint, "PRAGMA user_version = 99")
    with pytest.raises(InvalidValue, match="format 99, and this version knows up to 3"):
        Checkpoint(checkpoint.path.parent)


@pytest.mark.parametrize("text", [b"rubbish " * 1000, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_rubbish_is_refused_and_the_way_out_named(tmp_path, text):
    (tmp_path / store.NAME).write_bytes(text)
    with pytest.raises(InvalidValue, match="--recover"):
        Checkpoint(tmp_path).read()


def test_forgetting_leaves_no_file(tmp_path):
    made = Checkpoint(tmp_path)
    made.write([Change(TASK, ("a",), b"1")])
    made.close()
    forget_all(tmp_path)
    forget_all(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_agent_that_was_stopped_keeps_what_is_reserved_and_nothing_else(tmp_path):
    made = Checkpoint(tmp_path)
    kept = Change(Kind.RESERVED, ("reserved",), b"cpus")
    volumes = Change(Kind.VOLUMES, ("volumes",), b"3")
    made.write([Change(Kind.AGENT, ("agent",), b"A1"), kept, volumes, Change(TASK, ("a",), b"1")])
    made.end()
    then = Checkpoint(tmp_path)
    assert then.read() == [Record(*kept), Record(*volumes)]
    then.close()


@pytest.mark.parametrize("kept", [[], [Change(Kind.RESERVED, ("reserved",), b"")]])
def test_an_agent_that_was_stopped_leaves_no_file_where_nothing_is_reserved(tmp_path, kept):
    made = Checkpoint(tmp_path)
    made.write([Change(Kind.AGENT, ("agent",), b"A1"), *kept])
    made.end()
    assert list(tmp_path.iterdir()) == []


def test_an_end_that_cannot_be_written_says_so_and_forgets_nothing(tmp_path):
    made = Checkpoint(tmp_path)
    made.write([Change(Kind.RESERVED, ("reserved",), b"cpus"), Change(TASK, ("a",), b"1")])
    made._db.execute("PRAGMA query_only = ON")
    with pytest.raises(CheckpointUnwritable, match="readonly"):
        made.end()
    then = Checkpoint(tmp_path)
    assert len(then.read()) == 2
    then.close()


@pytest.mark.parametrize("format", range(1, store.FORMAT + 1))
def test_a_checkpoint_of_each_format_is_readable(tmp_path, format, monkeypatch):
    """Made once by the version that had the format; never made anew."""
    monkeypatch.setattr(agent_core, "agent_info", agent_with_disk)
    shutil.copy(FIXTURES / f"checkpoint-format-{format}.sqlite", tmp_path / store.NAME)
    checkpoint = Checkpoint(tmp_path)
    records = checkpoint.read()
    checkpoint.close()
    world = AgentWorld(registered=False)
    restored = world.core.restore(records, world.clock.now())
    assert restored.damaged == []
    assert restored.info is not None
    assert restored.info.id.value == "A1"
    volumes = ({VolumeKey("ads", "v1")}, 3) if format >= 3 else (set(), 0)
    assert world.core.saved_volumes() == volumes
    assert restored.boot_id == "00000000-0000-4000-8000-000000000001"
    pids = {each.executor_id: each.pid for each in world.core.saved_containers()}
    assert pids == {"running": 1234, "ending": 1235, "ex": 1236}
    world.register()
    assert world.states("ended") == ["STARTING"]
    world.acknowledge_all("ended")
    assert world.states("ended") == ["STARTING", "RUNNING", "FAILED"]
    assert world.last("ended").exit_status.exit_code == 3


@pytest.mark.parametrize("kind", [Kind.RESERVED, Kind.OPERATION, Kind.VOLUMES])
def test_what_outlives_the_machine_is_on_the_platter_when_it_is_written(checkpoint, kind):
    said: list[str] = []
    checkpoint._db.set_trace_callback(said.append)
    checkpoint.write([Change(TASK, ("a",), b"1"), Change(kind, ("b",), b"2")])
    assert [said[0], said[-2], said[-1]] == [
        "PRAGMA synchronous = FULL",
        "COMMIT",
        "PRAGMA synchronous = NORMAL",
    ]
    said.clear()
    checkpoint.write([Change(TASK, ("a",), b"2")])
    assert not any("PRAGMA" in statement for statement in said)


def test_with_the_first_reservation_or_volume_older_versions_refuse_the_file(
    checkpoint,
):
    """They would pass over the record, and give away what is somebody's."""

    def format() -> int:
        return int(checkpoint._db.execute("PRAGMA user_version").fetchone()[0])

    checkpoint.write([Change(TASK, ("a",), b"1")])
    assert format() == 1
    checkpoint._db.execute("PRAGMA max_page_count = 1")
    with pytest.raises(CheckpointUnwritable, match="full"):
        checkpoint.write([Change(Kind.RESERVED, ("b",), b"x" * 100_000)])
    assert format() == 1
    checkpoint._db.execute("PRAGMA max_page_count = 100000")
    checkpoint.write([Change(Kind.RESERVED, ("b",), b"2")])
    assert format() == 2
    assert len(again(checkpoint)) == 2
    checkpoint.write([Change(Kind.VOLUMES, ("c",), b"3")])
    assert format() == 3
    # Also when the next run writes of reservations alone.
    then = Checkpoint(checkpoint.path.parent)
    then.write([Change(Kind.RESERVED, ("b",), b"3")])
    then.close()
    assert format() == 3


def test_that_an_operation_is_gone_does_not_wait_for_the_platter(checkpoint):
    said: list[str] = []
    checkpoint._db.set_trace_callback(said.append)
    checkpoint.write([Change(Kind.OPERATION, ("b",), None)])
    assert not any("PRAGMA" in statement for statement in said)


def test_after_a_write_that_failed_others_do_not_wait_for_the_platter(checkpoint):
    checkpoint._db.execute("PRAGMA max_page_count = 1")
    with pytest.raises(CheckpointUnwritable, match="full"):
        checkpoint.write([Change(Kind.RESERVED, ("b",), b"x" * 100_000)])
    assert checkpoint._db.execute("PRAGMA synchronous").fetchone() == (1,)
