"""What a user's function may ask about the task in which it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(frozen=True)
class TaskContext:
    """As PySpark's.  There is none in the driver.

    The worker calls `enter` before a task and `leave` after it; it runs one at a time.
    """

    stage_id: int
    split: int
    attempt: int
    task_id: int
    properties: Mapping[str, str] = field(default_factory=dict)
    slots: int = 1

    _current: ClassVar[TaskContext | None] = None

    @classmethod
    def get(cls) -> TaskContext | None:
        """Of the task that runs; None in the driver."""
        return cls._current

    @staticmethod
    def enter(context: TaskContext) -> None:
        TaskContext._current = context

    @staticmethod
    def leave() -> None:
        TaskContext._current = None

    def stageId(self) -> int:
        return self.stage_id

    def partitionId(self) -> int:
        return self.split

    def attemptNumber(self) -> int:
        """How many attempts at this partition there were before: 0 for the first."""
        return self.attempt

    def taskAttemptId(self) -> int:
        """Given to no other attempt of any task in this context."""
        return self.task_id

    def getLocalProperty(self, key: str) -> str | None:
        """What setLocalProperty had set when the job was started."""
        return self.properties.get(key)

    def cpus(self) -> int:
        return self.slots

    def resources(self) -> dict[str, object]:
        """Other resources than cpus and memory: none are given to tasks here."""
        return {}
