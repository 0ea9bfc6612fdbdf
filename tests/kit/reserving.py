"""Operations on reservations, as frameworks and operators send them."""

from __future__ import annotations

from typing import Any

from mesos_py.persistent import Volume
from mesos_py.reserved import Reservation, Stack, key_of
from mesos_py.resources import Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import FakeAgent, FakeFramework

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


def volume(
    stack: Stack, disk_mb: float, volume_id: str = "v1", path: str = "data", **more: Any
) -> Resources:
    """A persistent volume that is made of disk reserved in that way."""
    return Resources.of(disk=disk_mb).renamed(
        lambda name: key_of(name, stack, Volume(volume_id, path, **more))
    )


def create(volumes: Resources, operation_id: str = ""):
    """CREATE of an ACCEPT."""
    operation = Operation(type=Operation.CREATE, create=Operation.Create())
    operation.create.volumes.extend(volumes.to_proto())
    return _named(operation, operation_id)


def destroy(volumes: Resources, operation_id: str = ""):
    """DESTROY of an ACCEPT."""
    operation = Operation(type=Operation.DESTROY, destroy=Operation.Destroy())
    operation.destroy.volumes.extend(volumes.to_proto())
    return _named(operation, operation_id)


def grow(made: Resources, addition: Resources, operation_id: str = ""):
    """GROW_VOLUME of an ACCEPT."""
    operation = Operation(type=Operation.GROW_VOLUME)
    operation.grow_volume.volume.CopyFrom(made.to_proto()[0])
    operation.grow_volume.addition.CopyFrom(addition.to_proto()[0])
    return _named(operation, operation_id)


def shrink(made: Resources, subtract_mb: float, operation_id: str = ""):
    """SHRINK_VOLUME of an ACCEPT."""
    operation = Operation(type=Operation.SHRINK_VOLUME)
    operation.shrink_volume.volume.CopyFrom(made.to_proto()[0])
    operation.shrink_volume.subtract.value = subtract_mb
    return _named(operation, operation_id)


def _named(operation: pb.Offer.Operation, operation_id: str) -> pb.Offer.Operation:
    if operation_id:
        operation.id.value = operation_id
    return operation


def launch(*tasks: pb.TaskInfo) -> pb.Offer.Operation:
    return Operation(type=Operation.LAUNCH, launch=Operation.Launch(task_infos=tasks))


# ---- Streams of tests.kit.core ----------------------------------------------


def statuses(framework: FakeFramework) -> list[pb.OperationStatus]:
    """Of operations: what has come since the last time, and updates of tasks are kept out."""
    return [
        event.update_operation_status.status
        for event in framework.take()
        if event.type == sched.Event.UPDATE_OPERATION_STATUS
    ]


def finished(agent: FakeAgent, order: pb.Operation) -> pb.Operation:
    """The agent has carried it out, and says so."""
    operation = pb.Operation()
    operation.CopyFrom(order)
    status = operation.latest_status
    status.state = pb.OPERATION_FINISHED
    status.operation_id.CopyFrom(operation.info.id)
    status.uuid.CopyFrom(operation.uuid)
    tell(agent, operation)
    return operation


def tell(agent: FakeAgent, operation: pb.Operation) -> None:
    update = agent_pb2.Call.UpdateOperation(operation=operation)
    agent.call(type=agent_pb2.Call.UPDATE_OPERATION, update_operation=update)


def ordered(agent: FakeAgent) -> list[pb.Operation]:
    """The operations that the agent was sent since the last time."""
    kind = agent_pb2.Event.APPLY_OPERATION
    return [event.apply_operation.operation for event in agent.take(kind)]


def acknowledge(framework: FakeFramework, agent: FakeAgent, operation: pb.Operation) -> None:
    framework.call(
        type=sched.Call.ACKNOWLEDGE_OPERATION_STATUS,
        acknowledge_operation_status=sched.Call.AcknowledgeOperationStatus(
            agent_id=agent.info.id, uuid=operation.uuid.value, operation_id=operation.info.id
        ),
    )
