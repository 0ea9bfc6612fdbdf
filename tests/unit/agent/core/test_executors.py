"""Custom executors: started once, tasks in order, updates acknowledged, ends told."""

import pytest

from agent.core.executors import Standing
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

REASON = pb.TaskStatus
Update = executor_pb2.Call.Update


def subscribed(*tasks: str) -> AgentWorld:
    """A world with one executor that is there and has `tasks`."""
    world = AgentWorld()
    world.run(*(for_executor(task) for task in tasks))
    world.started("ex", pid=42)
    assert world.subscribe("ex") is None
    return world


def launches(world: AgentWorld) -> list[str]:
    return [
        event.launch.task.task_id.value
        for event in world.told("ex")
        if event.type == executor_pb2.Event.LAUNCH
    ]


def uuid(number: int) -> bytes:
    return bytes([number]) * 16


def test_an_executor_is_started_once_and_gets_its_tasks_in_order_when_it_is_there():
    world = AgentWorld()
    world.run(for_executor("a"), for_executor("b"))
    world.run(for_executor("c"))
    assert [spec.executor_id for spec in world.specs()] == ["ex"]
    assert world.told("ex") == []
    world.started("ex")
    world.subscribe("ex")
    world.run(for_executor("d"))
    assert world.told_types("ex") == ["SUBSCRIBED", *["LAUNCH"] * 4]
    assert launches(world) == ["a", "b", "c", "d"]
    assert world.updates("a") == []  # its own business


def test_subscribed_names_executor_framework_agent_and_container():
    world = subscribed("a")
    event = world.told("ex")[0].subscribed
    assert event.executor_info.executor_id.value == "ex"
    assert event.executor_info.framework_id.value == "F1"
    assert event.framework_info.id.value == "F1"
    assert event.agent_info.id.value == "A1"
    assert event.container_id.value == world.container("ex")


def test_its_container_grows_before_tasks_are_delivered_and_shrinks_when_they_end():
    world = AgentWorld()
    world.run(for_executor("a"), for_executor("b"))
    assert str(world.specs()[0].resources()) == "cpus:1.5"
    world.started("ex")
    world.subscribe("ex")
    assert world.limits() == ["cpus:2.5"]
    world.report("ex", status("a", pb.TASK_FINISHED))
    assert world.limits() == ["cpus:2.5", "cpus:1.5"]


def test_a_task_names_the_framework_of_its_executor_as_the_executor_does():
    world = subscribed("a")
    launch = world.told("ex")[1].launch
    assert launch.task.executor.framework_id.value == "F1"
    assert launch.task.executor == world.told("ex")[0].subscribed.executor_info


def test_a_stranger_is_refused():
    world = AgentWorld()
    refusal = world.subscribe("nobody")
    assert refusal is not None
    assert "nobody" in refusal


def test_an_update_is_completed_acknowledged_and_forwarded():
    world = subscribed("a")
    assert world.report("ex", status("a", pb.TASK_RUNNING, data=b"d", message="m")) is None
    acknowledged = world.told("ex")[-1].acknowledged
    assert (acknowledged.task_id.value, acknowledged.uuid) == ("a", b"u" * 16)
    sent = world.last("a")
    assert (sent.agent_id.value, sent.executor_id.value) == ("A1", "ex")
    assert sent.source == pb.TaskStatus.SOURCE_EXECUTOR
    assert sent.container_status.executor_pid == 42
    assert (sent.data, sent.message, sent.uuid) == (b"d", "m", b"u" * 16)
    assert sent.timestamp == world.clock.wall_s


def test_the_same_update_twice_is_acknowledged_twice_and_counted_once():
    world = subscribed("a")
    world.report("ex", status("a", pb.TASK_RUNNING))
    world.acknowledge("a")
    world.report("ex", status("a", pb.TASK_RUNNING))
    assert world.told_types("ex")[-2:] == ["ACKNOWLEDGED", "ACKNOWLEDGED"]
    assert len(world.updates("a")) == 1
    assert world.drops() == ["update came twice"]


