"""RESERVE and UNRESERVE of frameworks: what they change, and what is refused."""

import pytest

from master.allocator.base import AllocatorOptions
from master.allocator.drf import DrfAllocator
from mesos_py.reserved import Reservation
from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import FakeAgent, World
from tests.kit.reserving import Operation, amount, by, launch, reserve, unreserve

Capability = pb.FrameworkInfo.Capability
REFINES = [Capability(type=Capability.RESERVATION_REFINEMENT)]
ADS = by("ads", "alice")
TWO = amount(ADS, cpus=2)


def of(messages):
    return Resources.from_proto("resources", messages)


def free_total(text):
    return Resources.parse_reserved(text)


@pytest.fixture
def world():
    made = World()
    yield made
    made.check()


@pytest.fixture
def agent(world):
    return world.agent(resources="cpus:4;mem:400;ports:[1-10]")


@pytest.fixture
def framework(world, agent):
    return world.framework(role="ads", principal="alice", failover_timeout=60)


def statuses(framework):
    """Of operations: what has come since the last time, and updates of tasks are kept out."""
    return [
        event.update_operation_status.status
        for event in framework.take()
        if event.type == sched.Event.UPDATE_OPERATION_STATUS
    ]


def finished(agent, order):
    """The agent has carried it out, and says so."""
    operation = pb.Operation()
    operation.CopyFrom(order)
    status = operation.latest_status
    status.state = pb.OPERATION_FINISHED
    status.operation_id.CopyFrom(operation.info.id)
    status.uuid.CopyFrom(operation.uuid)
    tell(agent, operation)
    return operation


def tell(agent, operation):
    update = agent_pb2.Call.UpdateOperation(operation=operation)
    agent.call(type=agent_pb2.Call.UPDATE_OPERATION, update_operation=update)


def ordered(agent):
    """The operations that the agent was sent since the last time."""
    kind = agent_pb2.Event.APPLY_OPERATION
    return [event.apply_operation.operation for event in agent.take(kind)]


def acknowledge(framework, agent, operation):
    framework.call(
        type=sched.Call.ACKNOWLEDGE_OPERATION_STATUS,
        acknowledge_operation_status=sched.Call.AcknowledgeOperationStatus(
            agent_id=agent.info.id, uuid=operation.uuid.value, operation_id=operation.info.id
        ),
    )


# ---- What they change ----------------------------------------------------------------


def test_what_is_reserved_is_offered_again_at_once_and_only_to_the_role(world, agent, framework):
    other = world.framework("g", role="web")
    (offer,) = framework.offers()
    framework.accept([offer], [reserve(TWO)], refuse_s=60)
    (order,) = ordered(agent)
    assert of(order.info.reserve.resources) == TWO
    assert order.framework_id.value == framework.id
    assert not order.HasField("latest_status")
    (again,) = framework.offers()
    assert of(again.resources) == TWO
    (rest,) = other.offers()
    assert of(rest.resources) == free_total("cpus:2;mem:400;ports:[1-10]")
    assert not statuses(framework)


def test_reserve_and_launch_on_it_in_one_call(world, agent, framework):
    (offer,) = framework.offers()
    task = world.task("t1", agent.id)
    task.ClearField("resources")
    task.resources.extend((TWO + amount(mem=32)).to_proto())
    agent.take()
    framework.accept([offer], [reserve(TWO), launch(task), reserve(amount(ADS, mem=100))])
    assert agent.orders() == ["APPLY_OPERATION", "RUN_TASKS", "APPLY_OPERATION"]
    ledger = world.cluster.ledger
    assert ledger.allocated(agent.id) == TWO + amount(mem=32)
    assert ledger.free(agent.id) == amount(ADS, mem=100) + amount(cpus=2, mem=268, ports=(1, 10))
    agent.report("t1", pb.TASK_FINISHED, framework)
    assert ledger.free(agent.id).contains(TWO)


def test_unreserve_gives_it_back_to_everybody(world, agent, framework):
    (offer,) = framework.offers()
    both = amount(ADS, cpus=2, ports=(2, 3))
    framework.accept([offer], [reserve(both), unreserve(amount(ADS, cpus=1, ports=(2, 2)))])
    (again,) = framework.offers()
    assert of(again.resources).contains(amount(ADS, cpus=1, ports=(3, 3)))
    framework.accept([again], [unreserve(amount(ADS, cpus=1, ports=(3, 3)))])
    assert world.cluster.agents[agent.id].total == amount(cpus=4, mem=400, ports=(1, 10))
    assert len(ordered(agent)) == 3


