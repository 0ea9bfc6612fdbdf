"""Volumes of an agent: operations, who uses them, what is written down of them."""

import pytest

from agent.core.effects import EraseVolumes, UpdateContainer
from agent.core.journal import RESERVED_KEY, VOLUMES_KEY, Kind
from agent.core.recovery import require_compatible
from agent.core.volumes import VolumeKey
from mesos_py.errors import InvalidValue, Unavailable
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb
from tests.kit import agent_core
from tests.kit.agent_core import AgentWorld, command, executor_info, for_executor
from tests.kit.agent_core import status as status_of
from tests.kit.agent_volumes import ADS, DISK, VolumeWorld, agent_with_disk, made
from tests.kit.reserving import amount, create, destroy, grow, shrink, unreserve, volume

KEY = VolumeKey("ads", "v1")
CREATE_2 = create(made() + made("v2"), "op")


class Listed:
    """Directories that are only a list of what was asked for."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.full = False

    def create(self, volumes):
        self._do("create", volumes)

    def destroy(self, volumes, generation):
        self._do("destroy", volumes)

    def _do(self, what, volumes):
        if self.full:
            raise Unavailable("no space left")
        self.done += [f"{what} {each.role} {each.volume_id}" for each in volumes]


@pytest.fixture
def directories():
    return Listed()


@pytest.fixture
def world(directories, monkeypatch):
    monkeypatch.setattr(agent_core, "agent_info", agent_with_disk)
    return VolumeWorld(directories)


def has(world):
    return world.core.state.total


def using(task, resources):
    task.resources.extend(resources.to_proto())
    return task


def erased(world):
    return [effect.generation for effect in world.of(EraseVolumes)]


def test_a_volume_is_made_told_and_known_to_the_next_run(world, directories):
    (said,) = world.apply(CREATE_2)
    assert said.state == pb.OPERATION_FINISHED
    assert directories.done == ["create ads v1", "create ads v2"]
    assert has(world).contains(made() + made("v2") + amount(ADS, disk=80))
    world.restart()
    assert world.core.saved_volumes() == ({KEY, VolumeKey("ads", "v2")}, 1)
    told = Resources.from_proto("it", world.core.register_call("v", 1).register.reserved)
    assert told.contains(made() + made("v2"))


def test_the_master_is_told_that_this_agent_knows_volumes(world):
    capabilities = world.core.register_call("v", 1).register.capabilities
    assert pb.AgentInfo.Capability.RESIZE_VOLUME in [each.type for each in capabilities]


def test_a_volume_that_is_destroyed_is_put_aside_and_then_erased(world, directories):
    world.apply(create(made()))
    world.apply(destroy(made()))
    assert directories.done == ["create ads v1", "destroy ads v1"]
    assert erased(world) == [2]
    assert has(world).contains(DISK)
    world.restart()
    assert world.core.saved_volumes() == (set(), 2)


def test_a_volume_grows_and_shrinks_where_it_is(world, directories):
    world.apply(create(made()))
    world.apply(grow(made(), amount(ADS, disk=5)), shrink(made(disk_mb=15), 8))
    assert has(world).contains(made(disk_mb=7) + amount(ADS, disk=93))
    assert directories.done == ["create ads v1"]
    world.restart()
    assert has(world).contains(made(disk_mb=7))


def test_where_it_is_seen_is_not_what_a_volume_is_told_by(world):
    world.apply(create(made()))
    world.apply(destroy(volume(ADS, 10, path="elsewhere")))
    assert world.core.saved_volumes()[0] == set()


def test_where_no_directory_can_be_had_nothing_is_done_and_that_is_said(world, directories):
    before = has(world)
    directories.full = True
    (said,) = world.apply(create(made()))
    assert (said.state, said.message) == (pb.OPERATION_DROPPED, "no space left")
    assert has(world) == before
    assert (Kind.VOLUMES, VOLUMES_KEY) not in world.records


def test_a_volume_that_cannot_be_put_aside_stays(world, directories):
    world.apply(create(made()))
    directories.full = True
    (said,) = world.apply(destroy(made()))
    assert said.state == pb.OPERATION_DROPPED
    assert world.core.saved_volumes()[0] == {KEY}
    assert erased(world) == []


def test_one_id_is_had_once_by_a_role(world, directories):
    world.apply(create(made()))
    (said,) = world.apply(create(made(disk_mb=20)))
    assert "has a volume of that id there already" in said.message
    assert directories.done == ["create ads v1"]


def test_what_a_volume_is_made_of_cannot_be_unreserved(world):
    world.apply(create(made(disk_mb=100)))
    (said,) = world.apply(unreserve(amount(ADS, disk=1)))
    assert said.state == pb.OPERATION_DROPPED


@pytest.mark.parametrize("operation", [destroy(made()), shrink(made(), 5)], ids=["away", "less"])
@pytest.mark.parametrize("whose", ["command", "task", "executor"])
def test_a_volume_in_use_stays_as_it_is_whatever_the_master_says(world, whose, operation):
    world.apply(create(made()))
    # It says anew where it is to be seen.
    own = volume(ADS, 10, path="mine")
    if whose == "command":
        world.run(using(command("t1"), own))
    elif whose == "task":
        world.run(using(for_executor("t1"), own))
    else:
        world.run(for_executor("t1", using(executor_info(), own)))
    (said,) = world.apply(operation)
    assert said.state == pb.OPERATION_DROPPED
    assert "the volume 'v1' of the role 'ads' is in use on this agent" in said.message
    assert has(world).contains(made())


def test_a_volume_that_nobody_uses_any_more_can_be_destroyed(world):
    world.apply(create(made()))
    world.run(using(command("t1"), made()))
    world.started("t1")
    world.ended("t1")
    assert not world.apply(destroy(made()))


def test_of_a_task_of_an_executor_it_is_free_when_the_task_has_ended(world):
    world.apply(create(made()))
    world.run(using(for_executor("t1"), made()))
    world.started("ex")
    world.subscribe("ex")
    world.report("ex", status_of("t1", pb.TASK_FINISHED))
    assert not world.apply(destroy(made()))


@pytest.mark.parametrize("asked", [made("v2"), made(disk_mb=11)], ids=["other", "size"])
@pytest.mark.parametrize("kind", [command, for_executor])
def test_a_task_on_a_volume_that_is_not_here_is_not_started(world, asked, kind):
    """The master took the operation to be done before the agent's word."""
    world.apply(create(made()))
    world.run(using(kind("t1"), asked))
    assert world.specs() == []
    said = world.last("t1")
    assert said.state == pb.TASK_LOST
    assert said.reason == pb.TaskStatus.REASON_RESOURCES_UNKNOWN
    assert "this agent has no volume" in said.message


