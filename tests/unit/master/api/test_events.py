"""What subscribers are told: each change once, in order, and nothing while nobody listens."""

import asyncio

import pytest

from master.api.events import MAX_SUBSCRIBERS, Events, Subscriber
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World

Event = op.Event


class Listener:
    """A subscriber whose snapshot is there at once."""

    def __init__(self, events, *, begun=True):
        self.cut = False
        self.subscriber = Subscriber(op.Event.SerializeToString, self._cut)
        events.join(self.subscriber)
        if begun:
            self.subscriber.begin()

    def _cut(self):
        self.cut = True

    def take(self):
        return [Event.FromString(each) for each in self.subscriber.queue.take()]


class Scene:
    def __init__(self):
        self.world = World()
        self.events = Events(lambda: self.world.cluster)

    def listener(self, **kind):
        return Listener(self.events, **kind)

    def watched(self):
        """Whether the core tells anything."""
        return self.world.cluster.news is self.events

    def heard(self, listener):
        """What it was told since it was asked last: the kinds, and the events."""
        self.events.flush()
        found = listener.take()
        return [Event.Type.Name(each.type) for each in found], found


@pytest.fixture
async def scene():
    made = Scene()
    yield made
    made.events.end()
    made.world.check()


async def test_without_subscribers_nothing_is_told(scene):
    assert not scene.watched()
    listener = scene.listener()
    assert scene.watched()
    scene.events.leave(listener.subscriber)
    scene.events.leave(listener.subscriber)
    assert not scene.watched()
    scene.world.agent()
    assert scene.heard(listener) == ([], [])


async def test_of_a_task_that_was_not_launched_nothing_is_told(scene):
    world = scene.world
    made = world.agent()
    framework = world.framework()
    listener = scene.listener()
    (offer,) = framework.offers()
    framework.launch(offer, world.task("t1", made.id, text="cpus:1000"))
    assert [update.state for update in framework.updates()] == [pb.TASK_ERROR]
    assert scene.heard(listener) == ([], [])
    (ended,) = world.cluster.frameworks[framework.id].completed_tasks
    assert ended.state == pb.TASK_ERROR
    assert ended.ended_wall_s is not None


async def test_a_task_from_its_launch_to_its_end(scene):
    world = scene.world
    agent = world.agent()
    framework = world.framework()
    listener = scene.listener()
    framework.start("t1")
    kinds, [added] = scene.heard(listener)
    assert kinds == ["TASK_ADDED"]
    assert added.task_added.task.task_id.value == "t1"
    assert added.task_added.task.state == pb.TASK_STAGING
    agent.report("t1", pb.TASK_RUNNING, framework)
    kinds, [updated] = scene.heard(listener)
    assert kinds == ["TASK_UPDATED"]
    assert updated.task_updated.framework_id.value == framework.id
    assert updated.task_updated.state == updated.task_updated.status.state == pb.TASK_RUNNING
    # The same again is no change of state.
    agent.report("t1", pb.TASK_RUNNING, framework)
    assert scene.heard(listener)[0] == []
    agent.report("t1", pb.TASK_FINISHED, framework)
    assert scene.heard(listener)[0] == ["TASK_UPDATED"]


async def test_agents_come_go_away_and_come_back(scene):
    world = scene.world
    listener = scene.listener()
    agent = world.agent("host1")
    kinds, [added] = scene.heard(listener)
    assert kinds == ["AGENT_ADDED"]
    assert added.agent_added.agent.agent_info.hostname == "host1"
    # A link that breaks is none of their news: the agent is registered still.
    agent.disconnect()
    assert scene.heard(listener)[0] == []
    world.advance(world.cluster.options.agent_timeout_s + 1)
    world.stored()
    kinds, [removed] = scene.heard(listener)
    assert kinds == ["AGENT_REMOVED"]
    assert removed.agent_removed.agent_id.value == agent.id
    agent.register()
    world.stored()
    assert scene.heard(listener)[0] == ["AGENT_ADDED"]


