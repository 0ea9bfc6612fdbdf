"""Persistent volumes of operators: made of what nobody uses, offers included."""

import pytest

from mesos_py.errors import Conflict, InvalidValue, MesosPyError, NotFound, Refused
from mesos_py.resources import EMPTY
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World
from tests.kit.reserving import (
    Operation,
    amount,
    by,
    create,
    destroy,
    grow,
    launch,
    ordered,
    reserve,
    shrink,
    unreserve,
    volume,
)

OPS = by("ops", "olga")
DISK = amount(OPS, disk=100)
MADE = volume(OPS, 40, principal="olga")


@pytest.fixture
def world():
    made = World()
    yield made
    made.check()


@pytest.fixture
def agent(world):
    made = world.agent(resources="cpus:4;mem:400;disk:200")
    operate(world, made, reserve(DISK))
    return made


def operate(world, agent, operation):
    world.core.operate(agent.id, operation, world.clock.now())


def test_a_volume_comes_changes_and_goes(world, agent):
    for operation, then in (
        (create(MADE), MADE + amount(OPS, disk=60)),
        (grow(MADE, amount(OPS, disk=10)), volume(OPS, 50, principal="olga")),
        (shrink(volume(OPS, 50, principal="olga"), 30), volume(OPS, 20, principal="olga")),
        (destroy(volume(OPS, 20, principal="olga")), DISK),
    ):
        operate(world, agent, operation)
        assert world.cluster.ledger.total(agent.id).contains(then)
    assert len(ordered(agent)) == 5


def test_of_whose_principal_it_is_is_the_operators_to_say(world, agent):
    operate(world, agent, create(volume(OPS, 10)))
    operate(world, agent, create(volume(OPS, 10, "v2", principal="x")))


def test_offers_of_a_volume_are_rescinded_for_it_and_others_stay(world, agent):
    operate(world, agent, create(MADE))
    operate(world, agent, reserve(amount(OPS, cpus=1, mem=100)))
    framework = world.framework(role="ops")
    (offer,) = framework.offers()
    operate(world, agent, destroy(MADE))
    assert framework.kinds() == ["RESCIND"]
    assert offer.id.value not in world.cluster.offers


def test_offers_of_something_else_stay(world, agent):
    framework = world.framework(role="web")
    (offer,) = framework.offers()
    operate(world, agent, create(MADE))
    assert framework.kinds() == []
    assert offer.id.value in world.cluster.offers


@pytest.mark.parametrize(
    ("operation", "error", "why"),
    [
        (create(MADE), InvalidValue, "has a volume of that id there already"),
        (create(volume(by("ops"), 1)), InvalidValue, "has a volume of that id there already"),
        (create(volume(OPS, 1, principal="x")), InvalidValue, "of that id there already"),
        (
            create(volume(OPS, 70, "v2")),
            Conflict,
            "^disk reserved for ops by olga: 70 wanted, 60 there that",
        ),
        (create(volume(by("web"), 1, "v2")), Conflict, "^disk reserved for web: 1 wanted, 0 there"),
        (create(EMPTY), InvalidValue, "must not be empty"),
        (Operation(type=Operation.CREATE), InvalidValue, "is missing"),
        (destroy(volume(OPS, 40, "v2")), InvalidValue, "'v2': the agent has no such volume"),
        (destroy(volume(OPS, 10, principal="olga")), InvalidValue, "is taken whole"),
        (grow(volume(OPS, 40, "v2"), amount(OPS, disk=1)), Conflict, "has no such volume"),
        (shrink(volume(OPS, 10, principal="olga"), 1), Conflict, "is taken whole"),
        (grow(MADE, amount(OPS, disk=61)), Conflict, "61 wanted, 60 there"),
        (shrink(MADE, 40), InvalidValue, "must be less than the volume"),
        (unreserve(MADE), InvalidValue, "has to be destroyed first"),
    ],
)
def test_what_cannot_be_is_refused(world, agent, operation, error, why):
    operate(world, agent, create(MADE))
    ordered(agent)
    before = world.cluster.ledger.total(agent.id)
    with pytest.raises(error, match=why):
        operate(world, agent, operation)
    assert not ordered(agent)
    assert world.cluster.ledger.total(agent.id) == before


def test_what_a_task_uses_is_not_touched(world, agent):
    operate(world, agent, create(MADE))
    operate(world, agent, reserve(amount(OPS, cpus=1, mem=100)))
    framework = world.framework(role="ops")
    (offer,) = framework.offers()
    task = world.task("t1", agent.id)
    task.ClearField("resources")
    task.resources.extend((MADE + amount(OPS, mem=32)).to_proto())
    framework.accept([offer], [launch(task)])
    with pytest.raises(InvalidValue, match="'v1': is in use"):
        operate(world, agent, destroy(MADE))
    for operation in (grow(MADE, amount(OPS, disk=1)), shrink(MADE, 1)):
        with pytest.raises(Conflict, match="'v1': is in use"):
            operate(world, agent, operation)


def test_an_agent_without_volumes_says_so(world, agent):
    world.cluster.agents[agent.id].capabilities = (
        pb.AgentInfo.Capability.AGENT_OPERATION_FEEDBACK,
    )
    with pytest.raises(Refused, match="no persistent volumes: it is older"):
        operate(world, agent, create(MADE))


def test_whose_agent_is_away_or_unknown_is_told_so(world, agent):
    with pytest.raises(NotFound):
        world.core.operate("nobody", create(MADE), world.clock.now())
    agent.disconnect()
    with pytest.raises(Conflict, match="disconnected"):
        operate(world, agent, create(MADE))


def test_every_refusal_is_one_of_ours(world, agent):
    for number in range(-1, 20):
        with pytest.raises(MesosPyError):
            operate(world, agent, Operation(type=number))  # type: ignore[arg-type]
