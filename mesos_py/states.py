"""Task states: which are terminal, which steps are legal, their short names.

Rules: Mesos v1, src/common/protobuf_utils.cpp (isTerminalState).
"""

from __future__ import annotations

from typing import Final

from mesos_py.enums import name_of
from mesos_py.v1.types_pb2 import (
    TASK_DROPPED,
    TASK_ERROR,
    TASK_FAILED,
    TASK_FINISHED,
    TASK_GONE,
    TASK_GONE_BY_OPERATOR,
    TASK_KILLED,
    TASK_KILLING,
    TASK_LOST,
    TASK_RUNNING,
    TASK_STAGING,
    TASK_STARTING,
    TASK_UNKNOWN,
    TASK_UNREACHABLE,
    TaskState,
    TaskStatus,
)

TERMINAL: Final = frozenset(
    {
        TASK_FINISHED,
        TASK_FAILED,
        TASK_KILLED,
        TASK_ERROR,
        TASK_LOST,
        TASK_DROPPED,
        TASK_GONE,
        TASK_GONE_BY_OPERATOR,
    }
)

# How far a task has come on its agent.  Mesos does not enforce an order among
# the states that are not terminal; we never let a late or repeated message
# move a task back.
_PROGRESS: Final = {TASK_STAGING: 0, TASK_STARTING: 1, TASK_RUNNING: 2, TASK_KILLING: 3}

# What an agent may say of a task: where it has come to, or how it ended.
REPORTED: Final = TERMINAL.union(_PROGRESS)

# What a task may be in.  UNKNOWN is only ever an answer to a reconciliation, and a
# newer peer's numbers mean nothing here.
STORED: Final = REPORTED | {TASK_UNREACHABLE}


def is_terminal(state: TaskState.ValueType) -> bool:
    """Whether no state can follow `state`."""
    return state in TERMINAL


def may_follow(old: TaskState.ValueType, new: TaskState.ValueType) -> bool:
    """Whether a task in `old` may go to `new` (or report `new` once more).

    A terminal state is never left.  UNREACHABLE may follow any state that is not
    terminal, and any state may follow it, since the agent may come back.
    """
    if old in TERMINAL or new not in STORED:
        return False
    if new in TERMINAL or TASK_UNREACHABLE in (old, new):
        return True
    return _PROGRESS[new] >= _PROGRESS[old]


def is_preempted(status: TaskStatus) -> bool:
    """Whether the task was killed since its room was wanted for another framework.

    That is no failure of the task: launch it again, and count no attempt.
    """
    preempted = status.reason == TaskStatus.REASON_CONTAINER_PREEMPTED
    return preempted and status.state == TASK_KILLED


def short_name(state: TaskState.ValueType) -> str:
    """The name without its prefix, as tables show it: "RUNNING"."""
    return name_of(TaskState, state).removeprefix("TASK_")


__all__ = [
    "REPORTED",
    "STORED",
    "TASK_DROPPED",
    "TASK_ERROR",
    "TASK_FAILED",
    "TASK_FINISHED",
    "TASK_GONE",
    "TASK_GONE_BY_OPERATOR",
    "TASK_KILLED",
    "TASK_KILLING",
    "TASK_LOST",
    "TASK_RUNNING",
    "TASK_STAGING",
    "TASK_STARTING",
    "TASK_UNKNOWN",
    "TASK_UNREACHABLE",
    "TERMINAL",
    "TaskState",
    "is_preempted",
    "is_terminal",
    "may_follow",
    "short_name",
]
