"""RECONCILE: what the master knows of a framework's tasks.

The answers follow Mesos v1 (mesos-semantics, section 7.3): source master, reason
reconciliation, no uuid.
"""

from __future__ import annotations

from master.core import statuses
from master.core.cluster import Cluster
from master.core.records import Framework, Task
from mesos_py.clock import Now
from mesos_py.states import (
    TASK_GONE,
    TASK_GONE_BY_OPERATOR,
    TASK_UNKNOWN,
    TASK_UNREACHABLE,
    TaskState,
    is_terminal,
)
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb


def reconcile(c: Cluster, framework: Framework, call: sched.Call.Reconcile, now: Now) -> None:
    if not call.tasks:
        for task in list(framework.tasks.values()):
            answer_known(c, framework, task, now)
        return
    for item in call.tasks:
        answer(c, framework, item.task_id.value, item.agent_id.value, now)


def answer(c: Cluster, framework: Framework, task_id: str, agent_id: str, now: Now) -> None:
    """One update about one task, by the first rule that fits."""
    task = framework.tasks.get(task_id)
    if task is not None:
        answer_known(c, framework, task, now)
        return
    agent = c.agents.get(agent_id)
    if may_come(c, framework, agent_id, now):
        # No answer: the client asks again.
        c.drop("reconcile-too-early", framework=framework.framework_id, task=task_id)
    elif agent_id in c.gone:
        why = "its agent was marked gone"
        _send(c, framework, task_id, agent_id, TASK_GONE_BY_OPERATOR, why, now)
    elif agent is None:
        # Includes a task on an unreachable agent that is asked for without its agent.
        _send(c, framework, task_id, agent_id, TASK_UNKNOWN, "the master does not know it", now)
    elif agent.unreachable is not None:
        why = "its agent is unreachable"
        _send(c, framework, task_id, agent_id, TASK_UNREACHABLE, why, now)
    else:
        _send(c, framework, task_id, agent_id, TASK_GONE, "its agent does not have it", now)


def may_come(c: Cluster, framework: Framework, agent_id: str, now: Now) -> bool:
    """Whether that agent (any, if it is not named), which may have a task of the
    framework that is not known here, may still be on its way."""
    if agent_id in c.agents or agent_id in c.gone:
        return False
    if agent_id in c.expected or agent_id in c.admissions or (not agent_id and c.expected):
        return True
    if c.options.durable:
        return False
    # A master without a registry does not know the agents of its predecessor; those of a
    # framework that was there before get as long to come back as one whose link broke.
    since_s = now.monotonic_s - framework.registered.monotonic_s
    return framework.from_before and since_s < c.options.agent_timeout_s


def answer_known(c: Cluster, framework: Framework, task: Task, now: Now) -> None:
    _send_known(c, framework, task, task.told_state, now)


def answer_ended(c: Cluster, framework: Framework, task: Task, now: Now) -> None:
    """Its agent will not repeat how the task ended, so it is said once more."""
    told = _send_known(c, framework, task, task.state, now)
    if told and (task.update_state is None or not is_terminal(task.update_state)):
        # Should the agent come back after all, with updates from before the end:
        # the framework has seen the end.
        task.update_state, task.update_uuid = task.state, b""


def _send_known(
    c: Cluster, framework: Framework, task: Task, state: TaskState.ValueType, now: Now
) -> bool:
    status = statuses.master_status(
        task.task_id,
        task.agent_id,
        state,
        pb.TaskStatus.REASON_RECONCILIATION,
        "reconciliation: latest task state",
        now,
    )
    if task.executor_id is not None:
        status.executor_id.value = task.executor_id
    if task.statuses:
        latest = task.statuses[-1]
        if latest.HasField("healthy"):
            status.healthy = latest.healthy
        if latest.HasField("check_status"):
            status.check_status.CopyFrom(latest.check_status)
        if latest.HasField("container_status"):
            status.container_status.CopyFrom(latest.container_status)
    return statuses.send(c, framework, status)


def _send(
    c: Cluster,
    framework: Framework,
    task_id: str,
    agent_id: str,
    state: TaskState.ValueType,
    why: str,
    now: Now,
) -> None:
    status = statuses.master_status(
        task_id,
        agent_id,
        statuses.for_framework(framework, state),
        pb.TaskStatus.REASON_RECONCILIATION,
        f"reconciliation: {why}",
        now,
    )
    if agent_id in c.agents:
        statuses.put_absence(status, c.agents[agent_id])
    statuses.send(c, framework, status)