async def test_tasks_of_an_agent_that_is_lost_and_returns(scene):
    world = scene.world
    agent = world.agent()
    aware = [pb.FrameworkInfo.Capability(type=pb.FrameworkInfo.Capability.PARTITION_AWARE)]
    framework = world.framework(capabilities=aware)
    framework.start("t1")
    agent.report("t1", pb.TASK_RUNNING, framework)
    listener = scene.listener()
    agent.disconnect()
    world.advance(world.cluster.options.agent_timeout_s + 1)
    world.stored()
    kinds, found = scene.heard(listener)
    assert kinds == ["AGENT_REMOVED", "TASK_UPDATED"]
    assert found[1].task_updated.state == pb.TASK_UNREACHABLE


async def test_frameworks_subscribe_change_leave_and_end(scene):
    world = scene.world
    listener = scene.listener()
    framework = world.framework("it", failover_timeout=60.0)
    kinds, [added] = scene.heard(listener)
    assert kinds == ["FRAMEWORK_ADDED"]
    shown = added.framework_added.framework
    assert (shown.framework_info.name, shown.connected) == ("it", True)
    framework.disconnect()
    kinds, [updated] = scene.heard(listener)
    assert kinds == ["FRAMEWORK_UPDATED"]
    assert updated.framework_updated.framework.connected is False
    world.core.teardown(framework.id, world.clock.now())
    kinds, [removed] = scene.heard(listener)
    assert kinds == ["FRAMEWORK_REMOVED"]
    assert removed.framework_removed.framework_info.id.value == framework.id


async def test_what_was_there_before_is_not_told_as_new(scene):
    world = scene.world
    agent = world.agent()
    framework = world.framework()
    listener = scene.listener()
    world.cluster.tell_agent(world.cluster.agents[agent.id], world.clock.now())
    world.cluster.tell_framework(world.cluster.frameworks[framework.id], world.clock.now())
    assert scene.heard(listener)[0] == []


async def test_what_happens_while_the_snapshot_is_made_waits_behind_it(scene):
    listener = scene.listener(begun=False)
    scene.world.agent()
    assert scene.heard(listener)[0] == []
    snapshot = Event(type=Event.SUBSCRIBED).SerializeToString()
    listener.subscriber.begin(snapshot)
    assert scene.heard(listener)[0] == ["SUBSCRIBED", "AGENT_ADDED"]
    scene.world.agent()
    assert scene.heard(listener)[0] == ["AGENT_ADDED"]


async def test_events_are_sent_when_the_step_is_over(scene):
    listener = scene.listener()
    scene.world.agent()
    assert listener.take() == []
    await asyncio.sleep(0)
    assert len(listener.take()) == 1


async def test_of_too_many_subscribers_the_oldest_goes(scene):
    first = scene.listener()
    for _ in range(MAX_SUBSCRIBERS):
        last = scene.listener()
    assert len(scene.events) == MAX_SUBSCRIBERS
    assert "more than 1000" in first.subscriber.queue.closed
    scene.world.agent()
    assert scene.heard(last)[0] == ["AGENT_ADDED"]
    assert scene.heard(first)[0] == []


async def test_who_reads_too_slowly_is_cut_off(scene):
    listener = scene.listener()
    listener.subscriber.queue.max_items = 2
    for _ in range(3):
        scene.world.agent()
    scene.events.flush()
    assert listener.cut


async def test_an_event_that_cannot_be_made_does_not_keep_the_others(scene):
    listener = scene.listener()
    scene.events.framework_removed(None)
    scene.world.agent()
    assert scene.heard(listener)[0] == ["AGENT_ADDED"]


async def test_streams_end_with_the_leadership(scene):
    listener = scene.listener()
    scene.events.end()
    scene.events.end()
    assert listener.subscriber.queue.closed == "the leadership has ended"
    late = scene.listener()
    assert late.subscriber.queue.closed == "the leadership has ended"
    assert not scene.watched()
