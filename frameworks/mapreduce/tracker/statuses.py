"""What a status of a task says of an attempt."""

from __future__ import annotations

from frameworks.common.endings import NO_FAULT, has_ended
from frameworks.mapreduce.core.orders import End, Failed, Finished, Killed, Lost, Preempted
from frameworks.mapreduce.names import AttemptName
from frameworks.mapreduce.records import decode
from frameworks.mapreduce.work import Failure, MapDone, ReduceDone
from mesos_py import (
    TASK_ERROR,
    TASK_FAILED,
    TASK_FINISHED,
    TASK_KILLED,
    InvalidValue,
    TaskStatus,
    is_preempted,
    short_name,
)


def end_of(name: AttemptName, status: TaskStatus, asked_back: bool) -> End | None:
    """How the attempt has ended; None if it has not, as far as the status says.

    asked_back: we have ended it ourselves since its room was asked back.  One on an agent that
    is cut off counts as lost, though it may be seen again: it is killed then.
    """
    state = status.state
    if state == TASK_FINISHED:
        return _finished(name, status)
    if is_preempted(status):
        return Preempted(_why(status))
    if state == TASK_KILLED:
        return Preempted(_why(status)) if asked_back else Killed(_why(status))
    if state == TASK_ERROR:
        # Mostly its worker has just ended, so that there was too little room for another one.
        return Failed(Failure(blame="place", message=f"it could not be launched: {_why(status)}"))
    if state == TASK_FAILED:
        return _failed(status)
    if has_ended(status):
        return Lost(_why(status))
    return None


def is_hearsay(status: TaskStatus) -> bool:
    """Whether it is the master's answer that an attempt has ended, without what its worker had
    to say; that comes from the agent, again and again until it is acknowledged."""
    asked = status.reason == TaskStatus.REASON_RECONCILIATION and not status.uuid
    return asked and status.state in (TASK_FINISHED, TASK_FAILED)


def _finished(name: AttemptName, status: TaskStatus) -> End:
    kind: type[MapDone] | type[ReduceDone] = MapDone if name.kind == "map" else ReduceDone
    try:
        return Finished(decode(kind, status.data, f"result of {name}"))
    except InvalidValue as error:
        return Failed(Failure(blame="place", message=error.message))


def _failed(status: TaskStatus) -> End:
    if status.data:
        try:
            return Failed(decode(Failure, status.data, f"failure of {status.task_id.value}"))
        except InvalidValue as error:
            return Failed(Failure(blame="place", message=error.message))
    if status.reason in NO_FAULT:
        return Lost(_why(status))
    return Failed(Failure(blame="place", message=_why(status)))


def _why(status: TaskStatus) -> str:
    """In one line."""
    message = " ".join(status.message.split())
    reason = ""
    if status.HasField("reason") and status.reason in TaskStatus.Reason.values():
        reason = (
            TaskStatus.Reason.Name(status.reason).removeprefix("REASON_").lower().replace("_", " ")
        )
    said = ": ".join(each for each in (message, reason) if each)
    return said or f"task {short_name(status.state).lower()}"


__all__ = ["end_of", "is_hearsay"]
