"""RDD programs on a cluster of real daemons: each part is ended in turn."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from frameworks.rdd import SparkConf, SparkContext
from mesos_py import is_terminal
from tests.kit.cluster import Cluster
from tests.kit.local import LIMIT_S, environment
from tests.kit.waiting import until

ROOM = "cpus:2;mem:1200"
CONF = {
    "spark.executor.cores": "1",
    "spark.executor.memory": "256m",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.locality.wait": "100ms",
}
WORDS = [f"w{number % 7}" for number in range(1000)]
COUNTS = [(f"w{n}", 143 if n < 6 else 142) for n in range(7)]


@pytest.fixture
def cluster(tmp_path):
    with Cluster(tmp_path) as made:
        made.start_agents("a", "b", resources=ROOM)
        yield made


@contextmanager
def context(cluster, **conf):
    settings = SparkConf().setMaster(cluster.address).setAppName("test")
    made = SparkContext(conf=settings.setAll([*CONF.items(), *conf.items()]))
    try:
        yield made
    finally:
        made.stop()
    until(lambda: executors(cluster) == [], LIMIT_S)


def executors(cluster):
    return [task for task in cluster.operator.tasks() if not is_terminal(task.state)]


def parents(cluster, agent):
    """The executors' own processes, whose children are workers."""
    found = []
    for each in psutil.Process(agent.process.pid).children(recursive=True):
        with suppress(psutil.Error):  # it has ended meanwhile
            words = each.cmdline()
            if "frameworks.rdd.executor" in words and Path(words[0]).name.startswith("python"):
                found.append(each)
    inner: set[int] = set()
    for each in found:
        with suppress(psutil.Error):
            inner |= {child.pid for child in each.children(recursive=True)}
    return [each for each in found if each.pid not in inner]


class Gate:
    """Tasks of a job wait in it until the test lets them go on."""

    def __init__(self, directory):
        self.path = directory / "gate"
        self.came = directory / "came"
        self.came.mkdir()

    def waits(self):
        path, came = self.path, self.came

        def wait(index, elements):
            import time

            (came / f"{index}-{os.getpid()}").touch()
            while not path.exists():
                time.sleep(0.02)
            return elements

        return wait

    def until_came(self, count):
        until(lambda: len(list(self.came.iterdir())) >= count, LIMIT_S)

    def open(self):
        self.path.touch()


@pytest.fixture
def gate(tmp_path):
    made = Gate(tmp_path)
    yield made
    made.open()


class Later(threading.Thread):
    """A job beside the test; `result` waits for what it has found."""

    def __init__(self, action):
        super().__init__(daemon=True)
        self._action = action
        self._found = self._error = None
        self.start()

    def run(self):
        try:
            self._found = self._action()
        except Exception as error:
            self._error = error

    def result(self):
        self.join(LIMIT_S)
        assert not self.is_alive()
        if self._error is not None:
            raise self._error
        return self._found


def counted(sc, wait=None):
    words = sc.parallelize(WORDS, 4).map(lambda word: (word, 1))
    sums = words.reduceByKey(lambda a, b: a + b, 3)
    return sums if wait is None else sums.mapPartitionsWithIndex(wait)


def test_a_job_runs_in_executors_that_come_with_work_and_go_without(cluster):
    with context(cluster, **{"spark.dynamicAllocation.executorIdleTimeout": "1s"}) as sc:
        assert executors(cluster) == []
        assert sorted(counted(sc).collect()) == COUNTS
        assert os.getpid() not in sc.parallelize(range(4), 4).map(lambda _: os.getpid()).collect()
        until(lambda: executors(cluster) == [], LIMIT_S)
        # What they had written can still be read, by its agents; and others come.
        assert sorted(counted(sc).collect()) == COUNTS


