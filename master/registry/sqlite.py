"""The registry as one SQLite file in the master's work directory.

A transaction is on the platter when `write` returns: what it says has been told to
others (an agent is gone for good), and must outlive the machine's going down.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from master.registry.base import Claimed, Operation, Storage, check, fold, next_epoch
from mesos_py.errors import InternalError, InvalidValue, Superseded, Unavailable, shown

NAME: Final = "registry.sqlite"
# The layout of the file; what is in the records may grow without a new one.
FORMAT: Final = 1
# "mprg": a file that another program made is not taken for ours.
_APPLICATION_ID: Final = 0x6D707267
# Hardly anybody but a backup holds the file that long.
_LOCKED_S: Final = 5.0
_WAY_OUT: Final = "restore a backup, or move the file away to begin anew"

_SCHEMA: Final = (
    "CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER NOT NULL)",
    "INSERT INTO head (one, epoch) VALUES (1, 0)",
    "CREATE TABLE records (key TEXT PRIMARY KEY, crc INTEGER NOT NULL, data BLOB NOT NULL)"
    " WITHOUT ROWID",
)
_PUT: Final = "INSERT OR REPLACE INTO records (key, crc, data) VALUES (?, ?, ?)"
_REMOVE: Final = "DELETE FROM records WHERE key = ?"


class SqliteStorage(Storage):
    """All that touches the file is done in a thread of its own, in order."""

    def __init__(self, work_dir: Path) -> None:
        """Open the file, or make it; returns when all of it has been looked through.

        Raises InvalidValue, naming it, for a file that is no registry, is of a later
        version, is damaged, or cannot be used.
        """
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="registry")
        try:
            self._file = self._thread.submit(_File, work_dir / NAME).result()
        except BaseException:
            self._thread.shutdown()
            raise

    async def claim(self, at_least: int = 0) -> Claimed:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._file.claim, at_least)

    async def write(self, operations: Sequence[Operation]) -> None:
        check(operations)
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._file.write, operations)

    async def raise_epoch(self, at_least: int) -> int:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._file.raise_epoch, at_least)

    async def close(self) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(RuntimeError):  # closed before
            await loop.run_in_executor(self._thread, self._file.close)
        self._thread.shutdown()


class _File:
    """The same calls, blocking, all from one thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._epoch = 0
        try:
            path.touch(mode=0o600)
            self._db = sqlite3.connect(path, isolation_level=None, timeout=_LOCKED_S)
        except (sqlite3.Error, OSError) as error:
            raise self._invalid(f"cannot be opened: {error}") from None
        try:
            self._open()
            self._read()
        except sqlite3.Error as error:
            self._db.close()
            raise self._invalid(f"cannot be used: {error}; {_WAY_OUT}") from None
        except InvalidValue:
            self._db.close()
            raise

    def _open(self) -> None:
        db = self._db
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and application != _APPLICATION_ID:
            raise self._invalid("is not a registry of a master")
        if version > FORMAT:
            raise self._invalid(f"has format {version}, and this version knows up to {FORMAT}")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        if not tables:
            with self._transaction():
                for statement in _SCHEMA:
                    db.execute(statement)
                db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                db.execute(f"PRAGMA user_version = {FORMAT}")
        (found,) = db.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise self._invalid(f"is damaged: {found}; {_WAY_OUT}")

    # ---- Calls -----------------------------------------------------------------------

    def claim(self, at_least: int) -> Claimed:
        with self._reported(), self._transaction():
            epoch = next_epoch(self._stored_epoch(), at_least)
            self._db.execute("UPDATE head SET epoch = ?", (epoch,))
            records = self._read()
        self._epoch = epoch
        return Claimed(epoch, records)

    def write(self, operations: Sequence[Operation]) -> None:
        with self._reported(), self._fenced():
            for key, value in fold(operations).items():
                if value is None:
                    self._db.execute(_REMOVE, (key,))
                else:
                    self._db.execute(_PUT, (key, zlib.crc32(value), value))

    def raise_epoch(self, at_least: int) -> int:
        with self._reported(), self._fenced():
            epoch = next_epoch(self._epoch, at_least)
            self._db.execute("UPDATE head SET epoch = ?", (epoch,))
        self._epoch = epoch
        return epoch

    def close(self) -> None:
        self._db.close()

    # ---- Their parts -----------------------------------------------------------------

    def _stored_epoch(self) -> int:
        row = self._db.execute("SELECT epoch FROM head").fetchone()
        if row is None or not isinstance(row[0], int):
            raise self._invalid(f"is damaged: it has no epoch; {_WAY_OUT}")
        return row[0]

    def _read(self) -> dict[str, bytes]:
        self._stored_epoch()
        records: dict[str, bytes] = {}
        for key, crc, data in self._db.execute("SELECT key, crc, data FROM records"):
            if not isinstance(data, bytes) or zlib.crc32(data) != crc:
                raise self._invalid(f"is damaged at record {shown(key)}; {_WAY_OUT}")
            records[key] = data
        return records

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """All of the block, or nothing of it."""
        # Nobody else may begin to write after what is read here.
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # SQLite has already done so
                self._db.execute("ROLLBACK")
            raise

    @contextlib.contextmanager
    def _fenced(self) -> Iterator[None]:
        """A transaction of this leadership."""
        if not self._epoch:
            raise InternalError("the registry was not claimed")
        with self._transaction():
            stored = self._stored_epoch()
            if stored != self._epoch:
                raise Superseded(self._epoch, stored)
            yield

    @contextlib.contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise Unavailable(
                f"registry {self.path}: {error}", path=str(self.path), reason=str(error)
            ) from error

    def _invalid(self, reason: str) -> InvalidValue:
        return InvalidValue("registry", str(self.path), reason)
