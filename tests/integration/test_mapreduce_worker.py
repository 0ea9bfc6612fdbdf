"""The worker as an executor of a real agent; the test is its tracker."""

from __future__ import annotations

import os
import signal
import sys
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest

import mesos_py
from frameworks.mapreduce import records
from frameworks.mapreduce.job import JobSpec, Piece, Program, Split
from frameworks.mapreduce.messages import (
    Forget,
    Forgotten,
    MapOutput,
    Maps,
    Progress,
    WantMaps,
)
from frameworks.mapreduce.work import Failure, MapDone, ReduceDone, Work
from frameworks.mapreduce.worker.reports import TASKS
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework
from tests.kit.waiting import until

JOB = "job_20261128141500_0001"
WORKER = "worker-1"


class Tracker:
    """Launches attempts on one worker, by hand."""

    def __init__(self, framework: Framework, directory: Path) -> None:
        self.framework = framework
        self.directory = directory
        self.agent_id = ""
        self.worker = mesos_py.custom_executor(
            WORKER,
            [sys.executable, "-m", "frameworks.mapreduce.worker"],
            cpus=0.1,
            mem=128,
            env={"PYTHONPATH": str(Path(__file__).parents[2])},
        )

    def job(self, mapper: str, reducer: str = "cat", reduces: int = 1, **more) -> str:
        spec = JobSpec(
            job_id=JOB,
            name="test",
            user="tester",
            inputs=(),
            output=str(self.directory / "out"),
            mapper=Program(command=mapper),
            reducer=Program(command=reducer) if reduces else None,
            reduces=reduces,
            **more,
        )
        path = self.directory / "job.json"
        path.write_bytes(records.encode(spec))
        return str(path)

    def split(self, name: str, text: str) -> Split:
        path = self.directory / name
        path.write_text(text)
        return Split((Piece(path.as_uri(), 0, len(text)),), len(text))

    def launch(self, attempt: str, data: bytes) -> None:
        offer = self.framework.gather("cpus:0.3;mem:192")
        self.agent_id = offer.agent_id.value
        task = mesos_py.executor_task(
            attempt, attempt, offer, self.worker, data=data, cpus=0.1, mem=32
        )
        self.framework.driver.launch_tasks(offer, task, filters=0)

    def map(self, number: int, job_url: str, split: Split) -> str:
        attempt = f"attempt_20261128141500_0001_m_{number:06}_0"
        work = Work(attempt=attempt, job_url=job_url, split=split, maps=2, mem_mb=32)
        self.launch(attempt, records.encode(work))
        return attempt

    def done(self, attempt: str, kind=MapDone):
        status = self.framework.status(attempt, mesos_py.TASK_FINISHED)
        return records.decode(kind, status.data, "outcome")

    def failed(self, attempt: str) -> Failure:
        status = self.framework.status(attempt, mesos_py.TASK_FAILED)
        failure = records.decode(Failure, status.data, "failure")
        assert status.message == failure.message
        return failure

    def say(self, message) -> None:
        self.framework.driver.send_framework_message(WORKER, self.agent_id, records.encode(message))

    def heard(self, kind, where=lambda _: True):
        """The first message of this kind."""

        def wanted(seen):
            message = records.from_worker(seen[2])
            return isinstance(message, kind) and where(message)

        return records.from_worker(self.framework.wait_for("message", wanted)[2])


@pytest.fixture
def cluster(tmp_path):
    with Cluster(tmp_path / "cluster") as made:
        made.start_agent()
        yield made


@pytest.fixture(autouse=True)
def cluster_directory(tmp_path):
    (tmp_path / "cluster").mkdir()


@pytest.fixture
def tracker(cluster, tmp_path):
    with Framework(cluster.address, "mapreduce") as framework:
        yield Tracker(framework, tmp_path)


