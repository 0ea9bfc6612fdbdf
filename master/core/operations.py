"""What frameworks ask about operations on resources (Mesos v1, section 7.3).

This master has none that outlive the call they came with, so each that is asked about is
unknown, or where its agent is says what became of it.
"""

from __future__ import annotations

from master.core.cluster import Cluster
from master.core.records import Framework
from mesos_py.clock import Now
from mesos_py.errors import InvalidValue
from mesos_py.ids import UUID_BYTES
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb


def acknowledge(
    c: Cluster, framework: Framework, call: sched.Call.AcknowledgeOperationStatus, now: Now
) -> None:
    """ACKNOWLEDGE_OPERATION_STATUS: nobody waits for one."""
    if len(call.uuid) != UUID_BYTES:
        error = InvalidValue("uuid", call.uuid.hex(), "must be 16 bytes")
        c.refuse_call(framework, sched.Call.ACKNOWLEDGE_OPERATION_STATUS, error, now)
        return
    c.drop(
        "acknowledge-unknown-operation",
        framework=framework.framework_id,
        operation=call.operation_id.value,
    )


def reconcile(c: Cluster, framework: Framework, call: sched.Call.ReconcileOperations) -> None:
    """RECONCILE_OPERATIONS: one answer for each operation; none named asks for all there are."""
    for asked in call.operations:
        event = sched.Event(type=sched.Event.UPDATE_OPERATION_STATUS)
        status = event.update_operation_status.status
        status.operation_id.value = asked.operation_id.value
        status.state = _state(c, asked.agent_id.value)
        status.message = "reconciliation: the master does not know it"
        if asked.HasField("agent_id"):
            status.agent_id.value = asked.agent_id.value
        if asked.HasField("resource_provider_id"):
            status.resource_provider_id.value = asked.resource_provider_id.value
        c.to_framework(framework, event)


def _state(c: Cluster, agent_id: str) -> pb.OperationState.ValueType:
    if agent_id in c.expected or agent_id in c.admissions:
        return pb.OPERATION_RECOVERING
    if agent_id in c.gone:
        return pb.OPERATION_GONE_BY_OPERATOR
    agent = c.agents.get(agent_id)
    if agent is not None and agent.unreachable is not None:
        return pb.OPERATION_UNREACHABLE
    return pb.OPERATION_UNKNOWN
