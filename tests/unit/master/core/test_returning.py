"""What an agent brings when it registers again: two accounts are joined, its own is the truth."""

import pytest

from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.scenes import ReturningScene

Event = agent_pb2.Event
MULTI_ROLE = pb.FrameworkInfo.Capability(type=pb.FrameworkInfo.Capability.MULTI_ROLE)
ONE = Resources.parse("cpus:1;mem:32")
REREGISTERED = pb.TaskStatus.REASON_AGENT_REREGISTERED
RECONCILIATION = pb.TaskStatus.REASON_RECONCILIATION


@pytest.fixture
def scene():
    made = ReturningScene()
    yield made
    made.world.check()


@pytest.fixture(params=[False, True], ids=["non-PA", "PA"])
def aware(request):
    return request.param


def kinds(events):
    return [Event.Type.Name(event.type) for event in events]


# ---- Back after a moment -------------------------------------------------------------------


def test_a_task_that_runs_on_goes_on(scene):
    scene.agent.report("t1", pb.TASK_RUNNING, scene.framework)
    scene.framework.take()
    assert scene.back(scene.task(pb.TASK_RUNNING)) == []
    assert scene.updates() == []
    assert scene.record.tasks["t1"].state == pb.TASK_RUNNING
    assert scene.used == ONE


def test_a_task_that_ended_meanwhile_frees_its_resources_at_once(scene):
    scene.back(scene.task(pb.TASK_FINISHED))
    assert scene.used == EMPTY
    assert scene.record.tasks["t1"].state == pb.TASK_FINISHED
    # The framework hears of it by the update, which the agent sends again.
    assert scene.updates() == []


def test_a_task_that_the_agent_does_not_name_is_asked_for_and_stays_charged(scene):
    (event,) = scene.back(frameworks=[])
    (expected,) = event.reconcile.tasks
    assert (expected.framework_id.value, expected.task_id.value) == (scene.framework.id, "t1")
    assert not expected.partition_aware
    assert scene.used == ONE
    scene.agent.report("t1", pb.TASK_LOST, scene.framework)
    assert scene.used == EMPTY


def test_partition_awareness_goes_with_the_question():
    scene = ReturningScene(aware=True)
    (event,) = scene.back(frameworks=[])
    assert event.reconcile.tasks[0].partition_aware


def test_a_question_that_was_lost_is_asked_again(scene):
    for _ in range(2):
        assert kinds(scene.back(frameworks=[])) == ["RECONCILE"]


def test_an_end_that_the_agent_has_forgotten_is_said_once_more(scene):
    scene.agent.report("t1", pb.TASK_STARTING, scene.framework, latest=pb.TASK_FINISHED)
    scene.framework.take()
    assert scene.back(frameworks=[]) == []
    assert scene.updates() == [("t1", pb.TASK_FINISHED, RECONCILIATION)]
    assert scene.record.tasks == {}


def test_a_framework_that_changed_while_the_agent_was_away_is_made_known_to_it(scene):
    old = pb.FrameworkInfo()
    old.CopyFrom(scene.framework.info)
    scene.agent.disconnect()
    scene.framework.info.name = "new name"
    scene.framework.subscribe()
    (event,) = scene.back(scene.task(pb.TASK_RUNNING), frameworks=[old])
    assert event.update_framework.framework_info == scene.record.info
    assert scene.back(scene.task(pb.TASK_RUNNING), frameworks=[scene.record.info]) == []


def test_an_older_state_than_is_known_moves_nothing_back(scene):
    scene.agent.report("t1", pb.TASK_RUNNING, scene.framework)
    scene.back(scene.task(pb.TASK_STARTING))
    assert scene.record.tasks["t1"].state == pb.TASK_RUNNING