def test_updates_after_the_end_are_acknowledged_and_dropped():
    world = subscribed("a")
    world.report("ex", status("a", pb.TASK_FINISHED, uuid(1)))
    world.report("ex", status("a", pb.TASK_RUNNING, uuid(2)))
    world.acknowledge_all("a")
    world.report("ex", status("a", pb.TASK_FAILED, uuid(3)))
    assert world.states("a") == ["FINISHED"]
    assert world.told_types("ex").count("ACKNOWLEDGED") == 3
    assert world.drops() == ["update after the end", "update of an unknown task"]


def test_a_late_update_never_moves_the_latest_state_back():
    world = subscribed("a")
    world.report("ex", status("a", pb.TASK_KILLING, uuid(1)))
    world.acknowledge("a")
    world.report("ex", status("a", pb.TASK_RUNNING, uuid(2)))
    update = world.updates("a")[-1]
    assert update.status.state == pb.TASK_RUNNING
    assert update.latest_state == pb.TASK_KILLING


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (status("a", pb.TASK_STAGING), "TASK_STAGING"),
        (status("a", pb.TASK_UNREACHABLE), "TASK_UNREACHABLE"),
        (status("a", pb.TASK_UNKNOWN), "TASK_UNKNOWN"),
        (status("a", 77), "77"),
        (status("a", pb.TASK_RUNNING, b"short"), "5 bytes"),
        (status("a", pb.TASK_RUNNING, source=pb.TaskStatus.SOURCE_MASTER), "SOURCE_EXECUTOR"),
    ],
)
def test_an_update_that_an_executor_may_not_send_is_refused(bad, words):
    world = subscribed("a")
    refusal = world.report("ex", bad)
    assert refusal is not None
    assert words in refusal
    assert not world.updates("a")


def test_an_executor_that_has_ended_is_told_so():
    world = AgentWorld()
    assert world.report("ex", status("a", pb.TASK_RUNNING)) == "executor 'ex' has ended"


def test_the_time_that_an_executor_gave_is_kept():
    world = subscribed("a")
    world.report("ex", status("a", pb.TASK_RUNNING, timestamp=12.5))
    assert world.last("a").timestamp == 12.5


def test_an_executor_may_connect_before_it_is_heard_that_it_has_started():
    world = AgentWorld()
    world.run(for_executor("a"))
    assert world.subscribe("ex") is None
    world.report("ex", status("a", pb.TASK_RUNNING))
    assert not world.last("a").container_status.HasField("executor_pid")
    world.started("ex", pid=42)
    world.advance(1000)
    assert not world.kills()


def test_kills_are_passed_on_with_their_grace():
    world = subscribed("a")
    world.kill("a", grace_s=9)
    event = world.told("ex")[-1]
    assert event.type == executor_pb2.Event.KILL
    assert event.kill.task_id.value == "a"
    assert event.kill.kill_policy.grace_period.nanoseconds == 9 * 10**9
    world.kill("a")
    assert not world.told("ex")[-1].kill.HasField("kill_policy")
    assert not world.kills()


def test_a_kill_before_delivery_ends_the_task_and_an_executor_started_for_it_alone():
    world = AgentWorld()
    world.run(for_executor("a"))
    world.started("ex")
    world.kill("a")
    last = world.last("a")
    assert (last.state, last.reason) == (
        pb.TASK_KILLED,
        REASON.REASON_TASK_KILLED_DURING_LAUNCH,
    )
    assert [name for _, name in world.kills()] == ["TERM"]
    world.ended("ex", 15)
    assert len(world.calls(4)) == 1


def test_a_kill_before_delivery_leaves_an_executor_that_has_other_tasks():
    world = AgentWorld()
    world.run(for_executor("a"), for_executor("b"))
    world.kill("a")
    assert not world.kills()
    world.started("ex")
    world.subscribe("ex")
    assert launches(world) == ["b"]


