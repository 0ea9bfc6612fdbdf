"""How an attempt has ended, by the status of its task."""

from __future__ import annotations

import pytest

from frameworks.mapreduce.core.orders import Failed, Finished, Killed, Lost, Preempted
from frameworks.mapreduce.names import AttemptName
from frameworks.mapreduce.records import encode
from frameworks.mapreduce.tracker.statuses import end_of, is_hearsay
from frameworks.mapreduce.work import Failure, MapDone, ReduceDone
from mesos_py import TaskState, TaskStatus

MAP = AttemptName("job_1_0001", "map", 0, 0)
REDUCE = AttemptName("job_1_0001", "reduce", 0, 0)


def status(state: str, message: str = "", data: bytes = b"", reason: str = "") -> TaskStatus:
    found = TaskStatus(state=TaskState.Value(f"TASK_{state}"), message=message, data=data)
    if reason:
        found.reason = TaskStatus.Reason.Value(f"REASON_{reason}")
    return found


@pytest.mark.parametrize("state", ["STAGING", "STARTING", "RUNNING", "KILLING"])
def test_an_attempt_that_runs_has_no_end(state):
    assert end_of(MAP, status(state), False) is None


@pytest.mark.parametrize(
    "state",
    ["LOST", "DROPPED", "GONE", "GONE_BY_OPERATOR", "UNREACHABLE", "UNKNOWN"],
)
def test_what_is_gone_is_lost(state):
    assert end_of(MAP, status(state, "agent\nis gone"), False) == Lost("agent is gone")


def test_results_are_those_of_its_kind():
    assert end_of(MAP, status("FINISHED", data=encode(MapDone(part=3))), False) == Finished(
        MapDone(part=3)
    )
    assert end_of(REDUCE, status("FINISHED", data=encode(ReduceDone(part=3))), False) == Finished(
        ReduceDone(part=3)
    )
    broken = end_of(MAP, status("FINISHED", data=b"{"), False)
    assert isinstance(broken, Failed)
    assert broken.failure.blame == "place"
    assert str(MAP) in broken.failure.message


def test_a_failure_is_the_worker_s_own_word_or_else_the_agent_s():
    own = Failure(blame="program", message="ValueError")
    assert end_of(MAP, status("FAILED", data=encode(own)), False) == Failed(own)
    found = end_of(
        MAP, status("FAILED", "used 300 MB", reason="CONTAINER_LIMITATION_MEMORY"), False
    )
    assert found == Failed(
        Failure(blame="place", message="used 300 MB: container limitation memory")
    )
    broken = end_of(MAP, status("FAILED", data=b"[]"), False)
    assert isinstance(broken, Failed)
    assert broken.failure.blame == "place"


def test_what_is_nobody_s_fault_is_no_failure():
    late = status("FAILED", "time is over", reason="MAX_COMPLETION_TIME_REACHED")
    assert end_of(MAP, late, False) == Lost("time is over: max completion time reached")
    taken = status("KILLED", "taken back", reason="CONTAINER_PREEMPTED")
    assert end_of(MAP, taken, False) == Preempted("taken back: container preempted")
    assert end_of(MAP, status("KILLED", "by us"), True) == Preempted("by us")
    assert end_of(MAP, status("KILLED"), False) == Killed("task killed")


def test_a_launch_that_is_refused_is_a_failure_that_may_be_tried_again():
    """As when the worker has just ended, and there was no room for another one."""
    short = "resources.cpus: 1 wanted, the offers have 0.9 left"
    assert end_of(MAP, status("ERROR", short), False) == Failed(
        Failure(blame="place", message=f"it could not be launched: {short}")
    )


@pytest.mark.parametrize("state", ["FINISHED", "FAILED"])
def test_what_the_master_says_of_an_end_lacks_the_result(state):
    asked = status(state, reason="RECONCILIATION")
    assert is_hearsay(asked)
    asked.uuid = b"u"
    assert not is_hearsay(asked)
    assert not is_hearsay(status(state, reason="EXECUTOR_TERMINATED"))


@pytest.mark.parametrize("state", ["RUNNING", "KILLED", "LOST", "UNREACHABLE"])
def test_other_answers_of_the_master_are_complete(state):
    assert not is_hearsay(status(state, reason="RECONCILIATION"))
