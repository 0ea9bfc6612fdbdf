"""What Slurm 22.05 has said, as it was recorded; shortened to what is of use."""

import json
import logging

import pytest

from frameworks.torque.backend import BatchError
from frameworks.torque.core.records import Job, Node
from frameworks.torque.slurm.reading import array_size, has_room_node, read_jobs, read_nodes

PENDING = {
    "job_id": 8,
    "job_state": "PENDING",
    "array_job_id": 0,
    "array_task_id": None,
    "array_task_string": "",
    "node_count": 1,
    "cpus": 4,
    "tasks": 4,
    "memory_per_node": None,
    "memory_per_cpu": None,
    "time_limit": None,
    "state_reason": "ReqNodeNotAvail",
    "state_description": "ReqNodeNotAvail, UnavailableNodes:room",
    "user_name": "root",
    "nodes": "",
    "name": "hello",
    "priority": 4294901752,
    "admin_comment": "",
}
IDLE = {
    "name": "one-n2",
    "cpus": 2,
    "real_memory": 64,
    "alloc_cpus": 0,
    "alloc_memory": 0,
    "state": "idle",
    "state_flags": ["DYNAMIC_NORM"],
    "reason": "",
    "address": "127.64.0.2",
    "tres_used": None,
}


def answer(key: str, *records, errors=()) -> str:
    return json.dumps({"meta": {}, "errors": list(errors), key: list(records)})


def job(**changes) -> Job:
    (read,) = read_jobs(answer("jobs", {**PENDING, **changes}))
    return read


def node(**changes) -> Node:
    (read,) = read_nodes(answer("nodes", {**IDLE, **changes}))
    return read


def test_a_job_that_waits_for_nodes():
    assert job() == Job(
        "8", "hello", "root", "waiting", cpus=4, why="ReqNodeNotAvail, UnavailableNodes:room"
    )


def test_what_jobs_ask_for():
    asked = job(node_count=3, cpus=7, memory_per_cpu=20, time_limit=10)
    assert (asked.nodes, asked.cpus, asked.mem_mb, asked.walltime_s) == (3, 3, 60, 600.0)
    assert job(cpus=4, memory_per_node=30).mem_mb == 30
    assert job(array_task_string="1-10%2").count == 10
    assert job(admin_comment="mesos-py: x").note == "mesos-py: x"


@pytest.mark.parametrize(
    ("state", "reason", "expected"),
    [
        ("PENDING", "None", "waiting"),
        ("PENDING", "Resources", "waiting"),
        ("PENDING", "Priority", "waiting"),
        ("PENDING", "PartitionConfig", "waiting"),
        ("PENDING", "PartitionNodeLimit", "waiting"),
        ("PENDING", "a reason of a later Slurm", "waiting"),
        ("PENDING", "JobHeldUser", "held"),
        ("PENDING", "JobHeldAdmin", "held"),
        ("PENDING", "Dependency", "held"),
        ("PENDING", "DependencyNeverSatisfied", "held"),
        ("PENDING", "BeginTime", "held"),
        ("PENDING", "BadConstraints", "held"),
        ("REQUEUED", "None", "waiting"),
        ("REQUEUE_HOLD", "None", "held"),
        ("SPECIAL_EXIT", "None", "held"),
        ("CONFIGURING", "None", "running"),
        ("RUNNING", "None", "running"),
        ("SUSPENDED", "None", "running"),
        ("COMPLETING", "None", "running"),
    ],
)
def test_states_of_jobs(state, reason, expected):
    assert job(job_state=state, state_reason=reason, state_description="").state == expected


@pytest.mark.parametrize(
    "state", ["COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "DEADLINE"]
)
def test_jobs_that_have_ended_are_not_there(state):
    # One that was cancelled before it ran has no number of cpus any more.
    assert read_jobs(answer("jobs", {**PENDING, "job_state": state, "cpus": None})) == []


def test_the_most_urgent_come_first_and_among_equals_the_elder():
    records = [
        {**PENDING, "job_id": number, "priority": priority}
        for number, priority in ((1, 5), (2, 7), (3, 5))
    ]
    assert [read.job_id for read in read_jobs(answer("jobs", *records))] == ["2", "1", "3"]


def test_one_job_that_makes_no_sense_is_left_out(caplog):
    records = [{**PENDING, "cpus": None}, {**PENDING, "job_id": 9}]
    with caplog.at_level(logging.WARNING, logger="mesos_py"):
        assert [read.job_id for read in read_jobs(answer("jobs", *records))] == ["9"]
    assert "cpus is None" in caplog.text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "slurm_load_jobs error: Unable to contact slurm controller",
        "[]",
        "{}",
        '{"errors": [], "jobs": 3}',
        '{"errors": [], "jobs": [3]}',
        # As `sinfo --json` has said while slurmctld was busy.
        answer("jobs", errors=[{"error": "Unspecified error", "errno": -1}]),
    ],
)
def test_what_is_no_answer(text):
    with pytest.raises(BatchError, match="squeue --json"):
        read_jobs(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 1), ("7", 1), ("1-10", 10), ("1-10%2", 10), ("0,3,5-7", 5), ("0-8:4", 3), ("1-5,...", 5)],
)
def test_sizes_of_arrays(text, count):
    assert array_size(text) == count


def test_an_idle_node():
    assert node() == Node("one-n2", "up", 2, 64, 2, 64, busy=False)


def test_a_node_with_a_job():
    seen = node(state="mixed", alloc_cpus=1, alloc_memory=40)
    assert (seen.state, seen.free_cpus, seen.free_mem_mb, seen.busy) == ("up", 1, 24, True)
    assert node(state_flags=["COMPLETING"]).busy


@pytest.mark.parametrize(
    ("state", "flags", "expected"),
    [
        ("idle", ["DRAIN"], "draining"),
        ("mixed", ["DRAIN", "DYNAMIC_NORM"], "draining"),
        ("idle", ["MAINTENANCE"], "draining"),
        ("down", [], "down"),
        ("idle", ["NOT_RESPONDING"], "down"),
        ("unknown", [], "down"),
        ("down", ["DRAIN"], "down"),
        ("idle", ["INVALID_REG"], "down"),
        ("allocated", [], "up"),
    ],
)
def test_states_of_nodes(state, flags, expected):
    assert node(state=state, state_flags=flags).state == expected


def test_the_node_that_stands_for_others_is_none():
    text = answer("nodes", {**IDLE, "name": "room", "state": "down"}, IDLE)
    assert [read.name for read in read_nodes(text)] == ["one-n2"]
    assert has_room_node(text)
    assert not has_room_node(answer("nodes", IDLE))
