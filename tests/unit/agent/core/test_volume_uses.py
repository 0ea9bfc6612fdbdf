"""Where tasks and executors see the persistent volumes of an agent."""

import pytest

from agent.core.effects import LinkVolumes, UnlinkVolumes
from agent.core.volume_uses import VolumeKey, VolumeUse
from mesos_py.v1 import types_pb2 as pb
from mesos_py.v1.agent_pb2 import Event
from tests.kit import agent_core
from tests.kit.agent_core import command, executor_info, for_executor
from tests.kit.agent_core import status as status_of
from tests.kit.agent_volumes import (
    ADS,
    Listed,
    VolumeWorld,
    agent_with_disk,
    made,
    using,
)
from tests.kit.reserving import create, destroy, volume

KEY = VolumeKey("ads", "v1")


@pytest.fixture
def world(monkeypatch):
    monkeypatch.setattr(agent_core, "agent_info", agent_with_disk)
    return VolumeWorld(Listed())


def seen(path, **more):
    return VolumeUse(KEY, path, **more)


def docker(info):
    info.container.type = pb.ContainerInfo.DOCKER
    info.container.docker.image = "debian"
    return info


@pytest.fixture
def with_docker(world):
    world.apply(create(made()))
    world.restart(provided=frozenset({"docker"}))
    world.register()
    return world


def test_a_command_sees_its_volume_where_it_says(world):
    world.apply(create(made()))
    world.run(using(command("t1"), volume(ADS, 10, path="mine")))
    assert world.specs()[0].volumes == [seen("mine")]


def test_an_executor_has_its_own_from_the_start_and_its_tasks_theirs_with_them(world):
    world.apply(create(made() + made("v2")))
    executor = using(executor_info(), made())
    world.run(using(for_executor("t1", executor), volume(ADS, 10, "v2", "other")))
    assert world.specs()[0].volumes == [seen("data")]
    world.started("ex")
    world.subscribe("ex")
    (linked,) = world.of(LinkVolumes)
    assert linked.volumes == [VolumeUse(VolumeKey("ads", "v2"), "other")]
    assert linked.event.launch.task.task_id.value == "t1"
    assert world.told_types("ex") == ["SUBSCRIBED"]
    world.report("ex", status_of("t1", pb.TASK_FINISHED))
    (unlinked,) = world.of(UnlinkVolumes)
    assert (unlinked.sandbox, unlinked.volumes) == (linked.sandbox, linked.volumes)


def test_a_launch_that_came_too_early_is_repeated_with_its_volumes(world):
    world.apply(create(made()))
    world.run(using(for_executor("t1"), made()))
    world.started("ex")
    world.subscribe("ex")
    world.restart()
    world.subscribe("ex")
    assert [each.tasks for each in world.of(LinkVolumes)] == [(("F1", "t1"),)]


def test_a_task_whose_volume_cannot_be_shown_fails_and_its_executor_goes_on(world):
    world.apply(create(made()))
    world.run(using(for_executor("t1"), made()))
    world.started("ex")
    world.subscribe("ex")
    (linked,) = world.of(LinkVolumes)
    world.core.on_volumes_not_linked(linked, "something else is there", world.clock.now())
    world.collect()
    said = world.last("t1")
    assert (said.state, said.message) == (pb.TASK_FAILED, "something else is there")
    assert said.reason == pb.TaskStatus.REASON_CONTAINER_UPDATE_FAILED
    assert world.kills() == []
    assert world.limits()[-1] == "cpus:0.5"
    # What comes of it once more is nothing.
    world.core.on_volumes_not_linked(linked, "again", world.clock.now())
    assert not world.apply(destroy(made()))


def test_a_group_of_a_custom_executor_is_handed_over_with_all_its_volumes_or_fails(world):
    world.apply(create(made() + made("v2")))
    first = using(for_executor("t1"), made())
    world.run_group(first, using(for_executor("t2"), volume(ADS, 10, "v2", "other")))
    world.started("ex")
    world.subscribe("ex")
    (linked,) = world.of(LinkVolumes)
    assert [use.container_path for use in linked.volumes] == ["data", "other"]
    world.core.on_volumes_not_linked(linked, "no", world.clock.now())
    world.collect()
    assert world.last("t1").state == world.last("t2").state == pb.TASK_FAILED