def test_an_executor_that_does_not_connect_in_time_is_killed_and_its_tasks_failed():
    world = AgentWorld(executor_registration_timeout_s=60)
    world.run(for_executor("a"), for_executor("b"))
    world.started("ex")
    world.advance(59.9)
    assert not world.kills()
    world.advance(0.1)
    assert [name for _, name in world.kills()] == ["KILL"]
    assert not world.updates("a")  # not before its processes are gone
    world.ended("ex", 9)
    for task in ("a", "b"):
        assert world.last(task).state == pb.TASK_FAILED
        assert world.last(task).reason == REASON.REASON_EXECUTOR_REGISTRATION_TIMEOUT


def test_the_time_to_connect_begins_with_its_process_not_while_its_uris_are_fetched():
    world = AgentWorld(executor_registration_timeout_s=60)
    world.run(for_executor("a"))
    world.advance(1000)
    assert not world.kills()
    world.started("ex")
    world.advance(59.9)
    assert not world.kills()
    world.advance(0.1)
    assert [name for _, name in world.kills()] == ["KILL"]


def test_an_executor_in_time_is_left_alone():
    world = subscribed("a")
    world.advance(1000)
    assert not world.kills()


def test_time_in_which_the_agent_itself_was_stopped_does_not_count():
    world = AgentWorld(executor_registration_timeout_s=60)
    world.run(for_executor("a"))
    world.started("ex")
    world.core.on_time(world.clock.advance(300))
    assert not world.core.take_effects()
    assert world.subscribe("ex") is None
    world.advance(1000)
    assert not world.kills()


def test_an_executor_that_cannot_be_started_fails_its_tasks_and_is_reported_gone():
    world = AgentWorld()
    world.run(for_executor("a"), for_executor("b"))
    world.failed("ex", "cannot run './executor'")
    for task in ("a", "b"):
        assert world.last(task).reason == REASON.REASON_CONTAINER_LAUNCH_FAILED
    (gone,) = world.calls(4)
    assert (gone.executor_exited.executor_id.value, gone.executor_exited.status) == ("ex", -1)


def test_the_exit_of_an_executor_fails_its_live_tasks_and_is_told_to_the_master():
    world = subscribed("a", "b")
    world.report("ex", status("a", pb.TASK_FINISHED))
    world.ended("ex", 1 << 8)
    assert world.states("a") == ["FINISHED"]
    last = world.last("b")
    assert (last.state, last.reason) == (pb.TASK_FAILED, REASON.REASON_EXECUTOR_TERMINATED)
    assert (last.source, last.message) == (
        pb.TaskStatus.SOURCE_AGENT,
        "Executor exited with status 1",
    )
    (gone,) = world.calls(4)
    assert gone.executor_exited.status == 1 << 8


def test_shutdown_tells_the_executor_and_kills_it_at_the_end_of_the_grace():
    world = subscribed("a")
    world.shut_down_executor("ex")
    world.shut_down_executor("ex")
    assert world.told_types("ex").count("SHUTDOWN") == 1
    assert not world.kills()
    world.advance(5)
    assert [name for _, name in world.kills()] == ["KILL"]
    world.ended("ex", 9)
    assert world.last("a").reason == REASON.REASON_EXECUTOR_TERMINATED


def test_the_executors_own_grace_is_kept():
    world = AgentWorld()
    own = executor_info(shutdown_grace_period=pb.DurationInfo(nanoseconds=20 * 10**9))
    world.run(for_executor("a", own))
    environment = world.specs()[0].environment
    assert environment["MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD"] == "20secs"
    world.started("ex")
    world.subscribe("ex")
    world.shut_down_executor("ex")
    world.advance(19.9)
    assert not world.kills()
    world.advance(0.1)
    assert world.kills()


def test_an_executor_that_connects_while_it_is_to_end_is_told_so_and_gets_no_task():
    world = AgentWorld()
    world.run(for_executor("a"))
    world.started("ex")
    world.shut_down_executor("ex")
    assert [name for _, name in world.kills()] == ["TERM"]
    world.subscribe("ex")
    assert world.told_types("ex") == ["SUBSCRIBED", "SHUTDOWN"]


