"""Agents that an operator takes out of service: deactivated, drained, taken back."""

import pytest

from master.core import explain
from mesos_py.errors import Conflict, InvalidValue, NotFound
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World
from tests.kit.draining import Scene
from tests.kit.operators import Operator

Event = agent_pb2.Event


@pytest.fixture
def scene():
    made = Scene()
    yield made
    made.world.check()


@pytest.fixture
def world():
    made = World()
    yield made
    made.check()


# ---- Deactivated -----------------------------------------------------------------------------


def test_nothing_is_told_of_a_deactivation_before_it_is_stored(scene):
    (offer,) = scene.framework.offers()
    done = scene.operator.deactivate(scene.agent)
    assert (done, scene.framework.kinds()) == ([], [])
    scene.world.stored()
    assert len(done) == 1
    assert scene.record().deactivated
    [event] = scene.framework.take()
    assert event.rescind.offer_id == offer.id


def test_a_deactivated_agent_is_not_offered_and_its_tasks_go_on(scene):
    scene.operator.deactivate(scene.agent)
    scene.world.stored()
    scene.framework.take()
    assert scene.framework.offers() == []
    assert scene.agent.orders() == []
    scene.world.advance(60)
    assert scene.framework.kinds() == []
    text = " ".join(
        explain.findings(
            scene.world.cluster,
            scene.world.cluster.frameworks[scene.framework.id],
            scene.world.clock.now(),
        )
    )
    assert "the agent is deactivated by an operator (inactive)" in text


def test_it_stays_deactivated_when_it_registers_again(scene):
    scene.operator.deactivate(scene.agent)
    scene.world.stored()
    scene.agent.disconnect()
    scene.agent.register(**scene.running())
    scene.framework.take()
    assert scene.framework.offers() == []


def test_an_agent_that_is_unreachable_can_be_deactivated(scene):
    scene.cut_off()
    scene.operator.deactivate(scene.agent)
    scene.world.stored()
    scene.back()
    scene.framework.take()
    assert scene.framework.offers() == []


def test_a_successor_keeps_the_agent_deactivated(scene):
    scene.operator.deactivate(scene.agent)
    scene.world.stored()
    successor = scene.world.successor()
    scene.agent.world = scene.framework.world = successor
    scene.framework.subscribe()
    scene.agent.register(**scene.running())
    successor.stored()
    assert scene.framework.offers() == []


@pytest.mark.parametrize("word", ["deactivate", "drain", "reactivate", "mark_gone"])
def test_an_unknown_agent_is_named(world, word):
    with pytest.raises(NotFound, match="agent 'a7': unknown"):
        getattr(Operator(world), word)("a7")


@pytest.mark.parametrize("word", ["deactivate", "drain", "reactivate"])
def test_an_agent_that_is_being_marked_as_gone_is_not_to_be_had(scene, word):
    scene.operator.mark_gone(scene.agent)
    with pytest.raises(NotFound, match="has been marked as gone"):
        getattr(scene.operator, word)(scene.agent)
    scene.world.stored()


def test_without_a_registry_it_counts_at_once(world):
    agent, framework = world.agent(), world.framework()
    framework.offers()
    done = Operator(world).deactivate(agent)
    assert len(done) == 1
    assert framework.kinds() == ["RESCIND"]
    assert framework.offers() == []


# ---- Reactivated -----------------------------------------------------------------------------


def test_a_reactivated_agent_is_offered_once_that_is_stored(scene):
    scene.operator.deactivate(scene.agent)
    scene.world.stored()
    scene.framework.take()
    done = scene.operator.reactivate(scene.agent)
    assert scene.framework.offers() == []
    scene.world.stored()
    assert len(done) == 1
    assert len(scene.framework.offers()) == 1
    assert not scene.record().deactivated
    assert scene.agent.orders() == []


def test_only_a_deactivated_agent_can_be_reactivated(scene):
    with pytest.raises(Conflict, match="is not deactivated"):
        scene.operator.reactivate(scene.agent)


def test_what_is_decided_counts_before_it_is_stored(scene):
    scene.operator.deactivate(scene.agent)
    first = scene.operator.reactivate(scene.agent)
    with pytest.raises(Conflict, match="is not deactivated"):
        scene.operator.reactivate(scene.agent)
    assert first == []
    scene.world.stored()
    assert len(first) == 1
    scene.framework.take()
    assert len(scene.framework.offers()) == 1


def test_a_drain_cannot_be_undone(scene):
    scene.drain()
    with pytest.raises(Conflict, match="is being drained, which cannot be undone"):
        scene.operator.reactivate(scene.agent)


