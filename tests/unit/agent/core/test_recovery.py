"""The core after kill -9: from its records to where it was, one damaged record apart."""

import pytest

from agent.core.journal import AGENT_KEY, Kind
from agent.core.recovery import Record, agent_record, require_compatible
from mesos_py.errors import InvalidValue
from mesos_py.resources import Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import (
    CAPABILITY,
    FRAMEWORK,
    AgentWorld,
    agent_info,
    command,
    executor_info,
    for_executor,
    framework_info,
    status,
)

CONTAINER, TASK, UPDATE = Kind.CONTAINER, Kind.TASK, Kind.UPDATE


@pytest.fixture
def world() -> AgentWorld:
    return AgentWorld()


def registered(world: AgentWorld) -> agent_pb2.Call.Register:
    return world.core.register_call("v", 1).register


def keys(world: AgentWorld, kind: Kind) -> list[tuple[Kind, tuple[str, ...]]]:
    return [each for each in world.records if each[0] is kind]


# ---- Nothing is forgotten -------------------------------------------------------------


def test_an_agent_that_never_registered_has_nothing_to_restore():
    world = AgentWorld(registered=False)
    restored = world.restart()
    assert restored.info is None
    assert world.core.state.agent_id == ""


def test_the_agent_keeps_its_id(world):
    restored = world.restart()
    assert restored.info.id.value == registered(world).agent_info.id.value == "A1"


def test_a_running_task_goes_on_under_its_pid(world):
    world.run(command("t"))
    world.started("t", pid=77)
    world.acknowledge_all("t")
    world.restart()
    [container] = world.core.saved_containers()
    assert (container.executor_id, container.pid) == ("t", 77)
    assert container.resources == Resources.of(cpus=1)
    [task] = registered(world).tasks
    assert (task.task_id.value, task.state) == ("t", pb.TASK_RUNNING)
    assert task.allocation_role == "*"
    assert registered(world).frameworks == [world.framework]
    assert world.effects == []


def test_a_task_that_ended_meanwhile_is_reported_once_with_its_status(world):
    world.run(command("t"))
    world.started("t")
    world.acknowledge_all("t")
    world.restart()
    world.register()
    world.ended("t", status=3 << 8)
    assert world.states("t") == ["FAILED"]
    assert world.last("t").exit_status.exit_code == 3
    world.acknowledge("t")
    assert world.records.keys() <= {(Kind.AGENT, AGENT_KEY), (Kind.FRAMEWORK, (FRAMEWORK,))}
    world.restart()
    world.register()
    assert world.updates("t") == []


def test_unacknowledged_updates_are_sent_again_in_order(world):
    world.run(command("t"))
    world.started("t")
    world.ended("t")
    world.restart()
    assert world.updates("t") == []
    world.register()
    assert world.states("t") == ["STARTING"]
    world.acknowledge_all("t")
    assert world.states("t") == ["STARTING", "RUNNING", "FINISHED"]


def test_an_update_that_was_acknowledged_does_not_come_again(world):
    world.run(command("t"))
    world.acknowledge("t")
    world.started("t")
    world.restart()
    world.register()
    assert world.states("t") == ["RUNNING"]


def test_an_update_is_the_same_one_after_a_restart(world):
    world.run(command("t"))
    uuid = world.last("t").uuid
    world.restart()
    world.register()
    assert world.last("t").uuid == uuid


def test_a_task_is_not_run_twice_when_the_order_comes_again(world):
    world.run(command("t"))
    world.restart()
    world.register()
    world.run(command("t"))
    assert world.specs() == []
    assert "task is here already" in world.drops()


def test_a_task_whose_process_came_to_be_unnoticed_is_running(world):
    world.run(command("t"))
    world.restart()
    world.register()
    world.started("t", pid=5)
    world.acknowledge_all("t")
    assert world.states("t") == ["STARTING", "RUNNING"]
    assert world.last("t").container_status.executor_pid == 5


def test_a_task_that_was_never_started_fails_in_words(world):
    world.run(command("t"))
    world.restart()
    world.register()
    world.failed("t", "the agent was started anew before it was started")
    world.acknowledge_all("t")
    assert world.states("t") == ["STARTING", "FAILED"]
    assert "started anew" in world.last("t").message


def test_a_kill_goes_on_with_what_is_left_of_its_grace(world):
    """TERM may not have gone out any more: it is said again."""
    world.run(command("t", grace_s=60))
    world.started("t")
    world.kill("t")
    container = world.container("t")
    world.advance(20)
    world.restart(executor_shutdown_grace_s=5.0)
    assert world.kills() == [(container, "TERM")]
    world.advance(39.9)
    assert world.kills() == [(container, "TERM")]
    world.advance(0.2)
    assert world.kills() == [(container, "TERM"), (container, "KILL")]
    world.register()
    world.ended("t", status=9)
    world.acknowledge_all("t")
    assert world.states("t")[-1] == "KILLED"


