"""Status updates that the master itself makes.

They have no uuid, are sent once and must not be acknowledged (Mesos v1); what
matters is found again by reconciliation.
"""

from __future__ import annotations

from master.core.cluster import Cluster
from master.core.records import Framework, Task
from mesos_py.clock import Now
from mesos_py.states import TASK_LOST, TaskState, is_terminal
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

MAX_STATUSES = 16


def for_framework(framework: Framework, state: TaskState.ValueType) -> TaskState.ValueType:
    """`state` for partition-aware frameworks, TASK_LOST for the others."""
    return state if framework.partition_aware else TASK_LOST


def master_status(
    task_id: str,
    agent_id: str,
    state: TaskState.ValueType,
    reason: pb.TaskStatus.Reason.ValueType,
    message: str,
    now: Now,
) -> pb.TaskStatus:
    status = pb.TaskStatus(
        task_id=pb.TaskID(value=task_id),
        state=state,
        source=pb.TaskStatus.SOURCE_MASTER,
        reason=reason,
        message=message,
        timestamp=now.wall_s,
    )
    if agent_id:
        status.agent_id.value = agent_id
    return status


def send(c: Cluster, framework: Framework, status: pb.TaskStatus) -> bool:
    """Send an update to the framework; says whether it is connected."""
    event = sched.Event(type=sched.Event.UPDATE)
    event.update.status.MergeFrom(status)
    return c.to_framework(framework, event)


def keep(task: Task, status: pb.TaskStatus) -> None:
    """Keep the status with the task: of one state after the other, the newest of each.

    A copy, since a part of a message keeps the whole batch in memory that it came in;
    without the data, which may be large and is the framework's own affair.
    """
    kept = pb.TaskStatus()
    kept.CopyFrom(status)
    kept.ClearField("data")
    statuses = task.statuses
    if statuses and statuses[-1].state == kept.state:
        statuses[-1] = kept
    else:
        statuses.append(kept)
        # A task may be unreachable and come back again and again.
        if len(statuses) > MAX_STATUSES:
            del statuses[1]


def record(task: Task, status: pb.TaskStatus, now: Now) -> None:
    """Keep the status, and the moment of the task's end if it is that."""
    keep(task, status)
    if is_terminal(status.state) and task.ended_wall_s is None:
        task.ended_wall_s = status.timestamp or now.wall_s
