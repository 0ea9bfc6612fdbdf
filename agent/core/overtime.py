"""Tasks that have run for as long as they may (max_completion_time)."""

from __future__ import annotations

from agent.core.records import Cause, Task
from agent.core.state import AgentState
from mesos_py.clock import Now
from mesos_py.v1 import types_pb2 as pb


def limit_s(info: pb.TaskInfo) -> float | None:
    """How long the task may run; None: for ever."""
    if not info.HasField("max_completion_time"):
        return None
    return max(0.0, info.max_completion_time.nanoseconds / 1e9)


def cause(info: pb.TaskInfo) -> Cause:
    """What a task is told that has run for longer."""
    text = "Task exceeded its max_completion_time"
    if info.short:
        text = f"Task ran on room for short tasks of at most {limit_s(info):g} s; its time is over"
    return Cause(
        pb.TASK_FAILED,
        pb.TaskStatus.REASON_MAX_COMPLETION_TIME_REACHED,
        text,
        pb.TaskStatus.SOURCE_EXECUTOR,
    )


def watch(s: AgentState, task: Task, since_s: float, now: Now) -> None:
    """A custom executor has the task: its time counts from `since_s`, told once or again."""
    most_s = limit_s(task.info)
    key = ("overtime", task.executor.container_id, task.key[1])
    if most_s is not None and s.timers.at_s(key) is None and task.cause is None:
        s.timers.set(key, max(now.monotonic_s, since_s + most_s))
