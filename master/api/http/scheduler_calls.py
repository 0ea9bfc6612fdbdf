"""What a call of a scheduler must be like before anybody looks at what it is about.

Rules: Mesos v1, src/master/validation.cpp (scheduler::call::validate).
"""

from __future__ import annotations

from typing import Final

from mesos_py.errors import InvalidValue
from mesos_py.http.answers import HttpRefusal
from mesos_py.ids import UUID_BYTES
from mesos_py.v1 import scheduler_pb2 as sched

Call = sched.Call

# The message that goes with a call, where there must be one.
_WITH: Final[dict[int, str]] = {
    Call.SUBSCRIBE: "subscribe",
    Call.ACCEPT: "accept",
    Call.DECLINE: "decline",
    Call.ACCEPT_INVERSE_OFFERS: "accept_inverse_offers",
    Call.DECLINE_INVERSE_OFFERS: "decline_inverse_offers",
    Call.KILL: "kill",
    Call.SHUTDOWN: "shutdown",
    Call.ACKNOWLEDGE: "acknowledge",
    Call.ACKNOWLEDGE_OPERATION_STATUS: "acknowledge_operation_status",
    Call.RECONCILE: "reconcile",
    Call.RECONCILE_OPERATIONS: "reconcile_operations",
    Call.MESSAGE: "message",
    Call.REQUEST: "request",
    Call.UPDATE_FRAMEWORK: "update_framework",
}
_TYPES: Final = frozenset(Call.Type.values())


def check_call(call: Call) -> None:
    """Raises InvalidValue naming what is missing or wrong; HttpRefusal 501 for UNKNOWN."""
    if not call.HasField("type") or call.type not in _TYPES:
        raise InvalidValue("type", call.type, "is missing, or none that is known")
    given = call.framework_id.value
    if call.type == Call.SUBSCRIBE:
        _require(call)
        _same_id(given, "subscribe", call.subscribe.framework_info.id.value)
        return
    if not given:
        raise InvalidValue("framework_id", given, "is missing")
    if call.type == Call.UNKNOWN:
        raise HttpRefusal(501, "type: UNKNOWN: is no call")
    _require(call)
    if call.type == Call.UPDATE_FRAMEWORK:
        _same_id(given, "update_framework", call.update_framework.framework_info.id.value)
    elif call.type == Call.ACKNOWLEDGE:
        _uuid("acknowledge.uuid", call.acknowledge.uuid)
    elif call.type == Call.ACKNOWLEDGE_OPERATION_STATUS:
        _uuid("acknowledge_operation_status.uuid", call.acknowledge_operation_status.uuid)
        if not call.acknowledge_operation_status.HasField("agent_id"):
            raise InvalidValue("acknowledge_operation_status.agent_id", "", "is missing")


def _require(call: Call) -> None:
    needed = _WITH.get(call.type)
    if needed is not None and not call.HasField(needed):  # type: ignore[arg-type]
        raise InvalidValue(needed, "", "is missing")


def _same_id(given: str, part: str, inner: str) -> None:
    if given != inner:
        raise InvalidValue("framework_id", given, f"differs from {part}.framework_info.id")


def _uuid(field: str, uuid: bytes) -> None:
    if len(uuid) != UUID_BYTES:
        raise InvalidValue(field, uuid.hex(), f"must be {UUID_BYTES} bytes")


__all__ = ["check_call"]
