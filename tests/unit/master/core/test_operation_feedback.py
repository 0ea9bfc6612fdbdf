"""What becomes of operations that have an id: told, acknowledged, asked about."""

import pytest

from master.core import launch, operations
from mesos_py.resources import Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World
from tests.kit.reserving import (
    acknowledge,
    amount,
    by,
    finished,
    ordered,
    reserve,
    statuses,
    tell,
    unreserve,
)
from tests.kit.reserving import launch as tasks

ADS = by("ads", "alice")
TWO = amount(ADS, cpus=2)
TOTAL = amount(cpus=4, mem=400, ports=(1, 10))


def of(messages):
    return Resources.from_proto("resources", messages)


@pytest.fixture
def world():
    made = World()
    yield made
    made.check()


@pytest.fixture
def agent(world):
    return world.agent(resources=str(TOTAL))


@pytest.fixture
def framework(world, agent):
    return world.framework(role="ads", principal="alice", failover_timeout=60)


@pytest.fixture
def order(world, agent, framework):
    """An operation with an id, as the agent was sent it."""
    (offer,) = framework.offers()
    framework.accept([offer], [reserve(TWO, "op")])
    (order,) = ordered(agent)
    assert not statuses(framework)
    return order


def roles(order):
    listed = (*order.info.reserve.resources, *order.info.unreserve.resources)
    return [each.allocation_info.role for each in listed]


def test_it_is_said_for_which_role_its_resources_were_had(world, agent, framework, order):
    assert roles(order) == ["ads"]
    (offer,) = framework.offers()
    framework.accept([offer], [unreserve(TWO, "op2")])
    (other,) = ordered(agent)
    assert roles(other) == ["ads"]


def test_a_role_that_the_offers_are_not_of_is_not_overwritten(world, agent, framework):
    (offer,) = framework.offers()
    asked = reserve(TWO, "op")
    asked.reserve.resources[0].allocation_info.role = "web"
    framework.accept([offer], [asked])
    assert ordered(agent) == []
    (status,) = statuses(framework)
    assert "the offers are of ads" in status.message


def reconcile(framework, *asked):
    framework.take()
    call = sched.Call.ReconcileOperations()
    for operation_id, agent_id in asked:
        item = call.operations.add(operation_id=pb.OperationID(value=operation_id))
        if agent_id:
            item.agent_id.value = agent_id
    framework.call(type=sched.Call.RECONCILE_OPERATIONS, reconcile_operations=call)
    return [(each.operation_id.value, each.state) for each in statuses(framework)]


def test_the_outcome_is_told_until_it_is_acknowledged(world, agent, framework, order):
    assert reconcile(framework) == [("op", pb.OPERATION_PENDING)]
    operation = finished(agent, order)
    (status,) = statuses(framework)
    assert status.state == pb.OPERATION_FINISHED
    assert status.uuid.value == order.uuid.value
    assert status.agent_id.value == agent.id
    tell(agent, operation)
    assert len(statuses(framework)) == 1
    assert reconcile(framework) == [("op", pb.OPERATION_FINISHED)]
    acknowledge(framework, agent, order)
    (event,) = agent.take(agent_pb2.Event.ACKNOWLEDGE_OPERATION)
    assert event.acknowledge_operation.uuid == order.uuid
    assert reconcile(framework, ("op", agent.id)) == [("op", pb.OPERATION_UNKNOWN)]
    acknowledge(framework, agent, order)
    assert not agent.take(agent_pb2.Event.ACKNOWLEDGE_OPERATION)


def test_an_outcome_that_crosses_its_acknowledgement_is_told_no_more(
    world, agent, framework, order
):
    operation = finished(agent, order)
    acknowledge(framework, agent, order)
    agent.take()
    framework.accept(framework.offers(), [reserve(amount(ADS, mem=1), "op")])
    (second,) = ordered(agent)
    framework.take()
    tell(agent, operation)
    assert not statuses(framework)
    (event,) = agent.take(agent_pb2.Event.ACKNOWLEDGE_OPERATION)
    assert event.acknowledge_operation.uuid == order.uuid
    assert list(world.cluster.agents[agent.id].operations) == [second.uuid.value]
    assert reconcile(framework, ("op", agent.id)) == [("op", pb.OPERATION_PENDING)]


def test_an_id_may_be_used_again_at_once(agent, framework, order):
    """As in Mesos: by their uuids they are kept apart."""
    offers = framework.offers()
    framework.accept(offers, [reserve(amount(ADS, mem=1), "op")])
    (second,) = ordered(agent)
    finished(agent, second)
    assert reconcile(framework, ("op", agent.id)) == [("op", pb.OPERATION_FINISHED)]
    acknowledge(framework, agent, second)
    assert reconcile(framework) == [("op", pb.OPERATION_PENDING)]
    finished(agent, order)
    acknowledge(framework, agent, order)
    assert reconcile(framework) == []


