"""What is reserved while the agent runs: written down, told, never forgotten."""

import pytest

from agent.core import operations
from agent.core.effects import SendMaster
from agent.core.journal import RESERVED_KEY, Kind
from agent.core.operations import MAX_REMEMBERED
from mesos_py.errors import InvalidValue
from mesos_py.reserved import key_of
from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit import agent_core
from tests.kit.agent_core import FRAMEWORK, AgentWorld, command, framework_info
from tests.kit.reserving import amount, by, reserve, unreserve

Event = agent_pb2.Event
Call = agent_pb2.Call
ADS = by("ads", "alice")
TWO = amount(ADS, cpus=2)
TOTAL = amount(cpus=8, mem=1024)
# Of the machine: so many seconds pass without anybody being heard.
HOUR_S = 3600


@pytest.fixture
def world():
    return AgentWorld()


def apply(world, info, number=1, framework=FRAMEWORK):
    """Have the agent do it; what it says to the master."""
    operation = pb.Operation(info=info, uuid=pb.UUID(value=uuid(number)))
    operation.framework_id.value = framework
    order = Event.ApplyOperation(operation=operation)
    if info.HasField("id"):
        order.framework_info.CopyFrom(framework_info())
    effects = world.master(Event(type=Event.APPLY_OPERATION, apply_operation=order))
    return told(effects)


def told(effects):
    calls = [effect.call for effect in effects if isinstance(effect, SendMaster)]
    return [c.update_operation.operation for c in calls if c.type == Call.UPDATE_OPERATION]


def uuid(number):
    return number.to_bytes(16, "big")


def acknowledge(world, number=1):
    order = Event.AcknowledgeOperation(uuid=pb.UUID(value=uuid(number)))
    world.master(Event(type=Event.ACKNOWLEDGE_OPERATION, acknowledge_operation=order))


def registered(world):
    return world.core.register_call("v", 1).register


def has(world):
    return world.core.state.total


def test_one_without_an_id_is_done_in_silence(world):
    assert not apply(world, reserve(TWO))
    assert has(world) == TWO + amount(cpus=6, mem=1024)
    said = registered(world)
    assert Resources.from_proto("it", said.reserved) == TWO
    assert not said.operations
    assert Resources.from_proto("it", said.agent_info.resources) == TOTAL


def test_what_is_unreserved_is_as_the_operator_said(world):
    apply(world, reserve(TWO), 1)
    apply(world, unreserve(amount(ADS, cpus=1)), 2)
    assert has(world) == amount(ADS, cpus=1) + amount(cpus=7, mem=1024)
    apply(world, unreserve(amount(ADS, cpus=1)), 3)
    assert has(world) == TOTAL
    assert not registered(world).reserved


def test_the_next_run_goes_on_with_it(world):
    apply(world, reserve(TWO))
    world.restart()
    assert has(world).contains(TWO)
    assert Resources.from_proto("it", registered(world).reserved) == TWO


def test_an_agent_that_was_stopped_is_a_new_one_with_the_same_reservations(world):
    """Its end leaves no other record (Checkpoint.end)."""
    apply(world, reserve(TWO, "op"))
    world.records = {(Kind.RESERVED, RESERVED_KEY): world.records[Kind.RESERVED, RESERVED_KEY]}
    assert world.restart().info is None
    said = registered(world)
    assert not said.agent_info.HasField("id")
    assert Resources.from_proto("it", said.reserved) == TWO
    assert not said.operations


def test_the_outcome_is_told_until_it_is_acknowledged(world):
    (first,) = apply(world, reserve(TWO, "op"))
    assert first.latest_status.state == pb.OPERATION_FINISHED
    assert first.latest_status.operation_id.value == "op"
    assert first.latest_status.uuid.value == first.uuid.value == uuid(1)
    assert told(world.advance(9)) == []
    assert told(world.advance(1)) == [first]
    assert told(world.advance(19)) == []
    assert told(world.advance(1)) == [first]
    acknowledge(world)
    assert told(world.advance(HOUR_S)) == []
    assert not registered(world).operations
    assert not [kind for kind, _ in world.records if kind is Kind.OPERATION]
    assert has(world).contains(TWO)


