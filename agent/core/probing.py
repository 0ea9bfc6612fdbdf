"""The checks of tasks: which there are, and when each is tried.

    running -> (delay) -> probe -> outcome -> (interval) -> probe -> ...

Each check has at most one probe in flight, and its time-out is a timer here: it ends
whatever becomes of the probe.
"""

from __future__ import annotations

import hashlib
from typing import Final

from agent.core.effects import StartProbe
from agent.core.health import CHECK, HEALTH, Check, Health
from agent.core.records import Executor, Task
from agent.core.state import AgentState
from mesos_py.clock import Now
from mesos_py.health import check_plan, health_plan
from mesos_py.v1 import types_pb2 as pb

# The kinds of timers: a probe is due; a probe has had its time.
DUE: Final = {f"{HEALTH} due": HEALTH, f"{CHECK} due": CHECK}
LIMIT: Final = {f"{HEALTH} limit": HEALTH, f"{CHECK} limit": CHECK}


def require_checks(info: pb.TaskInfo) -> None:
    """Raises InvalidValue for what is wrong with the checks that a task asks for."""
    _of(info, "")


def of(task: Task) -> tuple[Check, ...]:
    """Those of a task that the agent checks.  Raises InvalidValue for what is wrong."""
    return _of(task.info, _suffix(task))


def _of(info: pb.TaskInfo, suffix: str) -> tuple[Check, ...]:
    found: list[Check] = []
    if info.HasField("health_check"):
        plan = health_plan("health_check", info.health_check)
        found.append(Check(HEALTH, HEALTH + suffix, plan, Health(plan)))
    if info.HasField("check"):
        found.append(Check(CHECK, CHECK + suffix, check_plan("check", info.check)))
    return tuple(found)


def _suffix(task: Task) -> str:
    """What tells its checks from those of other tasks in its container."""
    if not task.executor.custom:
        return ""
    # By it a probe of the agent's earlier run is known, too; an id may have any length.
    return f"-{hashlib.sha256(task.key[1].encode()).hexdigest()[:16]}"


def task_of(executor: Executor, name: str) -> tuple[Task, Check] | None:
    """Whose check has this name; None: it has ended."""
    for task in executor.tasks.values():
        for check in task.checks:
            if check.name == name:
                return task, check
    return None


def start(s: AgentState, task: Task, now: Now) -> None:
    """Its command runs, or is found running after a restart of the agent."""
    if task.executor.ending or task.kill is not None or task.cause is not None:
        return
    if task.ends_with_group:
        return
    for check in task.checks:
        if check.health is not None:
            check.health.begin(now.monotonic_s)
        pause(s, task, check, check.plan.delay_s, now)


def pause(s: AgentState, task: Task, check: Check, pause_s: float, now: Now) -> None:
    """Nothing is in flight; the next probe comes then."""
    s.timers.set(_due(task, check), now.monotonic_s + pause_s)


def probe(s: AgentState, task: Task, check: Check, now: Now) -> None:
    """It is due."""
    check.number += 1
    check.in_flight = True
    plan, container_id = check.plan, task.executor.container_id
    s.effects.append(StartProbe(container_id, check.name, check.number, plan.probe, plan.timeout_s))
    if plan.timeout_s:
        s.timers.set(_limit(task, check), now.monotonic_s + plan.timeout_s)


def landed(s: AgentState, task: Task, check: Check) -> None:
    """What was in flight has ended, or is not waited for any more."""
    check.in_flight = False
    s.timers.cancel(_limit(task, check))


def _due(task: Task, check: Check) -> tuple[str, ...]:
    return (f"{check.kind} due", task.executor.container_id, check.name)


def _limit(task: Task, check: Check) -> tuple[str, ...]:
    return (f"{check.kind} limit", task.executor.container_id, check.name)