def test_a_task_lives_that_its_agent_had_called_ended(scene):
    """The agent's disk is older than what it had reported: what runs is charged again."""
    scene.agent.report("t1", pb.TASK_FINISHED, scene.framework)
    scene.framework.take()
    assert scene.used == EMPTY
    scene.back(scene.task(pb.TASK_RUNNING))
    task = scene.record.tasks["t1"]
    assert (task.state, task.update_state, task.ended_wall_s) == (pb.TASK_RUNNING, None, None)
    assert scene.used == ONE
    assert scene.updates() == [("t1", pb.TASK_RUNNING, REREGISTERED)]
    scene.agent.report("t1", pb.TASK_FINISHED, scene.framework)
    assert scene.used == EMPTY


# ---- Back from unreachable -----------------------------------------------------------------


def test_the_tasks_of_an_agent_that_is_back_are_announced_with_their_true_state(aware):
    scene = ReturningScene(aware)
    scene.cut_off()
    scene.back(scene.task(pb.TASK_RUNNING))
    assert scene.updates() == [("t1", pb.TASK_RUNNING, REREGISTERED)]
    task = scene.record.tasks["t1"]
    assert (task.state, scene.record.unreachable_tasks) == (pb.TASK_RUNNING, {})
    assert scene.used == ONE
    assert scene.world.cluster.agents[scene.agent.id].unreachable is None


def test_nothing_is_announced_before_its_turn(scene):
    """The framework has STARTING to acknowledge; RUNNING waits behind it on the agent."""
    scene.cut_off()
    waiting = scene.task(
        pb.TASK_RUNNING,
        status_update_state=pb.TASK_STARTING,
        status_update_uuid=b"u" * 16,
    )
    scene.back(waiting)
    assert scene.updates() == [("t1", pb.TASK_STARTING, REREGISTERED)]
    assert scene.record.tasks["t1"].update_uuid == b"u" * 16


def test_a_task_that_ended_while_its_agent_was_cut_off_is_not_announced(scene):
    scene.cut_off()
    scene.back(scene.task(pb.TASK_FINISHED))
    assert scene.updates() == []
    assert scene.record.tasks["t1"].state == pb.TASK_FINISHED
    uuid = scene.agent.report("t1", pb.TASK_FINISHED, scene.framework)
    scene.framework.acknowledge(scene.agent, "t1", uuid)
    assert [t.state for t in scene.record.completed_tasks] == [pb.TASK_FINISHED]


def test_a_task_that_did_not_come_back_with_its_agent_is_gone(aware):
    scene = ReturningScene(aware)
    scene.cut_off()
    scene.back(frameworks=[])
    # Who was told that it is lost is not told again.
    expected = [("t1", pb.TASK_GONE, RECONCILIATION)] if aware else []
    assert scene.updates() == expected
    assert scene.record.unreachable_tasks == {}
    (task,) = scene.record.completed_tasks
    assert task.state == (pb.TASK_GONE if aware else pb.TASK_LOST)


def test_unreachable_tasks_of_other_agents_are_left_alone(scene):
    other = scene.world.agent()
    (offer,) = [o for o in scene.framework.offers() if o.agent_id.value == other.id]
    scene.framework.launch(offer, scene.world.task("t2"))
    for agent in (scene.agent, other):
        agent.disconnect()
    scene.world.advance(75)
    scene.back(frameworks=[])
    assert list(scene.record.unreachable_tasks) == ["t2"]


def test_an_unreachable_task_that_was_to_be_killed_is_killed_when_it_is_back(scene):
    scene.agent.disconnect()
    scene.framework.kill("t1")
    scene.world.advance(75)
    assert kinds(scene.back(scene.task(pb.TASK_RUNNING))) == ["KILL_TASK"]


def test_a_task_that_was_pushed_out_of_memory_comes_back_from_the_history(scene):
    scene.cut_off()
    unreachable = scene.record.unreachable_tasks["t1"]
    scene.world.cluster.complete(scene.record, unreachable, scene.world.clock.now())
    scene.back(scene.task(pb.TASK_RUNNING))
    assert scene.record.tasks["t1"] is unreachable
    assert not scene.record.completed_tasks
    assert unreachable.state == pb.TASK_RUNNING
    assert unreachable.launched_wall_s is not None


