"""Agents that are lost: unreachable, removed; and executors that exit."""

import pytest

from master.core.cluster import Options
from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import FakeAgent, World

Call = agent_pb2.Call
Event = agent_pb2.Event
PARTITION_AWARE = pb.FrameworkInfo.Capability(type=pb.FrameworkInfo.Capability.PARTITION_AWARE)


@pytest.fixture
def world():
    made = World()
    yield made
    made.check()


@pytest.fixture(params=[False, True], ids=["non-PA", "PA"])
def aware(request):
    return request.param


def subscribed(world, aware=False, **info):
    capabilities = [PARTITION_AWARE] if aware else []
    return world.framework(**{"failover_timeout": 1e6, "capabilities": capabilities, **info})


def row(agent):
    return agent.world.cluster.agents[agent.id]


# ---- Unreachable ------------------------------------------------------------------------------


def test_an_agent_that_leaves_while_it_waits_to_be_lost_just_leaves():
    world = World(Options(durable=True, removal_limit=1, removal_per_s=600.0))
    first, second = world.agent("a"), world.agent("b")
    world.stored()
    for agent in (first, second):
        agent.disconnect()
    world.advance(80)
    world.stored()
    # One of them is lost, the other one waits; it is silent, not away.
    assert list(world.cluster.unreachable) == [first.id]
    second.register()
    second.greeted()
    world.advance(15 * 6)
    assert second.id in world.cluster.removals
    second.call(type=Call.UNREGISTER)
    world.advance(600)
    world.stored()
    assert second.id not in world.cluster.agents
    assert f"agent/{second.id}" not in world.records
    world.check()


def test_an_agent_that_is_not_back_in_time_is_unreachable_and_its_tasks_too(world, aware):
    agent = world.agent()
    framework = subscribed(world, aware)
    framework.start("t1", "t2", text="cpus:0.5;mem:32")
    agent.report("t1", pb.TASK_RUNNING, framework)
    agent.disconnect()
    framework.take()
    world.advance(75)
    failure, *updates = framework.take()
    assert failure.type == sched.Event.FAILURE
    assert failure.failure.agent_id.value == agent.id
    assert not failure.failure.HasField("executor_id")
    for event, task_id in zip(updates, ["t1", "t2"], strict=True):
        status = event.update.status
        assert status.task_id.value == task_id
        assert status.state == (pb.TASK_UNREACHABLE if aware else pb.TASK_LOST)
        assert status.reason == pb.TaskStatus.REASON_AGENT_REMOVED
        assert status.source == pb.TaskStatus.SOURCE_MASTER
        assert status.unreachable_time.nanoseconds > 0
        assert not status.HasField("uuid")
    record = world.cluster.frameworks[framework.id]
    assert record.tasks == {}
    assert {t.state for t in record.unreachable_tasks.values()} == {pb.TASK_UNREACHABLE}
    assert all(t.ended_wall_s is None for t in record.unreachable_tasks.values())
    assert not world.cluster.ledger.has(agent.id)
    assert world.cluster.counters["agents_unreachable"] == 1


def test_the_executors_of_an_unreachable_agent_are_forgotten(world):
    agent = world.agent()
    framework = subscribed(world)
    framework.launch(framework.offers()[0], world.custom_task("t1"))
    agent.disconnect()
    world.advance(75)
    assert world.cluster.frameworks[framework.id].executors == {}


def test_a_task_that_had_ended_is_not_unreachable(world):
    agent = world.agent()
    framework = subscribed(world)
    framework.start("t1")
    agent.report("t1", pb.TASK_FINISHED, framework)
    agent.disconnect()
    framework.take()
    world.advance(75)
    (status,) = framework.updates()
    assert status.state == pb.TASK_FINISHED
    record = world.cluster.frameworks[framework.id]
    assert (record.tasks, record.unreachable_tasks) == ({}, {})


def test_only_so_many_unreachable_tasks_are_remembered():
    world = World(Options(max_unreachable_tasks=2))
    agent = world.agent()
    framework = subscribed(world)
    framework.start("t1", "t2", "t3", text="cpus:0.1;mem:1")
    agent.disconnect()
    world.advance(75)
    record = world.cluster.frameworks[framework.id]
    assert list(record.unreachable_tasks) == ["t2", "t3"]
    assert [task.task_id for task in record.completed_tasks] == ["t1"]
    world.check()


def test_only_so_many_unreachable_agents_are_remembered():
    world = World(Options(max_remembered_agents=2))
    known = [world.agent() for _ in range(3)]
    for agent in known:
        agent.disconnect()
        world.advance(1)
    world.advance(75)
    assert list(world.cluster.agents) == [known[1].id, known[2].id]
    assert f"agent/{known[0].id}" not in world.cluster.registry
    assert world.cluster.counters["dropped/unreachable-agent-forgotten"] == 1


