"""Tasks that have run for as long as they may, in custom executors and on room for short ones."""

from mesos_py.v1 import executor_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import FRAMEWORK, AgentWorld, command, for_executor, status

REASON = pb.TaskStatus


def uuid(number: int) -> bytes:
    return bytes([number]) * 16


def limited(task_id: str, seconds: float = 60, **info) -> pb.TaskInfo:
    limit = pb.DurationInfo(nanoseconds=int(seconds * 1e9))
    return for_executor(task_id, max_completion_time=limit, **info)


def told_kills(world: AgentWorld) -> list[tuple[str, float]]:
    """Tasks that the executor was told to kill, and within which grace."""
    return [
        (event.kill.task_id.value, event.kill.kill_policy.grace_period.nanoseconds / 1e9)
        for event in world.told("ex")
        if event.type == executor_pb2.Event.KILL
    ]


def running_for(world: AgentWorld, *tasks: pb.TaskInfo) -> AgentWorld:
    world.run(for_executor("first"), *tasks)
    world.started("ex")
    world.subscribe("ex")
    for number, task in enumerate(tasks, 1):
        world.report("ex", status(task.task_id.value, pb.TASK_RUNNING, uuid(number)))
    world.told("ex")
    return world


def test_a_task_out_of_time_is_killed_by_its_executor_and_has_failed_for_that():
    world = running_for(AgentWorld(), limited("a"))
    world.advance(59.9)
    assert told_kills(world) == []
    world.advance(0.1)
    assert told_kills(world) == [("a", 0.0)]
    world.report("ex", status("a", pb.TASK_KILLED, uuid(9), message="as told"))
    world.acknowledge_all("a")
    last = world.last("a")
    assert (last.state, last.source) == (pb.TASK_FAILED, pb.TaskStatus.SOURCE_EXECUTOR)
    assert last.reason == REASON.REASON_MAX_COMPLETION_TIME_REACHED
    assert last.message == "Task exceeded its max_completion_time"
    world.advance(1000)
    assert not world.kills()
    assert [task.key[1] for task in world.core.state.tasks.values()] == ["first"]


def test_a_task_on_room_for_short_tasks_hears_that():
    world = running_for(AgentWorld(), limited("a", 1.5, short=True))
    world.advance(1.5)
    world.report("ex", status("a", pb.TASK_FAILED, uuid(9)))
    world.acknowledge_all("a")
    assert world.last("a").message == (
        "Task ran on room for short tasks of at most 1.5 s; its time is over"
    )


def test_a_task_that_finishes_just_then_has_finished():
    world = running_for(AgentWorld(), limited("a"))
    world.advance(60)
    world.report("ex", status("a", pb.TASK_FINISHED, uuid(9)))
    world.acknowledge_all("a")
    assert world.states("a")[-1] == "FINISHED"


def test_an_executor_that_does_not_end_a_task_out_of_time_is_ended_with_all_it_has():
    world = running_for(AgentWorld(kill_grace_s=3), limited("a"))
    world.advance(62.9)
    assert not world.kills()
    world.advance(0.1)
    assert [name for _, name in world.kills()] == ["KILL"]
    world.ended("ex", 9)
    world.acknowledge_all("a")
    assert world.last("a").reason == REASON.REASON_MAX_COMPLETION_TIME_REACHED
    last = world.last("first")
    assert (last.state, last.reason) == (pb.TASK_FAILED, REASON.REASON_EXECUTOR_TERMINATED)
    assert last.message == "Executor did not end task 'a', whose time was over"


def test_a_kill_that_came_before_stands_and_is_not_waited_for_without_end():
    world = running_for(AgentWorld(kill_grace_s=3), limited("a"))
    world.advance(50)
    world.kill("a", grace_s=20)
    world.advance(10)
    assert told_kills(world) == [("a", 20.0)]
    world.advance(19.9)
    assert not world.kills()
    world.advance(0.1)
    assert world.kills()


def test_an_executor_that_is_away_is_told_when_it_comes_back():
    world = running_for(AgentWorld(), limited("a"))
    world.advance(50)
    world.core.on_executor_disconnected((FRAMEWORK, "ex"), world.clock.now())
    world.advance(10)
    assert told_kills(world) == []
    world.subscribe("ex")
    assert told_kills(world) == [("a", 0.0)]


def test_time_does_not_begin_before_the_executor_has_the_task_nor_twice():
    world = AgentWorld()
    world.run(limited("a"))
    world.started("ex")
    world.advance(50)
    world.subscribe("ex")
    world.advance(30)
    world.subscribe("ex")  # it comes back, and is sent the task again
    world.advance(29.9)
    assert told_kills(world) == []
    world.advance(0.1)
    assert told_kills(world) == [("a", 0.0)]


def test_over_a_restart_of_the_agent_time_goes_on_and_the_reason_is_the_same():
    world = running_for(AgentWorld(), limited("a"))
    world.advance(60)
    world.restart()
    world.register()
    world.advance(0.1)
    world.subscribe("ex")
    assert told_kills(world) == [("a", 0.0)]
    world.report("ex", status("a", pb.TASK_KILLED, uuid(9)))
    world.acknowledge_all("a")
    assert world.last("a").reason == REASON.REASON_MAX_COMPLETION_TIME_REACHED


def test_a_command_on_room_for_short_tasks_hears_that():
    world = AgentWorld()
    limit = pb.DurationInfo(nanoseconds=10**9)
    world.run(command("t", max_completion_time=limit, short=True))
    world.started("t")
    world.advance(1)
    world.ended("t", 9)
    world.acknowledge_all("t")
    assert world.last("t").message == (
        "Task ran on room for short tasks of at most 1 s; its time is over"
    )
