"""Custom executors over a restart of their agent, and what waits for the checkpoint."""

import pytest

from agent.core.journal import Kind
from agent.core.updates import MAX_REMEMBERED
from mesos_py.resources import Resources
from mesos_py.v1 import executor_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import FRAMEWORK, AgentWorld, command, for_executor, status


@pytest.fixture
def world() -> AgentWorld:
    return AgentWorld()


def updates(world: AgentWorld) -> list[tuple[str, ...]]:
    """The keys of the records of updates."""
    return [key for kind, key in world.records if kind is Kind.UPDATE]


@pytest.fixture
def custom(world: AgentWorld) -> AgentWorld:
    """With an executor that has one task running, and one that it never heard of."""
    world.run(for_executor("a"))
    world.started("ex")
    world.subscribe("ex")
    world.report("ex", status("a", pb.TASK_RUNNING, b"1" * 16))
    world.acknowledge_all("a")
    world.core.on_executor_disconnected((FRAMEWORK, "ex"), world.clock.now())
    world.run(for_executor("b"))
    world.restart()
    world.register()
    return world


def test_an_executor_that_comes_back_gets_what_it_does_not_have(custom):
    assert custom.subscribe("ex") is None
    launched = [
        each.launch.task.task_id.value for each in custom.told("ex") if each.launch.task.name
    ]
    assert launched == ["b"]
    assert custom.limits() == [str(Resources.of(cpus=2.5))]


def test_an_update_that_an_executor_repeats_is_taken_once(custom):
    update = status("a", pb.TASK_RUNNING, b"1" * 16)
    subscribe = executor_pb2.Call.Update(status=update)
    custom.subscribe("ex", unacknowledged_updates=[subscribe])
    assert custom.states("a") == []
    assert "update came twice" in custom.drops()


def test_an_executor_that_does_not_come_back_is_killed(custom):
    custom.advance(10.1)
    assert [number for _, number in custom.kills()] == ["KILL"]
    custom.ended("ex", status=9)
    reason = pb.TaskStatus.REASON_EXECUTOR_REREGISTRATION_TIMEOUT
    assert custom.last("a").reason == custom.last("b").reason == reason


def test_the_time_of_executors_begins_when_they_can_connect(custom):
    custom.advance(9)
    custom.core.on_executors_welcome(custom.clock.now())
    custom.advance(9)
    assert custom.kills() == []
    custom.advance(2)
    assert [number for _, number in custom.kills()] == ["KILL"]


def test_while_the_checkpoint_cannot_be_written_nobody_is_judged(custom):
    custom.core.on_checkpoint(writable=False, now=custom.clock.now())
    custom.advance(100)
    assert custom.kills() == []
    custom.core.on_checkpoint(writable=True, now=custom.clock.now())
    custom.advance(50)
    assert custom.kills() == []
    custom.advance(20)
    assert [number for _, number in custom.kills()] == ["KILL"]


def test_a_grace_ends_also_while_the_checkpoint_cannot_be_written(world):
    world.run(command("t", grace_s=3))
    world.started("t")
    world.kill("t")
    world.core.on_checkpoint(writable=False, now=world.clock.now())
    world.advance(3.1)
    assert [number for _, number in world.kills()] == ["TERM", "KILL"]


def test_a_kill_of_a_task_reaches_an_executor_that_comes_back(world):
    world.run(for_executor("a"))
    world.started("ex")
    world.subscribe("ex")
    world.report("ex", status("a", pb.TASK_RUNNING))
    world.kill("a")
    world.restart()
    world.subscribe("ex")
    assert world.told_types("ex") == ["SUBSCRIBED", "KILL"]


def test_executors_are_told_for_how_long_to_wait():
    world = AgentWorld(recovery_timeout_s=900.0)
    world.framework.checkpoint = True
    world.run(for_executor("a"))
    environment = world.specs()[0].environment
    assert environment["MESOS_CHECKPOINT"] == "1"
    assert environment["MESOS_RECOVERY_TIMEOUT"] == "15mins"
    assert environment["MESOS_SUBSCRIPTION_BACKOFF_MAX"] == "2secs"


def test_executors_are_not_told_to_wait_for_an_agent_that_ends_its_tasks():
    world = AgentWorld()
    world.framework.checkpoint = True
    world.run(for_executor("a"))
    environment = world.specs()[0].environment
    assert environment["MESOS_CHECKPOINT"] == "0"
    assert not {"MESOS_RECOVERY_TIMEOUT", "MESOS_SUBSCRIPTION_BACKOFF_MAX"} & environment.keys()


@pytest.mark.long
def test_the_acknowledged_updates_of_a_task_that_are_remembered_are_bounded(world):
    world.run(for_executor("a"))
    world.started("ex")
    world.subscribe("ex")
    for number in range(MAX_REMEMBERED + 5):
        world.report("ex", status("a", pb.TASK_RUNNING, number.to_bytes(16, "big")))
        world.acknowledge("a")
    assert len(updates(world)) == MAX_REMEMBERED
    world.restart()
    world.register()
    world.subscribe("ex")
    last = (MAX_REMEMBERED + 4).to_bytes(16, "big")
    world.report("ex", status("a", pb.TASK_RUNNING, last))
    assert "update came twice" in world.drops()
    world.report("ex", status("a", pb.TASK_FINISHED, b"z" * 16))
    world.acknowledge("a")
    assert not updates(world)