def test_whose_framework_is_gone_stays_reserved(world, agent, framework):
    (offer,) = framework.offers()
    framework.accept([offer], [reserve(TWO)])
    framework.call(type=sched.Call.TEARDOWN)
    assert world.cluster.ledger.total(agent.id).contains(TWO)
    (offer,) = world.framework("next", role="ads").offers()
    assert of(offer.resources).contains(TWO)


def test_labels_and_principals_keep_reservations_apart(world, agent, framework):
    (offer,) = framework.offers()
    labelled = amount(by("ads", "alice", {"b": "2", "a": "1"}), cpus=1)
    framework.accept([offer], [reserve(labelled), reserve(amount(ADS, cpus=1))])
    (again,) = framework.offers()
    held = of(again.resources)
    assert held.contains(labelled + amount(ADS, cpus=1))
    other = amount(by("ads", "alice", {"a": "2"}), cpus=1)
    framework.accept([again], [unreserve(other)])
    (refused,) = framework.refusals()
    assert "wanted" in refused.message


def test_labels_count_in_any_order(agent, framework):
    (offer,) = framework.offers()
    message = amount(by("ads", "alice", {"a": "1", "b": "2"}), cpus=1).to_proto()[0]
    first, second = pb.Resource(), pb.Resource()
    first.CopyFrom(message)
    second.CopyFrom(message)
    second.reservations[0].labels.labels.reverse()
    assert first != second
    framework.accept(
        [offer],
        [
            Operation(type=Operation.RESERVE, reserve=Operation.Reserve(resources=[first])),
            Operation(type=Operation.UNRESERVE, unreserve=Operation.Unreserve(resources=[second])),
        ],
    )
    assert not framework.refusals()


def test_the_older_form_will_do(world, agent, framework):
    (offer,) = framework.offers()
    info = pb.Resource.ReservationInfo(principal="alice")
    older = pb.Resource(
        name="cpus",
        type=pb.Value.SCALAR,
        scalar=pb.Value.Scalar(value=2),
        role="ads",
        reservation=info,
    )
    framework.accept(
        [offer], [Operation(type=Operation.RESERVE, reserve=Operation.Reserve(resources=[older]))]
    )
    (again,) = framework.offers()
    (shown,) = [each for each in again.resources if each.role == "ads"]
    assert (shown.reservation, shown.scalar.value) == (info, 2)


def test_what_is_reserved_can_be_refined(world):
    agent = world.agent(resources="cpus(ads):4;mem(ads):100")
    framework = world.framework(
        roles=["ads/x"],
        capabilities=[*REFINES, Capability(type=Capability.MULTI_ROLE)],
    )
    (offer,) = framework.offers()
    stack = (Reservation("ads"), Reservation("ads/x", "dynamic"))
    framework.accept([offer], [reserve(amount(stack, cpus=3))])
    total = world.cluster.agents[agent.id].total
    assert total == amount(stack, cpus=3) + free_total("cpus(ads):1;mem(ads):100")
    (again,) = framework.offers()
    framework.accept([again], [unreserve(amount(stack, cpus=3))])
    assert world.cluster.agents[agent.id].total == free_total("cpus(ads):4;mem(ads):100")


# ---- What is refused -------------------------------------------------------------------


def refined(*pairs):
    return tuple(Reservation(role, kind, "alice") for role, kind in pairs)


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (reserve(amount(cpus=1)), "is not dynamically reserved"),
        (reserve(free_total("cpus(ads):1")), "is not dynamically reserved"),
        (unreserve(free_total("cpus(ads):1")), "is not dynamically reserved"),
        (reserve(amount(by("web", "alice"), cpus=1)), "the offers are of role ads"),
        (reserve(amount(by("ads", "bob"), cpus=1)), "must be the framework's principal"),
        (reserve(amount(by("ads"), cpus=1)), "must be the framework's principal"),
        (reserve(amount(ADS, cpus=5)), "5 wanted, 4 there"),
        (unreserve(amount(ADS, cpus=1)), "1 wanted, 0 there"),
        (reserve(TWO, source=amount(cpus=2)), "is for operators only"),
        (Operation(type=Operation.RESERVE), "is missing"),
        (reserve(EMPTY), "must not be empty"),
        (unreserve(EMPTY), "must not be empty"),
        (Operation(type=Operation.CREATE), "is not supported by this master"),
        (Operation(type=Operation.GROW_VOLUME), "is not supported by this master"),
        (reserve(amount(ADS, ports=(5, 11))), "wanted"),
    ],
)
def test_what_cannot_be_is_refused_and_the_rest_goes_on(world, agent, framework, operation, why):
    (offer,) = framework.offers()
    before = world.cluster.ledger.total(agent.id)
    operation.id.value = "op"
    framework.accept([offer], [operation, launch(world.task("t1", agent.id))])
    events = framework.take()
    (status,) = [
        event.update_operation_status.status
        for event in events
        if event.type == sched.Event.UPDATE_OPERATION_STATUS
    ]
    assert (status.operation_id.value, status.state) == ("op", pb.OPERATION_ERROR)
    assert why in status.message
    assert not status.HasField("uuid")
    assert agent.orders()[-1:] == ["RUN_TASKS"]
    assert world.cluster.ledger.total(agent.id) == before


