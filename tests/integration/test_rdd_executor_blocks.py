"""What executors of the RDD engine keep: data sets, broadcasts, files; and give to others."""

from __future__ import annotations

import os
from pathlib import Path

import numpy
import pytest

from frameworks.rdd.backend import CHUNK_BYTES, cut
from frameworks.rdd.broadcasts import _in_task
from frameworks.rdd.executor import frames
from frameworks.rdd.messages import AddFiles, Forget, Raised, StageWork, Succeeded
from frameworks.rdd.sparkfiles import SparkFiles
from frameworks.rdd.storage import StorageLevel
from tests.kit.rdd_drivers import PATIENCE_S, Driver, dependency, mapped, payloads, slices

MB = 1_000_000
# Of which half is for blocks: room for eight arrays.
CONF = {"spark.executor.memory": "64m", "spark.memory.fraction": "0.25"}
ARRAY = 250_000  # numbers: 2 MB


@pytest.fixture(scope="module")
def driver():
    with Driver(2, CONF) as made:
        # Opens the connection for blocks, which is kept.
        made.call(lambda: bytes(3 << 20))
        yield made


class Arrays:
    """A data set of `partitions` with `each` arrays of 2 MB."""

    def __init__(self, driver: Driver, number: int, each: int, level: StorageLevel) -> None:
        self.driver = driver
        source = slices([[0], [1]])
        self.node = mapped(
            source,
            number,
            lambda split, _: (numpy.full(ARRAY, 10.0 * split + n) for n in range(each)),
        )
        self.node.storage = level
        # What is computed comes with its own memory, what was kept does not.
        self.key = driver.define(
            StageWork(
                self.node,
                function=lambda _, xs: [(x[0], x.flags.owndata, x.flags.writeable) for x in xs],
            )
        )

    def use(self) -> list[list]:
        tasks = [self.driver.run(self.key, split, payloads(self.node, split)) for split in (0, 1)]
        return [self.driver.value(task) for task in tasks]

    def expected(self, each: int) -> list[list]:
        return [[(10.0 * split + n, False, False) for n in range(each)] for split in (0, 1)]

    def kept(self) -> list:
        return [self.driver.kept.get(("rdd", self.node.id, split)) for split in (0, 1)]


def test_blocks_are_kept_pushed_out_and_moved_to_disk(driver):
    asked = len(driver.asked)
    first = Arrays(driver, 2, 3, StorageLevel.MEMORY_ONLY)
    for _ in range(2):
        assert first.use() == first.expected(3)
    size = 3 * 8 * ARRAY
    assert [in_memory for _, in_memory in first.kept()] == [True, True]
    assert all(size <= taken < size + 10_000 for taken, _ in first.kept())
    # Asked for the first time only.
    assert len(driver.asked) == asked + 2

    second = Arrays(driver, 3, 3, StorageLevel.MEMORY_AND_DISK)
    assert second.use() == second.expected(3)
    assert [in_memory for _, in_memory in second.kept()] == [True, True]
    assert None in first.kept()

    # More than there is room for, at last: some of it is not kept, and all of it comes.
    third = Arrays(driver, 4, 6, StorageLevel.MEMORY_ONLY)
    found = third.use()
    assert [[x for x, _, _ in part] for part in found] == [
        [x for x, _, _ in part] for part in third.expected(6)
    ]
    assert None in third.kept()
    assert False in [in_memory for _, in_memory in second.kept()]
    assert second.use() == second.expected(3)

    fourth = Arrays(driver, 5, 6, StorageLevel.DISK_ONLY)
    for _ in range(2):
        assert fourth.use() == fourth.expected(6)
    assert [in_memory for _, in_memory in fourth.kept()] == [False, False]

    beat = driver.beats.get(timeout=60)
    assert beat.disk_bytes > 2 * 6 * 8 * ARRAY
    assert beat.memory_bytes <= beat.peak_bytes <= 16 << 20
    driver.send(Forget(rdds=(2, 3, 4, 5)))
    while driver.beats.get(timeout=60).disk_bytes:
        pass
    driver.kept.clear()


def test_what_one_task_does_with_elements_the_next_does_not_see(driver):
    node = mapped(slices([[1]]), 8, lambda _, xs: ({"number": x} for x in xs))
    node.storage = StorageLevel.MEMORY_ONLY

    def changes(_split, elements):
        (found,) = elements
        before = dict(found)
        found["number"] = 7
        return before

    key = driver.define(StageWork(node, function=changes))
    for _ in range(3):
        assert driver.value(driver.run(key, 0, payloads(node, 0))) == {"number": 1}


def test_what_cannot_be_fetched_from_others_is_computed(driver):
    with Driver(1, CONF) as other:
        assert driver.hello is not None
        kept = Arrays(driver, 6, 1, StorageLevel.MEMORY_ONLY)
        kept.use()
        there = Arrays(other, 6, 1, StorageLevel.MEMORY_ONLY)
        # Two drivers have two secrets: what others have cannot be had, and is computed.
        for split in (0, 1):
            other.where["rdd", 6, split] = (driver.hello.block_address,)
        assert there.use() == there.expected(1)
        assert [in_memory for _, in_memory in there.kept()] == [True, True]