def test_an_agent_that_was_removed_may_come_back_with_its_tasks(scene):
    scene.agent.call(type=agent_pb2.Call.UNREGISTER)
    scene.framework.take()
    scene.back(scene.task(pb.TASK_RUNNING))
    assert scene.updates() == [("t1", pb.TASK_RUNNING, REREGISTERED)]
    assert not scene.record.completed_tasks


# ---- Tasks that were started anew elsewhere ------------------------------------------------


def test_the_old_copy_of_a_replaced_task_is_killed_and_its_room_kept_until_it_is_gone(scene):
    scene.agent.call(type=agent_pb2.Call.UNREGISTER)
    other = scene.world.agent()
    (offer,) = scene.framework.offers()
    scene.framework.launch(offer, scene.world.task("t1"))
    other.report("t1", pb.TASK_RUNNING, scene.framework)
    scene.framework.take()
    events = scene.back(scene.task(pb.TASK_RUNNING))
    assert kinds(events) == ["KILL_TASK"]
    assert scene.used == ONE
    assert scene.record.tasks["t1"].agent_id == other.id
    # The end of the copy is not the end of the task: the framework does not hear of it.
    uuid = scene.agent.report("t1", pb.TASK_KILLED, scene.framework)
    assert scene.used == EMPTY
    assert scene.updates() == []
    assert scene.record.tasks["t1"].state == pb.TASK_RUNNING
    (event,) = scene.agent.take(Event.ACKNOWLEDGE)
    assert event.acknowledge.uuid == uuid


def test_the_old_copy_of_a_task_on_an_unreachable_agent_is_killed_too(scene):
    scene.agent.call(type=agent_pb2.Call.UNREGISTER)
    other = scene.world.agent()
    (offer,) = scene.framework.offers()
    scene.framework.launch(offer, scene.world.task("t1"))
    other.disconnect()
    scene.world.advance(75)
    assert kinds(scene.back(scene.task(pb.TASK_RUNNING))) == ["KILL_TASK"]
    assert scene.record.unreachable_tasks["t1"].agent_id == other.id


def test_an_old_copy_that_has_ended_needs_no_kill(scene):
    scene.agent.call(type=agent_pb2.Call.UNREGISTER)
    scene.world.agent()
    (offer,) = scene.framework.offers()
    scene.framework.launch(offer, scene.world.task("t1"))
    assert scene.back(scene.task(pb.TASK_FINISHED)) == []
    assert scene.used == EMPTY
    assert scene.world.cluster.lingering == {}


def test_an_old_copy_outlives_the_new_one_and_is_the_task_again(scene):
    scene.agent.call(type=agent_pb2.Call.UNREGISTER)
    other = scene.world.agent()
    (offer,) = scene.framework.offers()
    scene.framework.launch(offer, scene.world.task("t1"))
    scene.back(scene.task(pb.TASK_RUNNING))
    uuid = other.report("t1", pb.TASK_FINISHED, scene.framework)
    scene.framework.acknowledge(other, "t1", uuid)
    assert scene.used == ONE
    scene.back(scene.task(pb.TASK_RUNNING))
    assert scene.record.tasks["t1"].agent_id == scene.agent.id
    scene.agent.report("t1", pb.TASK_KILLED, scene.framework)
    assert scene.used == EMPTY


def test_a_task_that_never_reached_an_agent_is_dropped_by_it_and_the_room_freed(aware):
    """Cut between ACCEPT and the agent: RUN_TASKS is lost with the stream."""
    scene = ReturningScene(aware)
    scene.agent.disconnect()
    (event,) = scene.back(frameworks=[])
    assert event.type == Event.RECONCILE
    state = pb.TASK_DROPPED if aware else pb.TASK_LOST
    uuid = scene.agent.report("t1", state, scene.framework, reason=RECONCILIATION)
    assert scene.updates() == [("t1", state, RECONCILIATION)]
    scene.framework.acknowledge(scene.agent, "t1", uuid)
    assert scene.record.tasks == {}
    assert scene.used == EMPTY
