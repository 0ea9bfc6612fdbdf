"""Groups of tasks: their executor gets them together, or the agent answers for all."""

import pytest

from agent.core.effects import KillContainer
from agent.core.journal import Kind
from mesos_py.v1 import agent_pb2, executor_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import (
    CAPABILITY,
    AgentWorld,
    command,
    executor_info,
    for_executor,
    framework_info,
    status,
)

Reason = pb.TaskStatus.Reason
Event = executor_pb2.Event


def group(*task_ids: str, **more) -> list[pb.TaskInfo]:
    return [for_executor(task_id, **more) for task_id in task_ids]


def subscribed(*task_ids: str) -> AgentWorld:
    world = AgentWorld()
    world.run_group(*group(*task_ids))
    world.started("ex")
    assert world.subscribe("ex") is None
    return world


def groups(world: AgentWorld) -> list[list[str]]:
    """The tasks of each LAUNCH_GROUP."""
    return [
        [task.task_id.value for task in event.launch_group.task_group.tasks]
        for event in world.told("ex")
        if event.type == Event.LAUNCH_GROUP
    ]


def ends(world: AgentWorld, *task_ids: str) -> set[tuple[str, str]]:
    return {
        (
            pb.TaskState.Name(world.last(task_id).state),
            Reason.Name(world.last(task_id).reason),
        )
        for task_id in task_ids
    }


def test_a_group_starts_its_executor_once_with_room_for_all_and_comes_in_one_event():
    world = AgentWorld()
    world.run_group(*group("a", "b"))
    (spec,) = world.specs()
    assert str(spec.resources()) == "cpus:2.5"
    world.started("ex")
    world.subscribe("ex")
    world.run_group(*group("c"), new=())
    world.run(for_executor("d"))
    assert world.told_types("ex") == ["SUBSCRIBED", "LAUNCH_GROUP", "LAUNCH_GROUP", "LAUNCH"]
    assert groups(world) == [["a", "b"], ["c"]]
    assert world.limits() == ["cpus:2.5", "cpus:3.5", "cpus:4.5"]


def test_queued_groups_stay_apart():
    world = AgentWorld()
    world.run_group(*group("a", "b"))
    world.run_group(*group("c", "d"), new=())
    world.started("ex")
    world.subscribe("ex")
    assert groups(world) == [["a", "b"], ["c", "d"]]


def test_a_kill_before_it_is_delivered_ends_the_whole_group_and_its_executor():
    world = AgentWorld()
    world.run_group(*group("a", "b"))
    world.kill("b")
    assert ends(world, "a", "b") == {("TASK_KILLED", "REASON_TASK_KILLED_DURING_LAUNCH")}
    assert world.of(KillContainer)


def test_a_kill_before_delivery_leaves_other_groups_of_the_executor_alone():
    world = AgentWorld()
    world.run_group(*group("a", "b"))
    world.run_group(*group("c"), new=())
    world.kill("a")
    assert world.states("c") == []
    world.started("ex")
    world.subscribe("ex")
    assert groups(world) == [["c"]]
    assert world.limits() == ["cpus:1.5"]


def test_a_kill_after_delivery_is_the_executors_business():
    world = subscribed("a", "b")
    world.kill("a", grace_s=2)
    assert [event.kill.task_id.value for event in world.told("ex")[2:]] == ["a"]
    assert world.states("b") == []


def test_a_drain_ends_a_queued_group_once():
    world = AgentWorld()
    world.run_group(*group("a", "b"))
    drain = agent_pb2.Event.Drain(config=pb.DrainConfig())
    world.master(agent_pb2.Event(type=agent_pb2.Event.DRAIN, drain=drain))
    assert world.states("a") == world.states("b") == ["KILLED"]
    world.acknowledge("b")
    assert world.states("b") == ["KILLED"]


def test_a_group_that_waits_comes_whole_after_a_restart():
    world = AgentWorld()
    world.run_group(*group("z", "b"))
    world.run_group(*group("y", "c"), new=())
    world.restart()
    world.subscribe("ex")
    assert sorted(sorted(each) for each in groups(world)) == [["b", "z"], ["c", "y"]]


