"""What the shell keeps of attempts and workers, read off the records."""

from __future__ import annotations

import pytest

from frameworks.mapreduce.core.journal import (
    AttemptEnded,
    Launched,
    MapOutputKept,
    Submitted,
    WorkerGone,
)
from frameworks.mapreduce.job import JobSpec, Program
from frameworks.mapreduce.tracker.roster import Roster, replayed
from frameworks.mapreduce.tracker.store import WorkerKept
from frameworks.mapreduce.work import MapDone
from mesos_py import Resources

JOB = "job_1_0001"


def attempt(number: int) -> str:
    return f"attempt_1_0001_m_{number:06}_0"


def launched(number: int, agent: str = "a", worker: str = "w") -> Launched:
    return Launched(attempt(number), agent, f"host-{agent}", worker, "any", False, float(number))


@pytest.fixture
def roster() -> Roster:
    conf = {"mapreduce.map.memory.mb": "100", "mapreduce.map.cpu.vcores": "1"}
    spec = JobSpec(
        job_id=JOB,
        name="",
        user="",
        inputs=(),
        output="/o",
        mapper=Program(command="m"),
        conf=conf,
    )
    return replayed([Submitted(spec, (), 0.0), *(launched(number) for number in range(4))])


def test_attempts_live_from_their_launch_to_their_end(roster):
    assert sorted(roster.live) == [attempt(number) for number in range(4)]
    roster.note(AttemptEnded(attempt(1), "failed", "", None, 2.0))
    roster.note(MapOutputKept(attempt(2), MapDone(), 2.0))
    assert roster.on_worker(("a", "w")) == [attempt(0), attempt(3)]
    # Files of it may be there, however they have ended.
    assert roster.spots(JOB) == {("a", "w"): "host-a"}
    roster.drop(JOB)
    assert (roster.live, roster.spots(JOB), roster.specs) == ({}, {}, {})


def test_the_youngest_are_given_up_and_no_more_than_it_takes(roster):
    roster.note(launched(9, "b"))
    assert roster.youngest("a", Resources.of(cpus=1)) == [attempt(3)]
    assert roster.youngest("a", Resources.of(mem=150)) == [attempt(3), attempt(2)]
    assert len(roster.youngest("a", Resources.of(cpus=9))) == 4
    assert roster.youngest("c", Resources.of(cpus=1)) == []


def test_workers_are_there_until_they_are_gone(roster):
    roster.note(launched(5, "b", "w2"))
    roster.note(WorkerKept("c", "w3"))
    assert roster.workers == {("a", "w"), ("b", "w2"), ("c", "w3")}
    roster.note(WorkerGone("a", "w", 1.0))
    roster.agent_lost("b")
    assert roster.workers == {("c", "w3")}
