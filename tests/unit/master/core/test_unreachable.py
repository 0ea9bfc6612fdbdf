"""An agent is marked unreachable in the registry before anybody is told, at a limited rate."""

import itertools

import pytest

from master.core.cluster import Options
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import registry_pb2 as reg
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World
from tests.kit.scenes import PARTITION_AWARE

Event = agent_pb2.Event


class Scene:
    """An agent with a task that runs, and the framework that has it."""

    def __init__(self, **options):
        self.world = World(Options(durable=True, **options), epoch=1)
        self.agent = self.world.agent()
        self.framework = self.world.framework(failover_timeout=1e6, capabilities=[PARTITION_AWARE])
        self.framework.start("t1")
        self.uuid = self.agent.report("t1", pb.TASK_RUNNING, self.framework)
        self.framework.acknowledge(self.agent, "t1", self.uuid)
        self.framework.take()
        self.agent.take()

    @property
    def record(self):
        return reg.Agent.FromString(self.world.records[f"agent/{self.agent.id}"])

    @property
    def row(self):
        return self.world.cluster.agents[self.agent.id]

    def back(self):
        """The agent registers with its task; what it is told at once."""
        task = self.agent.task("t1", self.framework, pb.TASK_RUNNING)
        events = self.agent.register(tasks=[task], frameworks=[self.framework.info])
        return [Event.Type.Name(event.type) for event in events]

    def told(self):
        """The states that the framework has heard of since the last time."""
        return [pb.TaskState.Name(status.state) for status in self.framework.updates()]

    def state(self):
        (status,) = self.framework.reconcile(("t1", self.agent.id))
        return pb.TaskState.Name(status.state)


def silence(scene):
    """The agent does not answer, and its link stays."""
    scene.world.advance(15 * 6)


# ---- One ---------------------------------------------------------------------------------


def test_nobody_is_told_before_the_mark_is_stored():
    scene = Scene()
    scene.agent.disconnect()
    scene.world.advance(75)
    assert scene.told() == []
    assert scene.state() == "TASK_RUNNING"
    since = scene.world.clock.wall_s
    scene.world.advance(5)
    scene.world.stored()
    assert scene.record.unreachable_time.nanoseconds == int(since * 1e9)
    failure, update = scene.framework.take()
    assert failure.type == sched.Event.FAILURE
    assert update.update.status.state == pb.TASK_UNREACHABLE
    assert update.update.status.unreachable_time.nanoseconds == int(since * 1e9)
    scene.world.check()


def test_the_mark_is_removed_before_the_agent_is_told_that_it_is_back():
    scene = Scene()
    scene.agent.disconnect()
    scene.world.advance(75)
    scene.world.stored()
    scene.framework.take()
    assert scene.back() == []
    # It is not back for anybody yet.
    assert scene.state() == "TASK_UNREACHABLE"
    scene.world.stored()
    assert [Event.Type.Name(e.type) for e in scene.agent.greeted()] == ["REGISTERED"]
    assert not scene.record.HasField("unreachable_time")
    assert scene.told() == ["TASK_RUNNING"]
    scene.world.check()


def test_an_agent_that_comes_back_and_vanishes_before_it_is_told_stays_unreachable():
    scene = Scene()
    scene.agent.disconnect()
    scene.world.advance(75)
    scene.world.stored()
    marked = scene.record
    scene.framework.take()
    scene.back()
    scene.agent.disconnect()
    scene.world.stored()
    assert scene.record == marked
    assert scene.told() == []
    assert scene.state() == "TASK_UNREACHABLE"
    assert list(scene.world.cluster.unreachable) == [scene.agent.id]
    scene.world.check()


def test_an_agent_that_comes_back_while_it_is_marked_was_never_away_for_frameworks():
    scene = Scene()
    scene.agent.disconnect()
    scene.world.advance(75)
    assert scene.back() == []
    scene.world.stored()
    assert [Event.Type.Name(e.type) for e in scene.agent.greeted()] == ["REGISTERED"]
    assert not scene.record.HasField("unreachable_time")
    assert scene.told() == []
    assert scene.state() == "TASK_RUNNING"
    assert scene.world.cluster.counters["agents_unreachable"] == 0
    scene.world.check()


def test_an_agent_that_came_back_while_it_was_marked_and_vanishes_has_its_time_anew():
    scene = Scene()
    scene.agent.disconnect()
    scene.world.advance(75)
    scene.back()
    scene.agent.disconnect()
    scene.world.stored()
    scene.world.advance(74)
    scene.world.stored()
    assert scene.told() == []
    scene.world.advance(1)
    scene.world.stored()
    assert scene.told() == ["TASK_UNREACHABLE"]
    scene.world.check()


def test_a_silent_agent_that_answers_while_it_is_marked_is_kept():
    scene = Scene()
    silence(scene)
    assert scene.world.outbox.writes
    scene.agent.pong()
    scene.world.stored()
    assert scene.row.connected
    assert not scene.record.HasField("unreachable_time")
    assert scene.told() == []
    scene.framework.call(type=sched.Call.REVIVE)
    offers = scene.framework.offers()
    assert [offer.agent_id.value for offer in offers] == [scene.agent.id]
    scene.world.check()


