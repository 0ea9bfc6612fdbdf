"""Calls that were written and that nothing confirms.  Pure.

A stream that breaks does not say how much of it has arrived.  Launches and kills are
asked for until something is heard of them; of these here nobody would notice the loss.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from mesos_py import rpc
from mesos_py.scheduler import answers
from mesos_py.states import TERMINAL
from mesos_py.v1 import scheduler_pb2 as pb
from mesos_py.v1.types_pb2 import TaskStatus

Call = pb.Call

# By then a write has arrived, or the link's keepalive has noticed that nothing does.
ARRIVED_S: Final = 3.0 * rpc.KEEPALIVE_S
MAX_NOTED: Final = 1_000


class Written:
    """Notes what is written on a stream, and says what to do about it when that is lost."""

    def __init__(self) -> None:
        self._noted: deque[tuple[float, pb.Call, int]] = deque(maxlen=MAX_NOTED)
        # Tasks that were asked for and not answered.
        self._asked: set[str] = set()

    def note(self, call: pb.Call, size: int, now_s: float) -> None:
        if call.type in (Call.RECONCILE, Call.SHUTDOWN):
            self._noted.append((now_s, call, size))
            self._asked.update(task.task_id.value for task in call.reconcile.tasks)

    def heard(self, status: TaskStatus) -> None:
        """Something is told of a task.  A question that this answers is not put again.

        Nor is one about a task that has ended: a master that has forgotten it would say
        that it is gone, to a framework that knows how it ended.
        """
        if self._asked and (
            status.reason == TaskStatus.REASON_RECONCILIATION or status.state in TERMINAL
        ):
            self._asked.discard(status.task_id.value)

    def lost(self, now_s: float, told: list[Any]) -> list[tuple[pb.Call, int]]:
        """The stream has broken: the calls to write once more; of others, `told` gets a word.

        A question may be asked twice.  An executor must not be shut down twice, since the
        second order could meet another one with its id.
        """
        again: list[tuple[pb.Call, int]] = []
        for since_s, call, size in self._noted:
            if now_s - since_s > ARRIVED_S:
                continue
            if call.type == Call.RECONCILE:
                if not call.reconcile.tasks or self._unanswered(call):
                    again.append((call, size))
            else:
                why = "the link to the master was lost, and it may not have arrived"
                told.append(answers.refused(call.type, *answers.subject_of(call), why))
        self._noted.clear()
        self._asked.clear()
        return again

    def _unanswered(self, call: pb.Call) -> bool:
        """Whether some tasks of the question are open; the others are taken out of it."""
        left = [task for task in call.reconcile.tasks if task.task_id.value in self._asked]
        del call.reconcile.tasks[:]
        call.reconcile.tasks.extend(left)
        return bool(left)


__all__ = ["ARRIVED_S", "Written"]
