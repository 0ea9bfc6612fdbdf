"""What the agent tells a master that it registers with, and what it answers after."""

from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import (
    CAPABILITY,
    AgentWorld,
    command,
    for_executor,
    framework_info,
    status,
)

Event = agent_pb2.Event


def register(world: AgentWorld) -> agent_pb2.Call.Register:
    return world.core.register_call("1.2", 1).register


def reconcile(world: AgentWorld, *task_ids: str, partition_aware: bool = False) -> None:
    expected = [
        Event.Reconcile.Expected(
            framework_id=pb.FrameworkID(value="F1"),
            task_id=pb.TaskID(value=task_id),
            partition_aware=partition_aware,
        )
        for task_id in task_ids
    ]
    world.master(Event(type=Event.RECONCILE, reconcile=Event.Reconcile(tasks=expected)))


def test_a_new_agent_registers_without_an_id_and_keeps_the_one_that_it_gets():
    world = AgentWorld(registered=False)
    assert register(world).agent_info.id.value == ""
    assert (register(world).version, register(world).protocol_version) == ("1.2", 1)
    world.register("A7")
    assert register(world).agent_info.id.value == "A7"


def test_a_returning_agent_names_live_tasks_and_those_whose_end_is_unacknowledged():
    world = AgentWorld()
    for name in ("runs", "ended", "forgotten"):
        world.run(command(name))
        world.started(name)
        world.acknowledge_all(name)
    world.ended("ended", 1 << 8)
    world.ended("forgotten", 0)
    world.acknowledge_all("forgotten")
    told = {task.task_id.value: task for task in register(world).tasks}
    assert set(told) == {"runs", "ended"}
    assert told["runs"].state == pb.TASK_RUNNING
    assert not told["runs"].HasField("status_update_uuid")
    assert told["runs"].executor_id.value == ""
    assert told["ended"].state == pb.TASK_FAILED
    assert told["ended"].status_update_state == pb.TASK_FAILED
    assert told["ended"].status_update_uuid == world.last("ended").uuid
    assert [info.id.value for info in register(world).frameworks] == ["F1"]


def test_a_task_is_told_with_the_cost_of_its_end():
    world = AgentWorld()
    world.run(command("dear", revocation_cost=0.0), command("plain"))
    told = {task.task_id.value: task for task in register(world).tasks}
    assert told["dear"].HasField("revocation_cost")
    assert not told["plain"].HasField("revocation_cost")


def test_a_task_is_told_with_its_resources_role_labels_and_latest_status():
    world = AgentWorld()
    labels = pb.Labels(labels=[pb.Label(key="k", value="v")])
    world.framework.roles.append("ads")
    world.run(command("t", labels=labels, grace_s=4))
    world.started("t", pid=9)
    (task,) = register(world).tasks
    assert task.resources[0].name == "cpus"
    assert task.allocation_role == "ads"
    assert task.labels == labels
    assert task.kill_policy.grace_period.nanoseconds == 4 * 10**9
    assert task.statuses[-1].container_status.executor_pid == 9
    # The head is still the first update, the state the newest.
    assert task.status_update_state == pb.TASK_STARTING
    assert task.state == pb.TASK_RUNNING


def test_a_task_is_told_with_its_limits():
    world = AgentWorld()
    world.run(command("t"))
    task = world.core.state.tasks["F1", "t"]
    task.info.limits["mem"].value = 64
    assert register(world).tasks[0].limits["mem"].value == 64


def test_custom_executors_are_named_and_their_queued_tasks_are_staging():
    world = AgentWorld()
    world.run(for_executor("a"), command("c"))
    call = register(world)
    assert [info.executor_id.value for info in call.executors] == ["ex"]
    assert call.executors[0].framework_id.value == "F1"
    assert {task.task_id.value: task.state for task in call.tasks} == {
        "a": pb.TASK_STAGING,
        "c": pb.TASK_STARTING,
    }
    assert call.tasks[0].executor_id.value == "ex"


def test_what_an_executor_has_sent_with_a_status_is_not_sent_again_at_each_registration():
    world = AgentWorld()
    world.run(for_executor("a"))
    world.started("ex")
    world.subscribe("ex")
    world.report("ex", status("a", pb.TASK_RUNNING, data=b"x" * 1_000_000))
    told = register(world)
    assert told.tasks[0].statuses[-1].state == pb.TASK_RUNNING
    assert told.ByteSize() < 10_000
    # The update itself has it still.
    world.core.on_disconnected()
    world.register()
    assert len(world.last("a").data) == 1_000_000