@pytest.mark.parametrize("step_s", [3600.0, -3600.0])
def test_a_step_of_the_wall_clock_changes_nothing_of_the_time_that_is_left(world, step_s):
    dying, limited = command("dying", grace_s=60), command("limited")
    limited.max_completion_time.nanoseconds = 100 * 10**9
    for task in (dying, limited):
        world.run(task)
        world.started(task.task_id.value)
    world.kill("dying")
    killed, ended = world.container("dying"), world.container("limited")
    world.clock.wall_s += step_s
    world.restart()
    assert world.kills() == [(killed, "TERM")]
    world.advance(59)
    assert world.kills() == [(killed, "TERM")]
    world.advance(2)
    assert world.kills() == [(killed, "TERM"), (killed, "KILL")]
    world.advance(38)
    assert len(world.kills()) == 2
    world.advance(2)
    assert world.kills()[2:] == [(ended, "KILL")]


def test_what_was_to_be_killed_at_once_is_killed_again(world):
    world.run(command("t"))
    world.started("t")
    world.kill("t", grace_s=0)
    container = world.container("t")
    world.restart()
    assert world.kills() == [(container, "KILL")]


def test_a_cause_is_told_after_the_restart(world):
    world.run(command("t"))
    world.started("t")
    limitation = pb.TaskResourceLimitation(resources=Resources.of(mem=64).to_proto())
    reason = pb.TaskStatus.REASON_CONTAINER_LIMITATION_MEMORY
    container = world.container("t")
    now = world.clock.now()
    world.core.on_container_limited(container, reason, "too much", limitation, now)
    world.collect()
    world.restart()
    world.register()
    world.ended("t", status=9)
    world.acknowledge_all("t")
    last = world.last("t")
    assert (last.state, last.reason, last.message) == (pb.TASK_FAILED, reason, "too much")
    assert last.limitation == limitation


def test_max_completion_time_counts_from_the_launch(world):
    task = command("t")
    task.max_completion_time.nanoseconds = 100 * 10**9
    world.run(task)
    world.started("t")
    world.advance(60)
    world.restart()
    world.register()
    world.advance(39)
    assert world.kills() == []
    world.advance(2)
    assert [number for _, number in world.kills()] == ["KILL"]


def test_a_framework_that_is_gone_stays_gone(world):
    world.run(command("t"))
    world.started("t")
    world.acknowledge_all("t")
    world.shut_down_framework()
    world.restart()
    world.register()
    world.ended("t", status=15)
    [update] = world.updates("t")
    assert not update.status.uuid


# ---- Damage -----------------------------------------------------------------------------


def test_a_damaged_task_is_ended_and_the_others_go_on(world):
    world.run(command("a"), command("b"))
    world.started("a")
    world.started("b")
    container = world.container("a")
    [damaged] = [each for each in keys(world, TASK) if each[1][1] == "a"]
    restored = world.restart(damaged=[damaged])
    assert len(restored.damaged) == 1
    assert world.kills() == [(container, "KILL")]
    world.register()
    world.ended("a", status=9)
    world.acknowledge_all("a")
    assert world.states("a")[-1] == "FAILED"
    assert "damaged" in world.last("a").message
    assert [task.task_id.value for task in registered(world).tasks] == ["b"]


def test_a_task_whose_container_is_damaged_is_ended_before_it_is_reported(world):
    world.run(command("a"))
    world.started("a")
    world.acknowledge_all("a")
    container = world.container("a")
    world.restart(damaged=keys(world, CONTAINER))
    world.register()
    assert world.kills() == [(container, "KILL")]
    assert world.states("a") == []
    world.ended("a", status=9)
    assert world.states("a") == ["FAILED"]


def test_of_a_damaged_task_without_a_container_only_the_id_is_told(world):
    world.run(command("a"))
    world.restart(damaged=[*keys(world, TASK), *keys(world, CONTAINER), *keys(world, UPDATE)])
    world.register()
    assert world.states("a") == ["LOST"]
    world.acknowledge("a")
    assert not keys(world, TASK)


def test_a_damaged_task_of_an_executor_is_killed_there(world):
    world.run(for_executor("a"))
    world.started("ex")
    world.subscribe("ex")
    world.report("ex", status("a", pb.TASK_RUNNING))
    world.restart(damaged=keys(world, TASK))
    world.subscribe("ex")
    assert world.told_types("ex") == ["SUBSCRIBED", "KILL"]


