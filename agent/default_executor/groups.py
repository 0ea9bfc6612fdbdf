"""What becomes of the tasks of groups: no IO, no clock.

    launch -> started -> ended
           -> failed

One that fails or is killed takes the others of its group with it; one that finishes does
not (Mesos' policy).
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from agent.core.records import Exit, Reason, State
from mesos_py.v1 import types_pb2 as pb

# Mesos: the default executor's own.
GRACE_S: Final = 3.0
_NO_LAUNCH: Final = pb.TaskStatus.REASON_CONTAINER_LAUNCH_FAILED


class Host(Protocol):
    """Who carries out what is decided."""

    def start(self, task: pb.TaskInfo) -> None:
        """Answered by `started` or `failed`, perhaps before this returns."""
        ...

    def signal(self, task_id: str, number: int) -> None:
        """To all processes of the task.  One for which `start` is not answered yet is not
        started any more, and answered by `failed`; else an unknown one is passed over."""
        ...

    def report(
        self,
        task: pb.TaskInfo,
        state: State,
        message: str = "",
        *,
        reason: Reason | None = None,
        exit: Exit | None = None,
    ) -> None: ...

    def after(self, seconds: float, do: Callable[[], None]) -> Cancel: ...


class Cancel(Protocol):
    """An appointment that may be called off."""

    def cancel(self) -> None: ...


@dataclass(slots=True, eq=False)
class _Task:
    info: pb.TaskInfo
    group: list[_Task]
    started: bool = False
    killed: bool = False
    # When it is made to end: each kill makes one more, of which the first to come counts.
    forces: list[Cancel] = field(default_factory=list)


class Groups:
    """The tasks that have not ended."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._tasks: dict[str, _Task] = {}
        # Whether the framework wants to hear that a task is being killed.
        self.reports_killing = False

    def __len__(self) -> int:
        return len(self._tasks)

    def launch(self, infos: Sequence[pb.TaskInfo]) -> None:
        """A group."""
        group: list[_Task] = []
        for info in infos:
            task = _Task(info, group)
            group.append(task)
            self._tasks[info.task_id.value] = task
            self._host.report(info, pb.TASK_STARTING)
        for task in group:
            # The first one may have failed at once, and taken the others with it.
            if not task.killed:
                self._host.start(task.info)
            elif task.info.task_id.value in self._tasks:
                self.failed(task.info.task_id.value, "its group was killed")

    def started(self, task_id: str) -> None:
        """Its process exists."""
        task = self._tasks[task_id]
        task.started = True
        self._host.report(task.info, pb.TASK_RUNNING)
        if task.killed:
            # It could not be stopped any more.
            self._host.signal(task_id, signal.SIGKILL)

    def failed(self, task_id: str, why: str) -> None:
        """There is no process of it, and will be none."""
        task = self._tasks[task_id]
        if task.killed:
            self._over(task, pb.TASK_KILLED, "Killed before it was started")
        else:
            self._over(task, pb.TASK_FAILED, why, reason=_NO_LAUNCH)

    def ended(self, task_id: str, exit: Exit) -> None:
        """All its processes are gone."""
        task = self._tasks[task_id]
        if task.killed:
            state = pb.TASK_KILLED
        else:
            state = pb.TASK_FINISHED if exit.status == 0 else pb.TASK_FAILED
        self._over(task, state, exit.text("Command"), exit=exit)

    def kill(self, task_id: str, grace_s: float | None) -> None:
        """End a task, and with it its group.  None: with the grace that the task has.  A
        second kill may only shorten what is left."""
        task = self._tasks.get(task_id)
        if task is not None:
            self._kill(task, _grace_s(task.info) if grace_s is None else grace_s)

    def shut_down(self, grace_s: float) -> None:
        """End all tasks."""
        for task in list(self._tasks.values()):
            self._kill(task, grace_s)

    def _kill(self, task: _Task, grace_s: float) -> None:
        task_id = task.info.task_id.value
        first, task.killed = not task.killed, True
        if first and task.started and self.reports_killing:
            self._host.report(task.info, pb.TASK_KILLING)
        if grace_s <= 0:
            self._host.signal(task_id, signal.SIGKILL)
            return
        force = self._host.after(grace_s, lambda: self._host.signal(task_id, signal.SIGKILL))
        task.forces.append(force)
        if first:
            self._host.signal(task_id, signal.SIGTERM)

    def _over(
        self,
        task: _Task,
        state: State,
        message: str,
        *,
        reason: Reason | None = None,
        exit: Exit | None = None,
    ) -> None:
        del self._tasks[task.info.task_id.value]
        for force in task.forces:
            force.cancel()
        self._host.report(task.info, state, message, reason=reason, exit=exit)
        if state == pb.TASK_FINISHED:
            return
        for other in task.group:
            if self._tasks.get(other.info.task_id.value) is other and not other.killed:
                self._kill(other, _grace_s(other.info))


def _grace_s(info: pb.TaskInfo) -> float:
    if info.kill_policy.HasField("grace_period"):
        return max(0.0, info.kill_policy.grace_period.nanoseconds / 1e9)
    return GRACE_S
