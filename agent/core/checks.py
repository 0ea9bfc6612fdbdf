"""Checks and health checks: what follows from the outcomes of probes.

Of command tasks, and of those of the agent's own executor for groups.  Custom executors
check their tasks themselves (Mesos).
"""

from __future__ import annotations

from typing import Final

from agent.core import commands, executors, probing
from agent.core.effects import StopProbe, TaskKey
from agent.core.health import CHECK, HEALTH, Check, Health, Outcome
from agent.core.probing import DUE
from agent.core.records import Executor, Reason, Task
from agent.core.state import AgentState
from mesos_py.clock import Now
from mesos_py.v1 import types_pb2 as pb

# While so many updates of a task wait for the framework, its checks add no more: what is
# newest then is told when there is room.
MAX_WAITING: Final = 8

_REASONS: Final[dict[str, Reason]] = {
    HEALTH: pb.TaskStatus.REASON_TASK_HEALTH_CHECK_STATUS_UPDATED,
    CHECK: pb.TaskStatus.REASON_TASK_CHECK_STATUS_UPDATED,
}


def on_timer(s: AgentState, executor: Executor, timer: str, name: str, now: Now) -> None:
    """A timer of DUE or LIMIT, of the check of this name."""
    found = probing.task_of(executor, name)
    if found is None:
        return
    task, check = found
    if timer in DUE:
        probing.probe(s, task, check, now)
    else:
        s.effects.append(StopProbe(executor.container_id, name))
        text = f"no answer within {check.plan.timeout_s:g} s"
        _take(s, task, check, Outcome(False, None, text), now)


def probe_ended(
    s: AgentState, container_id: str, name: str, number: int, outcome: Outcome, now: Now
) -> None:
    """What a probe has found, unless it was stopped before."""
    executor = s.containers.get(container_id)
    found = probing.task_of(executor, name) if executor is not None else None
    if found is not None:
        task, check = found
        if check.in_flight and check.number == number:
            _take(s, task, check, outcome, now)
            return
    s.drop("outcome of a probe that was given up", container=container_id, kind=name)


def look_anew(s: AgentState, late_s: float, now: Now) -> None:
    """The agent stood still: what was in flight meanwhile says nothing of the tasks."""
    for executor in s.containers.values():
        for task in executor.tasks.values():
            for check in task.checks:
                if check.health is not None:
                    check.health.lenient_for(late_s)
                if check.in_flight:
                    s.effects.append(StopProbe(executor.container_id, check.name))
                    probing.landed(s, task, check)
                    probing.pause(s, task, check, 0.0, now)


def acknowledged(s: AgentState, key: TaskKey, now: Now) -> None:
    """The framework has taken an update: there may be room for what was not told."""
    task = s.tasks.get(key)
    if task is None or not task.untold or key[1] not in task.executor.tasks:
        return
    kind, text = task.untold
    _tell(s, task, kind, text, now)


def _take(s: AgentState, task: Task, check: Check, outcome: Outcome, now: Now) -> None:
    container_id = task.executor.container_id
    probing.landed(s, task, check)
    probing.pause(s, task, check, check.plan.interval_s, now)
    if outcome.good is None:
        s.drop("probe was lost", container=container_id, kind=check.name, why=outcome.text)
    elif check.health is None:
        if outcome.value != check.value:
            check.value = outcome.value
            _tell(s, task, CHECK, f"Check: {outcome.text}", now)
    else:
        _judge(s, task, check, check.health, outcome, now)


def _judge(
    s: AgentState, task: Task, check: Check, health: Health, outcome: Outcome, now: Now
) -> None:
    verdict = health.judge(outcome, now.monotonic_s)
    if verdict.healthy:
        text = f"Health check: {outcome.text}"
    else:
        text = (
            f"Health check failed ({health.failures} of {check.plan.failures} in a row): "
            f"{outcome.text}"
        )
    if verdict.report:
        _tell(s, task, HEALTH, text, now)
    if verdict.kill:
        task.unhealthy = text
        s.journal.task(task)
        if task.executor.custom:
            executors.kill(s, task, None, now)
        else:
            commands.kill(s, task, None, now)


def _tell(s: AgentState, task: Task, kind: str, text: str, now: Now) -> None:
    """An update with what all checks say now; later, if too many wait already."""
    if s.updates.waiting(task.key) >= MAX_WAITING:
        task.untold = (kind, text)
        return
    task.untold = None
    s.report(task, pb.TASK_RUNNING, now, reason=_REASONS[kind], message=text)
