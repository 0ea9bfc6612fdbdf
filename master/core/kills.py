"""Having agents kill tasks: now, and again whenever they come back with them."""

from __future__ import annotations

from master.core.cluster import Cluster
from master.core.records import KillCause, Task
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb


def copied(policy: pb.KillPolicy | None) -> pb.KillPolicy | None:
    # A part of a message keeps the whole batch in memory that it came in.
    if policy is None:
        return None
    copy = pb.KillPolicy()
    copy.CopyFrom(policy)
    return copy


def order_kill(
    c: Cluster, task: Task, policy: pb.KillPolicy | None, cause: KillCause | None = None
) -> None:
    """Have the agent kill the task: now, and once more whenever it registers with the
    task alive, since an order may be lost with its stream.

    `cause`: what the update of its end says, if it is this that ends it; it stays when the
    kill is ordered again.
    """
    task.kill_pending = True
    task.pending_kill = copied(policy)
    if cause is not None:
        task.kill_cause = cause
    agent = c.agents.get(task.agent_id)
    if agent is None:
        return
    order = agent_pb2.Event.KillTask(
        framework_id=pb.FrameworkID(value=task.framework_id),
        task_id=pb.TaskID(value=task.task_id),
    )
    if policy is not None:
        order.kill_policy.CopyFrom(policy)
    if task.kill_cause is not None:
        order.reason, order.message = task.kill_cause
    c.to_agent(agent, agent_pb2.Event(type=agent_pb2.Event.KILL_TASK, kill_task=order))


__all__ = ["KillCause", "copied", "order_kill"]