def test_a_task_for_an_executor_that_is_ending_is_dropped():
    world = subscribed("a")
    world.shut_down_executor("ex")
    world.run(for_executor("b"))
    assert world.last("b").reason == REASON.REASON_EXECUTOR_TERMINATED
    world.ended("ex", 0)
    world.run(for_executor("c"))
    assert len(world.specs()) == 2


def test_an_executor_info_that_names_its_framework_is_the_same():
    world = subscribed("a")
    named = executor_info(framework_id=pb.FrameworkID(value="F1"))
    world.run(for_executor("b", named))
    assert launches(world) == ["a", "b"]


def test_a_task_with_another_executor_info_under_the_same_id_is_an_error():
    world = subscribed("a")
    world.run(for_executor("b", executor_info(name="other")))
    assert world.last("b").state == pb.TASK_ERROR
    assert "differs" in world.last("b").message


def test_messages_go_both_ways_and_are_dropped_where_nobody_is():
    world = subscribed("a")
    world.core.on_executor_message(("F1", "ex"), b"up")
    world.collect()
    assert world.calls(3)[0].executor_message.data == b"up"
    event = agent_pb2.Event(
        type=agent_pb2.Event.EXECUTOR_MESSAGE,
        executor_message=agent_pb2.Event.ExecutorMessage(
            framework_id=pb.FrameworkID(value="F1"),
            executor_id=pb.ExecutorID(value="ex"),
            data=b"down",
        ),
    )
    world.master(event)
    assert world.told("ex")[-1].message.data == b"down"
    world.core.on_executor_disconnected(("F1", "ex"), world.clock.now())
    world.master(event)
    world.core.on_disconnected()
    world.core.on_executor_message(("F1", "ex"), b"up")
    world.collect()
    assert world.drops() == [
        "message for an executor that is not there",
        "message without a master",
    ]


# ---- Coming back --------------------------------------------------------------------


def test_a_lost_stream_of_an_executor_that_ends_or_is_not_there_changes_nothing():
    world = subscribed("a")
    world.shut_down_executor("ex")
    for executor in ("ex", "ex", "nobody"):
        world.core.on_executor_disconnected(("F1", executor), world.clock.now())
    world.advance(5)
    assert [name for _, name in world.kills()] == ["KILL"]


def test_a_stall_of_the_agent_gives_only_those_more_time_who_are_waited_for():
    world = subscribed("a")
    world.run(for_executor("b", executor_info("other")))
    world.started("other")
    world.core.on_time(world.clock.advance(300))
    world.advance(59)
    assert not world.kills()
    world.advance(1)
    assert world.kills() == [(world.container("other"), "KILL")]


def test_an_executor_that_comes_back_is_given_what_it_never_got_and_no_task_twice():
    world = subscribed("heard", "held", "lost")
    world.report("ex", status("heard", pb.TASK_RUNNING, uuid(1)))
    world.core.on_executor_disconnected(("F1", "ex"), world.clock.now())
    world.run(for_executor("new"))
    world.effects.clear()
    held = for_executor("held")
    assert world.subscribe("ex", unacknowledged_tasks=[held]) is None
    assert launches(world) == ["lost", "new"]


def test_updates_that_were_not_acknowledged_are_taken_when_it_comes_back():
    world = subscribed("a")
    world.report("ex", status("a", pb.TASK_RUNNING, uuid(1)))
    world.core.on_executor_disconnected(("F1", "ex"), world.clock.now())
    repeated = [
        Update(status=status("a", pb.TASK_RUNNING, uuid(1))),
        Update(status=status("a", pb.TASK_FINISHED, uuid(2))),
    ]
    world.subscribe("ex", unacknowledged_updates=repeated)
    world.acknowledge_all("a")
    assert world.states("a") == ["RUNNING", "FINISHED"]
    assert world.told_types("ex").count("ACKNOWLEDGED") == 3