def test_a_silent_agent_is_offered_no_more_and_cut_off_once_that_is_stored():
    scene = Scene()
    offers = scene.framework.offers()
    assert offers
    scene.world.advance(15 * 5 + 10)
    scene.framework.take()
    scene.world.advance(5)
    assert scene.agent.link not in scene.world.outbox.closed
    assert scene.framework.offers() == []
    scene.world.stored()
    assert "pings went unanswered" in scene.world.outbox.closed[scene.agent.link]
    assert scene.told() == ["TASK_UNREACHABLE"]


# The agent's part in any order against the storage's: whatever happens, in the end the
# frameworks, the registry and this master say the same.
STEPS = ("back", "vanish", "stored", "wait", "pong")


@pytest.mark.long
@pytest.mark.parametrize("first", STEPS)
def test_whatever_the_order_all_agree_in_the_end(first):
    for others in itertools.product(STEPS, repeat=3):
        _play((first, *others))


def _play(steps):
    scene = Scene()
    scene.agent.disconnect()
    scene.world.advance(75)
    last = ""
    for step in steps:
        match step:
            case "back":
                scene.back()
            case "vanish":
                scene.agent.disconnect()
            case "stored":
                scene.world.stored()
            case "wait":
                scene.world.advance(80)
            case "pong" if scene.row.link == scene.agent.link:
                scene.agent.pong()
        scene.world.check()
        last = (scene.told() or [last])[-1]
    scene.world.stored()
    last = (scene.told() or [last])[-1]
    away = scene.row.unreachable is not None
    assert scene.record.HasField("unreachable_time") == away, steps
    assert (last == "TASK_UNREACHABLE") == away, steps
    scene.back()
    scene.world.stored()
    assert scene.state() == "TASK_RUNNING", steps
    assert not scene.record.HasField("unreachable_time"), steps
    assert scene.row.connected, steps
    assert not scene.row.leaving, steps
    scene.world.check()


# ---- Many ------------------------------------------------------------------------------------


def limited(**options):
    """Four agents, of which one in ten minutes may be taken for lost."""
    world = World(Options(removal_limit=1, removal_per_s=600.0, **options), epoch=1)
    return world, [world.agent(f"h{n}") for n in range(4)]


def lost(world):
    return world.cluster.counters["agents_unreachable"]


def answering(world, agents, seconds):
    """Time passes, and these answer their pings."""
    for _ in range(int(seconds / 15)):
        world.advance(15)
        for agent in agents:
            agent.pong()


def test_without_a_limit_all_are_lost_together():
    world = World()
    for agent in [world.agent(f"h{n}") for n in range(4)]:
        agent.disconnect()
    world.advance(75)
    assert lost(world) == 4


def test_with_a_limit_they_are_lost_one_by_one():
    world, known = limited()
    for agent in known:
        agent.disconnect()
    world.advance(75)
    assert lost(world) == 1
    world.advance(599)
    assert lost(world) == 1
    world.advance(1)
    assert lost(world) == 2
    world.advance(1200)
    assert lost(world) == 4
    assert len(world.cluster.removals) == 0
    world.advance(2)
    assert world.core.next_deadline_s() is None
    world.check()


def test_an_agent_that_comes_back_while_it_waits_is_off_the_list():
    world, known = limited()
    for agent in known:
        agent.disconnect()
    world.advance(75)
    for agent in known[1:]:
        agent.register()
    assert len(world.cluster.removals) == 0
    answering(world, known[1:], 1500)
    assert lost(world) == 1


def test_a_silent_agent_that_answers_while_it_waits_is_off_the_list_and_offered_again():
    world, (first, second, *others) = limited()
    answering(world, others, 90)
    assert lost(world) == 1
    assert first.link in world.outbox.closed
    assert second.id in world.cluster.removals
    framework = world.framework()
    assert {o.agent_id.value for o in framework.offers()} == {agent.id for agent in others}
    assert second.take(Event.PING)
    second.pong()
    assert second.id not in world.cluster.removals
    assert [o.agent_id.value for o in framework.offers()] == [second.id]
    answering(world, (second, *others), 900)
    assert lost(world) == 1


def test_a_silent_agent_whose_link_breaks_while_it_waits_stays_on_the_list():
    world, (first, second, *_) = limited()
    first.disconnect()
    world.advance(75)
    world.advance(15)
    second.disconnect()
    assert second.id in world.cluster.removals
    world.advance(700)
    assert lost(world) == 2


def test_one_that_unregisters_while_it_waits_is_removed():
    world, (first, second, *_) = limited()
    first.disconnect()
    world.advance(90)
    assert second.id in world.cluster.removals
    second.call(type=agent_pb2.Call.UNREGISTER)
    assert second.id not in world.cluster.removals
    assert second.id not in world.cluster.agents


@pytest.mark.parametrize("stall_s", [30.0, 3000.0])
def test_after_a_stall_of_this_process_those_on_the_list_have_time_to_be_heard(stall_s):
    world, known = limited()
    for agent in known:
        agent.disconnect()
    world.advance(75)
    assert lost(world) == 1
    world.clock.advance(590 + stall_s)
    world.core.tick(world.clock.now())
    assert lost(world) == 1
    world.advance(74)
    assert lost(world) == 1
    for agent in known[1:]:
        agent.register()
    answering(world, known[1:], 1500)
    assert lost(world) == 1