def test_an_outcome_outlives_the_agent_with_the_framework_that_waits_for_it(world):
    (first,) = apply(world, reserve(TWO, "op"))
    world.restart()
    said = registered(world)
    assert list(said.operations) == [first]
    assert [each.id.value for each in said.frameworks] == [FRAMEWORK]
    world.register()
    assert told(world.effects) == [first]


def test_a_new_link_or_a_new_scheduler_hears_it_at_once(world):
    (first,) = apply(world, reserve(TWO, "op"))
    world.core.on_disconnected()
    assert told(world.advance(HOUR_S)) == []
    world.effects.clear()
    world.register()
    assert told(world.effects) == [first]
    assert told(world.scheduler_is_new()) == [first]


def test_what_a_framework_has_reserved_stays_when_it_is_gone(world):
    apply(world, reserve(TWO, "op"))
    world.shut_down_framework()
    assert not registered(world).operations
    assert not registered(world).frameworks
    assert told(world.advance(HOUR_S)) == []
    assert has(world).contains(TWO)


def test_many_operations_of_one_step_are_written_down_once(world, monkeypatch):
    """Each for itself, and all that is reserved with each, took an agent minutes."""
    written = []
    to_proto = Resources.to_proto

    def counted(it):
        written.append(it)
        return to_proto(it)

    monkeypatch.setattr(Resources, "to_proto", counted)
    orders = [reserve(amount(by("ads", f"p{number}"), mem=1)) for number in range(20)]
    written.clear()
    for number, info in enumerate(orders):
        operation = pb.Operation(info=info, uuid=pb.UUID(value=uuid(number)))
        order = Event.ApplyOperation(operation=operation)
        event = Event(type=Event.APPLY_OPERATION, apply_operation=order)
        world.core.on_master_event(event, world.clock.now())
    assert written == []
    world.collect()
    assert written == [world.core.state.reserved]


def test_the_same_operation_twice_is_done_once(world):
    apply(world, reserve(TWO))
    apply(world, reserve(TWO))
    assert has(world) == TWO + amount(cpus=6, mem=1024)
    assert "operation has come twice" in world.drops()


def test_only_the_last_ones_are_remembered(world):
    for number in range(MAX_REMEMBERED + 1):
        apply(world, reserve(amount(ADS, mem=0.001)), number)
    assert len(world.core.state.operations._seen) == MAX_REMEMBERED


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (reserve(amount(ADS, cpus=9), "op"), "9 wanted, 8 there"),
        (unreserve(TWO), "2 wanted, 0 there"),
        (pb.Offer.Operation(type=pb.Offer.Operation.CREATE_DISK), "is not supported"),
    ],
)
def test_what_cannot_be_done_is_said_once_and_changes_nothing(world, operation, why):
    (said,) = apply(world, operation)
    assert said.latest_status.state == pb.OPERATION_DROPPED
    assert why in said.latest_status.message
    assert has(world) == TOTAL
    assert told(world.advance(HOUR_S)) == []
    assert not registered(world).operations


def test_there_is_an_end_to_what_is_reserved_whatever_the_master_says(world, monkeypatch):
    """An agent that could not register any more would be lost, and what runs there."""
    names = [key_of("mem", by("ads", f"p{number}")) for number in range(3)]
    monkeypatch.setattr(operations, "MAX_RESERVED_BYTES", len(names[0]) + len(names[1]))
    for number in range(2):
        assert not apply(world, reserve(amount(by("ads", f"p{number}"), mem=1)), number)
    before = has(world)
    (said,) = apply(world, reserve(amount(by("ads", "p2"), mem=1)), 2)
    assert said.latest_status.state == pb.OPERATION_DROPPED
    assert "what is reserved here would be" in said.latest_status.message
    assert has(world) == before
    assert not apply(world, unreserve(amount(by("ads", "p1"), mem=1)), 3)
    assert not apply(world, reserve(amount(by("ads", "p2"), mem=1)), 4)


