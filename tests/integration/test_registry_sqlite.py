"""A master's registry file and kill -9: before each statement, and at any moment."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from master.registry.base import fold
from master.registry.sqlite import NAME, SqliteStorage
from tests.kit.cluster import Daemon
from tests.kit.waiting import until

ROOT = Path(__file__).parents[2]

# Says the number of each write that is confirmed.  With a number as its second argument
# it kills itself before the statement with that number, counted from its claim on.
WRITER = """
import asyncio, os, signal, sys
from pathlib import Path
from master.registry.sqlite import SqliteStorage

async def main():
    storage = SqliteStorage(Path(sys.argv[1]))
    await storage.claim()
    left = int(sys.argv[2])

    def statement(text):
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    if left:
        storage._thread.submit(storage._file._db.set_trace_callback, statement).result()
    number = 0
    while number < 4 or not left:
        await storage.write([
            {f"agent/{number}": b"%d" % number, f"agent/{number - 2}": None},
            {"weight/a": b"%d" % number},
        ])
        print(number, flush=True)
        number += 1

asyncio.run(main())
"""


def operations(count: int) -> list[dict[str, bytes | None]]:
    """Those of the first writes of the above."""
    asked: list[dict[str, bytes | None]] = []
    for number in range(count):
        text = b"%d" % number
        asked.append({f"agent/{number}": text, f"agent/{number - 2}": None})
        asked.append({"weight/a": text})
    return asked


def records(count: int) -> dict[str, bytes]:
    """After so many operations."""
    folded = fold(operations(count // 2 + 1)[:count])
    return {key: value for key, value in folded.items() if value is not None}


def read(work_dir: Path) -> tuple[int, dict[str, bytes]]:
    async def claim() -> tuple[int, dict[str, bytes]]:
        storage = SqliteStorage(work_dir)
        try:
            claimed = await storage.claim()
        finally:
            await storage.close()
        return claimed.epoch, claimed.records

    return asyncio.run(claim())


def writer(work_dir: Path, kill_at: int) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-c", WRITER, str(work_dir), str(kill_at)]
    return subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE)


# A write is BEGIN, SELECT, three changes of records, COMMIT: two writes, and into a third.
@pytest.mark.parametrize("kill_at", range(1, 15))
def test_killed_before_a_statement(tmp_path, kill_at):
    process = writer(tmp_path, kill_at)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    confirmed = len(out.split())
    assert confirmed == (kill_at - 1) // 6
    assert read(tmp_path) == (2, records(2 * confirmed))


def test_killed_at_any_moment(tmp_path):
    process = writer(tmp_path, 0)
    assert process.stdout is not None
    heard: list[bytes] = []
    for _ in range(50):
        heard.append(process.stdout.readline())
    os.kill(process.pid, signal.SIGKILL)
    heard += process.stdout.readlines()
    process.stdout.close()
    process.wait()
    confirmed = len(heard)
    # The next write may have been done, or not; of each, both operations or none.
    epoch, found = read(tmp_path)
    assert epoch == 2
    assert found in (records(2 * confirmed), records(2 * confirmed + 2))


async def test_a_master_that_cannot_have_its_registry_yet_still_ends_when_told(tmp_path):
    daemon = Daemon("master", "m", tmp_path, {})
    daemon.work_dir.mkdir()
    await SqliteStorage(daemon.work_dir).close()
    holder = sqlite3.connect(daemon.work_dir / NAME, isolation_level=None)
    try:
        holder.execute("BEGIN IMMEDIATE")
        daemon.launch()
        until(lambda: "leadership given up" in daemon.log)
        assert (daemon.alive, daemon.is_ready) == (True, False)
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.process.wait(60) == 0
    finally:
        holder.close()
        if daemon.alive:
            daemon.process.kill()
            daemon.process.wait()
