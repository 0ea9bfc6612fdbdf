"""Operations of frameworks on reservations, for `accept_offers`."""

from __future__ import annotations

from collections.abc import Mapping

from mesos_py.conversions import conversion_of
from mesos_py.errors import InvalidResources
from mesos_py.ids import check_id, check_role, check_text
from mesos_py.reserved import (
    Reservation,
    is_dynamic,
    is_volume,
    key_of,
    plain_name,
    stack_of,
)
from mesos_py.resources import Resources
from mesos_py.v1.types_pb2 import Offer


def reserve(
    resources: Resources,
    role: str,
    *,
    principal: str | None = None,
    labels: Mapping[str, str | None] | None = None,
    operation_id: str | None = None,
) -> Offer.Operation:
    """Reserve a part of what is offered for `role`, the role of the offer.

    resources: as they are offered; what is reserved already is reserved once more, for a
        role below.
    principal: the framework's own, if it has one.
    labels: kept with the reservation, and a part of what it is: whoever unreserves names the
        same.
    operation_id: what becomes of it is told (`Scheduler.operation_update`).

    After it, `reserved_for(resources, role, ...)` is what a task of the same call asks for.
    Raises InvalidValue for a role, a text or an id that cannot be, InvalidResources for no
    resources.
    """
    made = reserved_for(resources, role, principal=principal, labels=labels)
    operation = Offer.Operation(type=Offer.Operation.RESERVE)
    operation.reserve.resources.extend(made.to_proto())
    return checked(operation, operation_id)


def unreserve(resources: Resources, *, operation_id: str | None = None) -> Offer.Operation:
    """Give back what was reserved while its agent ran: `resources` as they are offered.

    Raises InvalidValue for an id that cannot be, InvalidResources where something is not
    reserved, or was by the agent's operator.
    """
    operation = Offer.Operation(type=Offer.Operation.UNRESERVE)
    operation.unreserve.resources.extend(resources.to_proto())
    return checked(operation, operation_id)


def reserved_for(
    resources: Resources,
    role: str,
    *,
    principal: str | None = None,
    labels: Mapping[str, str | None] | None = None,
) -> Resources:
    """The same amounts, reserved so; see `reserve`."""
    check_role("role", check_text("role", role))
    if role == "*":
        raise InvalidResources("role", role, "nothing can be reserved for all roles")
    _check_optional("principal", principal)
    for key, value in (labels or {}).items():
        check_text("labels", key)
        _check_optional(f"labels.{key}", value)
    signed = None if labels is None else tuple(sorted(labels.items()))
    last = Reservation(role, "dynamic", principal, signed)
    return resources.renamed(lambda key: key_of(plain_name(key), (*stack_of(key), last)))


def _check_optional(field: str, value: str | None) -> None:
    if value is not None:
        check_text(field, value)


def reserved_in(
    resources: Resources, role: str, *, labels: Mapping[str, str | None] | None = None
) -> Resources:
    """What of it, for example of an offer, was reserved for `role` while the agent ran;
    volumes, which are no longer free for anything else, are not among it.

    labels: only what has these among its labels.
    """
    signed = set((labels or {}).items())

    def is_meant(key: str) -> bool:
        if is_volume(key) or not is_dynamic(key):
            return False
        last = stack_of(key)[-1]
        return last.role == role and signed <= set(last.labels or ())

    return resources.only(is_meant)


def checked(operation: Offer.Operation, operation_id: str | None) -> Offer.Operation:
    """The operation with that id: nothing is sent that a master could only refuse."""
    conversion_of(operation)
    if operation_id is not None:
        operation.id.value = check_id("operation_id", check_text("operation_id", operation_id))
    return operation


__all__ = ["reserve", "reserved_for", "reserved_in", "unreserve"]
