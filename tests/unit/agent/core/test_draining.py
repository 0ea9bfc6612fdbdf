"""DRAIN: everything ends, nothing begins, and an agent that is started again goes on."""

import pytest

from agent.core.effects import SentAway
from mesos_py.v1 import agent_pb2, executor_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import (
    CAPABILITY,
    FRAMEWORK,
    AgentWorld,
    command,
    executor_info,
    for_executor,
    framework_info,
    status,
)

Event = agent_pb2.Event
DRAINING = pb.TaskStatus.REASON_AGENT_DRAINING


@pytest.fixture
def world() -> AgentWorld:
    return AgentWorld()


def drain(world, grace_s=None, *, mark_gone=False):
    config = pb.DrainConfig(mark_gone=mark_gone)
    if grace_s is not None:
        config.max_grace_period.nanoseconds = int(grace_s * 1e9)
    return world.master(Event(type=Event.DRAIN, drain=Event.Drain(config=config)))


def end_drain(world):
    return world.master(Event(type=Event.DRAIN, drain=Event.Drain()))


def running(world, *tasks):
    world.run(*tasks)
    for task in tasks:
        world.started(task.task_id.value)
        world.acknowledge_all(task.task_id.value)


def on_executor(world, *task_ids, **info):
    """A custom executor that runs these tasks."""
    world.run(*(for_executor(each, executor_info(**info)) for each in task_ids))
    world.started("ex")
    world.subscribe("ex")
    for number, task_id in enumerate(task_ids):
        world.report("ex", status(task_id, pb.TASK_RUNNING, bytes([number]) * 16))


def killed(world, task_id, uuid=b"k" * 16):
    world.report("ex", status(task_id, pb.TASK_KILLED, uuid))


# ---- What runs is ended ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own_s", "max_s", "grace_s"),
    [(None, None, 3), (60, None, 60), (None, 30, 30), (60, 30, 30), (10, 30, 10), (10, 0, 0)],
)
def test_the_drains_grace_replaces_none_and_longer_ones(world, own_s, max_s, grace_s):
    running(world, command("t", grace_s=own_s))
    drain(world, max_s)
    container = world.container("t")
    if grace_s:
        assert world.kills() == [(container, "TERM")]
        world.advance(grace_s - 0.001)
        assert world.kills() == [(container, "TERM")]
        world.advance(0.001)
    assert world.kills()[-1] == (container, "KILL")


def test_every_task_is_killed_and_says_why(world):
    world.framework = framework_info(CAPABILITY.TASK_KILLING_STATE)
    running(world, command("a"), command("b"))
    drain(world)
    for name in ("a", "b"):
        assert (world.last(name).state, world.last(name).reason) == (pb.TASK_KILLING, DRAINING)
        world.ended(name, 15)
        world.acknowledge_all(name)
        assert (world.last(name).state, world.last(name).reason) == (pb.TASK_KILLED, DRAINING)
        assert world.last(name).source == pb.TaskStatus.SOURCE_EXECUTOR


@pytest.mark.parametrize("aware", [False, True])
def test_when_the_agent_leaves_for_good_its_tasks_are_gone_by_the_operator(world, aware):
    capabilities = [CAPABILITY.PARTITION_AWARE] if aware else []
    world.framework = framework_info(CAPABILITY.TASK_KILLING_STATE, *capabilities)
    running(world, command("t"))
    drain(world, mark_gone=True)
    # It still runs: no end may be told.
    assert world.last("t").state == pb.TASK_KILLING
    world.ended("t", 15)
    world.acknowledge_all("t")
    assert world.last("t").state == (pb.TASK_GONE_BY_OPERATOR if aware else pb.TASK_KILLED)
    assert world.last("t").reason == DRAINING


def test_a_task_that_fails_or_finishes_meanwhile_says_so(world):
    running(world, command("t"))
    world.run(for_executor("u"))
    world.started("ex")
    world.subscribe("ex")
    drain(world)
    world.report("ex", status("u", pb.TASK_FINISHED))
    assert world.last("u").state == pb.TASK_FINISHED
    assert not world.last("u").HasField("reason")


def test_a_task_that_is_being_started_is_killed(world):
    world.run(command("t"))
    drain(world)
    world.failed("t", "stopped")
    world.acknowledge_all("t")
    assert (world.last("t").state, world.last("t").reason) == (pb.TASK_KILLED, DRAINING)


