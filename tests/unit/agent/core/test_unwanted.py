"""Containers of tasks and executors that an operator has ended: TERM is followed by KILL."""

import pytest

from agent.core.effects import Signal
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import AgentWorld, command, for_executor, status


@pytest.fixture
def world() -> AgentWorld:
    return AgentWorld(executor_shutdown_grace_s=5.0)


def unwanted(world: AgentWorld, executor_id: str, signal: Signal) -> None:
    world.core.on_container_unwanted(world.container(executor_id), signal, world.clock.now())
    world.collect()


def test_a_command_that_does_not_end_by_term_is_killed_after_its_grace(world):
    world.run(command("t1"), command("t2", grace_s=7))
    for name in ("t1", "t2"):
        world.started(name)
        unwanted(world, name, Signal.TERM)
    assert [signal for _, signal in world.kills()] == ["TERM", "TERM"]
    world.advance(5)
    assert world.kills()[2:] == [(world.container("t1"), "KILL")]
    world.advance(2)
    assert world.kills()[3:] == [(world.container("t2"), "KILL")]


def test_its_task_ends_as_it_does_for_nobody_has_killed_that(world):
    for name, ends, state in (("t1", 0, "FINISHED"), ("t2", 15, "FAILED")):
        world.run(command(name))
        world.started(name)
        unwanted(world, name, Signal.TERM)
        world.acknowledge_all(name)
        world.ended(name, status=ends)
        world.acknowledge_all(name)
        assert world.states(name)[-1] == state
    world.advance(60)
    assert [signal for _, signal in world.kills()] == ["TERM", "TERM"]


def test_kill_is_sent_at_once_also_after_term(world):
    world.run(command("t"))
    world.started("t")
    unwanted(world, "t", Signal.TERM)
    unwanted(world, "t", Signal.TERM)
    unwanted(world, "t", Signal.KILL)
    assert [signal for _, signal in world.kills()] == ["TERM", "KILL"]


def test_an_executor_has_the_grace_of_a_shutdown(world):
    world.run(for_executor("t"))
    world.started("ex")
    # As one that has not connected yet: that it does not is no cause of its end any more.
    unwanted(world, "ex", Signal.TERM)
    assert [signal for _, signal in world.kills()] == ["TERM"]
    world.advance(5)
    assert [signal for _, signal in world.kills()] == ["TERM", "KILL"]
    world.advance(600)
    world.ended("ex", status=9)
    assert world.last("t").reason == pb.TaskStatus.REASON_EXECUTOR_TERMINATED


def test_one_that_runs_tasks_is_sent_term_itself(world):
    world.run(for_executor("t"))
    world.started("ex")
    world.subscribe("ex")
    world.report("ex", status("t", pb.TASK_RUNNING, b"1" * 16))
    unwanted(world, "ex", Signal.TERM)
    assert [signal for _, signal in world.kills()] == ["TERM"]


def test_of_what_is_not_there_nothing_comes(world):
    world.core.on_container_unwanted("c9", Signal.KILL, world.clock.now())
    world.collect()
    assert world.kills() == []
    assert world.drops() == ["unknown container is unwanted"]