def test_a_drained_agent_is_reactivated_and_told_that_it_is_over(scene):
    scene.drain()
    scene.end()
    scene.agent.take()
    scene.operator.reactivate(scene.agent)
    scene.world.stored()
    [event] = scene.agent.take()
    assert event.type == Event.DRAIN
    assert not event.drain.HasField("config")
    scene.framework.take()
    assert len(scene.framework.offers()) == 1
    assert not scene.record().HasField("drain_info")


def test_an_agent_that_missed_the_end_of_its_drain_is_told_when_it_registers(scene):
    scene.drain()
    scene.end()
    scene.operator.reactivate(scene.agent)
    scene.world.stored()
    scene.agent.disconnect()
    scene.agent.draining = True
    _, drain = scene.agent.register()
    assert drain.type == Event.DRAIN
    assert not drain.drain.HasField("config")


def test_an_agent_that_is_unreachable_cannot_be_reactivated(scene):
    scene.operator.deactivate(scene.agent)
    scene.world.stored()
    scene.cut_off()
    with pytest.raises(Conflict, match="is not registered now"):
        scene.operator.reactivate(scene.agent)


# ---- Drained ---------------------------------------------------------------------------------


def test_nothing_is_told_of_a_drain_before_it_is_stored(scene):
    scene.framework.offers()
    done = scene.operator.drain(scene.agent, grace_s=30)
    assert (done, scene.agent.orders(), scene.framework.kinds()) == ([], [], [])
    scene.world.stored()
    assert len(done) == 1
    assert scene.framework.kinds() == ["RESCIND"]
    [event] = scene.agent.take()
    assert event.type == Event.DRAIN
    assert event.drain.config.max_grace_period.nanoseconds == 30 * 10**9
    assert not event.drain.config.mark_gone
    assert scene.record().deactivated
    assert scene.record().drain_info.state == pb.DRAINING


def test_it_is_drained_when_the_last_end_is_acknowledged(scene):
    scene.drain()
    scene.end(acknowledge=False)
    assert not scene.drained()
    scene.end()
    assert scene.drained()
    assert scene.record().drain_info.state == pb.DRAINED
    assert scene.framework.offers() == []


def test_it_is_not_drained_before_that_is_stored(scene):
    scene.drain()
    uuid = scene.agent.report("t1", pb.TASK_KILLED, scene.framework)
    scene.framework.acknowledge(scene.agent, "t1", uuid)
    scene.world.advance(0)
    assert not scene.drained()
    scene.world.stored()
    assert scene.drained()


def test_an_agent_with_nothing_on_it_is_drained_at_once(scene):
    scene.end()
    scene.drain()
    scene.world.advance(0)
    scene.world.stored()
    assert scene.drained()


def test_an_executor_keeps_an_agent_from_being_drained(scene):
    (offer,) = scene.framework.offers()
    scene.framework.launch(offer, scene.world.custom_task("t2"))
    scene.drain()
    scene.end()
    scene.end("t2")
    assert not scene.drained()
    scene.agent.executor_exited("e1", scene.framework)
    scene.world.advance(0)
    scene.world.stored()
    assert scene.drained()


def test_what_a_framework_that_is_gone_left_behind_keeps_it_from_being_drained(scene):
    scene.drain()
    scene.world.core.teardown(scene.framework.id, scene.world.clock.now())
    scene.world.advance(0)
    scene.world.stored()
    assert not scene.drained()
    scene.agent.report("t1", pb.TASK_KILLED, scene.framework, uuid=b"")
    scene.world.advance(0)
    scene.world.stored()
    assert scene.drained()


@pytest.mark.parametrize("own", ["", "cpus:0.5"])
@pytest.mark.parametrize("comes_back", [False, True])
def test_an_executor_of_a_framework_that_is_gone_keeps_it_from_being_drained(
    scene, own, comes_back
):
    (offer,) = scene.framework.offers()
    task = scene.world.custom_task("t2", own=own)
    scene.framework.launch(offer, task)
    scene.drain()
    scene.world.core.teardown(scene.framework.id, scene.world.clock.now())
    if comes_back:
        scene.agent.disconnect()
        task.executor.framework_id.value = scene.framework.id
        scene.back(executors=[task.executor])
    else:
        for task_id in ("t1", "t2"):
            scene.agent.report(task_id, pb.TASK_KILLED, scene.framework, uuid=b"")
    scene.world.advance(0)
    scene.world.stored()
    assert not scene.drained()
    scene.agent.executor_exited("e1", scene.framework)
    scene.world.advance(0)
    scene.world.stored()
    assert scene.drained()


