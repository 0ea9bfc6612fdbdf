"""What the driver answers in place of a master that cannot be asked.  Pure."""

from __future__ import annotations

from typing import Final

from mesos_py.errors import (
    InvalidResources,
    InvalidValue,
    MesosPyError,
    Refused,
    Unavailable,
    UnsupportedProtocol,
)
from mesos_py.scheduler import checks
from mesos_py.states import TASK_DROPPED, TASK_LOST
from mesos_py.v1 import scheduler_pb2 as pb
from mesos_py.v1.types_pb2 import OPERATION_ERROR, AgentID, Offer, TaskID, TaskStatus

Call = pb.Call
_LAUNCHES: Final = (Offer.Operation.LAUNCH, Offer.Operation.LAUNCH_GROUP)


def lost_launches(
    accept: pb.Call.Accept, message: str, *, partition_aware: bool, wall_s: float
) -> list[TaskStatus]:
    """What a master says of each task of an ACCEPT when it no longer has an offer of it."""
    statuses: list[TaskStatus] = []
    for operation in accept.operations:
        for task in checks.tasks_of(operation):
            status = TaskStatus(
                task_id=TaskID(value=task.task_id.value),
                state=TASK_DROPPED if partition_aware else TASK_LOST,
                message=message,
                source=TaskStatus.SOURCE_MASTER,
                reason=TaskStatus.REASON_INVALID_OFFERS,
                timestamp=wall_s,
            )
            if task.agent_id.value:
                status.agent_id.CopyFrom(AgentID(value=task.agent_id.value))
            statuses.append(status)
    return statuses


def lost_others(accept: pb.Call.Accept, offer_id: str, why: str) -> list[pb.Event]:
    """The same of operations that no status of a task can answer: those that have an id in
    the way of a master, and a word about all."""
    others = [each for each in accept.operations if each.type not in _LAUNCHES]
    if not others:
        return []
    events = [refused(Call.ACCEPT, "offer_ids", offer_id, why)]
    for operation in others:
        if operation.HasField("id"):
            event = pb.Event(type=pb.Event.UPDATE_OPERATION_STATUS)
            status = event.update_operation_status.status
            status.operation_id.CopyFrom(operation.id)
            status.state, status.message = OPERATION_ERROR, f"offer {offer_id} {why}"
            events.append(event)
    return events


def refused(kind: pb.Call.Type.ValueType, field: str, value: str, why: str) -> pb.Event:
    event = pb.Event.Refused(
        call=kind, code=Unavailable.code, field=field, value=value, message=why
    )
    return pb.Event(type=pb.Event.REFUSED, refused=event)


def subject_of(call: pb.Call) -> tuple[str, str]:
    """What a call is about: the field that names it, and its value."""
    if call.type == Call.KILL:
        return "task_id", call.kill.task_id.value
    if call.type == Call.SHUTDOWN:
        return "executor_id", call.shutdown.executor_id.value
    if call.type == Call.RECONCILE:
        asked = call.reconcile.tasks
        return "tasks", asked[0].task_id.value if asked else ""
    if call.type == Call.RECONCILE_OPERATIONS:
        named = call.reconcile_operations.operations
        return "operations", named[0].operation_id.value if named else ""
    return "agent_id", call.message.agent_id.value


def error_of(refusal: pb.Event.Refused) -> MesosPyError:
    """A refused subscription as the error that ends it."""
    if refusal.code == UnsupportedProtocol.code:
        return UnsupportedProtocol(refusal.message)
    if refusal.code in (InvalidValue.code, InvalidResources.code):
        return InvalidValue(refusal.field, refusal.value, refusal.message)
    return Refused(refusal.message)


__all__ = ["error_of", "lost_launches", "lost_others", "refused", "subject_of"]