def test_a_damaged_update_of_an_end_is_made_anew(world):
    world.run(command("a"))
    world.started("a")
    world.acknowledge_all("a")
    world.ended("a")
    world.restart(damaged=keys(world, UPDATE))
    world.register()
    assert world.states("a") == ["FINISHED"]
    assert "damaged" in world.last("a").message


def test_a_damaged_framework_costs_no_task(world):
    world.run(command("a"))
    world.started("a")
    world.restart(damaged=keys(world, Kind.FRAMEWORK))
    assert [task.task_id.value for task in registered(world).tasks] == ["a"]


def test_without_the_agents_own_record_nothing_is_done(world):
    with pytest.raises(InvalidValue, match="agent's own record"):
        world.restart(damaged=[(Kind.AGENT, AGENT_KEY)])


def test_bytes_that_are_no_message_are_damage():
    with pytest.raises(InvalidValue, match="--recover"):
        agent_record([Record(Kind.AGENT, AGENT_KEY, b"\xff\xff")])


# ---- Another boot, other flags -----------------------------------------------------------


@pytest.mark.parametrize("aware", [False, True])
def test_after_a_reboot_what_ran_is_gone_and_says_why(aware):
    world = AgentWorld()
    if aware:
        world.framework = framework_info(CAPABILITY.PARTITION_AWARE)
    world.run(command("t"))
    world.started("t")
    world.acknowledge_all("t")
    world.restart()
    world.core.on_rebooted(world.clock.now())
    world.register()
    last = world.last("t")
    assert world.states("t") == ["GONE" if aware else "LOST"]
    assert last.reason == pb.TaskStatus.REASON_AGENT_RESTARTED
    assert "started anew" in last.message
    assert not keys(world, CONTAINER)


def changed(**fields) -> pb.AgentInfo:
    info = agent_info()
    info.MergeFrom(pb.AgentInfo(**fields))
    return info


def saved(world: AgentWorld):
    world.run(command("t", cpus=6))
    return world.core.saved_containers()


def test_more_resources_and_more_attributes_are_accepted(world):
    attribute = pb.Attribute(name="rack", type=pb.Value.TEXT, text=pb.Value.Text(value="r1"))
    more = changed(attributes=[attribute])
    require_compatible(agent_info(), more, saved(world))


def test_fewer_resources_are_accepted_while_what_runs_fits(world):
    less = agent_info()
    del less.resources[:]
    less.resources.extend(Resources.of(cpus=6, mem=10).to_proto())
    require_compatible(agent_info(), less, saved(world))


def test_too_few_resources_are_refused_in_plain_words(world):
    less = agent_info()
    del less.resources[:]
    less.resources.extend(Resources.of(cpus=5, mem=1024).to_proto())
    with pytest.raises(InvalidValue, match=r"running tasks hold 6 of cpus, and 5 would be"):
        require_compatible(agent_info(), less, saved(world))
    require_compatible(agent_info(), less, [])


def test_an_attribute_that_placed_a_task_may_not_change(world):
    def rack(value):
        text = pb.Value.Text(value=value)
        return changed(attributes=[pb.Attribute(name="rack", type=pb.Value.TEXT, text=text)])

    for new in (rack("r2"), agent_info()):
        with pytest.raises(InvalidValue, match=r"attributes.*rack"):
            require_compatible(rack("r1"), new, saved(AgentWorld()))
        require_compatible(rack("r1"), new, [])


def test_another_host_name_is_refused_and_the_way_out_is_named(world):
    other = agent_info()
    other.hostname = "elsewhere"
    with pytest.raises(InvalidValue, match=r"was 'host'.*--recover cleanup"):
        require_compatible(agent_info(), other, [])


# ---- What is written --------------------------------------------------------------------


def test_a_step_without_changes_writes_nothing(world):
    world.collect()
    world.core.on_executor_message((FRAMEWORK, "nobody"), b"")
    assert world.core.take_changes() == []


def test_records_are_gone_with_what_they_are_about(world):
    world.run(command("t"), for_executor("a", executor_info("ex")))
    world.started("t")
    world.started("ex")
    world.subscribe("ex")
    world.report("ex", status("a", pb.TASK_FINISHED))
    world.shut_down_executor("ex")
    world.ended("ex")
    world.ended("t")
    world.acknowledge_all("t")
    world.acknowledge_all("a")
    assert {kind for kind, _ in world.records} <= {Kind.AGENT, Kind.FRAMEWORK}


def test_after_a_damaged_update_the_others_keep_their_records(world):
    world.run(command("t"))
    world.acknowledge("t")
    world.started("t")
    first = min(keys(world, UPDATE))
    world.restart(damaged=[first])
    world.register()
    world.ended("t")
    assert len(keys(world, UPDATE)) == 2
    world.acknowledge_all("t")
    assert world.states("t") == ["RUNNING", "FINISHED"]
    assert not keys(world, UPDATE)