def test_a_broadcast_is_fetched_once_and_seen_by_all_workers_without_a_copy(driver):
    array = numpy.arange(1_500_000)
    value = {"array": array, "text": "x"}
    chunks = list(cut(frames.one(value)))
    assert len(chunks) == 4
    assert all(len(chunk) == CHUNK_BYTES for chunk in chunks[1:-1])
    for number, chunk in enumerate(chunks):
        driver.backend.blocks.put(("broadcast", 7, number), chunk)
    broadcast = _in_task(7)

    def uses():
        array = broadcast.value["array"]
        return int(array.sum()), array.flags.writeable, broadcast.value["text"]

    expected = (int(array.sum()), False, "x")
    assert [driver.call(uses) for _ in range(4)] == [expected] * 4
    # In the end it has told of all that it can give to others.
    has = {block for asked in driver.asked for block in asked.has if block[0] == "broadcast"}
    assert has == {("broadcast", 7, number) for number in range(4)}
    address = driver.hello.block_address
    assert driver.backend.blocks.fetch(address, ("broadcast", 7, 2)).result(PATIENCE_S) == chunks[2]

    driver.backend.blocks.remove([("broadcast", 7, number) for number in range(4)])
    driver.send(Forget(broadcasts=(7,)))
    outcome = driver.outcome(driver.start(uses))
    assert isinstance(outcome, Raised)
    assert "broadcast 7" in outcome.message


def test_nothing_is_left_of_blocks_that_were_not_finished(driver):
    def exits(_split, _elements):
        yield 1
        os._exit(1)

    def raises(_split, _elements):
        yield 1
        raise ValueError

    for elements in (exits, raises):
        node = mapped(slices([[1]]), 9, elements)
        node.storage = StorageLevel.DISK_ONLY
        key = driver.define(StageWork(node, function=lambda _, xs: list(xs)))
        assert not isinstance(driver.outcome(driver.run(key, 0, payloads(node, 0))), Succeeded)
    place = driver.backend._directory / "1" / "blocks"
    assert not list(place.glob("rdd_9_*"))


def test_workers_are_not_used_again_if_that_is_asked_for():
    conf = {"spark.python.worker.reuse": "false", "spark.python.worker.memory": "1b"}
    with Driver(1, conf) as driver:
        assert len({driver.call(os.getpid) for _ in range(5)}) == 5
        driver.shuffle(dependency(slices([[(n, n) for n in range(100)]])))
        outcome = driver.ended[max(driver.ended)]
        assert isinstance(outcome, Succeeded)
        assert outcome.metrics.spilled_bytes > 0
        assert outcome.metrics.records == 100


def test_a_stranger_gets_no_blocks(driver):
    Arrays(driver, 7, 1, StorageLevel.MEMORY_ONLY).use()
    assert driver.hello is not None
    address = driver.hello.block_address
    with Driver(1, CONF) as stranger:
        future = stranger.backend.blocks.fetch(address, ("rdd", 7, 0))
        with pytest.raises(Exception, match="nobody's"):
            future.result(PATIENCE_S)
    found = driver.backend.blocks.fetch(address, ("rdd", 7, 0)).result(PATIENCE_S)
    ((array,),) = frames.read(memoryview(found))
    assert array[0] == 0.0
    with pytest.raises(Exception, match="unknown"):
        driver.backend.blocks.fetch(address, ("rdd", 99, 0)).result(PATIENCE_S)
    with pytest.raises(Exception, match=r"127\.0\.0\.1:1"):
        driver.backend.blocks.fetch("127.0.0.1:1", ("rdd", 2, 0)).result(PATIENCE_S)


@pytest.fixture
def fresh():
    with Driver(2) as made:
        yield made


def test_files_are_there_before_the_tasks_that_come_after_them(fresh, tmp_path):
    driver = fresh
    driver.backend.blocks.put(("file", 1, 0), b"def answer():\n    ")
    driver.backend.blocks.put(("file", 1, 1), b"return 42\n")
    driver.send(AddFiles({"rdd_added_module.py": (("file", 1, 0), ("file", 1, 1))}))

    def uses():
        import rdd_added_module  # type: ignore[import-not-found]

        with open(SparkFiles.get("rdd_added_module.py")) as file:  # noqa: PTH123
            return rdd_added_module.answer(), file.read(3)

    assert [driver.call(uses) for _ in range(3)] == [(42, "def")] * 3

    # What cannot be had fails tasks as long as that is so.
    driver.send(AddFiles({"other": (("file", 2, 0),)}))
    outcome = driver.outcome(driver.start(uses))
    assert isinstance(outcome, Raised)
    assert outcome.message.startswith("what addFile has added cannot be had: other: ")
    (tmp_path / "other").write_text("-contents-")
    driver.backend.blocks.put_file(("file", 2, 0), str(tmp_path / "other"), 1, 8)
    assert driver.call(lambda: Path(SparkFiles.get("other")).read_text()) == "contents"