def test_a_kill_with_a_longer_grace_does_not_outlast_the_drain(world):
    running(world, command("t"))
    world.kill("t", grace_s=100)
    drain(world, 5)
    world.advance(5)
    assert world.kills()[-1] == (world.container("t"), "KILL")


def test_said_again_the_grace_does_not_begin_anew(world):
    running(world, command("t"))
    drain(world, 10)
    world.advance(6)
    drain(world, 10)
    world.advance(4)
    assert [signal for _, signal in world.kills()] == ["TERM", "KILL"]


# ---- Custom executors ------------------------------------------------------------------------


def test_an_executor_is_told_to_kill_its_tasks_within_the_drains_grace(world):
    on_executor(world, "t")
    drain(world, 20)
    kill = world.told("ex")[-1]
    assert kill.type == executor_pb2.Event.KILL
    assert kill.kill.kill_policy.grace_period.nanoseconds == 20 * 10**9


def test_without_a_grace_the_executor_has_its_own(world):
    on_executor(world, "t")
    drain(world)
    assert not world.told("ex")[-1].kill.HasField("kill_policy")


def test_its_kills_say_why(world):
    on_executor(world, "t")
    world.acknowledge_all("t")
    drain(world)
    killed(world, "t")
    assert (world.last("t").state, world.last("t").reason) == (pb.TASK_KILLED, DRAINING)


def test_an_executor_without_tasks_is_shut_down(world):
    on_executor(world, "a", "b")
    drain(world)
    killed(world, "a", b"1" * 16)
    assert "SHUTDOWN" not in world.told_types("ex")
    killed(world, "b", b"2" * 16)
    assert world.told_types("ex")[-2:] == ["ACKNOWLEDGED", "SHUTDOWN"]
    world.advance(5)
    assert world.kills()[-1] == (world.container("ex"), "KILL")


def test_an_idle_executor_is_shut_down_at_once_and_no_later_than_the_grace(world):
    on_executor(world, "t", shutdown_grace_period=pb.DurationInfo(nanoseconds=60 * 10**9))
    killed(world, "t")
    assert "SHUTDOWN" not in world.told_types("ex")
    drain(world, 2)
    assert world.told_types("ex")[-1] == "SHUTDOWN"
    world.advance(2)
    assert world.kills()[-1] == (world.container("ex"), "KILL")


def test_an_executor_that_does_not_kill_its_task_is_shut_down_after_the_grace(world):
    on_executor(world, "t")
    drain(world, 10)
    world.advance(9)
    drain(world, 10)
    assert world.told_types("ex")[-1] == "KILL"
    world.advance(1)
    assert world.told_types("ex")[-1] == "SHUTDOWN"
    world.advance(5)
    assert world.kills() == [(world.container("ex"), "KILL")]


def test_without_a_grace_nobody_hurries_an_executor(world):
    on_executor(world, "t")
    drain(world)
    world.advance(10_000)
    assert "SHUTDOWN" not in world.told_types("ex")


def test_a_task_that_its_executor_was_never_sent_is_killed_here(world):
    world.run(for_executor("t"))
    world.started("ex")
    drain(world)
    assert (world.last("t").state, world.last("t").reason) == (pb.TASK_KILLED, DRAINING)
    assert world.kills() == [(world.container("ex"), "TERM")]


# ---- What comes is dropped -------------------------------------------------------------------


@pytest.mark.parametrize("aware", [False, True])
def test_a_task_that_arrives_is_dropped(world, aware):
    world.framework = framework_info(*([CAPABILITY.PARTITION_AWARE] if aware else []))
    drain(world)
    world.run(command("t"))
    assert world.specs() == []
    assert world.last("t").state == (pb.TASK_DROPPED if aware else pb.TASK_LOST)
    assert world.last("t").reason == DRAINING
    assert world.last("t").source == pb.TaskStatus.SOURCE_AGENT


def test_an_executor_that_is_not_started_for_it_is_said_to_have_ended(world):
    drain(world)
    order = Event.RunTasks(
        framework_info=world.framework,
        tasks=[for_executor("t")],
        new_executors=[pb.ExecutorID(value="ex")],
    )
    world.master(Event(type=Event.RUN_TASKS, run_tasks=order))
    [call] = world.calls(agent_pb2.Call.EXECUTOR_EXITED)
    exited = call.executor_exited
    assert (exited.framework_id.value, exited.executor_id.value) == (FRAMEWORK, "ex")
    assert exited.status == -1


