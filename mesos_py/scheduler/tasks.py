"""What a session remembers of tasks: launches and kills that nobody has confirmed, and
which updates were seen.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final

from mesos_py.recent import Recent
from mesos_py.scheduler import checks
from mesos_py.states import TASK_UNKNOWN, TERMINAL
from mesos_py.v1 import scheduler_pb2 as pb
from mesos_py.v1.types_pb2 import TaskInfo, TaskStatus

MAX_KILLS: Final = 100_000
REMEMBERED_ACKS: Final = 50_000


class News(Enum):
    """What an update is to the framework."""

    NEW = "new"
    # It is being shown, or has been: it will be acknowledged.
    SHOWN = "shown"
    # It was acknowledged, and that has been lost on its way.
    ACKNOWLEDGED = "acknowledged"


class TaskBook:
    """`implicit`: updates are acknowledged once they have been shown."""

    def __init__(self, implicit: bool) -> None:
        self._implicit = implicit
        # Launches that were written: on this stream, and on one that was lost since.
        self._launched: dict[str, str] = {}
        self.doubtful: dict[str, str] = {}
        # By task, until it is known to have ended.
        self.kills: dict[str, pb.Call] = {}
        self._shown: Recent[bytes, None] = Recent(REMEMBERED_ACKS)
        self._acked: Recent[bytes, None] = Recent(REMEMBERED_ACKS)

    def wrote(self, accept: pb.Call.Accept) -> None:
        for operation in accept.operations:
            for task in checks.tasks_of(operation):
                self._launched[task.task_id.value] = task.agent_id.value

    def lost(self) -> None:
        """The stream has ended: what was written may not have arrived."""
        self.doubtful.update(self._launched)
        self._launched.clear()

    def look_at(self, status: TaskStatus) -> News:
        uuid = status.uuid
        if uuid:
            if uuid in self._acked:
                return News.ACKNOWLEDGED
            if self._implicit:
                if uuid in self._shown:
                    return News.SHOWN
                self._shown.add(uuid, None)
        return News.NEW

    def acknowledged(self, status: TaskStatus) -> None:
        self._acked.add(status.uuid, None)
        self._shown.discard(status.uuid)

    def heard(self, status: TaskStatus) -> None:
        """Something was said of the task."""
        task_id = status.task_id.value
        self._launched.pop(task_id, None)
        self.doubtful.pop(task_id, None)
        if self.kills and (status.state in TERMINAL or status.state == TASK_UNKNOWN):
            self.kills.pop(task_id, None)

    def killing(self, call: pb.Call) -> None:
        self.kills[call.kill.task_id.value] = call
        if len(self.kills) > MAX_KILLS:
            del self.kills[next(iter(self.kills))]

    def launching(self, tasks: Iterable[TaskInfo]) -> None:
        """A kill of an earlier task with this id must not hit the new one."""
        for task in tasks:
            self.kills.pop(task.task_id.value, None)


__all__ = ["News", "TaskBook"]
