"""The engine with executors that are threads of the test."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from frameworks.rdd import SparkContext
from frameworks.rdd.backend import CHUNK_BYTES
from frameworks.rdd.core.patience import FIRST_S
from frameworks.rdd.core.rules import Rules
from frameworks.rdd.engine import Engine
from frameworks.rdd.errors import JobCancelled, JobFailed, NotPicklable
from frameworks.rdd.messages import Forget
from frameworks.rdd.nodes import Mapped, Node, Shuffled, ShuffleDependency, Slices
from frameworks.rdd.runner import Job
from frameworks.rdd.storage import StorageLevel
from mesos_py.errors import Conflict, InvalidValue
from tests.kit.rdd_executors import ThreadBackend
from tests.kit.rdd_world import Modulo

PYTHON = sys.version_info[:3]


def two(backend: ThreadBackend) -> None:
    backend.join("a", 1, "h1", PYTHON)
    backend.join("b", 1, "h2", PYTHON)


class Program:
    """What a context does: numbers, and nodes from Python's own functions."""

    def __init__(self, on_start: Callable[[ThreadBackend], None] = two, **rules: object) -> None:
        self.backend = ThreadBackend()
        self.backend.on_start = on_start
        self.engine = Engine(self.backend, Rules(**rules))  # type: ignore[arg-type]
        self.last = 0

    def number(self) -> int:
        self.last += 1
        return self.last

    def source(self, *parts: list) -> Node:
        import pickle

        return Slices(self.number(), len(parts), slices=[pickle.dumps(each) for each in parts])

    def map(self, node: Node, function: Callable) -> Node:
        return Mapped(
            self.number(), node.partitions, (node,),
            function=lambda _, elements: (function(each) for each in elements),
        )  # fmt: skip

    def shuffle(self, node: Node, partitions: int) -> Node:
        number = self.number()
        dependency = ShuffleDependency(number, node, Modulo(partitions), maps=node.partitions)
        return Shuffled(number, partitions, shuffle=dependency)

    def collect(self, node: Node, group: str = "") -> list:
        job = Job(node, lambda _, it: list(it), range(node.partitions), "collect", "x.py:1", group)
        parts = {each.split: each.value for each in self.engine.run(job)}
        return [each for split in sorted(parts) for each in parts[split]]


@pytest.fixture
def program() -> Iterator[Program]:
    program = Program()
    program.engine.start()
    yield program
    program.engine.stop()
    assert program.backend.stopped


def whole(_: int, elements: Iterator) -> list:
    return list(elements)


def until(condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end_s
        threading.Event().wait(0.005)


def test_results_of_all_partitions_come(program):
    source = program.source([1, 2], [], [3])
    assert program.collect(program.map(source, lambda each: each * 2)) == [2, 4, 6]
    pairs = program.map(source, lambda each: (each, each))
    assert program.collect(program.shuffle(pairs, 2)) == [(2, 2), (1, 1), (3, 3)]


def test_big_results_are_fetched_and_let_go(program):
    assert program.collect(program.source(["x" * 50_000], ["y"])) == ["x" * 50_000, "y"]
    until(lambda: not program.backend.blocks.content)


def test_the_users_own_exception_is_the_cause(program):
    broken = program.map(program.source([1], [0]), lambda each: 1 / each)
    with pytest.raises(JobFailed, match=r"^Traceback: ZeroDivisionError") as caught:
        program.collect(broken)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert "(collect at x.py:1)" in str(caught.value)


def test_what_cannot_be_sent_is_told_before_anything_runs(program):
    lock = threading.Lock()
    source = program.map(program.source([1]), lambda each: (each, lock))
    with pytest.raises(NotPicklable, match=r"_thread\.lock"):
        program.collect(program.shuffle(source, 1))
    assert not program.engine.view().jobs


def test_a_result_that_only_the_driver_cannot_read_fails_where_it_is_read(program):
    class Picky:
        def __reduce__(self) -> tuple:
            return int, ("no number",)

    made = program.map(program.source([1]), lambda _: Picky())
    with pytest.raises(JobFailed, match="cannot be unpickled in the driver: ValueError"):
        program.collect(made)


def test_partitions_that_are_not_there_are_refused(program):
    with pytest.raises(InvalidValue, match="splits"):
        program.engine.run(Job(program.source([1]), whole, [1]))


def test_a_lost_executor_is_made_up_for(program):
    pairs = program.shuffle(program.map(program.source(*[[each] for each in range(6)]), pair), 2)
    kept = program.map(pairs, lambda each: each)
    kept.storage = StorageLevel.MEMORY_ONLY
    expected = program.collect(kept)
    program.backend.lose("a")
    assert program.collect(kept) == expected


def pair(each: int) -> tuple[int, int]:
    return each, each


def test_jobs_of_several_threads_run_beside_each_other(program):
    results: dict[int, list] = {}

    def run(number: int) -> None:
        source = program.source(*[[each] for each in range(number)])
        results[number] = program.collect(program.shuffle(program.map(source, pair), 1))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {number: len(found) for number, found in results.items()} == {
        number: number for number in range(1, 9)
    }


@pytest.fixture
def waiting() -> Iterator[Program]:
    """A program without executors: its jobs wait."""
    program = Program(lambda _: None)
    program.engine.start()
    yield program
    program.engine.stop()


def running_jobs(program: Program) -> list[int]:
    return [each.number for each in program.engine.view().jobs if each.status == "RUNNING"]


def test_a_group_is_cancelled(waiting):
    errors: list[BaseException] = []

    def run(group: str) -> None:
        try:
            waiting.collect(waiting.source([1]), group)
        except JobCancelled as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(group,)) for group in ("x", "y")]
    for thread in threads:
        thread.start()
    until(lambda: len(running_jobs(waiting)) == 2)
    waiting.engine.cancel("x", "no need")
    until(lambda: len(errors) == 1)
    assert "was cancelled: no need" in str(errors[0])
    assert len(running_jobs(waiting)) == 1
    waiting.engine.cancel(None, "all")
    for thread in threads:
        thread.join()
    assert len(errors) == 2


