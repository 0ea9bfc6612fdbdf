"""Status updates that the master itself makes.

They have no uuid, are sent once and must not be acknowledged (Mesos v1); what
matters is found again by reconciliation.
"""

from __future__ import annotations

from master.core.cluster import Cluster
from master.core.records import Agent, Framework, Task
from mesos_py.clock import Now
from mesos_py.states import TASK_LOST, TaskState, is_terminal
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb


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


def put_absence(status: pb.TaskStatus, agent: Agent) -> None:
    """Since when the agent is unreachable, if it is."""
    if agent.unreachable is not None:
        status.unreachable_time.nanoseconds = int(agent.unreachable.wall_s * 1e9)


def send(c: Cluster, framework: Framework, status: pb.TaskStatus) -> bool:
    """Send an update to the framework; says whether it is connected."""
    event = sched.Event(type=sched.Event.UPDATE)
    event.update.status.MergeFrom(status)
    return c.to_framework(framework, event)


def keep(c: Cluster, task: Task, status: pb.TaskStatus) -> None:
    """Into the task's history; who watches is told of a new state."""
    if task.statuses.keep(status) and c.news is not None:
        c.news.task_updated(task, status)


def record(c: Cluster, task: Task, status: pb.TaskStatus, now: Now) -> None:
    """Keep the status, and the moment of the task's end if it is that."""
    keep(c, task, status)
    if is_terminal(status.state) and task.ended_wall_s is None:
        task.ended_wall_s = status.timestamp or now.wall_s
