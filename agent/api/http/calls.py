"""What an executor's call must be like before anything is done about it.  Pure.

The rules are those of Apache Mesos, which clients count on: also that the source of an
update must be said, and that its uuid must be one by RFC 4122.
"""

from __future__ import annotations

from typing import Final, Literal

from mesos_py.enums import name_of
from mesos_py.errors import InvalidValue
from mesos_py.v1 import executor_pb2
from mesos_py.v1 import types_pb2 as pb

Call = executor_pb2.Call

# Which message goes with a type.
_BODIES: Final[dict[int, Literal["subscribe", "update", "message"]]] = {
    Call.SUBSCRIBE: "subscribe",
    Call.UPDATE: "update",
    Call.MESSAGE: "message",
}
_CHECKED: Final[dict[int, Literal["command", "http", "tcp"]]] = {
    pb.CheckInfo.COMMAND: "command",
    pb.CheckInfo.HTTP: "http",
    pb.CheckInfo.TCP: "tcp",
}
# Of RFC 4122; the version is the upper half of the seventh byte.
_VERSIONS: Final = range(1, 6)


def check(call: Call) -> None:
    """Raises InvalidValue naming what is wrong with the call in itself."""
    # A number that is no type of ours is none for a proto2 peer either.
    if not call.HasField("type") or call.type not in Call.Type.values():
        raise InvalidValue("type", "", "must be there, and one of the types of calls")
    body = _BODIES.get(call.type)
    if body is not None and not call.HasField(body):
        raise InvalidValue(body, "", "must be there")
    if call.type == Call.UPDATE:
        _check_status(call.update.status, call.executor_id.value)


def _check_status(status: pb.TaskStatus, executor_id: str) -> None:
    if not status.HasField("uuid"):
        raise InvalidValue("update.status.uuid", "", "must be there")
    if len(status.uuid) != 16 or status.uuid[6] >> 4 not in _VERSIONS:
        raise InvalidValue("update.status.uuid", status.uuid.hex(), "is no UUID (RFC 4122)")
    if status.HasField("executor_id") and status.executor_id.value != executor_id:
        told = status.executor_id.value
        raise InvalidValue("update.status.executor_id", told, f"the call says {executor_id!r}")
    if not status.HasField("source") or status.source != pb.TaskStatus.SOURCE_EXECUTOR:
        source = name_of(pb.TaskStatus.Source, status.source) if status.HasField("source") else ""
        raise InvalidValue("update.status.source", source, "must be SOURCE_EXECUTOR")
    if status.state == pb.TASK_STAGING:
        raise InvalidValue("update.status.state", "TASK_STAGING", "no executor may say so")
    if status.HasField("check_status"):
        _check_check(status.check_status)


def _check_check(status: pb.CheckStatusInfo) -> None:
    where = "update.status.check_status"
    body = _CHECKED.get(status.type)
    if body is None:
        raise InvalidValue(f"{where}.type", "", "must be COMMAND, HTTP or TCP")
    if not status.HasField(body):
        raise InvalidValue(f"{where}.{body}", "", "must be there for a check of this type")
