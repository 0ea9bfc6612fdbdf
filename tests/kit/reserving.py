"""Operations on reservations, as frameworks and operators send them."""

from __future__ import annotations

from mesos_py.reserved import Reservation, Stack, key_of
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb

Operation = pb.Offer.Operation


def by(role: str, principal: str | None = None, labels: dict[str, str] | None = None) -> Stack:
    """One reservation, made while the agent runs."""
    signed = tuple(sorted(labels.items())) if labels is not None else None
    return (Reservation(role, "dynamic", principal, signed),)


def amount(stack: Stack = (), ports: tuple[int, int] | None = None, **scalars: float) -> Resources:
    """Amounts that are reserved in that way."""
    bundle = Resources.of(ports=[ports] if ports else None, **scalars)
    return bundle.renamed(lambda name: key_of(name, stack))


def reserve(resources: Resources, operation_id: str = "", source: Resources | None = None):
    """RESERVE of an ACCEPT."""
    operation = Operation(type=Operation.RESERVE, reserve=Operation.Reserve())
    operation.reserve.resources.extend(resources.to_proto())
    if source is not None:
        operation.reserve.source.extend(source.to_proto())
    return _named(operation, operation_id)


def unreserve(resources: Resources, operation_id: str = ""):
    """UNRESERVE of an ACCEPT."""
    operation = Operation(type=Operation.UNRESERVE, unreserve=Operation.Unreserve())
    operation.unreserve.resources.extend(resources.to_proto())
    return _named(operation, operation_id)


def _named(operation: pb.Offer.Operation, operation_id: str) -> pb.Offer.Operation:
    if operation_id:
        operation.id.value = operation_id
    return operation


def launch(*tasks: pb.TaskInfo) -> pb.Offer.Operation:
    return Operation(type=Operation.LAUNCH, launch=Operation.Launch(task_infos=tasks))
