"""Calls and events by how the session treats them."""

from __future__ import annotations

from typing import Final

from mesos_py.v1.scheduler_pb2 import Call, Event

# Calls that still make sense on the next subscription.
KEPT: Final = frozenset(
    {Call.KILL, Call.ACKNOWLEDGE, Call.RECONCILE, Call.SHUTDOWN, Call.RECONCILE_OPERATIONS}
)
# Calls about what every SUBSCRIBE states.
STATE: Final = frozenset({Call.SUPPRESS, Call.REVIVE, Call.UPDATE_FRAMEWORK})
# Events for the framework to see as they are.
SHOWN: Final = frozenset(
    {
        Event.OFFERS,
        Event.UPDATE,
        Event.UPDATE_OPERATION_STATUS,
        Event.MESSAGE,
        Event.FAILURE,
        Event.RESCIND,
        Event.INVERSE_OFFERS,
        Event.RESCIND_INVERSE_OFFER,
        Event.REFUSED,
        Event.NEEDS,
        Event.GUARANTEE,
    }
)

__all__ = ["KEPT", "SHOWN", "STATE"]