def test_tasks_of_a_removed_framework_are_named_until_their_processes_are_gone():
    world = AgentWorld()
    world.run(command("t"))
    world.started("t")
    world.shut_down_framework()
    assert [task.task_id.value for task in register(world).tasks] == ["t"]
    assert not register(world).frameworks
    world.ended("t", 15)
    assert not register(world).tasks


def test_all_heads_are_sent_again_when_the_agent_has_registered_again():
    world = AgentWorld()
    world.run(command("a"), command("b"))
    world.core.on_disconnected()
    world.started("a")
    assert world.states("a") == ["STARTING"]
    world.effects.clear()
    world.register()
    assert (world.states("a"), world.states("b")) == (["STARTING"], ["STARTING"])
    assert world.updates("a")[0].latest_state == pb.TASK_RUNNING


def test_a_master_that_gives_it_another_id_ends_the_agent():
    world = AgentWorld()
    world.register("A2")
    (stop,) = world.stops()
    assert not stop.wanted
    assert "A2" in stop.reason


def test_tasks_that_the_master_expects_and_that_never_arrived_are_answered():
    world = AgentWorld()
    world.run(command("here"))
    reconcile(world, "here", "lost")
    last = world.last("lost")
    assert (last.state, last.source) == (pb.TASK_LOST, pb.TaskStatus.SOURCE_AGENT)
    assert last.reason == pb.TaskStatus.REASON_RECONCILIATION
    assert len(last.uuid) == 16
    assert world.states("here") == ["STARTING"]
    reconcile(world, "lost")
    assert len(world.updates("lost")) == 1
    world.acknowledge("lost")
    assert len(world.core.state.updates) == 1


def test_for_a_partition_aware_framework_they_were_dropped():
    world = AgentWorld()
    reconcile(world, "lost", partition_aware=True)
    assert world.last("lost").state == pb.TASK_DROPPED


def test_a_framework_that_changes_is_known_in_its_new_form():
    world = AgentWorld()
    world.run(command("t"))
    world.started("t")
    world.acknowledge_all("t")
    changed = framework_info(CAPABILITY.TASK_KILLING_STATE)
    event = Event.UpdateFramework(framework_info=changed)
    world.master(Event(type=Event.UPDATE_FRAMEWORK, update_framework=event))
    world.kill("t")
    assert world.states("t")[-1] == "KILLING"
    changed.id.value = "F9"
    event = Event.UpdateFramework(framework_info=changed)
    world.master(Event(type=Event.UPDATE_FRAMEWORK, update_framework=event))
    assert world.drops() == ["update of an unknown framework"]


def test_the_heads_of_a_framework_that_subscribed_anew_are_sent_again():
    world = AgentWorld()
    world.run(command("t"))
    before = len(world.updates("t"))
    world.scheduler_is_new()
    assert len(world.updates("t")) == before + 1
    world.acknowledge_all("t")
    before = len(world.updates("t"))
    world.scheduler_is_new()
    assert len(world.updates("t")) == before


def test_an_event_of_a_newer_master_is_ignored():
    world = AgentWorld()
    world.master(Event(type=99))  # type: ignore[arg-type]
    assert world.drops() == ["unknown event"]


def test_an_executors_update_after_the_link_is_back_goes_out_in_order():
    world = AgentWorld()
    world.run(for_executor("a"))
    world.started("ex")
    world.subscribe("ex")
    world.core.on_disconnected()
    world.report("ex", status("a", pb.TASK_RUNNING, b"1" * 16))
    world.report("ex", status("a", pb.TASK_FINISHED, b"2" * 16))
    assert world.told_types("ex")[-2:] == ["ACKNOWLEDGED"] * 2
    world.register()
    world.acknowledge_all("a")
    assert world.states("a") == ["RUNNING", "FINISHED"]


# ---- Leaderships ------------------------------------------------------------------------


def test_the_newest_leadership_that_gave_orders_is_told_to_whoever_leads():
    world = AgentWorld()
    assert register(world).epoch == 0
    for epoch in (5, 4, 0):
        world.core.on_epoch(epoch)
        assert register(world).epoch == 5
    world.core.on_epoch(6)
    assert register(world).epoch == 6


def test_the_leadership_is_known_after_a_restart():
    world = AgentWorld()
    world.core.on_epoch(5)
    world.run(command("t"))
    world.restart()
    assert register(world).epoch == 5


def test_the_first_leadership_is_written_down_with_the_id_that_it_gave():
    world = AgentWorld(registered=False)
    world.core.on_epoch(5)
    world.register("A7")
    world.restart()
    assert (register(world).epoch, register(world).agent_info.id.value) == (5, "A7")


def test_a_registration_with_the_same_leadership_keeps_it():
    world = AgentWorld()
    world.core.on_epoch(5)
    world.register("A1")
    world.restart()
    assert register(world).epoch == 5