def test_ports_cannot_be_reserved_twice(world, agent, framework):
    """Whole they were there once; two reservations of some are more than that."""
    (offer,) = framework.offers()
    other = amount(by("ads", "alice", {"a": "1"}), ports=(3, 8))
    framework.accept(
        [offer], [reserve(Resources(ranges=amount(ADS, ports=(1, 5)).ranges | other.ranges))]
    )
    (refused,) = framework.refusals()
    assert "overlaps" in refused.message
    assert not ordered(agent)


def test_the_role_of_a_resource_is_that_of_its_offer(agent, framework):
    (offer,) = framework.offers()
    operation = reserve(TWO)
    operation.reserve.resources[0].allocation_info.role = "web"
    framework.accept([offer], [operation])
    assert "the offers are of ads" in framework.refusals()[0].message


def test_room_for_short_tasks_is_kept_for_them():
    options = AllocatorOptions(short_share=0.5, short_max_s=60.0)
    world = World(allocator=DrfAllocator(options))
    agent = world.agent(resources="cpus:4;mem:400")
    framework = world.framework(role="ads")
    (short,) = [each for each in framework.offers() if each.HasField("max_task_duration")]
    framework.accept([short], [reserve(amount(by("ads"), cpus=1), "op")])
    (status,) = statuses(framework)
    assert "kept for short tasks" in status.message
    assert not ordered(agent)
    world.check()


def test_an_older_agent_is_not_sent_any(world):
    agent = FakeAgent(world, "old", "cpus:4;mem:400", {})
    agent.capabilities = []
    agent.register()
    framework = world.framework(role="ads")
    (offer,) = framework.offers()
    framework.accept([offer], [reserve(amount(by("ads"), cpus=1), "op")])
    (status,) = statuses(framework)
    assert "older than this master" in status.message
    assert not ordered(agent)


def test_a_launch_has_no_id(world, agent, framework):
    (offer,) = framework.offers()
    operation = launch(world.task("t1", agent.id))
    operation.id.value = "op"
    framework.accept([offer], [operation])
    (update,) = framework.updates()
    assert (update.state, update.reason) == (pb.TASK_ERROR, pb.TaskStatus.REASON_TASK_INVALID)
    assert not agent.take(agent_pb2.Event.RUN_TASKS)


# ---- Feedback ------------------------------------------------------------------------------


@pytest.fixture
def order(world, agent, framework):
    """An operation with an id, as the agent was sent it."""
    (offer,) = framework.offers()
    framework.accept([offer], [reserve(TWO, "op")])
    (order,) = ordered(agent)
    assert not statuses(framework)
    return order


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
    assert world.cluster.ledger.total(agent.id) == free_total("cpus:4;mem:400;ports:[1-10]")
    assert reconcile(framework, ("op", agent.id)) == [("op", pb.OPERATION_UNKNOWN)]


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
    assert world.cluster.ledger.total(agent.id) == free_total("cpus:4;mem:400;ports:[1-10]")


# ---- Agents that come back --------------------------------------------------------------------


def test_tasks_that_rest_on_a_reservation_that_never_arrived_are_dropped(world, agent):
    framework = world.framework(
        role="ads", capabilities=[Capability(type=Capability.PARTITION_AWARE)]
    )
    (offer,) = framework.offers()
    mine = amount(by("ads"), cpus=2)
    tasks = [world.task(f"t{number}", agent.id) for number in (1, 2)]
    tasks[0].ClearField("resources")
    tasks[0].resources.extend(mine.to_proto())
    framework.accept([offer], [reserve(mine), launch(*tasks)])
    agent.disconnect()
    agent.register()
    (update,) = framework.updates()
    assert (update.task_id.value, update.state) == ("t1", pb.TASK_DROPPED)
    (event,) = agent.take(agent_pb2.Event.RECONCILE) or [None]
    assert event is None or [each.task_id.value for each in event.reconcile.tasks] == ["t2"]


def test_what_an_agent_names_as_reserved_must_be_there(world):
    agent = FakeAgent(world, "host", "cpus:4;mem:400", {})
    (refused,) = [
        event.refused
        for event in agent.register(reserved=amount(by("ads"), cpus=5).to_proto())
        if event.type == agent_pb2.Event.REFUSED
    ]
    assert "5 wanted, 4 there" in refused.message
