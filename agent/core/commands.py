"""Command tasks: the agent itself is their executor, no process of ours stands between.

A client of the API must not notice, so what an executor would report has the source
of one.
"""

from __future__ import annotations

from agent.core import overtime
from agent.core.records import Executor, Exit, Task
from agent.core.state import AgentState
from mesos_py.clock import Now
from mesos_py.states import may_follow
from mesos_py.v1 import types_pb2 as pb

AGENT = pb.TaskStatus.SOURCE_AGENT


def started(s: AgentState, executor: Executor, now: Now) -> None:
    """Its process exists."""
    for task in list(executor.tasks.values()):
        s.report(task, pb.TASK_RUNNING, now)
        if executor.killed:
            _report_killing(s, task, now)
        most_s = overtime.limit_s(task.info)
        if most_s is not None:
            s.timers.set(("completion", executor.container_id), now.monotonic_s + most_s)


def kill(s: AgentState, task: Task, policy: pb.KillPolicy | None, now: Now) -> None:
    """Ask the whole process group to end, and make it at the end of the grace."""
    executor = task.executor
    grace_s = s.settings.kill_grace_s
    if policy is not None and policy.HasField("grace_period"):
        grace_s = policy.grace_period.nanoseconds / 1e9
    else:
        grace_s = _task_grace_s(task, grace_s)
    _end(s, executor, grace_s, now)


def shut_down(s: AgentState, executor: Executor, now: Now) -> None:
    """The agent or the framework ends: like a kill, with the grace of a shutdown."""
    _end(s, executor, shutdown_grace_s(s, executor), now)


def shutdown_grace_s(s: AgentState, executor: Executor) -> float:
    grace_s = s.settings.executor_shutdown_grace_s
    for task in executor.tasks.values():
        grace_s = _task_grace_s(task, grace_s)
    return grace_s


def _end(s: AgentState, executor: Executor, grace_s: float, now: Now) -> None:
    first = not executor.killed
    executor.killed = True
    if first and executor.pid is not None and executor.cause is None:
        for task in list(executor.tasks.values()):
            _report_killing(s, task, now)
    s.end(executor, grace_s, now)


def _task_grace_s(task: Task, default_s: float) -> float:
    if task.info.kill_policy.HasField("grace_period"):
        return task.info.kill_policy.grace_period.nanoseconds / 1e9
    return default_s


def _report_killing(s: AgentState, task: Task, now: Now) -> None:
    if task.executor.framework.reports_killing and may_follow(task.state, pb.TASK_KILLING):
        s.report(task, pb.TASK_KILLING, now)


def out_of_time(s: AgentState, executor: Executor, now: Now) -> None:
    """max_completion_time is over: no grace (Mesos).  A kill that came before stands."""
    if executor.killed:
        return
    for task in executor.tasks.values():
        executor.cause = overtime.cause(task.info)
    s.end(executor, 0.0, now)


def failed(s: AgentState, executor: Executor, message: str, now: Now) -> None:
    """Its process could not be started."""
    for task in list(executor.tasks.values()):
        if executor.killed:
            reason = pb.TaskStatus.REASON_TASK_KILLED_DURING_LAUNCH
            text = "Killed before it was started"
            s.report(task, pb.TASK_KILLED, now, source=AGENT, reason=reason, message=text)
        else:
            reason = pb.TaskStatus.REASON_CONTAINER_LAUNCH_FAILED
            s.report(task, pb.TASK_FAILED, now, source=AGENT, reason=reason, message=message)


def ended(s: AgentState, executor: Executor, exit: Exit, now: Now) -> None:
    """All its processes are gone."""
    for task in list(executor.tasks.values()):
        if executor.cause is not None:
            s.report_cause(task, executor.cause, now, exit)
            continue
        if executor.killed:
            state = pb.TASK_KILLED
        else:
            state = pb.TASK_FINISHED if exit.status == 0 else pb.TASK_FAILED
        message = exit.text("Command")
        if task.unhealthy:
            message = f"{task.unhealthy}; {message}"
        if executor.hurt and state == pb.TASK_FAILED:
            message += f". Before that: {executor.hurt}"
        s.report(task, state, now, message=message, exit=exit)
