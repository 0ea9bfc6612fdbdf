"""RESERVE and UNRESERVE of operators: of what nobody uses, offers included."""

import pytest

from master.core import reserving
from mesos_py.errors import Conflict, InvalidValue, MesosPyError, NotFound, Refused, TooLarge
from mesos_py.resources import Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import FakeAgent, World
from tests.kit.reserving import Operation, amount, by, reserve, unreserve

OPS = by("ops", "olga")
TWO = amount(OPS, cpus=2)


@pytest.fixture
def world():
    made = World()
    yield made
    made.check()


@pytest.fixture
def agent(world):
    return world.agent(resources="cpus:4;mem:400")


def operate(world, agent, operation):
    agent_id = agent if isinstance(agent, str) else agent.id
    world.core.operate(agent_id, operation, world.clock.now())


def ordered(agent):
    kind = agent_pb2.Event.APPLY_OPERATION
    return [event.apply_operation.operation for event in agent.take(kind)]


def test_what_is_free_is_reserved_without_a_principals_leave(world, agent):
    operate(world, agent, reserve(TWO))
    (order,) = ordered(agent)
    assert not order.HasField("framework_id")
    assert Resources.from_proto("it", order.info.reserve.resources) == TWO
    assert world.cluster.ledger.free(agent.id) == TWO + amount(cpus=2, mem=400)
    (offer,) = world.framework(role="ops").offers()
    assert Resources.from_proto("offer", offer.resources).contains(TWO)
    operate(world, agent, unreserve(TWO))
    assert world.cluster.ledger.total(agent.id) == amount(cpus=4, mem=400)


def test_it_can_be_moved_to_another_role(world, agent):
    operate(world, agent, reserve(TWO))
    operate(world, agent, reserve(amount(by("web"), cpus=1), source=amount(OPS, cpus=1)))
    both = amount(by("web"), cpus=1) + amount(OPS, cpus=1)
    assert world.cluster.ledger.total(agent.id) == both + amount(cpus=2, mem=400)


def test_offers_are_rescinded_as_far_as_it_takes(world, agent):
    other = world.agent(resources="cpus:4;mem:400")
    framework = world.framework(role="web")
    offers = framework.offers()
    assert len(offers) == 2
    operate(world, agent, reserve(TWO))
    assert framework.kinds() == ["RESCIND"]
    assert [offer.agent_id for offer in world.cluster.offers.values()] == [other.id]
    framework.decline(*[each for each in offers if each.agent_id.value == other.id], refuse_s=3600)
    # It is refused for a moment in the framework's name, as in Mesos.
    assert framework.offers() == []
    world.advance(5)
    (again,) = framework.offers()
    assert Resources.from_proto("offer", again.resources) == amount(cpus=2, mem=400)


def test_offers_of_something_else_stay(world, agent):
    operate(world, agent, reserve(TWO))
    framework = world.framework(role="web")
    (offer,) = framework.offers()
    operate(world, agent, unreserve(TWO))
    assert framework.kinds() == []
    assert list(world.cluster.offers) == [offer.id.value]


def test_what_runs_is_not_touched(world, agent):
    framework = world.framework(role="web")
    framework.start("t1", text="cpus:3;mem:32")
    framework.take()
    with pytest.raises(Conflict, match="2 wanted, 1 there that nobody uses"):
        operate(world, agent, reserve(TWO))
    assert not ordered(agent)
    assert world.cluster.ledger.total(agent.id) == amount(cpus=4, mem=400)


def test_an_operation_names_no_more_than_an_agent_can_have(monkeypatch, world, agent):
    monkeypatch.setattr(reserving, "MAX_NAMES", 3)
    monkeypatch.setattr(reserving, "conversion_of", None)
    large = reserve(TWO, source=TWO)
    large.reserve.source.extend(3 * TWO.to_proto())
    with pytest.raises(TooLarge, match="names 4 amounts, at most 3 are taken"):
        operate(world, agent, large)
    assert not ordered(agent)


def test_nothing_is_rescinded_in_vain(world, agent):
    framework = world.framework(role="web")
    assert framework.offers()
    with pytest.raises(Conflict):
        operate(world, agent, reserve(amount(OPS, cpus=5)))
    assert framework.kinds() == []


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        (reserve(amount(cpus=1)), InvalidValue),
        (unreserve(Resources.parse_reserved("cpus(ops):1")), InvalidValue),
        (unreserve(TWO), Conflict),
        (reserve(TWO, source=amount(cpus=1)), InvalidValue),
        (Operation(type=Operation.CREATE), InvalidValue),
    ],
)
def test_what_cannot_be_is_refused(world, agent, operation, error):
    with pytest.raises(error):
        operate(world, agent, operation)
    assert not ordered(agent)


def test_whose_agent_is_away_or_unknown_is_told_so(world, agent):
    with pytest.raises(NotFound):
        operate(world, "nobody", reserve(TWO))
    agent.disconnect()
    with pytest.raises(Conflict, match="disconnected"):
        operate(world, agent, reserve(TWO))
    world.advance(3600)
    with pytest.raises(NotFound):
        operate(world, agent, reserve(TWO))


def test_an_older_agent_has_none(world):
    agent = FakeAgent(world, "old", "cpus:4;mem:400", {})
    agent.capabilities = []
    agent.register()
    with pytest.raises(Refused, match="older than this master"):
        operate(world, agent, reserve(TWO))


def test_an_agent_that_could_not_do_it_registers_again(world, agent):
    operate(world, agent, reserve(TWO))
    (order,) = ordered(agent)
    order.latest_status.state = pb.OPERATION_DROPPED
    update = agent_pb2.Call.UpdateOperation(operation=order)
    link = agent.link
    agent.call(type=agent_pb2.Call.UPDATE_OPERATION, update_operation=update)
    assert link in world.outbox.closed
    agent.register()
    assert world.cluster.ledger.total(agent.id) == amount(cpus=4, mem=400)


def test_every_refusal_is_one_of_ours(world, agent):
    for number in range(-1, 20):
        with pytest.raises(MesosPyError):
            operate(world, agent, Operation(type=number))  # type: ignore[arg-type]
