"""How workers are started: in the same words for as long as they live."""

from __future__ import annotations

import msgspec
import pytest

from frameworks.mapreduce.core.orders import Launch, Start
from frameworks.mapreduce.tracker.options import TrackerOptions
from frameworks.mapreduce.tracker.store import WorkerStart
from frameworks.mapreduce.tracker.workers import Workers, epoch_of, prefix, start_of
from frameworks.mapreduce.work import Work
from mesos_py import Resources
from mesos_py.errors import InvalidValue

OWN = WorkerStart(("python3", "-m", "w"), {"A": "new"}, 0.1, 64.0)
OLD = WorkerStart(("python2", "-m", "w"), {"A": "old"}, 0.2, 32.0, "somebody")


@pytest.fixture
def workers() -> Workers:
    return Workers(OWN, 7, lambda epoch: OLD if epoch == 3 else None)


def test_a_launch_becomes_a_task_for_its_worker(workers):
    work = Work(attempt="attempt_1_0001_m_000000_0", job_url="file:///j/job.json", mem_mb=100)
    start = Start(work.attempt, work, Resources.of(cpus=1, mem=100))
    [task] = workers.tasks(Launch(("o1",), "a1", "worker-7-1", (start,), 5.0))
    assert task.task_id.value == work.attempt
    assert task.agent_id.value == "a1"
    assert msgspec.json.decode(task.data, type=Work) == work
    assert Resources.from_proto("task", task.resources) == start.resources
    executor = task.executor
    assert executor.executor_id.value == "worker-7-1"
    assert list(executor.command.arguments) == ["python3", "-m", "w"]
    assert executor.command.environment.variables[0].value == "new"
    assert Resources.from_proto("executor", executor.resources) == Resources.of(cpus=0.1, mem=64)


def test_a_worker_of_a_predecessor_is_described_in_its_words(workers):
    executor = workers.executor("worker-3-12")
    assert executor.command.value == "python2"
    assert executor.command.user == "somebody"
    # Of this one nothing is known any more.
    assert workers.executor("worker-2-1").command.value == "python3"
    assert workers.executor("strange").command.value == "python3"


def test_the_names_of_workers_tell_whose_they_are():
    assert epoch_of(f"{prefix(12)}-3") == 12
    assert epoch_of("worker-1") is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("master", ""),
        ("state", ""),
        ("idle_s", -1.0),
        ("cleanup_s", float("nan")),
        ("failover_s", float("inf")),
        ("worker_python", "bin/python"),
    ],
)
def test_options_that_cannot_be_are_named(field, value):
    with pytest.raises(InvalidValue, match=field):
        TrackerOptions(**{"master": "m:1", "state": "/s", field: value})


def test_workers_find_this_package_where_the_tracker_has_it():
    start = start_of(TrackerOptions(master="m:1", state="/s", worker_python="python3"))
    assert start.command == ("python3", "-m", "frameworks.mapreduce.worker")
    assert "PYTHONPATH" in start.env
