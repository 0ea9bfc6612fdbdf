"""The engine with real executors: what dies, what is cancelled, what is looked at meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pytest

from frameworks.rdd import SparkContext
from frameworks.rdd.conf import SparkConf
from frameworks.rdd.errors import JobCancelled, JobFailed, NotPicklable
from tests.kit.waiting import gone, until

ROOT = Path(__file__).parents[2]
LIMIT_S = 120


def executor() -> psutil.Process:
    """The one of this process's context."""
    found = []
    for child in psutil.Process().children():
        with suppress(psutil.Error):  # one that has just ended, or is a zombie
            if "frameworks.rdd.executor" in child.cmdline():
                found.append(child)
    (one,) = found
    return one


@pytest.fixture
def sc(tmp_path: Path) -> Iterator[SparkContext]:
    conf = SparkConf().set("spark.local.dir", str(tmp_path)).set("spark.ui.port", "0")
    with SparkContext("local[2, 3]", "engine", conf=conf) as made:
        yield made


def test_what_dies_costs_only_what_it_had(sc, tmp_path):
    """One program, in which a worker dies and then, twice, the executor with all it keeps."""
    marks = tmp_path / "marks"
    marks.mkdir()
    seen = sc.accumulator(0)

    def first_time(name: str) -> bool:
        try:
            (marks / name).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def fragile(each: int) -> tuple[int, int]:
        if each == 30 and first_time("worker"):
            os._exit(9)
        return each % 7, each

    expected = {key: sum(range(key, 70, 7)) for key in range(7)}
    sums = sc.parallelize(range(70), 8).map(fragile).reduceByKey(int.__add__, 3)
    kept = sums.mapValues(lambda value: value).cache()
    assert dict(kept.collect()) == expected
    # Large enough that tasks which find it kept are not sent it.
    blocks = sc.parallelize([bytes(10_000)] * 4, 2).cache()
    assert [blocks.map(len).sum() for _ in range(2)] == [40_000, 40_000]
    for _ in range(2):
        killed = executor()
        killed.kill()
        # A machine that is busy takes a moment to kill it, in which its workers run on.
        until(partial(gone, killed.pid))
        # Perhaps before the driver knows of it.
        assert dict(kept.collect()) == expected
        assert [blocks.map(len).sum() for _ in range(2)] == [40_000, 40_000]
    sc.parallelize(range(5), 3).foreach(seen.add)
    assert seen.value == 10

    def poison(_: int) -> None:
        os._exit(9)

    with pytest.raises(JobFailed, match="failed 3 times"):
        sc.parallelize([1], 1).foreach(poison)
    assert sc.parallelize([1, 2]).sum() == 3


def test_a_program_is_watched_cancelled_and_told_what_it_did_wrong(sc, tmp_path):
    chain = sc.parallelize(range(4), 2)
    for _ in range(2000):
        chain = chain.map(lambda each: each + 1)
    assert chain.collect() == [2000, 2001, 2002, 2003]

    errors: list[BaseException] = []

    def wait_long(each: int) -> None:
        (tmp_path / f"runs-{each}").touch()
        threading.Event().wait()

    def run() -> None:
        sc.setJobGroup("slow", "waits")
        try:
            sc.parallelize([0, 1], 2).foreach(wait_long)
        except JobCancelled as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: len(list(tmp_path.glob("runs-*"))) == 2)
    assert sc.uiWebUrl is not None
    with urllib.request.urlopen(sc.uiWebUrl + "/api", timeout=LIMIT_S) as answer:
        view = json.load(answer)
    assert [(each["group"], each["description"]) for each in view["jobs"][:1]] == [
        ("slow", "waits")
    ]
    assert sorted(each["partition"] for each in view["tasks"]) == [0, 1]
    (job,) = sc.statusTracker().getActiveJobsIds()
    assert sc.statusTracker().getJobIdsForGroup("slow") == [job]
    sc.cancelJobGroup("slow")
    thread.join(LIMIT_S)
    assert "was cancelled" in str(errors[0])
    # Both slots are free again.
    assert sc.parallelize(range(4), 4).map(lambda each: each).count() == 4

    lock = threading.Lock()
    with pytest.raises(NotPicklable, match="variable 'lock' captured by function"):
        sc.parallelize([1]).map(lambda each: (each, lock)).count()
    with pytest.raises(NotPicklable, match="only the driver has transformations and actions"):
        sc.parallelize([1]).map(lambda _: chain.count()).count()
    with pytest.raises(JobFailed, match=r"^Traceback") as caught:
        sc.parallelize([0]).map(lambda each: 1 / each).collect()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


SCRIPT = """
import os, pathlib, threading, time
from frameworks.rdd import SparkContext

def wait(each):
    pathlib.Path(f"worker-{os.getpid()}").touch()
    while True:
        time.sleep(1)

with SparkContext("local[2]", "interrupted") as sc:
    try:
        sc.parallelize([0, 1], 2).foreach(wait)
    except KeyboardInterrupt:
        print("interrupted", sc.parallelize(range(10), 4).sum(), flush=True)
"""


def test_an_interrupt_at_the_terminal_ends_the_job_and_not_the_program(tmp_path):
    program = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert program.stdout is not None
    with program, program.stdout:
        try:
            until(lambda: len(list(tmp_path.glob("worker-*"))) == 2)
            # As a terminal does it: everybody there gets it.
            os.killpg(program.pid, signal.SIGINT)
            assert program.stdout.read() == "interrupted 45\n"
            assert program.wait(LIMIT_S) == 0
        finally:
            if program.poll() is None:
                os.killpg(program.pid, signal.SIGKILL)
    # Those that are killed by the signal of the end take a moment on a busy machine.
    for path in tmp_path.glob("worker-*"):
        until(partial(gone, int(path.name.removeprefix("worker-"))))
