"""Persistent volumes on a real cluster: what one task has written another reads, whatever has
become of the agent meanwhile, until the volume is destroyed."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mesos_py import launch, reserve, reserved_for
from mesos_py.resources import Resources
from mesos_py.states import TASK_FAILED, TASK_FINISHED, TASK_KILLED, TASK_RUNNING
from mesos_py.tasks import command_task, custom_executor, default_executor, executor_task
from mesos_py.v1.types_pb2 import OPERATION_ERROR, OPERATION_FINISHED
from mesos_py.volumes import create_volume, destroy_volume, volume_at, volume_on
from tests.kit import echo_executor
from tests.kit.cluster import Cluster, Daemon
from tests.kit.framework import Framework
from tests.kit.waiting import until

DISK = Resources.parse("disk:10")
MINE = reserved_for(DISK, "ads")
VOLUME = volume_on(MINE, "v1", "data")
PART = Resources.parse("cpus:0.5;mem:32")


class World:
    """A cluster of one agent, and a framework that has a volume there, with a file in it."""

    def __init__(self, cluster: Cluster, framework: Framework, agent: Daemon) -> None:
        self.cluster = cluster
        self.framework = framework
        self.agent = agent
        self.work_dir = agent.work_dir
        self.place = agent.work_dir / "volumes/roles/ads/v1"
        offer = framework.offer(has=DISK + PART)
        made = create_volume(MINE, "v1", "data", operation_id="made")
        writes = command_task("w", "w", offer, "echo hello > data/file", resources=PART + VOLUME)
        framework.driver.accept_offers(offer, [reserve(DISK, "ads"), made, launch(writes)])
        framework.status("w", TASK_FINISHED)
        assert framework.outcome("made").state == OPERATION_FINISHED


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with Cluster(tmp_path) as cluster:
        agent = cluster.start_agent("a", "cpus:2;mem:256;disk:60", tasks_on_exit="keep")
        with Framework(cluster.address, roles=["ads"]) as framework:
            yield World(cluster, framework, agent)


def test_what_was_written_outlives_the_agent_and_goes_when_it_is_destroyed(world: World) -> None:
    framework = world.framework
    # It goes with the agent, and what comes afterwards is another one.
    framework.gather(VOLUME + PART)
    world.agent.kill()
    world.cluster.wait_for_agent("a", "disconnected")
    world.agent.start()
    elsewhere = volume_at(VOLUME, "deep/mine")
    offer = framework.gather(VOLUME + PART)
    reads = 'test "$(cat deep/mine/file)" = hello'
    task = command_task("r", "r", offer, reads, resources=PART + elsewhere)
    framework.driver.launch_tasks(offer, task)
    framework.status("r", TASK_FINISHED)
    offer = framework.gather(VOLUME + PART + Resources.parse("cpus:0.1;mem:32;disk:32"))
    pod = command_task("g", "g", offer, reads, resources=PART + elsewhere)
    executor = default_executor("pod", mem=32)
    framework.driver.launch_group(offer, executor, [pod])
    framework.status("g", TASK_FINISHED)
    offer = framework.gather(VOLUME)
    gone = destroy_volume(VOLUME, operation_id="gone")
    framework.driver.accept_offers(offer, [gone])
    assert framework.outcome("gone").state == OPERATION_FINISHED
    assert not world.place.exists()
    trash = world.work_dir / "volumes/.trash"
    until(lambda: trash.is_dir() and not list(trash.iterdir()))


def test_a_task_keeps_its_volume_while_the_agent_is_killed_and_comes_back(world: World) -> None:
    framework = world.framework
    offer = framework.gather(VOLUME + PART)
    program = "while [ ! -e data/go ]; do sleep 0.1; done; echo after >> data/file"
    task = command_task("u", "u", offer, program, resources=PART + VOLUME)
    framework.driver.launch_tasks(offer, task)
    framework.status("u", TASK_RUNNING)
    for _ in range(2):
        world.agent.kill()
        world.cluster.wait_for_agent("a", "disconnected")
        world.agent.start()
    # It is in no offer, old or new.
    gone = destroy_volume(VOLUME, operation_id="gone")
    framework.driver.accept_offers(framework.offer(), [gone])
    assert framework.outcome("gone").state == OPERATION_ERROR
    (world.place / "go").touch()
    framework.status("u", TASK_FINISHED)
    assert (world.place / "file").read_text() == "hello\nafter\n"
    framework.gather(VOLUME + PART)


def test_a_task_of_an_executor_has_its_volume_for_as_long_as_it_runs(world: World) -> None:
    framework = world.framework
    offer = framework.gather(VOLUME + PART + PART)
    echo = custom_executor("echo", [sys.executable, echo_executor.__file__], cpus=0.5, mem=32)
    task = executor_task("t", "t", offer, echo, data=b"run", resources=PART + VOLUME)
    framework.driver.launch_tasks(offer, task)
    framework.status("t", TASK_RUNNING)
    (link,) = world.work_dir.glob("agents/*/frameworks/*/executors/echo/runs/latest/data")
    assert (link / "file").read_text() == "hello\n"
    framework.driver.kill_task("t")
    framework.status("t", TASK_KILLED)
    until(lambda: not link.is_symlink())
    assert (world.place / "file").read_text() == "hello\n"


def test_a_task_fails_whose_volume_cannot_be_where_it_says(world: World) -> None:
    """Its own file is there already."""
    framework = world.framework
    offer = framework.gather(VOLUME + PART)
    (source := world.work_dir.parent / "fetched").write_text("x")
    taken = volume_at(VOLUME, "fetched/data")
    task = command_task("t", "t", offer, "true", uris=[str(source)], resources=PART + taken)
    framework.driver.launch_tasks(offer, task)
    assert "leads over a link or a file" in framework.status("t", TASK_FAILED).message
