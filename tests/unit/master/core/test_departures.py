"""Agents that are marked as gone, by themselves or at the end of a drain."""

import pytest

from master.core.cluster import Options
from mesos_py.errors import NotFound
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import registry_pb2 as reg
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World
from tests.kit.operators import Operator
from tests.kit.scenes import PARTITION_AWARE

Event = agent_pb2.Event
GONE = pb.TaskStatus.REASON_AGENT_REMOVED_BY_OPERATOR


class Scene:
    def __init__(self, aware):
        self.world = World(Options(durable=True))
        self.operator = Operator(self.world)
        self.agent = self.world.agent("web1")
        self.framework = self.world.framework(
            failover_timeout=1e6, capabilities=[PARTITION_AWARE] if aware else []
        )
        self.framework.start("t1")
        self.agent.report("t1", pb.TASK_RUNNING, self.framework)
        self.agent.take()
        self.framework.take()
        self.ended = pb.TASK_GONE_BY_OPERATOR if aware else pb.TASK_LOST

    def mark_gone(self):
        done = self.operator.mark_gone(self.agent)
        self.world.stored()
        assert len(done) == 1

    def record(self):
        return reg.Agent.FromString(self.world.records[f"agent/{self.agent.id}"])

    def answer(self):
        """What the agent is told when it comes with its old id."""
        [event] = self.agent.register()
        assert event.type == Event.REFUSED
        return event.refused


@pytest.fixture(params=[False, True], ids=["non-PA", "PA"])
def scene(request):
    made = Scene(request.param)
    yield made
    made.world.check()


def test_nothing_is_told_before_it_is_stored(scene):
    scene.framework.offers()
    done = scene.operator.mark_gone(scene.agent)
    assert (done, scene.agent.orders(), scene.framework.kinds()) == ([], [], [])
    assert scene.agent.id in scene.world.cluster.agents


def test_the_agent_is_told_to_end_and_its_tasks_have_ended(scene):
    (offer,) = scene.framework.offers()
    link = scene.agent.link
    scene.mark_gone()
    [event] = scene.agent.take()
    assert event.type == Event.SHUTDOWN
    assert scene.agent.id in event.shutdown.message
    assert "marked as gone" in scene.world.outbox.closed[link]
    rescind, failure, update = scene.framework.take()
    assert rescind.rescind.offer_id == offer.id
    assert failure.type == sched.Event.FAILURE
    assert (update.update.status.state, update.update.status.reason) == (scene.ended, GONE)
    assert update.update.status.source == pb.TaskStatus.SOURCE_MASTER
    assert not update.update.status.HasField("uuid")
    [task] = scene.world.cluster.frameworks[scene.framework.id].completed_tasks
    assert task.state == scene.ended
    assert scene.agent.id not in scene.world.cluster.agents
    assert scene.record().info.hostname == "web1"
    assert scene.record().gone_time.nanoseconds > 0


def test_an_agent_that_is_gone_never_comes_back(scene):
    scene.mark_gone()
    refused = scene.answer()
    assert (refused.code, refused.final, refused.shut_down) == ("agent-gone", True, True)
    assert scene.agent.id in refused.message
    assert scene.agent.id not in scene.world.cluster.agents


def test_a_successor_refuses_it_as_well(scene):
    scene.mark_gone()
    scene.agent.world = scene.world.successor()
    assert scene.answer().shut_down


def test_an_agent_that_comes_before_the_mark_is_stored_is_answered_after(scene):
    scene.agent.disconnect()
    scene.operator.mark_gone(scene.agent)
    assert scene.agent.register() == []
    scene.world.stored()
    [event] = scene.agent.take()
    assert (event.refused.final, event.refused.shut_down) == (True, True)
    assert scene.record().HasField("gone_time")
    assert scene.agent.id not in scene.world.cluster.expected