@pytest.mark.parametrize(("operation_id", "why"), [("", "empty"), ("x" * 256, "longer than 255")])
def test_an_id_is_something_and_not_too_long(agent, framework, operation_id, why):
    (offer,) = framework.offers()
    operation = reserve(TWO)
    operation.id.value = operation_id
    framework.accept([offer], [operation])
    (status,) = statuses(framework)
    assert why in status.message
    assert not ordered(agent)


class Unread(dict):
    """Nobody may go through all of it."""

    def values(self):
        raise AssertionError("all operations were looked at, to find one")


def test_operations_are_found_by_their_ids_however_many_there_are(world, agent, framework, order):
    """Else a call that asks about many keeps the master busy for minutes."""
    known = world.cluster.frameworks[framework.id]
    known.operations = Unread(known.operations)
    asked = [("op", agent.id), ("none", agent.id), ("op", "")]
    assert reconcile(framework, *asked) == [
        ("op", pb.OPERATION_PENDING),
        ("none", pb.OPERATION_UNKNOWN),
        ("op", pb.OPERATION_PENDING),
    ]
    framework.accept([pb.Offer(id=pb.OfferID(value="gone"))], [reserve(TWO, "op")])
    assert not statuses(framework)
    finished(agent, order)
    acknowledge(framework, agent, order)
    assert not known.operations_by_id


def test_an_agent_that_gives_an_operation_another_id_is_believed(world, agent, framework, order):
    operation = pb.Operation()
    operation.CopyFrom(order)
    operation.info.id.value = "renamed"
    finished(agent, operation)
    asked = [("op", agent.id), ("renamed", agent.id)]
    assert reconcile(framework, *asked) == [
        ("op", pb.OPERATION_UNKNOWN),
        ("renamed", pb.OPERATION_FINISHED),
    ]
    acknowledge(framework, agent, order)
    assert not world.cluster.frameworks[framework.id].operations_by_id


def test_an_accept_that_comes_twice_says_nothing_of_an_operation_under_way(framework, order):
    framework.accept([pb.Offer(id=pb.OfferID(value="gone"))], [reserve(TWO, "op")])
    assert not statuses(framework)
    framework.accept([pb.Offer(id=pb.OfferID(value="gone"))], [reserve(TWO, "other")])
    (status,) = statuses(framework)
    assert (status.operation_id.value, status.state) == ("other", pb.OPERATION_ERROR)


def test_one_that_did_not_reach_its_agent_is_dropped(world, agent, framework, order):
    agent.disconnect()
    agent.register()
    (status,) = statuses(framework)
    assert (status.operation_id.value, status.state) == ("op", pb.OPERATION_DROPPED)
    assert world.cluster.ledger.total(agent.id) == TOTAL
    assert reconcile(framework, ("op", agent.id)) == [("op", pb.OPERATION_UNKNOWN)]


def test_of_one_that_its_agent_does_not_know_nobody_says_that_it_was_never_told(
    agent, framework, order
):
    """Its record may have been damaged when it was carried out."""
    agent.disconnect()
    agent.register()
    (status,) = statuses(framework)
    assert status.message.endswith("it was not told, or its record was damaged")


def test_one_that_did_is_known_from_its_agent(world, agent, framework, order):
    agent.disconnect()
    operation = pb.Operation()
    operation.CopyFrom(order)
    operation.latest_status.state = pb.OPERATION_FINISHED
    agent.register(reserved=TWO.to_proto(), operations=[operation])
    assert not statuses(framework)
    assert reconcile(framework) == [("op", pb.OPERATION_FINISHED)]
    assert world.cluster.ledger.total(agent.id).contains(TWO)


def test_a_new_master_learns_it_from_the_agent(agent, framework, order):
    operation = pb.Operation()
    operation.CopyFrom(order)
    operation.latest_status.state = pb.OPERATION_FINISHED
    new = World()
    agent.world = framework.world = new
    named = [framework.info]
    agent.register(reserved=TWO.to_proto(), operations=[operation], frameworks=named)
    assert new.cluster.frameworks[framework.id].recovered
    framework.subscribe()
    agent.take()
    finished(agent, order)
    (status,) = statuses(framework)
    assert status.uuid.value == order.uuid.value
    acknowledge(framework, agent, order)
    assert agent.orders() == ["ACKNOWLEDGE_OPERATION"]
    (offer,) = framework.offers()
    assert of(offer.resources).contains(TWO)
    new.check()


def test_a_scheduler_that_comes_back_has_it_repeated(agent, framework, order):
    framework.disconnect()
    framework.subscribe()
    assert "REPEAT_UPDATES" in agent.orders()


