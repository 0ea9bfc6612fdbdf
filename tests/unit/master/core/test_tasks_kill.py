"""KILL: ordered until the task has ended, refused, or answered like a question."""

import pytest

from master.core import tasks
from mesos_py.resources import Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World
from tests.kit.scenes import PARTITION_AWARE, TaskScene

ONE = Resources.parse("cpus:1;mem:32")


@pytest.fixture
def scene():
    made = TaskScene()
    yield made
    made.world.check()


def kills(agent):
    return [e.kill_task for e in agent.take(agent_pb2.Event.KILL_TASK)]


def test_a_kill_goes_to_the_agent_with_its_grace(scene):
    scene.framework.kill("t1", grace_s=2.5)
    (order,) = kills(scene.agent)
    assert (order.framework_id.value, order.task_id.value) == (scene.framework.id, "t1")
    assert order.kill_policy.grace_period.nanoseconds == 2_500_000_000
    assert scene.framework.take() == []
    assert scene.used == ONE


def test_a_kill_without_a_policy_orders_none(scene):
    scene.framework.kill("t1")
    (order,) = kills(scene.agent)
    assert not order.HasField("kill_policy")


def from_before(world, **info):
    """A framework that had its id from a master before this one."""
    before = {"id": pb.FrameworkID(value="old-1"), "failover_timeout": 1e6}
    return world.framework(**{**before, **info})


def test_a_kill_before_the_tasks_agent_has_found_its_way_here_is_remembered():
    world = World()
    framework = from_before(world)
    framework.kill("t1", grace_s=3)
    framework.kill("t2")
    assert framework.take() == []
    agent = world.agent()
    tasks = [agent.task(name, framework, pb.TASK_RUNNING) for name in ("t1", "t2", "t3")]
    events = agent.register(tasks=tasks, frameworks=[framework.info])
    killed = {e.kill_task.task_id.value: e.kill_task for e in events if e.HasField("kill_task")}
    assert set(killed) == {"t1", "t2"}
    assert killed["t1"].kill_policy.grace_period.nanoseconds == 3_000_000_000
    assert not killed["t2"].HasField("kill_policy")


def test_a_remembered_kill_is_not_for_a_new_task_with_the_id():
    world = World()
    framework = from_before(world)
    framework.kill("t1")
    framework.kill("t9")
    agent = world.agent()
    framework.start("t1")
    running = agent.task("t1", framework, pb.TASK_RUNNING)
    events = agent.register(tasks=[running], frameworks=[framework.info])
    assert not any(event.HasField("kill_task") for event in events)


def test_only_so_many_kills_are_remembered(monkeypatch):
    monkeypatch.setattr(tasks, "MAX_EARLY_KILLS", 2)
    world = World()
    framework = from_before(world)
    for number in range(3):
        framework.kill(f"t{number}")
    assert list(world.cluster.frameworks["old-1"].early_kills) == ["t0", "t1"]


def test_a_kill_with_the_right_agent_is_carried_out(scene):
    scene.framework.kill("t1", scene.agent.id)
    assert len(kills(scene.agent)) == 1


def test_a_kill_with_the_wrong_agent_is_refused(scene):
    scene.framework.kill("t1", "m-S9")
    (refusal,) = scene.framework.refusals()
    assert (refusal.call, refusal.field, refusal.value) == (sched.Call.KILL, "agent_id", "m-S9")
    assert kills(scene.agent) == []


def test_a_kill_with_a_grace_below_zero_is_refused(scene):
    scene.framework.kill("t1", grace_s=-1)
    (refusal,) = scene.framework.refusals()
    assert refusal.field == "kill_policy.grace_period"
    assert kills(scene.agent) == []


def test_a_kill_of_a_task_that_has_ended_is_nothing(scene):
    scene.report(pb.TASK_FINISHED)
    scene.framework.take()
    scene.framework.kill("t1")
    assert kills(scene.agent) == []
    assert scene.framework.take() == []


@pytest.mark.parametrize("aware", [False, True])
def test_a_kill_of_an_unknown_task_is_answered_like_a_question_about_it(aware):
    scene = TaskScene(capabilities=[PARTITION_AWARE] if aware else [])
    scene.framework.kill("nonsense")
    scene.framework.kill("nonsense", scene.agent.id)
    states = [(u.state, u.reason) for u in scene.framework.updates()]
    reason = pb.TaskStatus.REASON_RECONCILIATION
    expected = [pb.TASK_UNKNOWN, pb.TASK_GONE] if aware else [pb.TASK_LOST, pb.TASK_LOST]
    assert states == [(state, reason) for state in expected]


def test_a_kill_is_ordered_when_the_agent_is_back(scene):
    scene.agent.disconnect()
    scene.framework.kill("t1", grace_s=1)
    alive = scene.agent.task("t1", scene.framework, pb.TASK_RUNNING, "cpus:1;mem:32")
    events = scene.agent.register(tasks=[alive], frameworks=[scene.framework.info])
    (order,) = [e.kill_task for e in events if e.type == agent_pb2.Event.KILL_TASK]
    assert order.kill_policy.grace_period.nanoseconds == 1_000_000_000


def test_a_policy_that_says_nothing_says_nothing_later_either(scene):
    call = sched.Call.Kill(task_id=pb.TaskID(value="t1"), kill_policy=pb.KillPolicy())
    scene.framework.call(type=sched.Call.KILL, kill=call)
    alive = scene.agent.task("t1", scene.framework, pb.TASK_RUNNING)
    events = scene.agent.register(tasks=[alive], frameworks=[scene.framework.info])
    orders = [e.kill_task for e in events if e.type == agent_pb2.Event.KILL_TASK]
    assert orders
    assert not any(order.kill_policy.HasField("grace_period") for order in orders)


def test_a_kill_that_was_lost_with_the_stream_is_ordered_again_until_the_task_has_ended(scene):
    scene.framework.kill("t1")
    alive = scene.agent.task("t1", scene.framework, pb.TASK_RUNNING, "cpus:1;mem:32")
    for _ in range(2):
        events = scene.agent.register(tasks=[alive], frameworks=[scene.framework.info])
        assert agent_pb2.Event.KILL_TASK in [event.type for event in events]
    scene.report(pb.TASK_KILLED)
    ended = scene.agent.task("t1", scene.framework, pb.TASK_KILLED, "cpus:1;mem:32")
    events = scene.agent.register(tasks=[ended], frameworks=[scene.framework.info])
    assert agent_pb2.Event.KILL_TASK not in [event.type for event in events]


def test_a_kill_of_a_task_that_ends_meanwhile_is_forgotten(scene):
    scene.agent.disconnect()
    scene.framework.kill("t1")
    ended = scene.agent.task("t1", scene.framework, pb.TASK_FINISHED, "cpus:1;mem:32")
    events = scene.agent.register(tasks=[ended], frameworks=[scene.framework.info])
    assert agent_pb2.Event.KILL_TASK not in [event.type for event in events]


def test_an_operators_kill_of_a_task_that_ended_with_its_agent_is_nothing(scene):
    task = scene.task
    scene.agent.call(type=agent_pb2.Call.UNREGISTER)
    scene.world.core.kill_task(task, None)
    assert kills(scene.agent) == []