def test_marked_twice_it_is_gone_once(scene):
    first, second = scene.operator.mark_gone(scene.agent), scene.operator.mark_gone(scene.agent)
    scene.world.stored()
    assert (len(first), len(second)) == (1, 1)
    since = scene.record().gone_time
    scene.world.advance(5)
    scene.mark_gone()
    assert scene.record().gone_time == since
    assert scene.world.cluster.counters["agents_marked_gone"] == 1


def test_an_agent_that_is_away_is_gone_as_well(scene):
    scene.agent.disconnect()
    scene.mark_gone()
    assert scene.framework.updates()[-1].state == scene.ended
    assert scene.answer().final


def test_tasks_of_an_unreachable_agent_are_told_to_be_gone(scene):
    scene.agent.disconnect()
    scene.world.advance(75)
    scene.world.stored()
    scene.framework.take()
    scene.mark_gone()
    [status] = scene.framework.updates()
    assert (status.state, status.reason) == (scene.ended, GONE)
    assert scene.world.cluster.frameworks[scene.framework.id].unreachable_tasks == {}


def test_reconciliation_says_that_the_operator_did_it(scene):
    scene.mark_gone()
    [status] = scene.framework.reconcile(("t9", scene.agent.id))
    assert status.state == scene.ended
    assert status.message.endswith("its agent was marked gone")


def test_reconciliation_says_nothing_of_a_mark_that_is_not_stored(scene):
    scene.operator.mark_gone(scene.agent)
    [status] = scene.framework.reconcile(("t1", scene.agent.id))
    assert status.state == pb.TASK_RUNNING
    scene.world.stored()


def test_a_kill_of_a_task_there_is_answered_alike(scene):
    scene.mark_gone()
    scene.framework.take()
    scene.framework.kill("t9", scene.agent.id)
    assert [each.state for each in scene.framework.updates()] == [scene.ended]


def test_an_unknown_agent_cannot_be_marked(scene):
    with pytest.raises(NotFound, match="agent 'a7'"):
        scene.operator.mark_gone("a7")


# ---- At the end of a drain -------------------------------------------------------------------


def test_a_drained_agent_is_gone_if_that_was_wanted(scene):
    scene.operator.drain(scene.agent, mark_gone=True)
    scene.world.stored()
    scene.agent.take()
    scene.framework.take()
    uuid = scene.agent.report("t1", pb.TASK_KILLED, scene.framework)
    scene.framework.acknowledge(scene.agent, "t1", uuid)
    scene.agent.take()
    scene.world.advance(0)
    assert scene.agent.orders() == []
    scene.world.stored()
    assert scene.agent.orders() == ["SHUTDOWN"]
    assert scene.framework.kinds() == ["UPDATE", "FAILURE"]
    assert scene.record().drain_info.state == pb.DRAINED
    assert scene.record().HasField("gone_time")
    assert scene.answer().shut_down


def test_it_is_not_gone_while_a_task_runs(scene):
    scene.operator.drain(scene.agent, mark_gone=True)
    scene.world.stored()
    scene.world.advance(30)
    scene.world.stored()
    assert scene.agent.id in scene.world.cluster.agents
    assert not scene.record().HasField("gone_time")


def test_an_agent_that_is_drained_already_can_be_drained_again_to_be_gone(scene):
    uuid = scene.agent.report("t1", pb.TASK_FINISHED, scene.framework)
    scene.framework.acknowledge(scene.agent, "t1", uuid)
    for mark_gone in (False, True):
        scene.operator.drain(scene.agent, mark_gone=mark_gone)
        scene.world.stored()
        scene.world.advance(0)
        scene.world.stored()
        assert (scene.agent.id not in scene.world.cluster.agents) == mark_gone


# ---- Agents that are expected ----------------------------------------------------------------


def test_an_agent_that_a_successor_expects_can_be_marked_and_is_expected_no_more(scene):
    world = scene.world.successor()
    scene.agent.world = world
    done = Operator(world).mark_gone(scene.agent)
    world.stored()
    assert len(done) == 1
    assert scene.agent.id not in world.cluster.expected
    assert scene.answer().shut_down
    world.check()