def test_there_is_an_end_to_operations_that_nobody_acknowledges(world, monkeypatch):
    (first,) = apply(world, reserve(amount(ADS, mem=1), "op1"), 1)
    monkeypatch.setattr(operations, "MAX_WAITING_BYTES", 2 * first.ByteSize())
    apply(world, reserve(amount(ADS, mem=1), "op2"), 2)
    world.restart()
    world.register()
    world.effects.clear()
    (said,) = apply(world, reserve(amount(ADS, mem=1), "op3"), 3)
    assert said.latest_status.state == pb.OPERATION_DROPPED
    assert "2 operations here were not acknowledged" in said.latest_status.message
    assert not apply(world, reserve(amount(ADS, mem=1)), 4)
    acknowledge(world, 1)
    (done,) = apply(world, reserve(amount(ADS, mem=1), "op5"), 5)
    assert done.latest_status.state == pb.OPERATION_FINISHED
    assert Resources.from_proto("it", registered(world).reserved) == amount(ADS, mem=4)


def test_an_acknowledgement_of_nothing_is_passed_over(world):
    acknowledge(world)
    assert "acknowledgement of an unknown operation" in world.drops()


def test_a_task_on_what_is_reserved_runs_on_over_a_restart(world):
    apply(world, reserve(TWO))
    task = command("t1")
    task.ClearField("resources")
    task.resources.extend(TWO.to_proto())
    world.run(task)
    world.started("t1")
    world.restart()
    (saved,) = world.core.saved_containers()
    assert saved.resources == TWO


def test_the_agent_does_not_start_with_less_than_is_reserved(world, monkeypatch):
    apply(world, reserve(amount(ADS, cpus=7)))
    less = pb.AgentInfo(hostname="host", resources=amount(cpus=6, mem=1024).to_proto())
    monkeypatch.setattr(agent_core, "agent_info", lambda: less)
    with pytest.raises(InvalidValue, match=r"7 wanted, 6 there.*--recover forget"):
        world.restart()


def test_more_than_before_is_welcome(world, monkeypatch):
    apply(world, reserve(amount(ADS, cpus=7)))
    more = pb.AgentInfo(hostname="host", resources=amount(cpus=10).to_proto())
    monkeypatch.setattr(agent_core, "agent_info", lambda: more)
    world.restart()
    assert has(world) == amount(ADS, cpus=7) + amount(cpus=3)


def test_a_damaged_record_of_what_is_reserved_keeps_the_agent_from_starting(world):
    """To go on without it would give away what is somebody's."""
    apply(world, reserve(TWO))
    with pytest.raises(InvalidValue, match=r"what is reserved.*cannot be read"):
        world.restart(damaged={(Kind.RESERVED, RESERVED_KEY)})


def test_a_damaged_record_of_an_operation_costs_its_outcome_only(world):
    apply(world, reserve(TWO, "op"))
    restored = world.restart(damaged={(Kind.OPERATION, (uuid(1).hex(),))})
    assert len(restored.damaged) == 1
    assert not registered(world).operations
    assert has(world).contains(TWO)


def test_an_agent_of_which_nothing_was_ever_reserved_writes_nothing_of_it(world):
    world.run(command("t1"))
    world.restart()
    assert world.core.state.reserved is EMPTY
    assert not {Kind.RESERVED, Kind.OPERATION} & {kind for kind, _ in world.records}


def test_operations_that_come_together_name_their_framework_once(world):
    """Also when the first of them cannot be done."""
    first, second = reserve(amount(ADS, cpus=9), "a"), reserve(TWO, "b")
    (outcome,) = apply(world, first, 1)
    assert outcome.latest_status.state == pb.OPERATION_DROPPED
    operation = pb.Operation(info=second, uuid=pb.UUID(value=uuid(2)))
    operation.framework_id.value = FRAMEWORK
    order = Event.ApplyOperation(operation=operation)
    (outcome,) = told(world.master(Event(type=Event.APPLY_OPERATION, apply_operation=order)))
    assert outcome.latest_status.state == pb.OPERATION_FINISHED
    assert [each.id.value for each in registered(world).frameworks] == [FRAMEWORK]
