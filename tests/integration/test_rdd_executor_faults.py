"""What can befall executors of the RDD engine: tasks that kill, hang and leave things behind."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from frameworks.rdd.errors import FetchFailed
from frameworks.rdd.messages import (
    CancelTask,
    Died,
    FetchLost,
    Killed,
    Raised,
    RunTask,
    StageWork,
    Succeeded,
)
from frameworks.rdd.nodes import Shuffled
from tests.kit.rdd_drivers import PATIENCE_S, Driver, dependency, mapped, payloads, slices
from tests.kit.waiting import until

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def driver():
    with Driver() as made:
        # Opens the connection for blocks, which is kept.
        made.call(lambda: bytes(3 << 20))
        yield made


def gone(*pids: int) -> bool:
    """Whether they have ended, after a while."""
    end_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s:
        if not any(_runs(pid) for pid in pids):
            return True
        time.sleep(0.02)
    return False


def _runs(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def deep(found):
    return deep([found])


class Unpicklable(Exception):
    def __reduce__(self):
        raise TypeError("not this one")


class Needs(Exception):
    """Cannot be made again of its args."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda: os._exit(3), "exit code 3"),
        (lambda: os._exit(0), "exit code 0"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL"),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "SIGSEGV"),
        (lambda: os.closerange(3, 256), "close files that are not its own"),
    ],
)
def test_a_worker_that_dies_is_told_of_and_replaced(driver, act, said):
    outcome = driver.outcome(driver.start(act))
    assert isinstance(outcome, Died)
    assert said in outcome.message
    assert driver.call(lambda: "next") == "next"


@pytest.mark.parametrize(
    ("act", "kind", "text"),
    [
        (lambda: sys.exit("enough"), "SystemExit", "enough"),
        (lambda: (_ for _ in ()).throw(KeyboardInterrupt()), "KeyboardInterrupt", ""),
        (lambda: deep([]), "RecursionError", "recursion"),
        (lambda: (each for each in [1]), "TypeError", "cannot pickle 'generator'"),
    ],
)
def test_what_ends_no_process_is_raised(driver, act, kind, text):
    outcome = driver.outcome(driver.start(act))
    assert isinstance(outcome, Raised)
    assert outcome.kind == kind
    assert text in outcome.message


def raising(error):
    def raises():
        raise error

    return raises


def test_exceptions_that_cannot_be_sent_are_told_in_words(driver):
    def unpicklable():
        raise Unpicklable("a text")

    def needs():
        raise Needs(1, 2)

    for act, text in ((unpicklable, "a text"), (needs, "1 and 2")):
        outcome = driver.outcome(driver.start(act))
        assert isinstance(outcome, Raised)
        assert outcome.message == text
        assert outcome.exception == b""
        assert f"in {act.__name__}" in outcome.traceback

    outcome = driver.outcome(driver.start(raising(ValueError("x", 1))))
    assert isinstance(outcome, Raised)
    assert pickle.loads(outcome.exception).args == ("x", 1)


def test_what_generators_raise_and_hide_is_told(driver):
    def breaks(_split, elements):
        for each in elements:
            yield each
            try:
                raise KeyError("inner")
            except KeyError as error:
                raise ValueError("outer") from error

    node = mapped(slices([[1, 2]]), 2, breaks)
    key = driver.define(StageWork(node, function=lambda _, xs: list(xs)))
    outcome = driver.outcome(driver.run(key, 0, payloads(node, 0)))
    assert isinstance(outcome, Raised)
    assert outcome.traceback.index("KeyError: 'inner'") < outcome.traceback.index(
        "ValueError: outer"
    )
    assert "frameworks/rdd" not in outcome.traceback


def test_code_that_cannot_be_loaded_is_no_use_to_try_again(driver):
    class Missing:
        def __reduce__(self):
            return __import__, ("no_such_module",)

    work = StageWork(slices([[1]]), function=Missing())
    outcome = driver.outcome(driver.run(driver.define(work), 0))
    assert isinstance(outcome, Raised)
    assert (outcome.kind, outcome.fatal) == ("ModuleNotFoundError", True)


def test_tasks_are_cancelled_whether_they_mind_or_not(driver, tmp_path):
    def sleeps():
        try:
            (tmp_path / "asleep").touch()
            time.sleep(100)
        finally:
            (tmp_path / "tidied").touch()

    def stubborn():
        while True:
            with contextlib.suppress(BaseException):
                (tmp_path / "stubborn").touch()
                time.sleep(100)

    for act, file in ((sleeps, "asleep"), (stubborn, "stubborn")):
        task = driver.start(act)
        appears(tmp_path / file)
        driver.send(CancelTask(task, "not wanted"))
        driver.send(CancelTask(task, "said twice"))
        assert driver.outcome(task) == Killed("not wanted")
    assert (tmp_path / "tidied").exists()


