"""What operators are shown of what is over; nothing is decided by it.

It is not in the checkpoint: after a restart the agent remembers only what still runs, or
waits for its acknowledgement.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from agent.core.records import Executor, State, Task
from mesos_py.v1 import types_pb2 as pb

# Of each task, the newest.
MAX_STATUSES: Final = 10
# Of each executor, the newest; Mesos keeps as many.
MAX_TASKS: Final = 200


@dataclass(slots=True)
class Tally:
    """How often what has happened since the agent was started."""

    # Tasks that came to such an end.
    ended: Counter[State] = field(default_factory=Counter)
    updates: int = 0
    updates_refused: int = 0
    # Messages between frameworks and executors.
    messages: int = 0
    messages_dropped: int = 0
    executors_ended: int = 0
    launches_failed: int = 0


def note_status(task: Task, status: pb.TaskStatus) -> None:
    """Into the task's story: of several in a row that say the same state the last."""
    if status.data:
        # It may be large, and belongs to the framework.
        told = pb.TaskStatus()
        told.CopyFrom(status)
        told.ClearField("data")
        status = told
    story = task.statuses
    if story and story[-1].state == status.state:
        story[-1] = status
        return
    story.append(status)
    if len(story) > MAX_STATUSES:
        del story[0]


def note_end(task: Task) -> None:
    """The task is one of those that its executor has had."""
    info = task.info
    if info.data or (info.HasField("executor") and info.executor.data):
        kept = pb.TaskInfo()
        kept.CopyFrom(info)
        kept.ClearField("data")
        if kept.HasField("executor"):
            kept.executor.ClearField("data")
        task.info = kept
    completed = task.executor.completed
    completed.append(task)
    if len(completed) > MAX_TASKS:
        del completed[0]


class Past:
    """The executors, with their tasks, whose processes went away last."""

    def __init__(self, limit: int) -> None:
        """`limit`: of tasks; those of one executor are forgotten together."""
        self._limit = limit
        # With as many tasks as were counted of each.
        self._executors: OrderedDict[str, tuple[Executor, int]] = OrderedDict()
        self._tasks = 0

    def __iter__(self) -> Iterator[Executor]:
        """The oldest first."""
        return (executor for executor, _ in self._executors.values())

    def __len__(self) -> int:
        return len(self._executors)

    def get(self, container_id: str) -> Executor | None:
        found = self._executors.get(container_id)
        return None if found is None else found[0]

    def add(self, executor: Executor) -> None:
        """It is the newest; also one that is there already, with more tasks."""
        _, counted = self._executors.pop(executor.container_id, (executor, 0))
        tasks = len(executor.completed)
        self._executors[executor.container_id] = (executor, tasks)
        self._tasks += tasks - counted
        while self._tasks > self._limit or len(self._executors) > self._limit:
            _, (_, counted) = self._executors.popitem(last=False)
            self._tasks -= counted
