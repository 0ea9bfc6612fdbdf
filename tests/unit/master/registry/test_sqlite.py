"""The registry's file: what it refuses, what a full disk costs, who may read it."""

import resource
import shutil
import sqlite3
from pathlib import Path

import pytest

from master.registry import sqlite
from master.registry.sqlite import NAME, SqliteStorage
from mesos_py.errors import InvalidValue, Unavailable
from tests.kit.storage_contract import StorageContract

FIXTURES = Path(__file__).parents[3] / "fixtures"


class TestSqlite(StorageContract):
    @pytest.fixture
    def opening(self, tmp_path):
        return lambda: SqliteStorage(tmp_path)


@pytest.fixture
async def storage(tmp_path):
    made = SqliteStorage(tmp_path)
    await made.claim()
    yield made
    await made.close()


async def filled(work_dir: Path, records: dict[str, bytes]) -> None:
    made = SqliteStorage(work_dir)
    await made.claim()
    await made.write([records])
    await made.close()


def damage(work_dir: Path, statement: str) -> None:
    with sqlite3.connect(work_dir / NAME) as db:
        db.execute(statement)
    db.close()


async def read(work_dir: Path) -> dict[str, bytes]:
    made = SqliteStorage(work_dir)
    try:
        return (await made.claim()).records
    finally:
        await made.close()


def pragma(storage: SqliteStorage, statement: str) -> object:
    """By the storage's own connection, and so in its thread."""
    return storage._thread.submit(lambda: storage._file._db.execute(statement).fetchone()).result()


def refused(work_dir: Path, match: str) -> None:
    with pytest.raises(InvalidValue, match=match) as caught:
        SqliteStorage(work_dir)
    assert str(work_dir / NAME) in str(caught.value)


def test_only_its_user_can_read_it(storage, tmp_path):
    files = [each for each in tmp_path.iterdir() if each.name.startswith(NAME)]
    assert len(files) == 3
    assert all(each.stat().st_mode & 0o077 == 0 for each in files)


def test_a_transaction_is_on_the_platter_when_it_returns(storage):
    assert pragma(storage, "PRAGMA journal_mode") == ("wal",)
    assert pragma(storage, "PRAGMA synchronous") == (2,)


# ---- Files that are not used -------------------------------------------------------------


def test_another_programs_file_is_not_taken_for_ours(tmp_path):
    damage(tmp_path, "CREATE TABLE records (x)")
    refused(tmp_path, "is not a registry of a master")


async def test_a_later_format_is_refused_by_its_number(tmp_path):
    await filled(tmp_path, {})
    damage(tmp_path, "PRAGMA user_version = 99")
    refused(tmp_path, "has format 99, and this version knows up to 1")


@pytest.mark.parametrize("text", [b"rubbish " * 1000, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_rubbish_is_refused(tmp_path, text):
    (tmp_path / NAME).write_bytes(text)
    refused(tmp_path, "restore a backup, or move the file away")


async def test_a_damaged_page_is_found_at_the_start(tmp_path):
    await filled(tmp_path, {f"agent/{n}": b"x" * 500 for n in range(200)})
    content = bytearray((tmp_path / NAME).read_bytes())
    # Pages of 4096 bytes; the header of one of them in the middle of the records.
    assert len(content) > 10 * 4096
    content[8 * 4096 : 8 * 4096 + 100] = b"\xff" * 100
    (tmp_path / NAME).write_bytes(content)
    refused(tmp_path, "restore a backup, or move the file away")


async def test_a_damaged_record_is_found_at_the_start_and_named(tmp_path):
    await filled(tmp_path, {"agent/1": b"one", "agent/2": b"two"})
    damage(tmp_path, "UPDATE records SET data = x'00' WHERE key = 'agent/2'")
    refused(tmp_path, "is damaged at record 'agent/2'")
    damage(tmp_path, "UPDATE records SET data = 17")
    refused(tmp_path, "is damaged at record 'agent/1'")


async def test_a_file_without_an_epoch_is_damaged(tmp_path):
    await filled(tmp_path, {})
    damage(tmp_path, "DELETE FROM head")
    refused(tmp_path, "it has no epoch")


def test_a_directory_that_cannot_be_used_is_refused(tmp_path):
    refused(tmp_path / "missing", "cannot be opened: .*No such file")


async def test_a_file_cut_off_before_it_had_tables_is_made_anew(tmp_path):
    (tmp_path / NAME).touch()
    await filled(tmp_path, {"agent/1": b"a"})
    assert await read(tmp_path) == {"agent/1": b"a"}


# ---- Writing that fails ------------------------------------------------------------------


async def test_a_full_disk_loses_nothing(storage, tmp_path):
    await storage.write([{"agent/1": b"one"}])
    # As SQLite sees it.
    pragma(storage, "PRAGMA max_page_count = 1")
    with pytest.raises(Unavailable, match=r"registry\.sqlite: database or disk is full"):
        await storage.write([{"agent/1": None, "agent/2": b"x" * 100_000}])
    pragma(storage, "PRAGMA max_page_count = 100000")
    await storage.write([{"agent/3": b"three"}])
    assert await read(tmp_path) == {"agent/1": b"one", "agent/3": b"three"}


async def test_a_file_that_cannot_grow_loses_nothing(storage, tmp_path):
    await storage.write([{"agent/1": b"one"}])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(Unavailable, match=r"registry\.sqlite: "):
            await storage.write([{"agent/1": None, "agent/2": b"x" * 500_000}])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert await read(tmp_path) == {"agent/1": b"one"}


async def test_a_file_that_somebody_holds_is_unavailable(storage, tmp_path):
    pragma(storage, "PRAGMA busy_timeout = 1")
    other = sqlite3.connect(tmp_path / NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="database is locked"):
        await storage.write([{"agent/1": b"a"}])
    other.execute("ROLLBACK")
    other.close()
    assert await read(tmp_path) == {}


@pytest.mark.long
async def test_the_log_does_not_grow_for_ever(storage, tmp_path):
    for n in range(300):
        await storage.write([{"agent/1": bytes([n % 256]) * 50_000}])
    assert (tmp_path / f"{NAME}-wal").stat().st_size < 8 * 1024 * 1024


# ---- Formats -----------------------------------------------------------------------------


@pytest.mark.parametrize("format", range(1, sqlite.FORMAT + 1))
async def test_a_registry_of_each_format_is_readable(tmp_path, format):
    """Made once by the version that had the format; never made anew."""
    shutil.copy(FIXTURES / f"registry-format-{format}.sqlite", tmp_path / NAME)
    made = SqliteStorage(tmp_path)
    claimed = await made.claim()
    await made.close()
    assert claimed.epoch == 43
    assert claimed.records == {
        "agent/S1": b"\n\x04host",
        "weight/eng": b"\t\x00\x00\x00\x00\x00\x00\x00@",
        "maintenance": b"",
    }