def test_a_group_whose_event_was_lost_comes_again_and_one_that_arrived_does_not():
    world = subscribed("a", "b")
    world.core.on_executor_disconnected(("F1", "ex"), world.clock.now())
    world.effects.clear()
    held = [for_executor("a"), for_executor("b")]
    world.subscribe("ex", unacknowledged_tasks=held)
    assert groups(world) == []
    world.subscribe("ex")
    assert groups(world) == [["a", "b"]]


def test_all_of_a_group_is_written_down_in_the_step_in_which_it_comes():
    world = AgentWorld()
    world.run_group(*group("a", "b"))
    tasks = [key[1] for kind, key in world.records if kind is Kind.TASK]
    assert sorted(tasks) == ["a", "b"]


def test_the_same_order_twice_starts_a_group_once():
    world = AgentWorld()
    world.run_group(*group("a", "b"))
    world.run_group(*group("a", "b"), new=())
    assert world.drops() == ["task is here already"] * 2
    assert world.states("a") == []


def test_a_group_is_refused_whole_when_one_of_its_ids_is_taken():
    world = AgentWorld()
    world.run(command("b"))
    world.run_group(*group("a", "b"))
    assert ends(world, "a") == {("TASK_LOST", "REASON_TASK_INVALID")}
    assert world.states("b") == ["STARTING"]
    assert [spec.executor_id for spec in world.specs()] == ["b"]


def test_an_executor_that_has_ended_meanwhile_is_not_started_by_a_group():
    world = AgentWorld()
    world.framework = framework_info(CAPABILITY.PARTITION_AWARE)
    world.run_group(*group("a", "b"), new=())
    assert ends(world, "a", "b") == {("TASK_DROPPED", "REASON_EXECUTOR_TERMINATED")}
    assert world.specs() == []


def test_an_executor_that_is_ending_takes_no_group():
    world = subscribed("a")
    world.shut_down_executor("ex")
    world.run_group(*group("b", "c"), new=())
    assert ends(world, "b", "c") == {("TASK_LOST", "REASON_EXECUTOR_TERMINATED")}


def test_an_executor_that_could_not_be_started_fails_all_tasks():
    world = AgentWorld()
    world.run_group(*group("a", "b"))
    world.failed("ex")
    assert ends(world, "a", "b") == {("TASK_FAILED", "REASON_CONTAINER_LAUNCH_FAILED")}


@pytest.mark.parametrize(
    ("tasks", "state", "reason"),
    [
        (
            [for_executor("a"), for_executor("b", executor_info("other"))],
            "TASK_ERROR",
            "REASON_TASK_GROUP_INVALID",
        ),
        (
            [for_executor("a"), for_executor("b", limits={"cpus": pb.Value.Scalar(value=2)})],
            "TASK_LOST",
            "REASON_GC_ERROR",
        ),
    ],
)
def test_what_is_wrong_with_one_task_is_said_of_all(tasks, state, reason):
    world = AgentWorld()
    world.run_group(*tasks)
    assert ends(world, "a", "b") == {(state, reason)}
    assert world.specs() == []
    # The master has charged the executor, and hears that it does not run.
    assert len(world.calls(agent_pb2.Call.EXECUTOR_EXITED)) == 1


def test_an_agent_that_is_drained_drops_the_group():
    world = AgentWorld()
    drain = agent_pb2.Event.Drain(config=pb.DrainConfig())
    world.master(agent_pb2.Event(type=agent_pb2.Event.DRAIN, drain=drain))
    world.run_group(*group("a", "b"))
    assert ends(world, "a", "b") == {("TASK_LOST", "REASON_AGENT_DRAINING")}


def test_the_end_of_a_groups_task_is_its_own():
    world = subscribed("a", "b")
    world.report("ex", status("a", pb.TASK_FINISHED))
    assert world.states("a") == ["FINISHED"]
    assert world.limits()[-1] == "cpus:1.5"