def test_who_stops_listening_cancels(waiting):
    job = Job(waiting.source([1]), whole, [0])
    results = waiting.engine.run(job)
    results.close()
    results.close()
    assert list(results) == []
    until(lambda: not running_jobs(waiting))
    abandoned = waiting.engine.run(job)
    assert running_jobs(waiting)
    del abandoned
    gc.collect()
    until(lambda: not running_jobs(waiting))


HELD = threading.Event()


def zero_only(number: int) -> int:
    assert number == 0 or HELD.wait(30)
    return number


def first_only(split: int, elements: Iterator) -> list:
    assert split == 0 or HELD.wait(30)
    return list(elements)


def test_a_cancelled_job_is_not_taken_for_one_that_is_done(program):
    """By tag, while its thread is busy with a result: a collect would return some elements, and
    a directory that lacks files get its _SUCCESS."""
    with SparkContext("local", runner=program.engine) as sc:
        HELD.clear()
        sc.addJobTag("late")
        results = sc.results(program.source([1], [2], [3], [4]), first_only)
        next(results)
        sc.cancelJobsWithTag("late")
        HELD.set()
        with pytest.raises(JobCancelled, match="jobs with the tag late were cancelled"):
            list(results)


def test_an_iterator_that_is_left_early_cancels_what_was_fetched_ahead(program):
    """Instead of waiting for it."""
    HELD.clear()
    with SparkContext("local", runner=program.engine) as sc:
        numbers = (
            sc.parallelize(range(3), 3).map(zero_only).toLocalIterator(prefetchPartitions=True)
        )
        assert next(numbers) == 0
        numbers.close()
        jobs = {each.number: each for each in program.engine.view().jobs}
        HELD.set()
        assert [jobs[number].status for number in sorted(jobs)] == ["SUCCEEDED", "FAILED"]
        assert "nobody waits for the rest" in jobs[1].error


def test_an_interrupt_of_who_waits_cancels(waiting):
    results = waiting.engine.run(Job(waiting.source([1]), whole, [0]))

    class Interrupted:
        def get(self) -> None:
            raise KeyboardInterrupt

    results.events = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        next(results)
    until(lambda: not running_jobs(waiting))
    assert "interrupted" in waiting.engine.view().jobs[0].error


def test_stop_ends_who_waits_and_may_be_called_by_two(waiting):
    errors: list[BaseException] = []

    def run() -> None:
        try:
            waiting.collect(waiting.source([1]))
        except JobCancelled as error:
            errors.append(error)

    threads = [threading.Thread(target=run)]
    threads[0].start()
    until(lambda: bool(running_jobs(waiting)))
    threads += [threading.Thread(target=waiting.engine.stop) for _ in range(2)]
    for thread in threads[1:]:
        thread.start()
    for thread in threads:
        thread.join()
    assert "the context was stopped" in str(errors[0])
    with pytest.raises(Conflict, match="stopped"):
        waiting.collect(waiting.source([1]))
    waiting.engine.unpersist(1, blocking=True)
    waiting.engine.destroy(1)