def test_an_agent_is_told_again_each_time_that_it_registers(scene):
    scene.drain(grace_s=7)
    for _ in range(2):
        scene.agent.disconnect()
        events = scene.agent.register(**scene.running())
        assert [each.type for each in events] == [Event.REGISTERED, Event.DRAIN]
        assert events[1].drain.config.max_grace_period.nanoseconds == 7 * 10**9
        scene.framework.take()
        assert scene.framework.offers() == []


def test_an_agent_that_is_away_is_drained_when_it_is_back(scene):
    scene.cut_off()
    scene.drain()
    scene.world.advance(1)
    scene.world.stored()
    assert not scene.drained()
    assert [each.type for each in scene.back()][:2] == [Event.REGISTERED, Event.DRAIN]
    scene.world.advance(0)
    scene.world.stored()
    assert scene.drained()


def test_an_agent_whose_link_breaks_is_not_drained_before_it_is_back(scene):
    scene.end()
    scene.agent.disconnect()
    scene.drain()
    scene.world.advance(1)
    scene.world.stored()
    assert not scene.drained()


def test_a_successor_goes_on_draining(scene):
    scene.drain(grace_s=9)
    successor = scene.world.successor()
    scene.agent.world = scene.framework.world = successor
    scene.framework.subscribe()
    events = scene.agent.register(**scene.running())
    successor.stored()
    events += scene.agent.take()
    drains = [each for each in events if each.type == Event.DRAIN]
    assert drains[0].drain.config.max_grace_period.nanoseconds == 9 * 10**9
    scene.world = successor
    scene.end()
    assert scene.drained()


def test_said_again_the_newest_words_count(scene):
    scene.drain()
    scene.agent.take()
    scene.drain(grace_s=1, mark_gone=True)
    [event] = scene.agent.take()
    assert event.drain.config.mark_gone
    assert event.drain.config.max_grace_period.nanoseconds == 10**9


def test_two_orders_at_once_are_both_answered_in_their_order(scene):
    first = scene.operator.drain(scene.agent, grace_s=60)
    second = scene.operator.drain(scene.agent, grace_s=5)
    scene.world.stored()
    assert (len(first), len(second)) == (1, 1)
    graces = [each.drain.config.max_grace_period.nanoseconds for each in scene.agent.take()]
    assert graces == [60 * 10**9, 5 * 10**9]
    assert scene.row.drain.config.max_grace_period.nanoseconds == 5 * 10**9


def test_an_agent_that_cannot_be_drained_is_not(scene):
    scene.agent.disconnect()
    scene.agent.capabilities = []
    scene.agent.register(**scene.running())
    with pytest.raises(Conflict, match=r"its version \(0.1.0\) cannot be drained"):
        scene.operator.drain(scene.agent)


def test_a_negative_grace_is_refused(scene):
    with pytest.raises(InvalidValue, match="max_grace_period"):
        scene.operator.drain(scene.agent, grace_s=-1)
    assert scene.row.drain is None


# ---- While the agent is being admitted -------------------------------------------------------


@pytest.fixture
def away(scene):
    """The agent is unreachable, so its registration waits for the registry."""
    scene.cut_off()
    scene.framework.take()
    return scene


def test_what_is_decided_while_the_agent_is_admitted_is_told_once_it_is_stored(away):
    assert away.agent.register() == []
    done = away.operator.drain(away.agent)
    first, changes = away.world.outbox.writes[0]
    away.world.core.stored(first, away.world.clock.now())
    assert away.agent.orders() == ["REGISTERED"]
    assert away.framework.offers() == []
    away.world.outbox.writes.pop(0)
    away.world.records.update(changes)
    away.world.stored()
    assert len(done) == 1
    assert away.agent.orders() == ["DRAIN"]
    away.world.advance(0)
    away.world.stored()
    assert away.drained()


def test_a_deactivation_before_a_restart_of_the_agent_is_not_forgotten_by_a_word_after(away):
    away.operator.drain(away.agent)
    away.world.stored()
    away.agent.register()
    away.operator.deactivate(away.agent)
    away.world.stored()
    assert away.agent.orders() == ["REGISTERED", "DRAIN"]
    assert away.row.draining


def test_an_agent_that_a_successor_expects_can_be_drained(scene):
    successor = scene.world.successor()
    scene.agent.world = scene.framework.world = successor
    done = Operator(successor).drain(scene.agent)
    successor.stored()
    assert len(done) == 1
    scene.framework.subscribe()
    assert [each.type for each in scene.agent.register()] == [Event.REGISTERED, Event.DRAIN]
    scene.world = successor
