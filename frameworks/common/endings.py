"""What the last status of a task says of its end: whether it is one, whose fault, in what words."""

from __future__ import annotations

from typing import Final

from mesos_py import (
    TASK_DROPPED,
    TASK_GONE,
    TASK_GONE_BY_OPERATOR,
    TASK_LOST,
    TASK_UNKNOWN,
    TASK_UNREACHABLE,
    TaskStatus,
    is_preempted,
    is_terminal,
    short_name,
)

# The agent is away, with all that the task has left there.
AGENT_LOST: Final = frozenset(
    {TASK_LOST, TASK_GONE, TASK_GONE_BY_OPERATOR, TASK_UNREACHABLE, TASK_UNKNOWN}
)
# Reasons that say nothing of the task, or of its place.
NO_FAULT: Final = frozenset(
    {
        TaskStatus.REASON_AGENT_RESTARTED,
        TaskStatus.REASON_AGENT_DISCONNECTED,
        TaskStatus.REASON_AGENT_REMOVED,
        TaskStatus.REASON_AGENT_DRAINING,
        TaskStatus.REASON_MAX_COMPLETION_TIME_REACHED,
    }
)


def has_ended(status: TaskStatus) -> bool:
    """Whether the task is over for who waits for it: one on an agent that is cut off is, and
    killed when it is seen again."""
    return is_terminal(status.state) or status.state in (TASK_UNREACHABLE, TASK_UNKNOWN)


def is_fault(status: TaskStatus) -> bool:
    """Whether an end that nobody asked for may be the task's own doing, or its agent's."""
    if status.state in AGENT_LOST or status.state == TASK_DROPPED or is_preempted(status):
        return False
    return not (status.HasField("reason") and status.reason in NO_FAULT)


def words_of(status: TaskStatus) -> str:
    """How it has ended, in one line."""
    message = " ".join(status.message.split())
    return f"{short_name(status.state).lower()}{': ' if message else ''}{message}"


__all__ = ["AGENT_LOST", "NO_FAULT", "has_ended", "is_fault", "words_of"]