def test_a_backend_that_cannot_go_on_ends_jobs(waiting):
    results = waiting.engine.run(Job(waiting.source([1]), whole, [0]))
    assert waiting.backend.listener is not None
    waiting.backend.listener.refused("the framework was removed")
    with pytest.raises(JobFailed, match="the framework was removed"):
        next(results)


def test_a_long_wait_for_executors_is_told(caplog):
    """At once it was told of each program that started."""
    now_s = [100.0]
    backend = ThreadBackend()
    engine = Engine(backend, Rules(), clock=lambda: now_s[0])
    engine.start()
    try:
        assert backend.listener is not None
        backend.listener.waiting("no offers")
        engine.view()
        assert engine.waiting == "no offers"
        assert not caplog.messages
        now_s[0] += FIRST_S
        engine.view()
        assert caplog.messages == ['jobs wait for executors why="no offers"']
        backend.listener.waiting("")
        engine.view()
        assert engine.waiting == ""
    finally:
        engine.stop()


def test_executors_of_another_python_are_of_no_use():
    program = Program(lambda backend: backend.join("a", 1, "h1", (3, 1, 0)))
    program.engine.start()
    try:
        with pytest.raises(JobFailed, match=r"executor 3\.1\.0"):
            program.collect(program.source([1]))
        assert [name for name, _ in program.backend.dropped] == ["a"]
    finally:
        program.engine.stop()


def test_a_backend_that_does_not_start_leaves_nothing():
    def fail(_: ThreadBackend) -> None:
        raise InvalidValue("master", "x", "is no master")

    program = Program(fail)
    with pytest.raises(InvalidValue, match="is no master"):
        program.engine.start()
    assert program.backend.stopped
    with pytest.raises(Conflict):
        program.collect(program.source([1]))


def test_a_bug_in_the_engine_leaves_nobody_waiting(waiting):
    results = waiting.engine.run(Job(waiting.source([1]), whole, [0]))
    assert waiting.backend.listener is not None
    waiting.backend.listener.executor_joined(None)
    with pytest.raises(JobFailed, match="the engine has failed: AttributeError"):
        next(results)
    with pytest.raises(Conflict):
        waiting.engine.view()


def test_what_the_program_lets_go_of_is_forgotten(program):
    node = program.shuffle(program.map(program.source([1], [2]), pair), 2)
    node.storage = StorageLevel.MEMORY_ONLY
    assert len(program.collect(node)) == 2
    number = node.id
    del node
    gc.collect()
    # Something has to happen for it to be noticed.
    program.collect(program.source([1]))
    forgotten = [each for _, each in program.backend.sent if isinstance(each, Forget)]
    assert {number} <= {shuffle for each in forgotten for shuffle in each.shuffles}
    assert {number} <= {rdd for each in forgotten for rdd in each.rdds}


def test_broadcasts_and_files_are_blocks_of_the_driver(program, tmp_path):
    blocks = program.backend.blocks.content
    number = program.engine.broadcast([1, 2])
    assert {block for _, block in blocks} == {("broadcast", number, chunk) for chunk in (0, 1)}
    program.engine.destroy(number)
    program.engine.destroy(number)
    assert not blocks
    (tmp_path / "code.py").write_text("x = 1")
    program.engine.add_file(str(tmp_path / "code.py"), python=True)
    assert blocks["driver:1", ("file", 0, 0)] == b"x = 1"
    big = bytes(CHUNK_BYTES) + b"rest"
    (tmp_path / "big").write_bytes(big)
    program.engine.add_file(str(tmp_path / "big"), python=False)
    assert [blocks["driver:1", ("file", 1, chunk)] for chunk in (0, 1)] == [big[:-4], b"rest"]
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(InvalidValue, match="cannot be read"):
            program.engine.add_file(str(path), python=False)
    with pytest.raises(InvalidValue, match="names no file"):
        program.engine.add_file("/", python=False)
    with pytest.raises(NotPicklable, match="a broadcast cannot be sent"):
        program.engine.broadcast({"lock": threading.Lock()})
