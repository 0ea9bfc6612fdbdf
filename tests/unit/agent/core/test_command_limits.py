"""Command tasks whose time or limits end them; agents that shut them down."""

import pytest

from agent.core.records import Exit
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import AgentWorld, command
from tests.unit.agent.core.test_commands import TERM_THEN_KILL, running, signals


def test_max_completion_time_kills_without_grace_and_fails_the_task():
    world = AgentWorld()
    running(world, max_completion_time=pb.DurationInfo(nanoseconds=60 * 10**9))
    world.advance(59.9)
    assert not world.kills()
    world.advance(0.1)
    assert signals(world) == ["KILL"]
    world.ended("t", 9)
    last = world.last("t")
    assert last.state == pb.TASK_FAILED
    assert last.reason == pb.TaskStatus.REASON_MAX_COMPLETION_TIME_REACHED


def test_a_kill_before_max_completion_time_stands():
    world = AgentWorld()
    running(world, max_completion_time=pb.DurationInfo(nanoseconds=10**9))
    world.kill("t", grace_s=5)
    world.advance(2)
    assert signals(world) == ["TERM"]
    world.ended("t", 15)
    assert world.last("t").state == pb.TASK_KILLED


def test_a_container_over_its_limit_is_killed_and_its_task_failed_with_the_reason():
    world = AgentWorld()
    running(world)
    limitation = pb.TaskResourceLimitation(resources=[pb.Resource(name="mem")])
    world.core.on_container_limited(
        world.container("t"),
        pb.TaskStatus.REASON_CONTAINER_LIMITATION_MEMORY,
        "used 70 MB of 64 MB",
        limitation,
        world.clock.now(),
    )
    world.collect()
    assert signals(world) == ["KILL"]
    world.ended("t", 9)
    last = world.last("t")
    assert last.reason == pb.TaskStatus.REASON_CONTAINER_LIMITATION_MEMORY
    assert last.limitation == limitation
    assert last.exit_status.signal == 9


def test_a_limit_reached_while_being_killed_leaves_it_killed():
    world = AgentWorld()
    running(world)
    world.kill("t")
    world.core.on_container_limited(
        world.container("t"),
        pb.TaskStatus.REASON_CONTAINER_LIMITATION_MEMORY,
        "",
        pb.TaskResourceLimitation(),
        world.clock.now(),
    )
    world.ended("t", 9)
    assert world.last("t").state == pb.TASK_KILLED


def test_shutdown_of_the_executor_of_a_command_is_a_kill_with_that_grace():
    world = AgentWorld()
    running(world)
    world.shut_down_executor("t")
    world.advance(4.9)
    assert signals(world) == ["TERM"]
    world.advance(0.1)
    assert signals(world) == TERM_THEN_KILL
    world.ended("t", 9)
    assert world.last("t").state == pb.TASK_KILLED


def test_a_removed_framework_is_told_nothing_but_the_master_learns_when_its_tasks_are_gone():
    world = AgentWorld()
    running(world)
    world.run(command("done"))
    world.started("done")
    world.ended("done", 0)
    before = len(world.updates("t"))
    world.shut_down_framework()
    # It had ended, but only its first update was on its way.
    assert world.states("done") == ["STARTING", "FINISHED"]
    assert not world.last("done").HasField("uuid")
    assert signals(world) == ["TERM"]
    assert list(world.core.state.updates) == []
    world.acknowledge("done")
    assert world.drops() == ["acknowledgement for a task without updates"]
    world.ended("t", 15)
    (settled,) = world.updates("t")[before:]
    assert not settled.status.HasField("uuid")
    assert settled.latest_state == pb.TASK_KILLED
    assert not world.core.state.tasks
    assert not world.core.state.frameworks


def test_an_end_that_still_waits_behind_the_head_is_told_when_the_framework_goes():
    """Else the master would keep the room of the task for nobody."""
    world = AgentWorld()
    world.run(command("t"))
    world.started("t")
    world.ended("t", 0)
    assert world.states("t") == ["STARTING"]  # not acknowledged, so the others wait
    world.shut_down_framework()
    settled = world.updates("t")[-1]
    assert settled.latest_state == pb.TASK_FINISHED
    assert not settled.status.HasField("uuid")
    assert not world.core.state.tasks


def test_the_agents_stop_kills_all_tasks_and_then_says_so():
    world = AgentWorld()
    running(world, "a")
    running(world, "b", grace_s=1)
    world.core.on_stop(world.clock.now())
    world.collect()
    assert signals(world) == ["TERM", "TERM"]
    world.advance(1)
    assert world.kills()[2:] == [(world.container("b"), "KILL")]
    world.ended("b", 9)
    assert not world.stops()
    world.ended("a", 15)
    assert [stop.wanted for stop in world.stops()] == [True]
    assert world.states("a")[-1] == world.states("b")[-1] == "KILLED"


def test_a_stop_with_nothing_running_is_at_once():
    world = AgentWorld()
    world.core.on_stop(world.clock.now())
    world.collect()
    assert len(world.stops()) == 1


def test_asked_to_stop_at_once_there_is_no_grace():
    world = AgentWorld()
    running(world)
    world.core.on_stop(world.clock.now())
    world.core.on_stop_at_once(world.clock.now())
    world.collect()
    assert signals(world) == TERM_THEN_KILL


def test_a_task_that_arrives_during_the_stop_is_dropped():
    world = AgentWorld()
    running(world)
    world.core.on_stop(world.clock.now())
    world.run(command("late"))
    assert world.last("late").state == pb.TASK_LOST
    assert "shutting down" in world.last("late").message
    assert len(world.specs()) == 1


