"""Command tasks, from acceptance to the acknowledged end."""

import pytest

from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import CAPABILITY, AgentWorld, command, framework_info

TERM_THEN_KILL = ["TERM", "KILL"]


def signals(world: AgentWorld) -> list[str]:
    return [name for _, name in world.kills()]


def running(world: AgentWorld, task_id: str = "t", **info) -> None:
    world.run(command(task_id, **info))
    world.started(task_id)
    world.acknowledge_all(task_id)


def test_a_task_reports_starting_then_running_with_its_pid_then_its_end():
    world = AgentWorld()
    world.run(command("t"))
    world.started("t", pid=77)
    world.ended("t", 0)
    world.acknowledge_all("t")
    assert world.states("t") == ["STARTING", "RUNNING", "FINISHED"]
    starting, ran, finished = (update.status for update in world.updates("t"))
    assert not starting.container_status.HasField("executor_pid")
    assert ran.container_status.executor_pid == 77
    assert finished.exit_status.exit_code == 0
    for each in (starting, ran, finished):
        assert each.source == pb.TaskStatus.SOURCE_EXECUTOR
        assert (each.agent_id.value, each.executor_id.value) == ("A1", "t")
        assert each.container_status.container_id.value == world.container("t")
        assert len(each.uuid) == 16


@pytest.mark.parametrize(
    ("status", "state", "message"),
    [
        (0, "FINISHED", "Command exited with status 0"),
        (3 << 8, "FAILED", "Command exited with status 3"),
        (137 << 8, "FAILED", "Command exited with status 137"),
        (9, "FAILED", "Command terminated with signal SIGKILL"),
        (11 | 0x80, "FAILED", "Command terminated with signal SIGSEGV"),
        (40, "FAILED", "Command terminated with signal 40"),
    ],
)
def test_the_wait_status_decides_the_end(status, state, message):
    world = AgentWorld()
    running(world)
    world.ended("t", status)
    assert world.states("t")[-1] == state
    assert world.last("t").message == message


def test_exit_137_and_sigkill_are_told_apart():
    world = AgentWorld()
    running(world, "exits")
    running(world, "killed")
    world.ended("exits", 137 << 8)
    world.ended("killed", 9)
    assert world.last("exits").exit_status.exit_code == 137
    assert not world.last("exits").exit_status.HasField("signal")
    assert world.last("killed").exit_status.signal == 9
    assert not world.last("killed").exit_status.HasField("exit_code")


def test_an_end_that_nobody_saw_is_failed_and_says_so():
    world = AgentWorld()
    running(world)
    world.ended("t", None, "the warden was lost")
    assert world.states("t")[-1] == "FAILED"
    assert world.last("t").message == "Command ended, exit status unknown: the warden was lost"


def test_a_command_that_cannot_be_started_failed_with_the_reason():
    world = AgentWorld()
    world.run(command("t"))
    world.failed("t", "cannot run '/x': No such file or directory")
    world.acknowledge("t")
    last = world.last("t")
    assert last.state == pb.TASK_FAILED
    assert last.reason == pb.TaskStatus.REASON_CONTAINER_LAUNCH_FAILED
    assert last.source == pb.TaskStatus.SOURCE_AGENT
    assert "/x" in last.message


# ---- Kill ---------------------------------------------------------------------------


def test_kill_asks_first_and_kills_at_the_end_of_the_grace():
    world = AgentWorld()
    running(world)
    world.kill("t", grace_s=5)
    assert signals(world) == ["TERM"]
    world.advance(4.99)
    assert signals(world) == ["TERM"]
    world.advance(0.01)
    assert signals(world) == TERM_THEN_KILL
    world.ended("t", 9)
    assert world.states("t")[-1] == "KILLED"


def test_a_killed_task_is_killed_however_it_ends():
    world = AgentWorld()
    running(world)
    world.kill("t")
    world.ended("t", 0)
    assert world.states("t")[-1] == "KILLED"
    assert world.last("t").exit_status.exit_code == 0


@pytest.mark.parametrize(
    ("in_kill", "in_task", "expected"), [(7, 4, 7), (None, 4, 4), (None, None, 3), (0, 4, 0)]
)
def test_the_grace_is_that_of_the_kill_then_of_the_task_then_three_seconds(
    in_kill, in_task, expected
):
    world = AgentWorld()
    running(world, grace_s=in_task)
    world.kill("t", in_kill)
    if expected:
        world.advance(expected - 0.001)
        assert signals(world) == ["TERM"]
        world.advance(0.001)
        assert signals(world) == TERM_THEN_KILL
    else:
        assert signals(world) == ["KILL"]


def test_a_second_kill_may_only_shorten_the_grace():
    world = AgentWorld()
    running(world)
    world.kill("t", grace_s=10)
    world.advance(1)
    world.kill("t", grace_s=100)
    world.advance(1)
    world.kill("t", grace_s=2)
    world.advance(1.99)
    assert signals(world) == ["TERM"]
    world.advance(0.01)
    assert signals(world) == TERM_THEN_KILL
    world.kill("t", grace_s=0)
    assert signals(world) == TERM_THEN_KILL


def test_killing_is_reported_to_frameworks_that_can_take_it():
    world = AgentWorld()
    world.framework = framework_info(CAPABILITY.TASK_KILLING_STATE)
    running(world)
    world.kill("t")
    world.kill("t")
    world.ended("t", 15)
    world.acknowledge_all("t")
    assert world.states("t") == ["STARTING", "RUNNING", "KILLING", "KILLED"]


def test_a_kill_before_the_process_exists_stops_the_launch():
    world = AgentWorld()
    world.run(command("t"))
    world.kill("t", grace_s=5)
    assert signals(world) == ["TERM"]
    world.failed("t", "stopped before it was started")
    world.acknowledge("t")
    last = world.last("t")
    assert (last.state, last.source) == (pb.TASK_KILLED, pb.TaskStatus.SOURCE_AGENT)
    assert last.reason == pb.TaskStatus.REASON_TASK_KILLED_DURING_LAUNCH


def test_a_kill_that_crosses_the_start_is_an_ordinary_kill():
    world = AgentWorld()
    world.framework = framework_info(CAPABILITY.TASK_KILLING_STATE)
    world.run(command("t"))
    world.kill("t", grace_s=5)
    world.started("t")
    world.ended("t", 15)
    world.acknowledge_all("t")
    assert world.states("t") == ["STARTING", "RUNNING", "KILLING", "KILLED"]


def test_a_kill_after_the_end_changes_nothing():
    world = AgentWorld()
    running(world)
    world.ended("t", 0)
    world.kill("t")
    assert world.drops() == ["kill of a task that has ended"]
    world.acknowledge_all("t")
    world.kill("t")
    assert world.states("t") == ["STARTING", "RUNNING", "FINISHED"]


@pytest.mark.parametrize(
    ("capabilities", "state"),
    [((), pb.TASK_LOST), ((CAPABILITY.PARTITION_AWARE,), pb.TASK_DROPPED)],
)
def test_a_kill_of_a_task_that_was_never_here_is_answered(capabilities, state):
    world = AgentWorld()
    world.framework = framework_info(*capabilities)
    world.run(command("other"))
    world.kill("t")
    last = world.last("t")
    assert (last.state, last.reason) == (state, pb.TaskStatus.REASON_EXECUTOR_TERMINATED)
    assert last.source == pb.TaskStatus.SOURCE_AGENT
    world.kill("t")
    assert len(world.updates("t")) == 1