def appears(path: Path) -> None:
    until(path.exists)


def test_a_task_that_waits_for_a_worker_is_cancelled_at_once(driver, tmp_path):
    def waits():
        while not (tmp_path / "go").exists():
            time.sleep(0.01)

    running = [driver.start(waits) for _ in range(2)]
    waiting = driver.start(lambda: None)
    driver.send(CancelTask(waiting, "not wanted"))
    assert driver.outcome(waiting) == Killed("not wanted")
    (tmp_path / "go").touch()
    assert all(isinstance(driver.outcome(task), Succeeded) for task in running)
    # Of what has ended, or never was, nothing is heard.
    driver.send(CancelTask(running[0], "too late"))
    driver.send(CancelTask(10**9, "unknown"))
    assert driver.call(lambda: 1) == 1


def test_what_a_task_leaves_running_ends_with_its_worker(driver):
    def leaves():
        return os.getpid(), subprocess.Popen(["sleep", "1000"]).pid

    worker, left = driver.call(leaves)
    assert _runs(left)
    os.kill(worker, signal.SIGKILL)
    assert gone(left)


def test_a_task_that_forks_ends_once(driver):
    def forks():
        return os.fork()

    assert driver.call(forks) > 0
    assert driver.call(lambda: 1) == 1


def test_a_stage_that_was_forgotten_runs_no_more(driver):
    task_id = 10**6
    driver.send(RunTask(task_id, "never-defined", 1, 0, 0, b""))
    assert isinstance(driver.outcome(task_id), Killed)


def test_outputs_that_are_lost_are_told_also_if_user_code_hides_it(driver):
    needs = dependency(slices([[("a", 1)], [("b", 2)]]), number=77)
    outputs = driver.shuffle(needs)
    for output in outputs:
        Path(output.path).unlink()

    def hides(_split, elements):
        with contextlib.suppress(FetchFailed):
            yield from elements

    node = mapped(Shuffled(2, 3, shuffle=needs), 3, hides)
    key = driver.define(StageWork(node, function=lambda _, xs: list(xs)), {77: outputs})
    split = needs.partitioner("a")
    outcome = driver.outcome(driver.run(key, split))
    assert isinstance(outcome, FetchLost)
    assert (outcome.shuffle_id, outcome.map_index) == (77, 0)


SCRIPT = """
import os, sys, time
from tests.kit.rdd_drivers import Driver
with Driver() as driver:
    def waits():
        import subprocess
        left = subprocess.Popen(["sleep", "1000"]).pid
        print("pids", os.getppid(), os.getpid(), left, file=sys.stderr, flush=True)
        while True:
            time.sleep(1)
    driver.start(waits)
    print("executor", driver.backend._process.pid, driver.backend._directory, file=sys.stderr,
        flush=True)
    time.sleep(1000)
"""


def test_nothing_is_left_of_a_driver_that_was_killed(tmp_path):
    driver = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert driver.stderr is not None
    with driver, driver.stderr:
        said: dict[str, str] = {}
        while not {"executor", "pids"} <= said.keys():
            # Beside it others may have something to say.
            word, _, rest = driver.stderr.readline().partition(" ")
            assert word, "it has ended"
            said[word] = rest
        executor, directory = said["executor"].split()
        pids = [int(pid) for pid in (executor, *said["pids"].split())]
        assert all(_runs(pid) for pid in pids)
        driver.kill()
        driver.wait()
        assert gone(*pids)
        until(lambda: not Path(directory).exists())


def test_an_executor_that_is_killed_leaves_no_process_and_is_replaced(tmp_path):
    with Driver(conf={"spark.local.dir": str(tmp_path)}) as driver:
        assert driver.backend._process is not None
        executor = psutil.Process(driver.backend._process.pid)
        # Both workers have begun.
        until(lambda: len(executor.children(recursive=True)) >= 3)
        pids = [each.pid for each in executor.children(recursive=True)]
        executor.kill()
        number, reason = driver.lost.get(timeout=PATIENCE_S)
        assert (number, "SIGKILL" in reason) == ("1", True)
        assert gone(*pids)
        assert driver.executor().executor_id == "2"
        assert driver.call(lambda: 1) == 1
        assert [each.name for each in next(tmp_path.iterdir()).iterdir()] == ["2"]
    assert not list(tmp_path.iterdir())
