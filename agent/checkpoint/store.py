"""The checkpoint: records of the agent's core in one SQLite file in its work directory.

Each step of the core is one transaction, which is with the kernel (not on the platter)
when `write` returns: it outlives the agent, however that ends, and when the machine
goes down its tasks are gone as well.  What does not end with them (reservations, volumes) is on
the platter.  Every record has a checksum, so that one that is
damaged is noticed and costs no other.  Why SQLite: docs/decisions/0003-checkpoint.md.
"""

from __future__ import annotations

import sqlite3
import threading
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agent.core.journal import LASTING, Change, Kind
from agent.core.recovery import Record
from mesos_py import logs
from mesos_py.errors import InvalidValue

log = logs.get("agent.checkpoint")

NAME: Final = "checkpoint.sqlite"
# The layout of the file; what is in the records may grow without a new one.
FORMAT: Final = 3
# The layout is the same as that of 1, but something was reserved: a version that knows nothing
# of that would give it away.
_FORMAT_RESERVED: Final = 2
# The same again, once there was a volume.
_FORMAT_VOLUMES: Final = 3
# "mpca": a file that another program made is not taken for ours.
_APPLICATION_ID: Final = 0x6D706361
# After so many transactions the write-ahead log is folded into the file, in a thread.
_FOLD_AFTER: Final = 2_000

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS records (
    kind TEXT NOT NULL, key TEXT NOT NULL, crc INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (kind, key)
) WITHOUT ROWID
"""
_PUT: Final = "INSERT OR REPLACE INTO records (kind, key, crc, data) VALUES (?, ?, ?, ?)"
_COUNT_RESERVED: Final = "SELECT count(*) FROM records WHERE kind = 'reserved' AND length(data) > 0"
_REMOVE: Final = "DELETE FROM records WHERE kind = ? AND key = ?"


class CheckpointUnwritable(Exception):
    """Nothing of the step was written; the text says why (the disk is full, ...)."""


class Checkpoint:
    """Used from one thread, but for the folding, which has its own connection."""

    def __init__(self, work_dir: Path) -> None:
        """Open it, or make it.

        Raises InvalidValue for a file that is no checkpoint, is of a later version, or
        is damaged as a whole.
        """
        self.path = work_dir / NAME
        self._since_fold = 0
        # As the file says.
        self._format = 1
        self._folding: threading.Thread | None = None
        try:
            self._db = self._opened()
        except (sqlite3.Error, OSError) as error:
            raise InvalidValue(
                "checkpoint", str(self.path), f"cannot be used: {error}; see --recover"
            ) from None

    def _opened(self) -> sqlite3.Connection:
        self.path.touch(mode=0o600)
        db = sqlite3.connect(self.path, isolation_level=None)
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and application != _APPLICATION_ID:
            raise InvalidValue("checkpoint", str(self.path), "is not a checkpoint of an agent")
        if version > FORMAT:
            text = f"has format {version}, and this version knows up to {FORMAT}"
            raise InvalidValue("checkpoint", str(self.path), text)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA wal_autocheckpoint = 0")
        if not tables:
            db.execute("BEGIN")
            db.execute(_SCHEMA)
            db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            db.execute("PRAGMA user_version = 1")
            db.execute("COMMIT")
        else:
            self._format = version
        return db

    def read(self) -> list[Record]:
        """All records, by kind and key.  Raises InvalidValue if the file is damaged."""
        try:
            rows = self._db.execute("SELECT kind, key, crc, data FROM records ORDER BY kind, key")
            return [
                Record(Kind(kind), tuple(str(key).split("/")), _checked(crc, data))
                for kind, key, crc, data in rows
                if kind in _KINDS
            ]
        except sqlite3.Error as error:
            raise InvalidValue(
                "checkpoint", str(self.path), f"cannot be read: {error}; see --recover"
            ) from None

    def write(self, changes: Sequence[Change]) -> None:
        """All of them or none.  Raises CheckpointUnwritable."""
        db = self._db
        needed = self._format_for(changes)
        lasting = needed > 1
        try:
            if self._folding is not None and not self._folding.is_alive():
                # What was written meanwhile is little.  Only when all is folded, as now,
                # does the log begin anew with the next write.
                self._folding = None
                db.execute("PRAGMA wal_checkpoint(PASSIVE)")
            if lasting:
                db.execute("PRAGMA synchronous = FULL")
            db.execute("BEGIN")
            if lasting:
                db.execute(f"PRAGMA user_version = {max(needed, self._format)}")
            for kind, key, data in changes:
                text = "/".join(key)
                if data is None:
                    db.execute(_REMOVE, (kind.value, text))
                else:
                    db.execute(_PUT, (kind.value, text, zlib.crc32(data), data))
            db.execute("COMMIT")
        except sqlite3.Error as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise CheckpointUnwritable(str(error)) from error
        finally:
            if lasting:
                db.execute("PRAGMA synchronous = NORMAL")
        self._format = max(needed, self._format)
        self._since_fold += 1
        if self._since_fold >= _FOLD_AFTER and self._folding is None:
            self._since_fold = 0
            self._folding = threading.Thread(target=self._fold, name="checkpoint", daemon=True)
            self._folding.start()

    @staticmethod
    def _format_for(changes: Sequence[Change]) -> int:
        """Above 1: they are to be on the platter."""
        needed = 1
        for kind, _, data in changes:
            # What is gone may come back with the machine: it is told once more then.
            if data is not None and kind in LASTING:
                if kind is Kind.VOLUMES:
                    return _FORMAT_VOLUMES
                needed = _FORMAT_RESERVED
        return needed

    def close(self) -> None:
        if self._folding is not None:
            self._folding.join()
        self._db.close()

    def end(self) -> None:
        """Close it, and forget this run of the agent: the next start is a new agent.  What is
        reserved is not the run's but somebody's, and stays.

        Raises OSError, and CheckpointUnwritable where nothing could be forgotten.
        """
        try:
            (kept,) = self._db.execute(_COUNT_RESERVED).fetchone()
            if kept:
                self._db.execute("PRAGMA synchronous = FULL")
                self._db.execute("DELETE FROM records WHERE kind NOT IN ('reserved', 'volumes')")
        except sqlite3.Error as error:
            raise CheckpointUnwritable(str(error)) from error
        finally:
            self.close()
        if not kept:
            forget_all(self.path.parent)

    def _fold(self) -> None:
        """Waits for the disk, which writing must not."""
        try:
            db = sqlite3.connect(self.path)
            try:
                db.execute("PRAGMA wal_checkpoint(PASSIVE)")
            finally:
                db.close()
        except sqlite3.Error as error:
            log.warning("write-ahead log was not folded", error=error)


_KINDS: Final = {kind.value for kind in Kind}


def _checked(crc: object, data: object) -> bytes | None:
    return data if isinstance(data, bytes) and zlib.crc32(data) == crc else None


def forget_all(work_dir: Path) -> None:
    """Forget everything.  Raises OSError."""
    for suffix in ("", "-wal", "-shm"):
        (work_dir / f"{NAME}{suffix}").unlink(missing_ok=True)


def boot_id() -> str:
    """Names this run of the kernel."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
