"""A task that the master takes back says so when it ends, if it is that which ended it."""

from typing import Any

import pytest

from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import (
    CAPABILITY,
    AgentWorld,
    command,
    for_executor,
    framework_info,
    status,
)

PREEMPTED = pb.TaskStatus.REASON_CONTAINER_PREEMPTED
CAUSE: dict[str, Any] = {"reason": PREEMPTED, "message": "Preempted: for B"}


@pytest.fixture
def world():
    return AgentWorld()


@pytest.fixture
def running(world):
    """A command that runs, its updates so far acknowledged."""
    world.run(command("t"))
    world.started("t")
    world.acknowledge_all("t")
    return world


@pytest.fixture
def custom(world):
    """A custom executor with a task that runs."""
    world.run(for_executor("t"))
    world.started("ex")
    world.subscribe("ex")
    world.report("ex", status("t", pb.TASK_RUNNING, b"1" * 16))
    world.acknowledge_all("t")
    return world


def test_a_command_says_why_it_was_killed_and_how_it_ended(running):
    running.kill("t", **CAUSE)
    running.ended("t", status=15)
    last = running.last("t")
    assert (last.state, last.reason) == (pb.TASK_KILLED, PREEMPTED)
    assert last.message == "Preempted: for B (Command terminated with signal SIGTERM)"


def test_a_task_of_a_custom_executor_says_it_too(custom):
    custom.kill("t", **CAUSE)
    custom.report("ex", status("t", pb.TASK_KILLED, b"2" * 16, message="bye"))
    last = custom.last("t")
    assert (last.state, last.reason) == (pb.TASK_KILLED, PREEMPTED)
    assert last.message == "Preempted: for B (bye)"


def test_it_says_so_while_it_is_being_killed():
    world = AgentWorld()
    world.framework = framework_info(CAPABILITY.TASK_KILLING_STATE)
    world.run(command("t"))
    world.started("t")
    world.acknowledge_all("t")
    world.kill("t", **CAUSE)
    assert (world.last("t").state, world.last("t").reason) == (pb.TASK_KILLING, PREEMPTED)


def test_a_task_that_its_executor_was_never_sent_says_it(world):
    world.run(for_executor("t"))
    world.kill("t", **CAUSE)
    assert (world.last("t").state, world.last("t").reason) == (pb.TASK_KILLED, PREEMPTED)


@pytest.mark.parametrize("state", [pb.TASK_FINISHED, pb.TASK_FAILED])
def test_a_task_that_ended_by_itself_meanwhile_says_nothing_of_it(custom, state):
    custom.kill("t", **CAUSE)
    custom.report("ex", status("t", state, b"2" * 16))
    assert custom.last("t").state == state
    assert custom.last("t").reason != PREEMPTED


def test_a_command_that_ended_before_the_order_finished(running):
    running.ended("t")
    running.kill("t", **CAUSE)
    assert running.last("t").state == pb.TASK_FINISHED
    assert "kill of a task that has ended" in running.drops()


def test_the_first_kill_counts(running):
    running.kill("t")
    running.kill("t", **CAUSE)
    running.ended("t", status=15)
    assert running.last("t").state == pb.TASK_KILLED
    assert running.last("t").reason != PREEMPTED


def test_a_later_kill_of_the_framework_does_not_hide_it(running):
    running.kill("t", **CAUSE)
    running.kill("t", grace_s=0)
    running.ended("t", status=9)
    assert running.last("t").reason == PREEMPTED


@pytest.mark.parametrize("again", [True, False])
def test_a_command_knows_it_after_a_restart_of_the_agent(running, again):
    running.kill("t", **CAUSE)
    running.restart()
    running.register()
    if again:
        running.kill("t", **CAUSE)
    running.ended("t", status=15)
    assert (running.last("t").state, running.last("t").reason) == (pb.TASK_KILLED, PREEMPTED)


def test_a_custom_executor_that_is_back_after_a_restart_is_told_and_it_is_known(custom):
    custom.kill("t", **CAUSE)
    custom.core.on_executor_disconnected(("F1", "ex"), custom.clock.now())
    custom.restart()
    custom.register()
    custom.subscribe("ex")
    assert any(each.HasField("kill") for each in custom.told("ex"))
    custom.report("ex", status("t", pb.TASK_KILLED, b"2" * 16))
    assert custom.last("t").reason == PREEMPTED
    assert custom.last("t").message == "Preempted: for B"


def test_an_agent_that_is_drained_says_that(running):
    running.kill("t", **CAUSE)
    running.core.state.drain = pb.DrainConfig()
    running.ended("t", status=15)
    assert running.last("t").reason == pb.TaskStatus.REASON_AGENT_DRAINING