def fetched(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return bytes(answer.read())


def test_maps_and_a_reduce_of_one_worker_over_http(tracker):
    job = tracker.job("tr ' ' '\\n'", "uniq -c")
    maps = [
        tracker.map(0, job, tracker.split("a.txt", "b a c\na\n")),
        tracker.map(1, job, tracker.split("b.txt", "c b\n" * 3)),
    ]
    done = [tracker.done(attempt) for attempt in maps]
    assert tracker.framework.states(maps[0]) == ["RUNNING", "FINISHED"]
    assert done[0].counters[TASKS]["MAP_INPUT_RECORDS"] == 2
    assert fetched(done[0].url) == b"a\na\nb\nc\n"

    reduce = "attempt_20261128141500_0001_r_000000_0"
    out = tracker.directory / "out" / "_temporary" / reduce / "part-00000"
    tracker.launch(reduce, records.encode(Work(attempt=reduce, job_url=job, maps=2, out=str(out))))
    assert tracker.heard(WantMaps) == WantMaps(reduce, 0)
    tracker.say(
        Maps(
            reduce,
            0,
            tuple(
                # No path: it has to be fetched from the agent.
                MapOutput(number, maps[number], "", one.url, "", one.segments[0])
                for number, one in enumerate(done)
            ),
        )
    )
    outcome = tracker.done(reduce, ReduceDone)
    assert out.read_bytes() == b"      2 a\n      4 b\n      4 c\n"
    assert outcome.part == out.stat().st_size
    assert tracker.framework.all("executor lost") == []


def test_a_killed_attempt_is_told_as_killed_and_others_go_on(tracker):
    job = tracker.job("sh -c 'cat; case $mapreduce_task_partition in 0) sleep 1000;; esac'")
    stuck = tracker.map(0, job, tracker.split("a.txt", "a\n"))
    tracker.framework.status(stuck, mesos_py.TASK_RUNNING)
    tracker.framework.driver.kill_task(stuck)
    tracker.framework.status(stuck, mesos_py.TASK_KILLED)
    other = tracker.map(1, job, tracker.split("b.txt", "b\n"))
    assert fetched(tracker.done(other).url) == b"b\n"


def test_failures_come_with_their_record(tracker):
    job = tracker.job("sh -c 'echo so it is >&2; exit 3'")
    attempt = tracker.map(0, job, tracker.split("a.txt", "a\n"))
    failure = tracker.failed(attempt)
    assert failure.blame == "program"
    assert failure.message.endswith("ended with exit code 3: so it is")
    assert failure.where.endswith("a.txt bytes 0 to 2")
    assert fetched(failure.log) == b"so it is\n"


def test_work_that_is_none_fails_the_job(tracker):
    tracker.launch("attempt_20261128141500_0001_m_000000_0", b"{}")
    assert tracker.failed("attempt_20261128141500_0001_m_000000_0").blame == "job"
    other = records.encode(Work(attempt="../../x", job_url="/nowhere"))
    tracker.launch("attempt_20261128141500_0001_m_000001_0", other)
    assert "../../x" in tracker.failed("attempt_20261128141500_0001_m_000001_0").message


def test_progress_is_told_while_attempts_run(tracker):
    go = tracker.directory / "go"
    wait = f"while [ ! -e {go} ]; do sleep 0.05; done"
    job = tracker.job(f"sh -c 'cat; echo reporter:status:nearly there >&2; {wait}'")
    attempt = tracker.map(0, job, tracker.split("a.txt", "a\n"))
    progress = tracker.heard(
        Progress, lambda one: attempt in one.attempts and one.attempts[attempt].status
    )
    running = progress.attempts[attempt]
    assert (running.phase, running.status) == ("map", "nearly there")
    go.touch()
    tracker.done(attempt)


def test_a_job_is_forgotten_with_all_its_files_also_while_it_runs(tracker):
    job = tracker.job("sh -c 'cat; case $mapreduce_task_partition in 1) sleep 1000;; esac'")
    done = tracker.done(tracker.map(0, job, tracker.split("a.txt", "a\n")))
    stuck = tracker.map(1, job, tracker.split("b.txt", "b\n"))
    tracker.framework.status(stuck, mesos_py.TASK_RUNNING)
    tracker.say(Forget(JOB))
    assert tracker.heard(Forgotten) == Forgotten(JOB)
    tracker.framework.status(stuck, mesos_py.TASK_KILLED)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        fetched(done.url)
    tracker.say(Forget(JOB))
    tracker.framework.wait_for("message", count=2)


def test_map_output_is_served_when_its_worker_has_been_killed(tracker):
    job = tracker.job("sh -c 'cat; case $mapreduce_task_partition in 1) sleep 1000;; esac'")
    done = tracker.done(tracker.map(0, job, tracker.split("a.txt", "a\n")))
    stuck = tracker.map(1, job, tracker.split("b.txt", "b\n"))
    tracker.framework.status(stuck, mesos_py.TASK_RUNNING)
    (worker,) = workers(tracker.directory)
    os.kill(worker.pid, signal.SIGKILL)
    tracker.framework.wait_for("executor lost")
    tracker.framework.wait_for(
        "update",
        lambda status: status.task_id.value == stuck and mesos_py.is_terminal(status.state),
    )
    assert fetched(done.url) == b"a\n"
    until(lambda: not workers(tracker.directory))


def test_attempts_go_on_while_the_agent_is_down(tmp_path):
    with Cluster(tmp_path / "cluster") as cluster:
        agent = cluster.start_agent(tasks_on_exit="keep")
        with Framework(cluster.address, "mapreduce") as framework:
            tracker = Tracker(framework, tmp_path)
            go = tmp_path / "go"
            job = tracker.job(f"sh -c 'cat; while [ ! -e {go} ]; do sleep 0.1; done'")
            attempt = tracker.map(0, job, tracker.split("a.txt", "a\n"))
            framework.status(attempt, mesos_py.TASK_RUNNING)
            agent.kill()
            go.write_text("")
            agent.start()
            done = tracker.done(attempt)
            assert Path(done.path).read_bytes() == b"a\n"
            assert fetched(done.url) == b"a\n"
        until(lambda: not workers(tmp_path))


def workers(directory: Path) -> list[psutil.Process]:
    """Those of this test, which are in sandboxes beneath its directory."""
    found = []
    for process in psutil.process_iter():
        try:
            sandbox = Path(process.environ().get("MESOS_SANDBOX", "/"))
            if process.cmdline()[1:3] == ["-m", "frameworks.mapreduce.worker"]:
                found += [process] if sandbox.is_relative_to(directory) else []
        except psutil.Error:
            continue
    return found