def test_news_of_containers_that_are_not_here_changes_nothing():
    world = AgentWorld()
    now = world.clock.now()
    world.core.on_container_started("c9", 1, now)
    world.core.on_container_failed("c9", "", now)
    world.core.on_container_ended("c9", Exit(0), now)
    world.collect()
    assert world.drops() == [
        "unknown container started",
        "unknown container failed to start",
        "unknown container ended",
    ]


def test_how_many_tasks_have_unacknowledged_updates_is_known():
    world = AgentWorld()
    running(world, "a")
    world.run(command("b"))
    assert world.core.unacknowledged == 1
    world.acknowledge_all("b")
    assert world.core.unacknowledged == 0


def test_the_end_of_one_framework_leaves_the_others():
    world = AgentWorld()
    running(world)
    world.framework.id.value = "F2"
    world.shut_down_framework()
    world.shut_down_executor("nobody")
    assert not world.kills()
    assert world.drops() == ["shutdown of an unknown executor"]


def test_followers_of_a_log_are_told_when_the_task_has_ended():
    world = AgentWorld()
    running(world)
    assert world.task_ends() == []
    place = world.core.find_task(("F1", "t"))
    assert place is not None
    assert (place.started, place.ended) == (True, False)
    world.ended("t", 0)
    assert world.task_ends() == ["t"]
    world.acknowledge_all("t")
    place = world.core.find_task(("F1", "t"))
    assert place is not None
    assert place.ended
    assert place.sandbox == world.specs()[0].sandbox


def test_only_so_many_ended_tasks_are_remembered():
    world = AgentWorld(max_completed_tasks=2)
    for name in ("a", "b", "c"):
        running(world, name)
        world.ended(name, 0)
        world.acknowledge_all(name)
    assert world.core.find_task(("F1", "a")) is None
    assert world.core.find_task(("F1", "b")) is not None
    assert not world.core.state.tasks


def hurt(world: AgentWorld, message: str = "a child was killed") -> None:
    world.core.on_container_limited(
        world.container("t"),
        pb.TaskStatus.REASON_CONTAINER_LIMITATION_MEMORY,
        message,
        pb.TaskResourceLimitation(),
        world.clock.now(),
        fatal=False,
    )
    world.collect()


def test_a_task_that_lost_a_part_of_itself_is_told_and_goes_on():
    world = AgentWorld()
    running(world)
    hurt(world)
    world.acknowledge_all("t")
    told = world.last("t")
    assert (told.state, told.message) == (pb.TASK_RUNNING, "a child was killed")
    assert told.reason == pb.TaskStatus.REASON_CONTAINER_LIMITATION_MEMORY
    assert told.source == pb.TaskStatus.SOURCE_AGENT
    assert world.kills() == []
    world.ended("t", 0)
    assert world.states("t")[-1] == "FINISHED"
    assert world.last("t").message == "Command exited with status 0"


def test_a_failure_says_what_was_lost_before():
    world = AgentWorld()
    running(world)
    hurt(world)
    world.acknowledge_all("t")
    world.ended("t", 1 << 8)
    wanted = "Command exited with status 1. Before that: a child was killed"
    assert world.last("t").message == wanted
    assert not world.last("t").HasField("reason")


def test_a_part_lost_by_an_unknown_container_is_dropped():
    world = AgentWorld()
    world.core.on_container_limited(
        "unknown",
        pb.TaskStatus.REASON_CONTAINER_LIMITATION_MEMORY,
        "odd",
        pb.TaskResourceLimitation(),
        world.clock.now(),
        fatal=False,
    )
    world.collect()
    assert world.drops() == ["limit of an unknown container"]


def test_a_containers_own_addresses_are_in_its_tasks_statuses():
    world = AgentWorld()
    world.run(command("t"))
    world.acknowledge("t")
    world.core.on_container_addressed(world.container("t"), ("10.213.0.2", "fd00::2"))
    world.started("t", pid=7)
    status = world.updates("t")[-1].status
    assert status.state == pb.TASK_RUNNING
    assert (status.container_status.executor_pid, status.container_status.container_id.value) == (
        7,
        world.container("t"),
    )
    (network,) = status.container_status.network_infos
    assert [(each.protocol, each.ip_address) for each in network.ip_addresses] == [
        (pb.NetworkInfo.IPv4, "10.213.0.2"),
        (pb.NetworkInfo.IPv6, "fd00::2"),
    ]


Docker = pb.ContainerInfo.DockerInfo


@pytest.mark.parametrize(
    ("container", "found"),
    [
        (None, True),
        (pb.ContainerInfo(type=pb.ContainerInfo.MESOS), True),
        (pb.ContainerInfo(type=pb.ContainerInfo.DOCKER, docker=Docker(image="i")), True),
        (
            pb.ContainerInfo(
                type=pb.ContainerInfo.DOCKER, docker=Docker(image="i", network=Docker.BRIDGE)
            ),
            False,
        ),
        (
            pb.ContainerInfo(
                type=pb.ContainerInfo.MESOS, network_infos=[pb.NetworkInfo(name="mesos-py")]
            ),
            False,
        ),
    ],
)
def test_a_container_on_the_agents_network_is_found_at_the_agents_address(container, found):
    world = AgentWorld(provided=frozenset({"networks", "docker"}))
    world.core.state.info.ip = "10.0.0.2"
    world.run(command("t", container=container) if container is not None else command("t"))
    status = world.updates("t")[0].status
    assert status.state == pb.TASK_STARTING, status
    addresses = [
        each.ip_address
        for network in status.container_status.network_infos
        for each in network.ip_addresses
    ]
    assert addresses == (["10.0.0.2"] if found else [])


def test_addresses_of_a_container_that_nobody_knows_are_dropped():
    world = AgentWorld()
    world.core.on_container_addressed("nobody", ("10.213.0.2",))
    world.collect()
    assert world.drops() == ["unknown container has addresses"]