def test_an_executor_that_is_started_is_not(world):
    order = Event.RunTasks(
        framework_info=world.framework,
        tasks=[for_executor("t")],
        new_executors=[pb.ExecutorID(value="ex")],
    )
    world.master(Event(type=Event.RUN_TASKS, run_tasks=order))
    assert world.calls(agent_pb2.Call.EXECUTOR_EXITED) == []


def test_when_it_is_over_tasks_are_welcome(world):
    drain(world)
    end_drain(world)
    running(world, command("t"))
    assert world.core.state.tasks[FRAMEWORK, "t"].state == pb.TASK_RUNNING


def test_when_it_is_over_nobody_hurries_an_executor(world):
    on_executor(world, "t")
    drain(world, 10)
    end_drain(world)
    world.advance(100)
    assert "SHUTDOWN" not in world.told_types("ex")


# ---- Restarts --------------------------------------------------------------------------------


def registered(world):
    return world.core.register_call("v", 1).register


def test_the_master_is_told_whether_the_agent_drains(world):
    capabilities = [each.type for each in registered(world).capabilities]
    assert pb.AgentInfo.Capability.AGENT_DRAINING in capabilities
    assert not registered(world).draining
    drain(world)
    assert registered(world).draining
    end_drain(world)
    assert not registered(world).draining


def test_an_agent_that_is_started_again_goes_on_draining(world):
    running(world, command("t"))
    drain(world, 30)
    world.advance(20)
    world.restart()
    assert registered(world).draining
    world.core.on_executors_welcome(world.clock.now())
    world.collect()
    world.advance(9)
    assert [signal for _, signal in world.kills()] == ["TERM"]
    world.advance(1)
    assert [signal for _, signal in world.kills()] == ["TERM", "KILL"]
    world.register()
    world.ended("t", 9)
    world.acknowledge_all("t")
    assert (world.last("t").state, world.last("t").reason) == (pb.TASK_KILLED, DRAINING)
    world.run(command("u"))
    assert world.last("u").reason == DRAINING


def test_one_that_was_killed_before_it_killed_its_tasks_does_so(world):
    running(world, command("t"))
    records = dict(world.records)
    drain(world)
    # The drain was written, and no more came of it.
    world.records = {**records, **{k: v for k, v in world.records.items() if "agent" in k[1]}}
    world.restart()
    world.core.on_executors_welcome(world.clock.now())
    world.collect()
    assert world.kills() == [(world.container("t"), "TERM")]


def test_an_executor_that_comes_back_is_told_again(world):
    on_executor(world, "t")
    drain(world, 30)
    world.restart()
    world.core.on_executors_welcome(world.clock.now())
    world.subscribe("ex", unacknowledged_tasks=[for_executor("t")])
    assert world.told_types("ex")[-1] == "KILL"
    world.report("ex", status("t", pb.TASK_KILLED, b"k" * 16))
    assert "SHUTDOWN" in world.told_types("ex")


def test_an_agent_that_was_taken_back_is_not_draining_after_a_restart(world):
    drain(world)
    end_drain(world)
    world.restart()
    assert not registered(world).draining


# ---- Sent away -------------------------------------------------------------------------------


def send_away(world):
    order = Event.Shutdown(message="agent A1 was marked as gone")
    return world.master(Event(type=Event.SHUTDOWN, shutdown=order))


def sent_away(world):
    return [each.reason for each in world.of(SentAway)]


def test_an_agent_that_is_sent_away_ends_its_tasks_and_then_itself(world):
    running(world, command("t", grace_s=7))
    send_away(world)
    assert world.kills() == [(world.container("t"), "TERM")]
    world.advance(7)
    assert world.kills()[-1] == (world.container("t"), "KILL")
    assert sent_away(world) == []
    world.ended("t", 9)
    assert sent_away(world) == ["agent A1 was marked as gone"]
    assert world.stops() == []


def test_sent_away_twice_it_ends_once(world):
    running(world, command("t"))
    send_away(world)
    send_away(world)
    world.ended("t", 9)
    send_away(world)
    assert len(sent_away(world)) == 1


def test_an_agent_with_nothing_on_it_ends_at_once(world):
    send_away(world)
    assert len(sent_away(world)) == 1


def test_tasks_that_arrive_meanwhile_are_dropped(world):
    running(world, command("t"))
    send_away(world)
    world.run(command("u"))
    assert world.last("u").reason == pb.TaskStatus.REASON_AGENT_REMOVED


def test_it_is_still_stopped_by_its_operator(world):
    send_away(world)
    world.core.on_stop(world.clock.now())
    world.collect()
    assert [each.wanted for each in world.stops()] == [True]