def test_nobody_acknowledges_for_a_framework_that_is_gone(world, agent, framework, order):
    framework.call(type=sched.Call.TEARDOWN)
    assert agent.orders() == ["SHUTDOWN_FRAMEWORK"]
    finished(agent, order)
    (event,) = agent.take(agent_pb2.Event.ACKNOWLEDGE_OPERATION)
    assert event.acknowledge_operation.uuid == order.uuid
    assert world.cluster.ledger.total(agent.id).contains(TWO)
    assert not world.cluster.agents[agent.id].operations


def test_an_agent_that_is_cut_off_takes_its_operations_along(world, agent, framework, order):
    agent.disconnect()
    world.advance(3600)
    (status,) = statuses(framework)
    assert status.state == pb.OPERATION_UNREACHABLE
    assert reconcile(framework, ("op", agent.id)) == [("op", pb.OPERATION_UNREACHABLE)]
    assert not framework.world.cluster.frameworks[framework.id].operations


def test_an_agent_that_cannot_do_what_was_ordered_has_to_register_again(
    world, agent, framework, order
):
    operation = pb.Operation()
    operation.CopyFrom(order)
    operation.latest_status.state = pb.OPERATION_DROPPED
    operation.latest_status.message = "cpus: 2 wanted, 1 there"
    link = agent.link
    tell(agent, operation)
    (status,) = statuses(framework)
    assert status.state == pb.OPERATION_DROPPED
    assert not status.HasField("uuid")
    assert link in world.outbox.closed
    agent.register()
    assert world.cluster.ledger.total(agent.id) == TOTAL


def test_who_the_framework_is_goes_to_the_agent_once_with_a_call(world, agent):
    """Else a small call of many operations is more than the agent's stream may hold."""
    framework = world.framework("big", role="ads", labels=pb.Labels(labels=[pb.Label(key="k")]))
    asked = [reserve(amount(by("ads"), mem=1), name) for name in ("", "a", "", "b", "c")]
    framework.accept(framework.offers(), asked)
    events = [event.apply_operation for event in agent.take(agent_pb2.Event.APPLY_OPERATION)]
    described = [event.HasField("framework_info") for event in events]
    assert described == [False, True, False, False, False]
    assert events[1].framework_info == framework.info
    framework.accept(framework.offers(), [reserve(amount(by("ads"), mem=1), "d")])
    (event,) = agent.take(agent_pb2.Event.APPLY_OPERATION)
    assert event.apply_operation.HasField("framework_info")


def test_a_call_of_too_many_operations_is_refused_as_a_whole(monkeypatch, world, agent, framework):
    monkeypatch.setattr(launch, "MAX_OPERATIONS", 2)
    asked = [reserve(amount(ADS, mem=1), name) for name in ("a", "", "b")]
    framework.accept(framework.offers(), [*asked, tasks(world.task("t1", agent.id))])
    events = framework.take()
    kinds = [sched.Event.Type.Name(event.type) for event in events]
    assert sorted(kinds) == [
        "REFUSED",
        "UPDATE",
        "UPDATE_OPERATION_STATUS",
        "UPDATE_OPERATION_STATUS",
    ]
    (refused,) = [event.refused for event in events if event.type == sched.Event.REFUSED]
    assert "operations: 3: must be at most 2" in refused.message
    assert agent.orders() == []
    framework.accept(framework.offers(), [asked[0], asked[2], tasks(world.task("t1", agent.id))])
    assert agent.orders() == ["APPLY_OPERATION", "APPLY_OPERATION", "RUN_TASKS"]


def test_operations_that_nobody_acknowledges_are_bounded(monkeypatch, agent, framework, order):
    monkeypatch.setattr(operations, "MAX_WAITING_BYTES", order.ByteSize())
    framework.accept(framework.offers(), [reserve(amount(ADS, mem=1), "a"), reserve(TWO)])
    (status,) = statuses(framework)
    assert (status.operation_id.value, status.state) == ("a", pb.OPERATION_ERROR)
    assert "not acknowledged" in status.message
    assert len(ordered(agent)) == 1


def test_a_framework_has_so_many_operations_on_an_agent_that_it_has_not_acknowledged(
    monkeypatch, world, agent, framework, order
):
    monkeypatch.setattr(operations, "MAX_WAITING", 2)
    asked = [reserve(amount(ADS, mem=1), name) for name in ("a", "b" * 255)]
    framework.accept(framework.offers(), asked, refuse_s=0)
    (status,) = statuses(framework)
    assert (status.operation_id.value, status.state) == ("b" * 255, pb.OPERATION_ERROR)
    assert "the outcome of 2 operations on agent" in status.message
    assert len(ordered(agent)) == 1
    finished(agent, order)
    acknowledge(framework, agent, order)
    framework.accept(framework.offers(), [reserve(amount(ADS, mem=1), "c")])
    assert len(ordered(agent)) == 1
