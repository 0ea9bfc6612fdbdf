"""The registry under random operations, lost answers and deaths at random points.

Whatever happens, a claim reads what a first part of the operations has made of the
records, and that part holds all operations that were confirmed.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from master.registry import buckets
from master.registry.base import Operation, Storage, fold
from master.registry.buckets import Buckets, decoded
from master.registry.sqlite import NAME, SqliteStorage
from mesos_py.errors import InternalError, Superseded
from tests.kit.fake_tree import Died, Fault, World
from tests.kit.on_fake_tree import OnFake


def _noise(seed: int) -> bytes:
    return random.Random(seed).randbytes(4000)


KEYS = st.sampled_from([f"agent/{n}" for n in range(12)] + ["maintenance", "weight/a", "weight/b"])
# Some are long and do not compress: buckets are to be split.
VALUES = st.one_of(
    st.none(),
    st.binary(max_size=3),
    st.integers(0, 50).map(_noise),
)
OPERATIONS = st.lists(st.dictionaries(KEYS, VALUES, max_size=4), min_size=1, max_size=4)


class Model:
    """What may be stored: what the last claim has read, and a part of what was asked since."""

    def __init__(self) -> None:
        self.base: dict[str, bytes] = {}
        self.asked: list[Operation] = []
        self.confirmed = 0
        self.epoch = 0

    def possible(self) -> Iterator[dict[str, bytes]]:
        for count in range(self.confirmed, len(self.asked) + 1):
            merged = self.base | fold(self.asked[:count])
            yield {key: value for key, value in merged.items() if value is not None}

    def claimed(self, epoch: int, records: dict[str, bytes]) -> None:
        assert records in list(self.possible())
        assert epoch > self.epoch
        self.base, self.asked, self.confirmed, self.epoch = records, [], 0, epoch

    async def write(self, storage: Storage, operations: list[Operation]) -> None:
        self.asked += operations
        await storage.write(operations)
        self.confirmed = len(self.asked)


# ---- ZooKeeper, by a tree that loses, delays, lags -------------------------------------------

FAULTS = st.lists(
    st.sampled_from(
        [Fault.NONE] * 8
        + [Fault.LOST, Fault.UNANSWERED, Fault.LATE]
        + [Fault.KILLED_BEFORE, Fault.KILLED_AFTER]
    ),
    max_size=30,
)
STEPS = st.lists(
    st.one_of(OPERATIONS, st.sampled_from(["claim", "arrive", "late writer", "raise"])),
    max_size=12,
)


class Run:
    """Masters that follow one another, each until it dies or is superseded."""

    def __init__(self, faults: list[Fault]) -> None:
        self.world = World()
        self.faults = faults
        self.model = Model()
        self.leader: OnFake | None = None
        self.older: list[OnFake] = []

    def fault(self, call: str) -> Fault:
        return self.faults.pop() if self.faults else Fault.NONE

    async def claim(self) -> OnFake:
        if self.leader is not None:
            self.older.append(self.leader)
            self.leader = None
        while True:
            storage = OnFake(self.world, self.fault)
            try:
                claimed = await storage.claim()
            except Died:
                continue
            self.model.claimed(claimed.epoch, claimed.records)
            self.leader = storage
            return storage

    async def step(self, step: str | list[Operation]) -> None:
        if step == "arrive":
            self.world.arrive()
        elif step == "late writer":
            for each in self.older:
                await self.write_late(each)
        elif step == "claim" or self.leader is None:
            await self.claim()
        else:
            try:
                if step == "raise":
                    self.model.epoch = await self.leader.raise_epoch(self.model.epoch + 3)
                else:
                    assert not isinstance(step, str)
                    await self.model.write(self.leader, step)
            except Died:
                self.leader = None

    async def write_late(self, storage: OnFake) -> None:
        try:
            await storage.write([{"agent/1": b"late"}])
        except (Superseded, Died, InternalError):
            return
        raise AssertionError("an older leadership has written")


@given(STEPS, FAULTS)
def test_zookeeper(steps, faults):
    async def run() -> None:
        run = Run(faults)
        await run.claim()
        for step in steps:
            await run.step(step)
        run.world.arrive()
        await run.claim()

    asyncio.run(run())


@given(st.lists(OPERATIONS, max_size=12))
def test_buckets_hold_what_was_written_however_it_came(batches):
    stored: dict[str, bytes] = {}
    tree = Buckets()
    records: dict[str, bytes | None] = {}
    for operations in batches:
        records |= fold(operations)
        plan = tree.plan(operations)
        assert not plan.created.keys() & stored.keys()
        assert plan.replaced.keys() | plan.removed <= stored.keys()
        count = tree.after(plan)
        tree.adopt(plan)
        stored = {k: v for k, v in stored.items() if k not in plan.removed}
        stored |= {**plan.created, **plan.replaced}
        again = decoded(stored.items())
        left = {key: value for key, value in records.items() if value is not None}
        # Outside of the assertion: to tell the difference would take minutes.
        same = again.records() == tree.records() == left
        assert same
        assert len(again) == len(tree) == count
        for bucket in tree._buckets.values():
            assert bucket.size <= buckets.SPLIT_BYTES or len(bucket.records) < 2


# ---- SQLite, by images of its files at any moment --------------------------------------------


class Image:
    """What a machine finds on its disk that went down at one statement of the storage."""

    def __init__(self, source: Path, at: int, cut: int) -> None:
        self.source = source
        self.directory = source.with_name(f"{source.name}x")
        self._left = at
        self._cut = cut
        # What has been confirmed is on the platter: only what came later may be cut off.
        self._synced = self._log_size()
        self.taken = False

    def _log_size(self) -> int:
        log = self.source / f"{NAME}-wal"
        return log.stat().st_size if log.exists() else 0

    def statement(self, text: str) -> None:
        self._left -= 1
        if self._left == 0:
            self.take()

    def take(self) -> None:
        self.taken = True
        self.directory.mkdir()
        for suffix in ("", "-wal"):
            if (self.source / f"{NAME}{suffix}").exists():
                shutil.copy(self.source / f"{NAME}{suffix}", self.directory)
        log = self.directory / f"{NAME}-wal"
        if log.exists():
            size = log.stat().st_size
            with log.open("r+b") as file:
                file.truncate(max(self._synced, size - self._cut))


async def _traced(storage: SqliteStorage, callback: Callable[[str], None] | None) -> None:
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(
        storage._thread, lambda: storage._file._db.set_trace_callback(callback)
    )


# Each write waits for the disk.
@settings(max_examples=max(5, settings().max_examples // 5))
@given(
    st.lists(
        st.tuples(OPERATIONS, st.integers(0, 14), st.sampled_from([0, 1, 24, 1000, 4200])),
        max_size=6,
    )
)
def test_sqlite(steps):
    async def run(directory: Path) -> None:
        model = Model()
        for operations, at, cut in steps:
            storage = SqliteStorage(directory)
            claimed = await storage.claim()
            model.claimed(claimed.epoch, claimed.records)
            image = Image(directory, at, cut)
            await _traced(storage, image.statement)
            # All of it is asked for; only what ended before the image is confirmed.
            model.asked += operations
            for count, operation in enumerate(operations, 1):
                await storage.write([operation])
                if not image.taken:
                    model.confirmed = count
                    image._synced = image._log_size()
            await _traced(storage, None)
            if image.taken:
                directory = image.directory
            await storage.close()
        storage = SqliteStorage(directory)
        claimed = await storage.claim()
        model.claimed(claimed.epoch, claimed.records)
        await storage.close()

    with tempfile.TemporaryDirectory() as base:
        first = Path(base) / "w"
        first.mkdir()
        asyncio.run(run(first))


def test_images_are_taken_while_a_transaction_is_open(tmp_path):
    """The test above is worth something only if its images differ from what came later."""

    async def run() -> list[dict[str, bytes]]:
        found = []
        for at in range(1, 8):
            source = tmp_path / str(at)
            source.mkdir()
            storage = SqliteStorage(source)
            await storage.claim()
            image = Image(source, at, 0)
            await _traced(storage, image.statement)
            await storage.write([{"agent/1": b"a"}])
            await storage.write([{"agent/1": b"b"}])
            await _traced(storage, None)
            await storage.close()
            with sqlite3.connect(image.directory / NAME) as db:
                found.append(dict(db.execute("SELECT key, data FROM records").fetchall()))
            db.close()
        return found

    found = asyncio.run(run())
    assert found[0] == {}
    assert {"agent/1": b"a"} in found
    assert found == sorted(found, key=lambda records: records.get("agent/1", b""))