def test_an_agent_that_flaps_keeps_a_limited_number_of_statuses(world):
    agent = world.agent()
    framework = subscribed(world, aware=True)
    framework.start("t1")
    for _ in range(30):
        agent.report("t1", pb.TASK_RUNNING, framework)
        agent.disconnect()
        world.advance(75)
        running = agent.task("t1", framework, pb.TASK_RUNNING)
        agent.register(tasks=[running], frameworks=[framework.info])
    task = world.cluster.frameworks[framework.id].tasks["t1"]
    assert len(task.statuses) <= 16


def test_agents_without_a_time_to_come_back_are_unreachable_at_once():
    world = World(Options(agent_timeout_s=0.0))
    agent = world.agent()
    agent.disconnect()
    world.advance(0)
    assert row(agent).unreachable is not None


# ---- Removal ------------------------------------------------------------------------------------


def test_an_agent_that_unregisters_is_removed_and_its_tasks_are_lost(world, aware):
    agent = world.agent()
    framework = subscribed(world, aware)
    framework.start("t1")
    framework.take()
    agent.call(type=Call.UNREGISTER, unregister=Call.Unregister(message="maintenance"))
    failure, update = framework.take()
    assert failure.failure.agent_id.value == agent.id
    status = update.update.status
    assert status.state == pb.TASK_LOST
    assert status.reason == pb.TaskStatus.REASON_AGENT_REMOVED
    assert status.message == "agent removed: maintenance"
    assert not status.HasField("unreachable_time")
    assert world.cluster.agents == {}
    (task,) = world.cluster.frameworks[framework.id].completed_tasks
    assert (task.state, task.ended_wall_s) == (pb.TASK_LOST, world.clock.wall_s)
    assert "maintenance" in world.outbox.closed[agent.link]


def test_an_agent_may_unregister_without_a_word(world):
    agent = world.agent()
    agent.call(type=Call.UNREGISTER)
    assert world.outbox.closed[agent.link] == "agent removed: it unregistered"


def test_the_unreachable_tasks_of_a_removed_agent_are_lost(world, aware):
    old, other = world.agent("web1", "cpus:1;mem:32"), world.agent("web2", "cpus:1;mem:32")
    framework = subscribed(world, aware)
    offers = framework.offers()
    for number, offer in enumerate(offers):
        framework.launch(offer, world.task(f"t{number}"))
    for agent in (old, other):
        agent.disconnect()
    world.advance(75)
    framework.take()
    new = FakeAgent(world, "web1", "cpus:1", {})
    new.info.port = old.info.port
    new.register()
    updates = [e.update.status for e in framework.take() if e.type == sched.Event.UPDATE]
    assert [(u.state, u.agent_id.value) for u in updates] == [(pb.TASK_LOST, old.id)]
    record = world.cluster.frameworks[framework.id]
    assert [t.agent_id for t in record.unreachable_tasks.values()] == [other.id]


def test_what_lingered_on_an_agent_goes_with_it(world):
    agent = world.agent()
    framework = subscribed(world)
    framework.start("t1")
    framework.call(type=sched.Call.TEARDOWN)
    assert world.cluster.lingering
    agent.call(type=Call.UNREGISTER)
    assert world.cluster.lingering == {}


# ---- Executors ----------------------------------------------------------------------------------


def test_an_executor_that_exits_frees_its_own_share_and_the_framework_is_told(world):
    agent = world.agent()
    framework = subscribed(world)
    framework.launch(framework.offers()[0], world.custom_task("t1"))
    framework.take()
    agent.executor_exited("e1", framework, status=256)
    (event,) = framework.take()
    assert event.type == sched.Event.FAILURE
    assert event.failure.agent_id.value == agent.id
    assert event.failure.executor_id.value == "e1"
    assert event.failure.status == 256
    assert world.cluster.ledger.allocated(agent.id) == Resources.parse("cpus:1;mem:32")
    agent.report("t1", pb.TASK_FAILED, framework)
    assert world.cluster.ledger.allocated(agent.id) == EMPTY


@pytest.mark.parametrize("framework_known", [True, False])
def test_an_executor_that_nobody_knows_may_exit_as_often_as_it_likes(world, framework_known):
    agent = world.agent()
    framework = subscribed(world) if framework_known else "nobody"
    agent.executor_exited("e1", framework)
    agent.executor_exited("e1", framework)
    drops = [reason for reason, _ in world.outbox.drops]
    assert drops == ["unknown-executor-exited"] * 2


def test_the_executor_of_a_framework_that_was_torn_down_frees_its_share_when_it_exits(world):
    agent = world.agent()
    framework = subscribed(world)
    framework.launch(framework.offers()[0], world.custom_task("t1"))
    framework.call(type=sched.Call.TEARDOWN)
    agent.executor_exited("e1", framework)
    assert world.cluster.ledger.allocated(agent.id) == Resources.parse("cpus:1;mem:32")


def test_an_executor_exits_once_although_it_is_said_twice(world):
    agent = world.agent()
    framework = subscribed(world)
    framework.launch(framework.offers()[0], world.custom_task("t1"))
    agent.executor_exited("e1", framework)
    framework.take()
    agent.executor_exited("e1", framework)
    assert framework.take() == []