def test_executors_and_agents_that_end_cost_what_they_had_and_no_result(cluster, gate):
    first, second = cluster.agents
    with context(cluster, **{"spark.locality.wait": "0s"}) as sc:
        kept = sc.parallelize(range(8), 4).map(lambda n: n * n).cache()
        assert kept.sum() == 140
        until(lambda: len(executors(cluster)) >= 2)
        job = Later(lambda: sorted(counted(sc, gate.waits()).collect()))
        gate.until_came(2)
        # An executor in the midst of a reduce: its cache is lost, its outputs are not.
        (parents(cluster, first) + parents(cluster, second))[0].kill()
        until(lambda: len(executors(cluster)) >= 2)
        gate.until_came(3)
        gate.open()
        assert job.result() == COUNTS
        assert kept.sum() == 140

        # An agent with all that it has: its maps are made again elsewhere.
        sums = counted(sc)
        assert sums.count() == 7
        for each in parents(cluster, first):
            with suppress(psutil.NoSuchProcess):
                each.kill()
        first.kill()
        assert sorted(sums.collect()) == COUNTS
        assert kept.sum() == 140


def test_a_job_goes_on_while_there_is_no_master(cluster, gate):
    with context(cluster) as sc:
        job = Later(lambda: sorted(counted(sc, gate.waits()).collect()))
        gate.until_came(2)
        cluster.master.kill()
        gate.open()
        assert job.result() == COUNTS
        assert sc.parallelize(range(10), 2).sum() == 45
        cluster.master.start()
        until(lambda: len(cluster.operator.frameworks().frameworks) == 1, LIMIT_S)
        assert sorted(counted(sc).collect()) == COUNTS


PROGRAM = """\
import os, sys, time
from frameworks.rdd import SparkContext

sc = SparkContext()
print(sc.parallelize(range(10), 2).map(lambda n: n * 2).sum(), sys.argv[1:], flush=True)
if sys.argv[1:] == ["fail"]:
    sc.parallelize([1, 0]).map(lambda n: 1 // n).collect()
if sys.argv[1:] == ["wait"]:
    sc.parallelize(range(2), 2).map(lambda n: time.sleep(1000)).collect()
"""


def submit(cluster, *words):
    (cluster.directory / "job.py").write_text(PROGRAM)
    argv = [sys.executable, "-m", "mesos_py.cli", "rdd", "submit", "--executor-memory", "256m"]
    argv += [f"--conf={name}={value}" for name, value in CONF.items()]
    return subprocess.Popen(
        [*argv, str(cluster.directory / "job.py"), *words],
        env=environment(cluster.address),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd="/",
    )


def test_programs_end_as_they_say_and_leave_nothing_however_they_end(cluster):
    with submit(cluster, "x") as program:
        out, err = program.communicate(timeout=LIMIT_S)
    assert (out, program.returncode) == ("90 ['x']\n", 0), err

    with submit(cluster, "fail") as program:
        out, err = program.communicate(timeout=LIMIT_S)
    assert program.returncode == 1
    assert 'job.py", line 7, in <lambda>' in err
    assert "1 // n" in err
    assert "ZeroDivisionError" in err

    for number in (signal.SIGINT, signal.SIGKILL):
        with submit(cluster, "wait") as program:
            assert program.stdout.readline() == "90 ['wait']\n"
            program.send_signal(number)
            program.communicate(timeout=LIMIT_S)
        assert program.returncode in (130, -number)
        until(lambda: executors(cluster) == [], LIMIT_S)


def test_what_cannot_be_had_is_said(cluster):
    conf = {"spark.executor.memory": "2g", "spark.ui.enabled": "false"}
    with context(cluster, **conf) as sc:
        job = Later(lambda: sc.parallelize([1], 1).count())
        runner = sc.runner
        until(lambda: "no offer has that" in runner.waiting, LIMIT_S)
        until(lambda: "1 cpus and 2252 MB" in runner.waiting, LIMIT_S)
        sc.cancelAllJobs()
        with pytest.raises(Exception, match="cancelled"):
            job.result()
    conf = {"spark.pyspark.python": "/nowhere/python"}
    with context(cluster, **conf) as sc, pytest.raises(Exception, match="before they could work"):
        sc.parallelize([1], 1).count()
