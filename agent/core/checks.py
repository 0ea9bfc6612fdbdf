"""Checks and health checks of command tasks: when to probe, and what follows from it.

    running -> (delay) -> probe -> outcome -> (interval) -> probe -> ...

Each check has at most one probe in flight, and its time-out is a timer here: it ends
whatever becomes of the probe.  Custom executors check their tasks themselves (Mesos).
"""

from __future__ import annotations

from typing import Final

from agent.core import commands
from agent.core.effects import StartProbe, StopProbe, TaskKey
from agent.core.health import CHECK, HEALTH, Check, Health, Outcome
from agent.core.records import Executor, Reason, Task
from agent.core.state import AgentState
from mesos_py.clock import Now
from mesos_py.health import check_plan, health_plan
from mesos_py.v1 import types_pb2 as pb

# The kinds of timers: a probe is due; a probe has had its time.
DUE: Final = {f"{HEALTH} due": HEALTH, f"{CHECK} due": CHECK}
LIMIT: Final = {f"{HEALTH} limit": HEALTH, f"{CHECK} limit": CHECK}
# While so many updates of a task wait for the framework, its checks add no more: what is
# newest then is told when there is room.
MAX_WAITING: Final = 8

_REASONS: Final[dict[str, Reason]] = {
    HEALTH: pb.TaskStatus.REASON_TASK_HEALTH_CHECK_STATUS_UPDATED,
    CHECK: pb.TaskStatus.REASON_TASK_CHECK_STATUS_UPDATED,
}


def of(info: pb.TaskInfo) -> tuple[Check, ...]:
    """The checks that a command task asks for.  Raises InvalidValue for what is wrong."""
    found: list[Check] = []
    if info.HasField("health_check"):
        plan = health_plan("health_check", info.health_check)
        found.append(Check(HEALTH, plan, Health(plan)))
    if info.HasField("check"):
        found.append(Check(CHECK, check_plan("check", info.check)))
    return tuple(found)


def start(s: AgentState, executor: Executor, now: Now) -> None:
    """Its command runs, or is found running after a restart of the agent."""
    if executor.ending:
        return
    for check in executor.checks:
        if check.health is not None:
            check.health.begin(now.monotonic_s)
        _pause(s, executor, check, check.plan.delay_s, now)


def on_timer(s: AgentState, executor: Executor, timer: str, now: Now) -> None:
    """A timer of DUE or LIMIT."""
    kind = DUE.get(timer) or LIMIT[timer]
    check = next(each for each in executor.checks if each.kind == kind)
    if timer in DUE:
        _probe(s, executor, check, now)
    else:
        s.effects.append(StopProbe(executor.container_id, kind))
        text = f"no answer within {check.plan.timeout_s:g} s"
        _take(s, executor, check, Outcome(False, None, text), now)


def probe_ended(
    s: AgentState, container_id: str, kind: str, number: int, outcome: Outcome, now: Now
) -> None:
    """What a probe has found, unless it was stopped before."""
    executor = s.containers.get(container_id)
    if executor is not None:
        for check in executor.checks:
            if check.in_flight and (check.kind, check.number) == (kind, number):
                _take(s, executor, check, outcome, now)
                return
    s.drop("outcome of a probe that was given up", container=container_id, kind=kind)


def look_anew(s: AgentState, late_s: float, now: Now) -> None:
    """The agent stood still: what was in flight meanwhile says nothing of the tasks."""
    for executor in s.containers.values():
        for check in executor.checks:
            if check.health is not None:
                check.health.lenient_for(late_s)
            if check.in_flight:
                s.effects.append(StopProbe(executor.container_id, check.kind))
                s.timers.cancel((f"{check.kind} limit", executor.container_id))
                check.in_flight = False
                _pause(s, executor, check, 0.0, now)


def acknowledged(s: AgentState, key: TaskKey, now: Now) -> None:
    """The framework has taken an update: there may be room for what was not told."""
    task = s.tasks.get(key)
    if task is None or not task.executor.untold or key[1] not in task.executor.tasks:
        return
    kind, text = task.executor.untold
    _tell(s, task, kind, text, now)


def _pause(s: AgentState, executor: Executor, check: Check, pause_s: float, now: Now) -> None:
    s.timers.set((f"{check.kind} due", executor.container_id), now.monotonic_s + pause_s)


def _probe(s: AgentState, executor: Executor, check: Check, now: Now) -> None:
    check.number += 1
    check.in_flight = True
    plan, container_id = check.plan, executor.container_id
    s.effects.append(StartProbe(container_id, check.kind, check.number, plan.probe, plan.timeout_s))
    if plan.timeout_s:
        s.timers.set((f"{check.kind} limit", container_id), now.monotonic_s + plan.timeout_s)


def _take(s: AgentState, executor: Executor, check: Check, outcome: Outcome, now: Now) -> None:
    container_id = executor.container_id
    check.in_flight = False
    s.timers.cancel((f"{check.kind} limit", container_id))
    _pause(s, executor, check, check.plan.interval_s, now)
    task = next(iter(executor.tasks.values()), None)
    if outcome.good is None or task is None:
        s.drop("probe was lost", container=container_id, kind=check.kind, why=outcome.text)
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
        task.executor.unhealthy = text
        commands.kill(s, task, None, now)


def _tell(s: AgentState, task: Task, kind: str, text: str, now: Now) -> None:
    """An update with what all checks say now; later, if too many wait already."""
    if s.updates.waiting(task.key) >= MAX_WAITING:
        task.executor.untold = (kind, text)
        return
    task.executor.untold = None
    s.report(task, pb.TASK_RUNNING, now, reason=_REASONS[kind], message=text)
