"""What becomes of operations that frameworks gave ids (Mesos v1, sections 4.2 and 7.3).

The agent has the operation in its checkpoint before it tells the outcome, and tells it
until the framework has acknowledged it; as long as that lasts the master remembers it,
too, and a new master learns it from the agent.  An operation without an id is silent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from master.core.cluster import Cluster
from master.core.records import Agent, Framework, Operation
from mesos_py.clock import Now
from mesos_py.errors import InvalidValue, MesosPyError, TooLarge, shortened, shown
from mesos_py.ids import MAX_ID_BYTES, UUID_BYTES
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

# All of them are in each registration of their agent.
MAX_WAITING_BYTES: Final = 1024 * 1024
# Of one framework, on one agent.
MAX_WAITING: Final = 1000
# It may even be done: then the offers show it.
_NOT_KNOWN: Final = "its agent does not know it: it was not told, or its record was damaged"
State: TypeAlias = pb.OperationState.ValueType

# ---- To the agent --------------------------------------------------------------------


class Waiting(NamedTuple):
    """Operations of an agent that nobody has acknowledged yet: bytes of all of them, and how
    many one framework has."""

    size_bytes: int
    number: int

    def require_room(self, agent: Agent, operation: pb.Offer.Operation) -> Waiting:
        """With one more.  Raises InvalidValue for an id that cannot be given to an operation,
        and TooLarge where there are enough.

        As in Mesos, an id may look like anything, and be that of another operation as well.
        """
        operation_id = operation.id.value
        if not operation_id:
            raise InvalidValue("operations.id", operation_id, "must not be empty")
        if len(operation_id.encode()) > MAX_ID_BYTES:
            reason = f"is longer than {MAX_ID_BYTES} bytes"
            raise InvalidValue("operations.id", operation_id, reason)
        then = Waiting(self.size_bytes + operation.ByteSize(), self.number + 1)
        if then.number > MAX_WAITING or then.size_bytes > MAX_WAITING_BYTES:
            text = f"operations.id: {shown(operation_id)}: the outcome of {self.number} operations"
            where = f"on agent {agent.agent_id}"
            raise TooLarge(f"{text} {where} was not acknowledged", field="operations.id")
        return then


def resources_of(operation: pb.Offer.Operation) -> Iterator[pb.Resource]:
    """What is named in an operation that changes what an agent has."""
    yield from operation.reserve.resources
    yield from operation.unreserve.resources
    yield from operation.create.volumes
    yield from operation.destroy.volumes
    if operation.HasField("grow_volume"):
        yield operation.grow_volume.volume
        yield operation.grow_volume.addition
    if operation.HasField("shrink_volume"):
        yield operation.shrink_volume.volume


def allocate(operation: pb.Offer.Operation, role: str) -> None:
    """Say of the resources of a framework's operation for which role it had them, where the
    framework has not: agents, operators and later masters read it there, as in Mesos."""
    for resource in resources_of(operation):
        if not resource.allocation_info.role:
            resource.allocation_info.role = role


def waiting(agent: Agent, framework: Framework) -> Waiting:
    operations = agent.operations.values()
    own = [each for each in operations if each.framework_id == framework.framework_id]
    return Waiting(sum(each.message.ByteSize() for each in operations), len(own))


def order(
    c: Cluster,
    agent: Agent,
    framework: Framework | None,
    info: pb.Offer.Operation,
    *,
    describe: bool = True,
) -> None:
    """Have the agent carry out what is true for this master already.

    `describe`: it has to hear who the framework is, should it tell it the outcome.
    """
    message = pb.Operation(info=info, uuid=pb.UUID(value=c.ids.uuid()))
    message.agent_id.value = agent.agent_id
    event = agent_pb2.Event(type=agent_pb2.Event.APPLY_OPERATION)
    if framework is not None:
        message.framework_id.value = framework.framework_id
    event.apply_operation.operation.CopyFrom(message)
    if framework is not None and info.HasField("id"):
        if describe:
            event.apply_operation.framework_info.CopyFrom(framework.info)
        message.latest_status.operation_id.CopyFrom(info.id)
        message.latest_status.state = pb.OPERATION_PENDING
        message.latest_status.agent_id.value = agent.agent_id
        _remember(agent, framework, message)
    c.to_agent(agent, event)


def _remember(agent: Agent, framework: Framework, message: pb.Operation) -> None:
    operation = Operation(framework.framework_id, agent.agent_id, message)
    agent.operations[operation.uuid] = operation
    known = framework.operations.get(operation.uuid)
    if known is not None and known.operation_id != operation.operation_id:
        _unname(framework, known)
    framework.operations[operation.uuid] = operation
    framework.operations_by_id.setdefault(operation.operation_id, {})[operation.uuid] = operation


def _forget(c: Cluster, operation: Operation, now: Now) -> None:
    agent, framework = c.agents.get(operation.agent_id), c.frameworks.get(operation.framework_id)
    if agent is not None:
        agent.operations.pop(operation.uuid, None)
        c.emptier(agent.agent_id, now)
    known = framework.operations.pop(operation.uuid, None) if framework is not None else None
    if framework is not None and known is not None:
        _unname(framework, known)


def _unname(framework: Framework, operation: Operation) -> None:
    same_id = framework.operations_by_id[operation.operation_id]
    del same_id[operation.uuid]
    if not same_id:
        del framework.operations_by_id[operation.operation_id]


def _acknowledge(c: Cluster, agent: Agent, uuid: bytes) -> None:
    event = agent_pb2.Event(type=agent_pb2.Event.ACKNOWLEDGE_OPERATION)
    event.acknowledge_operation.uuid.value = uuid
    c.to_agent(agent, event)


# ---- From the agent ------------------------------------------------------------------


def updated(c: Cluster, agent: Agent, call: agent_pb2.Call.UpdateOperation, now: Now) -> bool:
    """UPDATE_OPERATION: what became of one, perhaps not for the first time.

    False: the agent could not do what this master takes for done.  Its account of the
    agent is wrong, and the agent has to tell it anew.
    """
    message = call.operation
    uuid, framework_id = message.uuid.value, message.framework_id.value
    if message.latest_status.state != pb.OPERATION_FINISHED:
        why = shortened(message.latest_status.message)
        c.drop("operation-not-done", agent=agent.agent_id, why=why)
        operation = agent.operations.get(uuid)
        if operation is not None:
            _end(c, operation, message.latest_status.state, why, now)
        return False
    framework = c.frameworks.get(framework_id)
    if framework is None or not message.info.HasField("id"):
        # Nobody will ever acknowledge it.
        c.drop("operation-of-nobody", framework=framework_id, agent=agent.agent_id)
        _acknowledge(c, agent, uuid)
        return True
    if uuid not in agent.operations:
        # It has crossed its acknowledgement: what is not acknowledged is known since it was
        # ordered, or since the agent has registered.
        c.drop("operation-acknowledged-already", framework=framework_id, agent=agent.agent_id)
        _acknowledge(c, agent, uuid)
        return True
    kept = _kept(agent, message)
    _remember(agent, framework, kept)
    status = pb.OperationStatus()
    status.CopyFrom(kept.latest_status)
    _tell(c, framework, status)
    return True


def _kept(agent: Agent, message: pb.Operation) -> pb.Operation:
    kept = pb.Operation()
    kept.CopyFrom(message)
    kept.latest_status.operation_id.CopyFrom(kept.info.id)
    kept.latest_status.agent_id.value = agent.agent_id
    return kept


def take_back(
    c: Cluster,
    agent: Agent,
    named: Iterable[pb.Operation],
    not_done: Mapping[bytes, str],
    now: Now,
) -> None:
    """The agent has registered, and names its operations.  Each is told anew by itself; of
    the others those that were under way could not be done, or did not arrive."""
    there = {each.uuid.value: each for each in named}
    for uuid, operation in list(agent.operations.items()):
        if uuid in there:
            continue
        if operation.pending:
            why = not_done.get(uuid) or _NOT_KNOWN
            _end(c, operation, pb.OPERATION_DROPPED, why, now)
        else:
            _forget(c, operation, now)
    for uuid, message in there.items():
        framework = c.frameworks.get(message.framework_id.value)
        if framework is None:
            _acknowledge(c, agent, uuid)
            continue
        _remember(agent, framework, _kept(agent, message))


def agent_lost(c: Cluster, agent: Agent, state: State | None, why: str, now: Now) -> None:
    """It is cut off, perhaps for ever: what is known of its operations is forgotten."""
    for operation in list(agent.operations.values()):
        if state is None:
            _forget(c, operation, now)
        else:
            _end(c, operation, state, why, now)


def _end(c: Cluster, operation: Operation, state: State, why: str, now: Now) -> None:
    _forget(c, operation, now)
    framework = c.frameworks.get(operation.framework_id)
    if framework is not None:
        status = _status(operation.operation_id, state, why)
        status.agent_id.value = operation.agent_id
        _tell(c, framework, status)


# ---- From and to the framework ---------------------------------------------------------


def fail(
    c: Cluster, framework: Framework, operation: pb.Offer.Operation, error: MesosPyError, now: Now
) -> None:
    """An operation of an ACCEPT is not carried out: said in the way of Mesos if it has an
    id, and in our own always."""
    c.refuse_call(framework, sched.Call.ACCEPT, error, now)
    refuse(c, framework, operation, error)


def refuse(
    c: Cluster, framework: Framework, operation: pb.Offer.Operation, error: MesosPyError
) -> None:
    """The same in the way of Mesos alone.  An operation that is under way under the id, since
    the call has come twice, is not meant."""
    operation_id = operation.id.value
    if operation.HasField("id") and _by_id(framework, operation_id) is None:
        _tell(c, framework, _status(operation_id, pb.OPERATION_ERROR, shortened(error.message)))


def _by_id(framework: Framework, operation_id: str) -> Operation | None:
    """The newest with that id."""
    same_id = framework.operations_by_id.get(operation_id)
    return next(reversed(same_id.values())) if same_id else None


def _status(operation_id: str, state: State, why: str) -> pb.OperationStatus:
    status = pb.OperationStatus(state=state, message=why)
    status.operation_id.value = operation_id
    return status


def _tell(c: Cluster, framework: Framework, status: pb.OperationStatus) -> None:
    update = sched.Event.UpdateOperationStatus(status=status)
    event = sched.Event(type=sched.Event.UPDATE_OPERATION_STATUS, update_operation_status=update)
    c.to_framework(framework, event)


def acknowledge(
    c: Cluster, framework: Framework, call: sched.Call.AcknowledgeOperationStatus, now: Now
) -> None:
    """ACKNOWLEDGE_OPERATION_STATUS.  While its agent is away it is lost, as in Mesos: the
    outcome comes again when the agent has."""
    if len(call.uuid) != UUID_BYTES:
        error = InvalidValue("uuid", call.uuid.hex(), "must be 16 bytes")
        c.refuse_call(framework, sched.Call.ACKNOWLEDGE_OPERATION_STATUS, error, now)
        return
    operation = framework.operations.get(call.uuid)
    agent = c.agents.get(operation.agent_id) if operation is not None else None
    if operation is None or agent is None:
        reason = "acknowledge-unknown-operation"
    elif operation.pending:
        reason = "acknowledge-pending-operation"
    elif not agent.connected:
        reason = "acknowledge-operation-agent-away"
    else:
        _acknowledge(c, agent, operation.uuid)
        _forget(c, operation, now)
        return
    c.drop(reason, framework=framework.framework_id, operation=call.operation_id.value)


def forget_framework(c: Cluster, framework: Framework, now: Now) -> None:
    """It is gone for good.  What it has reserved stays."""
    for operation in list(framework.operations.values()):
        _forget(c, operation, now)


def reconcile(c: Cluster, framework: Framework, call: sched.Call.ReconcileOperations) -> None:
    """RECONCILE_OPERATIONS: one answer for each operation; none named asks for all there are."""
    if not call.operations:
        for operation in framework.operations.values():
            _tell(c, framework, _known(operation))
        return
    for asked in call.operations:
        known = _by_id(framework, asked.operation_id.value)
        if known is not None:
            _tell(c, framework, _known(known))
            continue
        why = "reconciliation: the master does not know it"
        status = _status(asked.operation_id.value, _state(c, asked.agent_id.value), why)
        if asked.HasField("agent_id"):
            status.agent_id.value = asked.agent_id.value
        if asked.HasField("resource_provider_id"):
            status.resource_provider_id.value = asked.resource_provider_id.value
        _tell(c, framework, status)


def _known(operation: Operation) -> pb.OperationStatus:
    """Its last status, which is not to be acknowledged in this form."""
    status = pb.OperationStatus()
    status.CopyFrom(operation.message.latest_status)
    status.ClearField("uuid")
    return status


def _state(c: Cluster, agent_id: str) -> State:
    if agent_id in c.expected or agent_id in c.admissions:
        return pb.OPERATION_RECOVERING
    if agent_id in c.gone:
        return pb.OPERATION_GONE_BY_OPERATOR
    agent = c.agents.get(agent_id)
    if agent is not None and agent.unreachable is not None:
        return pb.OPERATION_UNREACHABLE
    return pb.OPERATION_UNKNOWN
