"""Volumes of an agent: operations, who uses them, what is written down of them."""

import pytest

from agent.core import operations
from agent.core.effects import EraseVolumes, UpdateContainer
from agent.core.journal import RESERVED_KEY, VOLUMES_KEY, Kind
from agent.core.recovery import require_compatible
from agent.core.volume_uses import VolumeKey
from mesos_py.errors import InvalidValue
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb
from tests.kit import agent_core
from tests.kit.agent_core import AgentWorld, command, executor_info, for_executor
from tests.kit.agent_core import status as status_of
from tests.kit.agent_volumes import ADS, DISK, Listed, VolumeWorld, agent_with_disk, made, using
from tests.kit.reserving import amount, create, destroy, grow, shrink, unreserve, volume

KEY = VolumeKey("ads", "v1")
CREATE_2 = create(made() + made("v2"), "op")


@pytest.fixture
def directories():
    return Listed()


@pytest.fixture
def world(directories, monkeypatch):
    monkeypatch.setattr(agent_core, "agent_info", agent_with_disk)
    return VolumeWorld(directories)


def has(world):
    return world.core.state.total


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


@pytest.mark.parametrize(
    "operation",
    [destroy(made()), create(made()), grow(made(), amount(ADS, disk=999)), shrink(made(), 99)],
    ids=["destroy", "create", "grow", "shrink"],
)
@pytest.mark.parametrize("whose", ["command", "task", "executor"])
def test_no_task_uses_what_was_to_be_another_volume(world, directories, whose, operation):
    """What follows an operation that was not done may rest on it."""
    world.apply(create(made() + made("v2")))
    directories.full = True
    (said,) = world.apply(operation)
    assert said.state == pb.OPERATION_DROPPED
    # It says anew where it is to be seen.
    own = volume(ADS, 10, path="mine")
    if whose == "command":
        world.run(using(command("t1"), own))
    elif whose == "task":
        world.run(using(for_executor("t1"), own))
    else:
        world.run(for_executor("t1", using(executor_info(), own)))
    assert world.specs() == []
    told = world.last("t1")
    assert told.state == pb.TASK_LOST
    assert told.reason == pb.TaskStatus.REASON_RESOURCES_UNKNOWN
    why = "an operation on the volume 'v1' of the role 'ads' was not done: "
    assert told.message == why + said.message
    world.run(using(command("t2"), made("v2")))
    assert len(world.specs()) == 1


def test_of_a_group_nor(world, directories):
    world.apply(create(made()))
    directories.full = True
    world.apply(destroy(made()), create(made()))
    world.run_group(for_executor("t1"), using(for_executor("t2"), made()))
    assert world.specs() == []
    # The first of what was not done is the cause of the others.
    assert [world.last(each).message[-13:] for each in ("t1", "t2")] == ["no space left"] * 2


def test_once_the_master_has_heard_what_there_is_the_volume_is_used_again(world, directories):
    world.apply(create(made()))
    directories.full = True
    world.apply(destroy(made()))
    world.core.on_disconnected()
    world.register()
    world.run(using(command("t1"), made()))
    assert len(world.specs()) == 1


def test_what_was_not_done_is_said_once_more_at_the_next_registration(world, directories):
    """The master closes the stream at the first of it, and may have read no more."""
    directories.full = True
    world.apply(create(made(), "op1"), create(made("v2")), create(made("v3"), "op2"))
    world.core.on_disconnected()
    told = world.core.register_call("v", 1).register.not_done
    assert [each.uuid.value[-1] for each in told] == [2, 4]
    named = [each.latest_status.operation_id.value for each in told]
    assert named == ["op1", "op2"]
    assert {each.latest_status.state for each in told} == {pb.OPERATION_DROPPED}
    assert {each.latest_status.message for each in told} == {"no space left"}
    world.register()
    assert not world.core.register_call("v", 1).register.not_done


def test_what_is_said_of_it_is_bounded(monkeypatch, world, directories):
    monkeypatch.setattr(operations, "MAX_REMEMBERED", 2)
    directories.full = True
    world.apply(*(create(made(f"v{number}"), f"op{number}") for number in range(3)))
    told = world.core.register_call("v", 1).register.not_done
    assert [each.latest_status.operation_id.value for each in told] == ["op1", "op2"]


def test_an_operation_that_names_no_volume_puts_none_in_doubt(world):
    broken = destroy(made())
    broken.destroy.volumes[0].disk.persistence.id = "a/b"
    world.apply(create(made()))
    for operation in (broken, unreserve(amount(ADS, disk=500))):
        (said,) = world.apply(operation)
        assert said.state == pb.OPERATION_DROPPED
    world.run(using(command("t1"), made()))
    assert len(world.specs()) == 1


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