def test_our_own_executor_makes_the_links_of_its_tasks_itself(world):
    world.apply(create(made()))
    world.restart(default_executor=("python",))
    world.register()
    executor = pb.ExecutorInfo(type=pb.ExecutorInfo.DEFAULT, executor_id=pb.ExecutorID(value="ex"))
    task = using(for_executor("t1", executor), made())
    task.command.value = "true"
    world.run_group(task)
    assert world.specs()[0].volumes == []
    world.started("ex")
    world.subscribe("ex")
    assert world.told_types("ex") == ["SUBSCRIBED", "LAUNCH_GROUP"]
    assert world.of(LinkVolumes) == []
    world.report("ex", status_of("t1", pb.TASK_FINISHED))
    assert world.of(UnlinkVolumes) == []


@pytest.mark.parametrize(
    ("use", "why"),
    [
        ({"path": "/data"}, "not an absolute one"),
        ({"path": "stdout"}, "something of its own"),
        ({"read_only": True}, "can be kept in docker containers only"),
    ],
)
@pytest.mark.parametrize("whose", ["command", "task", "executor"])
def test_what_no_link_can_be_is_refused_in_words(world, whose, use, why):
    world.apply(create(made()))
    own = volume(ADS, 10, **use)
    if whose == "command":
        world.run(using(command("t1"), own))
    elif whose == "task":
        world.run(using(for_executor("t1"), own))
    else:
        world.run(for_executor("t1", using(executor_info(), own)))
    assert world.specs() == []
    assert world.last("t1").state == pb.TASK_ERROR
    assert why in world.last("t1").message


def test_in_a_docker_container_a_volume_can_be_anywhere_and_be_read_only(with_docker):
    own = volume(ADS, 10, path="/data", read_only=True)
    with_docker.run(using(docker(command("t1")), own))
    assert with_docker.specs()[0].volumes == [seen("/data", read_only=True)]


def test_a_docker_container_that_runs_gets_no_further_volumes(with_docker):
    with_docker.run(using(for_executor("t1", docker(executor_info())), made()))
    assert with_docker.specs() == []
    assert "its executor can have it" in with_docker.last("t1").message


def test_a_drain_ends_an_executor_whose_last_task_could_not_see_its_volume(world):
    world.apply(create(made()))
    world.run(for_executor("t0"))
    world.started("ex")
    world.subscribe("ex")
    world.report("ex", status_of("t0", pb.TASK_FINISHED))
    world.run(using(for_executor("t1"), made()))
    (linked,) = world.of(LinkVolumes)
    order = Event.Drain(config=pb.DrainConfig())
    world.master(Event(type=Event.DRAIN, drain=order))
    assert not world.core.state.executors[linked.key].ending
    world.core.on_volumes_not_linked(linked, "no room", world.clock.now())
    assert world.core.state.executors[linked.key].ending


def test_a_link_goes_though_the_agent_died_between_the_end_and_that(world):
    world.apply(create(made()))
    world.run(using(for_executor("t1"), made()), for_executor("t2"))
    world.started("ex")
    world.subscribe("ex")
    world.report("ex", status_of("t1", pb.TASK_FINISHED))
    # The checkpoint has it; what followed from it may not have been done.
    world.restart()
    (gone,) = world.of(UnlinkVolumes)
    assert gone.volumes == [VolumeUse(VolumeKey("ads", "v1"), "data")]


def test_a_link_stays_that_the_next_task_has_at_the_same_place(world):
    world.apply(create(made()))
    world.run(using(for_executor("t1"), made()))
    world.started("ex")
    world.subscribe("ex")
    world.report("ex", status_of("t1", pb.TASK_FINISHED))
    assert len(world.of(UnlinkVolumes)) == 1
    world.run(using(for_executor("t2"), made()))
    world.restart()
    # The end of t1 is not acknowledged yet, and t2 is there.
    assert world.of(UnlinkVolumes) == []
