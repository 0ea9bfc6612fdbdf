"""Status updates that the master itself makes, and which ones a task keeps."""

import pytest

from master.core import statuses
from master.core.history import MAX_STATUSES
from master.core.records import Framework, Task
from mesos_py.clock import Now
from mesos_py.resources import EMPTY
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World


@pytest.mark.parametrize("aware", [False, True])
def test_only_partition_aware_frameworks_are_told_the_finer_states(aware):
    framework = Framework("f", pb.FrameworkInfo(), ("*",), Now(0.0, 0.0), partition_aware=aware)
    for state in (pb.TASK_DROPPED, pb.TASK_UNREACHABLE, pb.TASK_GONE, pb.TASK_UNKNOWN):
        expected = state if aware else pb.TASK_LOST
        assert statuses.for_framework(framework, state) == expected


def test_an_update_goes_to_a_framework_that_is_connected():
    world = World()
    framework = world.framework(failover_timeout=60.0)
    record = world.cluster.frameworks[framework.id]
    assert statuses.send(world.cluster, record, pb.TaskStatus(message="m"))
    (event,) = framework.take()
    assert (event.type, event.update.status.message) == (sched.Event.UPDATE, "m")
    framework.disconnect()
    assert not statuses.send(world.cluster, record, pb.TaskStatus())


def a_status(state, timestamp=5.0):
    return pb.TaskStatus(state=state, timestamp=timestamp)


def a_task():
    return Task("f", "t", "a", "n", "*", EMPTY)


def test_of_one_state_after_the_other_the_newest_status_is_kept():
    task = a_task()
    for number, state in enumerate([pb.TASK_RUNNING, pb.TASK_RUNNING, pb.TASK_FINISHED]):
        statuses.record(World().cluster, task, a_status(state, float(number)), Now(0.0, 9.0))
    assert [(s.state, s.timestamp) for s in task.statuses] == [
        (pb.TASK_RUNNING, 1.0),
        (pb.TASK_FINISHED, 2.0),
    ]
    assert task.ended_wall_s == 2.0


def test_a_kept_status_is_a_copy_without_the_data():
    task = a_task()
    status = pb.TaskStatus(state=pb.TASK_RUNNING, message="m", data=b"secret")
    task.statuses.keep(status)
    (kept,) = task.statuses
    assert kept is not status
    assert kept.message == "m"
    assert not kept.HasField("data")
    assert status.data == b"secret"


def test_the_end_is_when_the_agent_says_or_else_when_it_was_heard():
    task = a_task()
    statuses.record(World().cluster, task, pb.TaskStatus(state=pb.TASK_FAILED), Now(0.0, 9.0))
    assert task.ended_wall_s == 9.0


def test_a_task_that_comes_and_goes_keeps_a_limited_number_of_statuses():
    task = a_task()
    statuses.record(World().cluster, task, a_status(pb.TASK_STARTING), Now(0.0, 0.0))
    for _ in range(100):
        task.statuses.keep(a_status(pb.TASK_RUNNING))
        task.statuses.keep(a_status(pb.TASK_UNREACHABLE))
    assert len(task.statuses) == MAX_STATUSES
    assert task.statuses[0].state == pb.TASK_STARTING
    assert task.statuses[-1].state == pb.TASK_UNREACHABLE
    assert task.ended_wall_s is None


def test_a_status_without_an_agent_names_none():
    status = statuses.master_status(
        "t", "", pb.TASK_LOST, pb.TaskStatus.REASON_INVALID_OFFERS, "why", Now(0.0, 7.0)
    )
    assert not status.HasField("agent_id")
    assert status.timestamp == 7.0
    assert status.source == pb.TaskStatus.SOURCE_MASTER
    assert not status.HasField("uuid")


def test_a_status_names_its_agent():
    status = statuses.master_status(
        "t", "a", pb.TASK_LOST, pb.TaskStatus.REASON_AGENT_REMOVED, "why", Now(0.0, 7.0)
    )
    assert status.agent_id.value == "a"