def test_a_kill_that_came_meanwhile_is_told_when_it_comes_back():
    world = subscribed("a")
    world.report("ex", status("a", pb.TASK_RUNNING, uuid(1)))
    world.core.on_executor_disconnected(("F1", "ex"), world.clock.now())
    world.kill("a", grace_s=2)
    world.effects.clear()
    world.subscribe("ex")
    assert world.told_types("ex") == ["SUBSCRIBED", "KILL"]


def test_an_executor_that_stays_away_is_killed_and_its_tasks_are_gone():
    world = AgentWorld()
    world.framework = framework_info(CAPABILITY.PARTITION_AWARE)
    world.run(for_executor("a"))
    world.started("ex")
    world.subscribe("ex")
    world.core.on_executor_disconnected(("F1", "ex"), world.clock.now())
    world.advance(60)
    assert [name for _, name in world.kills()] == ["KILL"]
    world.ended("ex", 9)
    last = world.last("a")
    assert (last.state, last.reason) == (
        pb.TASK_GONE,
        REASON.REASON_EXECUTOR_REREGISTRATION_TIMEOUT,
    )


def test_updates_for_a_removed_framework_are_acknowledged_and_go_no_further():
    world = subscribed("a")
    world.shut_down_framework()
    world.report("ex", status("a", pb.TASK_RUNNING))
    assert world.told_types("ex")[-1] == "ACKNOWLEDGED"
    assert not world.updates("a")


def test_a_removed_frameworks_executor_ends_and_the_master_hears_of_each_task():
    world = subscribed("a", "b")
    world.shut_down_framework()
    assert world.told_types("ex")[-1] == "SHUTDOWN"
    world.ended("ex", 0)
    for task in ("a", "b"):
        (settled,) = world.updates(task)
        assert not settled.status.HasField("uuid")
    assert len(world.calls(4)) == 1
    assert not world.core.state.tasks
    assert not len(world.core.state.updates)


def test_an_update_for_a_removed_framework_is_acknowledged_by_the_uuid_that_it_came_with():
    world = subscribed("a")
    world.shut_down_framework()
    world.report("ex", status("a", pb.TASK_KILLED, uuid(7)))
    assert world.told("ex")[-1].acknowledged.uuid == uuid(7)


def test_it_is_known_who_speaks_as_an_executor():
    world = AgentWorld()
    assert world.core.executor_standing(("F1", "ex")) is Standing.NO_FRAMEWORK
    world.run(for_executor("a"), command("c"))
    assert world.core.executor_standing(("F1", "ex")) is Standing.SILENT
    assert world.core.executor_standing(("F2", "ex")) is Standing.NO_FRAMEWORK
    assert world.core.executor_standing(("F1", "other")) is Standing.UNKNOWN
    # The agent itself runs a command: nobody may speak for it.
    assert world.core.executor_standing(("F1", "c")) is Standing.UNKNOWN
    world.started("ex")
    world.subscribe("ex")
    assert world.core.executor_standing(("F1", "ex")) is Standing.SUBSCRIBED
    world.core.on_executor_disconnected(("F1", "ex"), world.clock.now())
    assert world.core.executor_standing(("F1", "ex")) is Standing.SUBSCRIBED
    # A new run of the agent waits until it has subscribed there.
    world.restart()
    assert world.core.executor_standing(("F1", "ex")) is Standing.SILENT
    world.subscribe("ex")
    assert world.core.executor_standing(("F1", "ex")) is Standing.SUBSCRIBED


def test_an_update_that_comes_again_and_cannot_be_taken_is_counted():
    world = subscribed("a")
    bad = Update(status=status("a", pb.TASK_RUNNING, uuid=b"short"))
    world.core.on_executor_disconnected(("F1", "ex"), world.clock.now())
    world.subscribe("ex", unacknowledged_updates=[bad])
    assert world.drops() == ["unacceptable update came again"]
