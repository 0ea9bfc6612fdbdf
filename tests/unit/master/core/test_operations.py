"""What frameworks ask about operations, of which this master has none."""

import pytest

from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World

Call, Event = sched.Call, sched.Event


def ask(framework, *asked):
    framework.take()
    operations = [Call.ReconcileOperations.Operation(**each) for each in asked]
    part = Call.ReconcileOperations(operations=operations)
    framework.call(type=Call.RECONCILE_OPERATIONS, reconcile_operations=part)
    return [event.update_operation_status.status for event in framework.take()]


def operation(agent_id=""):
    named = {"agent_id": pb.AgentID(value=agent_id)} if agent_id else {}
    return {"operation_id": pb.OperationID(value="o"), **named}


def test_each_that_is_asked_about_is_answered_by_where_it_was():
    world = World()
    here, cut_off, gone = (world.agent(name) for name in ("here", "cut-off", "gone"))
    framework = world.framework()
    cut_off.disconnect()
    world.advance(world.cluster.options.agent_timeout_s + 1)
    here.pong()
    world.cluster.gone[gone.id] = 0.0
    agents = ("", here.id, cut_off.id, gone.id, "never-heard-of")
    answers = ask(framework, *map(operation, agents))
    assert [pb.OperationState.Name(answer.state) for answer in answers] == [
        "OPERATION_UNKNOWN",
        "OPERATION_UNKNOWN",
        "OPERATION_UNREACHABLE",
        "OPERATION_GONE_BY_OPERATOR",
        "OPERATION_UNKNOWN",
    ]
    assert [answer.agent_id.value for answer in answers] == list(agents)
    assert all(answer.operation_id.value == "o" for answer in answers)
    assert not any(answer.HasField("uuid") for answer in answers)


def test_asked_about_all_there_is_nothing_to_say():
    assert ask(World().framework()) == []


@pytest.mark.parametrize(("uuid", "refused"), [(bytes(16), False), (b"short", True)])
def test_an_acknowledgement_is_for_nobody(uuid, refused):
    world = World()
    framework = world.framework()
    framework.take()
    part = Call.AcknowledgeOperationStatus(
        agent_id=pb.AgentID(value="a"), uuid=uuid, operation_id=pb.OperationID(value="o")
    )
    framework.call(type=Call.ACKNOWLEDGE_OPERATION_STATUS, acknowledge_operation_status=part)
    assert [event.type == Event.REFUSED for event in framework.take()] == [True] * refused
    assert world.cluster.counters["dropped/acknowledge-unknown-operation"] == (not refused)
