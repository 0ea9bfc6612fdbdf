"""Operations whose outcome nobody has acknowledged keep an agent from being drained."""

import pytest

from tests.kit.draining import Scene
from tests.kit.reserving import acknowledge, amount, by, finished, ordered, reserve


@pytest.fixture
def scene():
    made = Scene()
    yield made
    made.world.check()


@pytest.fixture
def reserved(scene):
    """An operation with an id, which the agent has carried out; nothing else is there."""
    scene.end()
    ads = scene.world.framework(role="ads", principal="alice", failover_timeout=1e6)
    ads.accept(ads.offers(), [reserve(amount(by("ads", "alice"), cpus=1), "op")])
    (order,) = ordered(scene.agent)
    scene.drain()
    done = finished(scene.agent, order)
    scene.look()
    assert not scene.drained()
    return ads, done


def test_it_is_drained_when_the_last_outcome_of_an_operation_is_acknowledged(scene, reserved):
    ads, done = reserved
    acknowledge(ads, scene.agent, done)
    assert not scene.drained()
    scene.look()
    assert scene.drained()


def test_whose_operation_it_was_is_gone_and_the_agent_drained(scene, reserved):
    scene.world.core.teardown(reserved[0].id, scene.world.clock.now())
    scene.look()
    assert scene.drained()


def test_an_agent_may_be_given_up_while_nobody_acknowledges(scene, reserved):
    scene.operator.mark_gone(scene.agent)
    scene.look()
    assert scene.agent.id not in scene.world.cluster.agents
    assert scene.record().HasField("gone_time")


def test_an_agent_that_has_an_outcome_to_tell_is_not_drained_when_it_is_back(scene, reserved):
    ads, done = reserved
    scene.agent.disconnect()
    there = amount(by("ads", "alice"), cpus=1).to_proto()
    scene.back(frameworks=[ads.info], operations=[done], reserved=there)
    scene.look()
    assert not scene.drained()
    acknowledge(ads, scene.agent, done)
    scene.look()
    assert scene.drained()
