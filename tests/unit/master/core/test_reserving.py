"""RESERVE and UNRESERVE of frameworks: what they change, and what is refused."""

import pytest

from master.allocator.base import AllocatorOptions
from master.allocator.drf import DrfAllocator
from master.core import reserving
from mesos_py import conversions
from mesos_py.conversions import reserved_part
from mesos_py.reserved import Reservation, key_of
from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import FakeAgent, World
from tests.kit.reserving import Operation, amount, by, launch, ordered, reserve, statuses, unreserve

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
        (Operation(type=Operation.CREATE), "is missing"),
        (Operation(type=Operation.CREATE_DISK), "is not supported by this master"),
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


def test_room_for_short_tasks_is_the_same_however_much_is_reserved():
    options = AllocatorOptions(short_share=0.1, short_max_s=60.0)
    world = World(allocator=DrfAllocator(options))
    agent = world.agent(resources="cpus:10;mem:1000;cpus(ads):10")
    framework = world.framework(role="ads")
    for _ in range(3):
        for offer in framework.offers():
            plain = of(offer.resources).unreserved
            if not offer.HasField("max_task_duration") and plain:
                mine = plain.renamed(lambda name: key_of(name, by("ads")))
                framework.accept([offer], [reserve(mine)], refuse_s=0)
            else:
                framework.decline(offer, refuse_s=0)
    total = world.cluster.ledger.total(agent.id)
    assert total.unreserved == amount(cpus=1, mem=100)
    assert total.contains(amount(by("ads"), cpus=9, mem=900))
    world.check()


def test_what_is_left_is_refused_but_for_the_amounts_that_were_made(world, agent, framework):
    """Not all that has the name of something that was made."""
    (offer,) = framework.offers()
    framework.accept([offer], [reserve(TWO)], refuse_s=0)
    (offer,) = framework.offers()
    framework.accept([offer], [unreserve(amount(ADS, cpus=0.5))], refuse_s=3600)
    operation = reserve(amount(by("web"), cpus=0.5))
    world.core.operate(agent.id, operation, world.clock.now())
    world.advance(10)
    assert not framework.offers()


@pytest.mark.parametrize(
    ("left", "offered", "refused"),
    [
        ("cpus:4;mem:1", "cpus:3;mem:2", "cpus:3;mem:1"),
        ("cpus:1;cpus(a):1", "cpus:2", "cpus:1"),
        ("ports:[1-4];ports(a):[5-9]", "ports:[3-9]", "ports:[3-4]"),
        ("racks:{a,b};racks(a):{c}", "racks:{b,c}", "racks:{b}"),
        ("cpus(a):1;mem:1", "cpus:1;mem:1", "mem:1"),
    ],
)
def test_what_was_offered_and_is_left_is_refused(left, offered, refused):
    made = reserving.without_fresh(free_total(left), free_total(offered))
    assert made == free_total(refused)


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


def test_what_an_agent_has_to_say_of_reservations_is_bounded(monkeypatch, agent, framework):
    (offer,) = framework.offers()
    wordy = amount(by("ads", "alice", {"k": "v" * 200}), cpus=1)
    monkeypatch.setattr(reserving, "MAX_BYTES", 250)
    framework.accept([offer], [reserve(amount(ADS, cpus=1)), reserve(wordy), unreserve(TWO)])
    first, second = framework.refusals()
    assert "at most 250 are kept" in first.message
    assert "2 wanted, 1 there" in second.message
    assert len(ordered(agent)) == 1


@pytest.fixture
def read(monkeypatch):
    """The operations that were read."""
    found = []

    def noted(operation, known, original=conversions.conversion_of):
        found.append(operation)
        return original(operation, known)

    monkeypatch.setattr(reserving, "conversion_of", noted)
    return found


def test_an_operation_names_no_more_than_an_agent_can_have(monkeypatch, agent, framework, read):
    monkeypatch.setattr(reserving, "MAX_NAMES", 3)
    (offer,) = framework.offers()
    large = reserve(TWO)
    large.reserve.resources.extend(3 * TWO.to_proto())
    framework.accept([offer], [large, reserve(TWO)])
    (refusal,) = framework.refusals()
    assert "an operation that names 4 amounts, at most 3 are taken" in refusal.message
    assert [len(each.reserve.resources) for each in read] == [1]
    assert len(ordered(agent)) == 1


def test_the_operations_of_a_call_name_so_many_together(monkeypatch, agent, framework, read):
    monkeypatch.setattr(reserving, "MAX_NAMED", 3)
    (offer,) = framework.offers()
    framework.accept([offer], [reserve(TWO), unreserve(TWO), reserve(TWO), unreserve(TWO)])
    (refusal,) = framework.refusals()
    assert "the operations of the call name 4 amounts, at most 3 are taken" in refusal.message
    assert len(read) == len(ordered(agent)) == 3


def labelled(number, **scalars):
    return amount(by("ads", "alice", {"n": str(number)}), **scalars)


def test_an_agent_has_so_many_amounts_that_are_reserved_in_different_ways(
    monkeypatch, agent, framework
):
    monkeypatch.setattr(reserving, "MAX_NAMES", 2)
    (offer,) = framework.offers()
    operations = [reserve(labelled(number, cpus=1)) for number in (1, 2, 3, 2)]
    operations += [unreserve(labelled(1, cpus=1)), reserve(labelled(3, cpus=1))]
    framework.accept([offer], operations)
    (refusal,) = framework.refusals()
    assert "have 3 amounts" in refusal.message
    assert "at most 2 are kept" in refusal.message
    assert len(ordered(agent)) == 5


def test_a_part_of_a_refined_reservation_that_is_unreserved_is_one_more_amount(
    monkeypatch, world, agent
):
    monkeypatch.setattr(reserving, "MAX_NAMES", 1)
    framework = world.framework("r", role="ads/x", capabilities=REFINES)
    stack = (*by("ads"), *by("ads/x"))
    refined = amount(stack, cpus=2)
    change = reserve(refined, source=amount(cpus=2))
    world.core.operate(agent.id, change, world.clock.now())
    (offer,) = framework.offers()
    framework.accept([offer], [unreserve(amount(stack, cpus=1))], refuse_s=0)
    (refusal,) = framework.refusals()
    assert "have 2 amounts" in refusal.message
    (offer,) = framework.offers()
    framework.accept([offer], [unreserve(refined)])
    assert not framework.refusals()


def test_each_change_of_a_call_looks_at_what_it_changes_alone(monkeypatch, agent, framework):
    """Else a small call of many keeps the master busy for seconds."""
    looked_at = []

    def part(resources):
        looked_at.extend(resources.names())
        return reserved_part(resources)

    monkeypatch.setattr(reserving, "reserved_part", part)
    (offer,) = framework.offers()
    framework.accept([offer], [reserve(labelled(number, cpus=0.01)) for number in range(100)])
    assert len(ordered(agent)) == 100
    assert len(looked_at) < 10 * 100


def test_a_launch_has_no_id(world, agent, framework):
    (offer,) = framework.offers()
    operation = launch(world.task("t1", agent.id))
    operation.id.value = "op"
    framework.accept([offer], [operation])
    (update,) = framework.updates()
    assert (update.state, update.reason) == (pb.TASK_ERROR, pb.TaskStatus.REASON_TASK_INVALID)
    assert not agent.take(agent_pb2.Event.RUN_TASKS)


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