def test_an_executor_on_a_volume_that_is_not_here_is_not_started(world):
    world.run(for_executor("t1", using(executor_info(), made())))
    assert world.specs() == []
    assert world.last("t1").reason == pb.TaskStatus.REASON_RESOURCES_UNKNOWN


def test_a_group_on_a_volume_that_is_not_here_is_not_started(world):
    tasks = [for_executor("t1"), using(for_executor("t2"), made())]
    world.run_group(*tasks)
    assert world.specs() == []
    reason = pb.TaskStatus.REASON_RESOURCES_UNKNOWN
    assert [world.last(each).reason for each in ("t1", "t2")] == [reason, reason]


def test_what_is_in_a_volume_is_not_the_containers(world):
    world.apply(create(made()))
    (launched,) = [using(command("t1"), made() + amount(ADS, disk=3))]
    world.run(launched)
    assert world.specs()[0].resources() == Resources.of(cpus=1, disk=3)


def test_nor_is_it_of_an_executor_whose_tasks_come_and_go(world):
    world.apply(create(made()))
    world.run(using(for_executor("t1"), made()))
    world.started("ex")
    world.subscribe("ex")
    assert world.of(UpdateContainer)[-1].resources == Resources.of(cpus=1.5)


def test_a_task_goes_on_over_a_restart_wherever_it_sees_its_volume(world):
    world.apply(create(made()))
    world.run(using(command("t1"), volume(ADS, 10, path="mine")))
    world.started("t1")
    world.restart()
    core = world.core
    saved, reserved = core.saved_containers(), core.state.reserved
    require_compatible(core.state.info, agent_with_disk(), saved, reserved)
    assert world.apply(destroy(made()))[0].state == pb.OPERATION_DROPPED


def test_a_damaged_record_of_what_was_put_aside_keeps_the_agent_from_starting(world):
    """What was in a volume would be erased, or given to the next."""
    world.apply(create(made()))
    with pytest.raises(InvalidValue, match=r"what was done to volumes.*cannot be read"):
        world.restart(damaged={(Kind.VOLUMES, VOLUMES_KEY)})


def test_an_agent_without_volumes_writes_nothing_of_them(world):
    assert (Kind.RESERVED, RESERVED_KEY) in world.records
    assert (Kind.VOLUMES, VOLUMES_KEY) not in world.records


def test_a_core_that_keeps_no_volumes_says_so(monkeypatch):
    monkeypatch.setattr(agent_core, "agent_info", agent_with_disk)
    world = VolumeWorld(AgentWorld().directories)
    (said,) = world.apply(create(made()))
    assert "keeps no volumes" in said.message
