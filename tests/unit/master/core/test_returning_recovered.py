"""What an agent brings to a new master, of ended frameworks, and of executors."""

import pytest

from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import FakeAgent, FakeFramework, World
from tests.kit.scenes import PARTITION_AWARE, ReturningScene

Event = agent_pb2.Event
MULTI_ROLE = pb.FrameworkInfo.Capability(type=pb.FrameworkInfo.Capability.MULTI_ROLE)
ONE = Resources.parse("cpus:1;mem:32")
REREGISTERED = pb.TaskStatus.REASON_AGENT_REREGISTERED


@pytest.fixture
def scene():
    made = ReturningScene()
    yield made
    made.world.check()


def kinds(events):
    return [Event.Type.Name(event.type) for event in events]


def executor(framework, executor_id="e1", own="cpus:0.5"):
    info = pb.ExecutorInfo(
        executor_id=pb.ExecutorID(value=executor_id),
        command=pb.CommandInfo(value="run"),
        framework_id=pb.FrameworkID(value=framework.id),
    )
    if own:
        info.resources.extend(Resources.parse(own).to_proto())
    return info


# ---- A new master ---------------------------------------------------------------------------


def recovered(**info):
    """A master that knows nothing, and an agent that comes with a framework's task."""
    world = World()
    agent = FakeAgent(world, "web1", "cpus:4;mem:4096", {})
    agent.info.id.value = "old-S1"
    fields = {"name": "f", "user": "nobody", "id": pb.FrameworkID(value="old-0001"), **info}
    return world, agent, pb.FrameworkInfo(**fields)


def test_after_a_change_of_master_the_tasks_run_on_and_wait_for_their_framework():
    world, agent, info = recovered(failover_timeout=1e6)
    running = agent.task(
        "t1",
        "old-0001",
        pb.TASK_RUNNING,
        launched_time=5.0,
        labels=pb.Labels(labels=[pb.Label(key="k")]),
        user="nobody",
        statuses=[
            pb.TaskStatus(state=pb.TASK_STARTING if n % 2 else pb.TASK_RUNNING, data=b"x")
            for n in range(40)
        ],
    )
    assert kinds(agent.register(tasks=[running], frameworks=[info])) == ["REGISTERED"]
    record = world.cluster.frameworks["old-0001"]
    assert record.recovered
    assert not record.connected
    task = record.tasks["t1"]
    assert (task.state, task.name, task.launched_wall_s) == (pb.TASK_RUNNING, "t1", 5.0)
    assert (task.extras.labels.labels[0].key, task.extras.user) == ("k", "nobody")
    assert not task.extras.resources
    assert len(task.statuses) == 16
    assert not any(status.HasField("data") for status in task.statuses)
    assert world.cluster.ledger.allocated("old-S1") == ONE
    world.check()


def test_a_recovered_framework_subscribes_and_finds_its_tasks():
    world, agent, info = recovered(failover_timeout=1e6, capabilities=[PARTITION_AWARE])
    agent.register(tasks=[agent.task("t1", "old-0001", pb.TASK_RUNNING)], frameworks=[info])
    framework = FakeFramework(world, info)
    (subscribed,) = framework.subscribe()
    assert subscribed.subscribed.framework_id.value == "old-0001"
    record = world.cluster.frameworks["old-0001"]
    assert not record.recovered
    assert record.partition_aware
    assert [(s.task_id.value, s.state) for s in framework.reconcile()] == [("t1", pb.TASK_RUNNING)]
    world.check()


def test_a_framework_that_was_here_first_is_told_of_its_tasks():
    world, agent, info = recovered(failover_timeout=1e6)
    framework = FakeFramework(world, info)
    framework.subscribe()
    agent.register(tasks=[agent.task("t1", "old-0001", pb.TASK_RUNNING)], frameworks=[info])
    (status,) = framework.updates()
    assert (status.state, status.reason) == (pb.TASK_RUNNING, REREGISTERED)
    world.check()


@pytest.mark.parametrize(
    ("info", "allocation_role", "role"),
    [
        ({}, "", "*"),
        ({"role": "web"}, "web", "web"),
        ({"roles": ["a", "b"], "capabilities": [MULTI_ROLE]}, "b", "b"),
    ],
)
def test_recovered_tasks_are_charged_to_the_role_that_they_name(info, allocation_role, role):
    world, agent, framework = recovered(**info)
    task = agent.task("t1", "old-0001", pb.TASK_RUNNING, allocation_role=allocation_role)
    agent.register(tasks=[task], frameworks=[framework])
    assert world.cluster.ledger.held("old-0001", role) == {"cpus": 1000, "mem": 32_000}
    world.check()


@pytest.mark.parametrize(
    ("info", "task_role", "role"),
    [
        ({"role": "web"}, None, "web"),
        ({"roles": ["a", "b"], "capabilities": [MULTI_ROLE]}, None, "a"),
        ({"roles": ["a", "b"], "capabilities": [MULTI_ROLE]}, "b", "b"),
        ({"capabilities": [MULTI_ROLE]}, None, "*"),
    ],
)
def test_recovered_executors_are_charged_to_their_tasks_role_or_their_frameworks(
    info, task_role, role
):
    world, agent, framework = recovered(**info)
    tasks = []
    if task_role:
        tasks = [
            agent.task(
                "t1",
                "old-0001",
                pb.TASK_FINISHED,
                allocation_role=task_role,
                executor_id=pb.ExecutorID(value="e1"),
            )
        ]
    wanted = pb.ExecutorInfo(
        executor_id=pb.ExecutorID(value="e1"),
        framework_id=pb.FrameworkID(value="old-0001"),
        resources=Resources.parse("cpus:0.5").to_proto(),
    )
    agent.register(tasks=tasks, executors=[wanted], frameworks=[framework])
    assert world.cluster.ledger.held("old-0001", role) == {"cpus": 500}
    world.check()


def test_a_task_that_was_to_be_killed_before_it_was_known_is_killed():
    world, agent, info = recovered(failover_timeout=1e6)
    framework = FakeFramework(world, info)
    framework.subscribe()
    framework.kill("t1")
    events = agent.register(
        tasks=[agent.task("t1", "old-0001", pb.TASK_RUNNING)], frameworks=[info]
    )
    assert kinds(events) == ["REGISTERED", "KILL_TASK"]
    assert world.cluster.frameworks["old-0001"].early_kills == {}


def test_a_framework_info_that_makes_no_sense_does_not_spoil_the_rest():
    world, agent, info = recovered(roles=["web"])
    running = agent.task("t1", "old-0001", pb.TASK_RUNNING)
    agent.register(tasks=[running], frameworks=[info])
    assert world.cluster.frameworks["old-0001"].roles == ("*",)
    assert [reason for reason, _ in world.outbox.drops] == ["framework-info-unusable"]
    world.check()


def test_what_a_recovered_framework_is_like_is_not_told_to_other_agents():
    world, agent, info = recovered()
    agent.register(tasks=[agent.task("t1", "old-0001", pb.TASK_RUNNING)], frameworks=[info])
    other = FakeAgent(world, "web2", "cpus:4;mem:4096", {})
    newer = pb.FrameworkInfo()
    newer.CopyFrom(info)
    newer.name = "newer"
    events = other.register(
        tasks=[other.task("t2", "old-0001", pb.TASK_RUNNING)], frameworks=[newer]
    )
    assert kinds(events) == ["REGISTERED"]
    world.check()


# ---- Frameworks that have ended ----------------------------------------------------------------


def test_what_belongs_to_an_ended_framework_is_shut_down_once_for_all(scene):
    scene.agent.disconnect()
    scene.framework.call(type=sched.Call.TEARDOWN)
    events = scene.back(
        scene.task(pb.TASK_RUNNING),
        scene.task(pb.TASK_RUNNING, "t2"),
        executors=[executor(scene.framework)],
    )
    assert kinds(events) == ["SHUTDOWN_FRAMEWORK"]
    assert scene.used == Resources.parse("cpus:2.5;mem:64")
    assert scene.world.cluster.frameworks == {}
    for task_id in ("t1", "t2"):
        scene.agent.report(task_id, pb.TASK_KILLED, scene.framework, uuid=b"")
    scene.agent.executor_exited("e1", scene.framework)
    assert scene.used == EMPTY


def test_a_framework_that_the_agent_does_not_name_has_ended_there(scene):
    """It names all but those that it was told to shut down."""
    stray = scene.agent.task("x1", "somebody", pb.TASK_RUNNING)
    events = scene.back(scene.task(pb.TASK_RUNNING), stray)
    assert kinds(events) == ["SHUTDOWN_FRAMEWORK"]
    assert events[0].shutdown_framework.framework_id.value == "somebody"
    assert "somebody" not in scene.world.cluster.frameworks
    scene.agent.report("x1", pb.TASK_KILLED, "somebody", uuid=b"")
    assert scene.used == ONE


def test_what_lingered_and_is_not_named_any_more_is_free(scene):
    scene.framework.call(type=sched.Call.TEARDOWN)
    assert scene.used == ONE
    assert scene.back(frameworks=[]) == []
    assert scene.used == EMPTY
    assert scene.world.cluster.lingering == {}


def test_what_lingers_and_is_named_keeps_its_role(scene):
    scene.framework.call(type=sched.Call.TEARDOWN)
    named = scene.task(pb.TASK_RUNNING, allocation_role="web")
    scene.back(named, frameworks=[])
    assert scene.world.cluster.ledger.held(scene.framework.id, "*") == {
        "cpus": 1000,
        "mem": 32_000,
    }


# ---- Executors ---------------------------------------------------------------------------------


def with_executor(scene, own="cpus:0.5"):
    (offer,) = scene.framework.offers()
    task = scene.world.task("t2")
    task.ClearField("command")
    task.executor.CopyFrom(executor(scene.framework, own=own))
    scene.framework.launch(offer, task)
    scene.agent.take()
    scene.framework.take()
    return task.executor


def test_an_executor_that_runs_on_keeps_its_share_and_role(scene):
    info = with_executor(scene)
    named = scene.task(pb.TASK_RUNNING, "t2", executor_id=info.executor_id)
    scene.back(scene.task(pb.TASK_RUNNING), named, executors=[info])
    assert scene.used == Resources.parse("cpus:2.5;mem:64")
    assert list(scene.record.executors) == [(scene.agent.id, "e1")]


def test_an_executor_that_is_not_named_is_gone_and_the_framework_is_told(scene):
    with_executor(scene)
    scene.back(scene.task(pb.TASK_RUNNING))
    (event,) = scene.framework.take()
    assert event.failure.executor_id.value == "e1"
    assert event.failure.status == -1
    assert scene.record.executors == {}
    assert scene.used == Resources.parse("cpus:2;mem:64")


def test_an_executor_without_a_share_of_its_own_comes_back(scene):
    info = with_executor(scene, own="")
    scene.back(scene.task(pb.TASK_RUNNING), executors=[info])
    assert list(scene.record.executors) == [(scene.agent.id, "e1")]


def test_an_executor_that_the_master_did_not_know_is_taken_over(scene):
    scene.back(scene.task(pb.TASK_RUNNING), executors=[executor(scene.framework, "e9")])
    assert list(scene.record.executors) == [(scene.agent.id, "e9")]
    assert scene.used == Resources.parse("cpus:1.5;mem:32")
    free = executor(scene.framework, "e9", own="")
    scene.back(scene.task(pb.TASK_RUNNING), executors=[free])
    assert scene.used == Resources.parse("cpus:1.5;mem:32")


def test_an_executor_of_an_ended_framework_keeps_its_role_while_it_lingers(scene):
    info = with_executor(scene)
    scene.framework.call(type=sched.Call.TEARDOWN)
    scene.back(executors=[info], frameworks=[])
    held = scene.world.cluster.ledger.held(scene.framework.id, "*")
    assert held == {"cpus": 500}


def test_an_unknown_executor_without_a_share_is_charged_nothing(scene):
    stray = executor(scene.framework, "e9", own="")
    scene.back(scene.task(pb.TASK_RUNNING), executors=[stray])
    assert scene.used == ONE
    assert list(scene.record.executors) == [(scene.agent.id, "e9")]


# ---- Records that cannot be -----------------------------------------------------------------


def test_of_records_with_one_id_the_first_counts(scene):
    twice = [scene.task(pb.TASK_RUNNING), scene.task(pb.TASK_FINISHED, allocation_role="web")]
    new = [scene.task(pb.TASK_RUNNING, "t9"), scene.task(pb.TASK_RUNNING, "t9")]
    ones = [executor(scene.framework, "e9"), executor(scene.framework, "e9", own="cpus:2")]
    scene.back(*twice, *new, executors=ones, frameworks=[scene.framework.info] * 2)
    assert scene.record.tasks["t1"].state == pb.TASK_RUNNING
    assert scene.used == Resources.parse("cpus:2.5;mem:64")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda call: call["tasks"][0].task_id.Clear(), "tasks.task_id: ''"),
        (lambda call: call["tasks"][0].framework_id.Clear(), "tasks.framework_id: ''"),
        (lambda call: setattr(call["tasks"][0], "state", 77), "tasks.state: 77"),
        (lambda call: setattr(call["tasks"][0], "state", pb.TASK_UNKNOWN), "tasks.state: 13"),
        (lambda call: setattr(call["tasks"][0], "state", pb.TASK_UNREACHABLE), "tasks.state: 10"),
        (lambda call: setattr(call["tasks"][0], "status_update_state", 77), "tasks.state"),
        (
            lambda call: setattr(call["tasks"][0].resources[0].scalar, "value", -1),
            "tasks.resources.cpus: -1.0",
        ),
        (lambda call: call["executors"][0].executor_id.Clear(), "executors.executor_id: ''"),
        (lambda call: call["executors"][0].framework_id.Clear(), "executors.framework_id: ''"),
        (
            lambda call: setattr(call["executors"][0].resources[0], "name", ""),
            "executors.resources.name",
        ),
        (lambda call: call["frameworks"][0].id.Clear(), "frameworks.id: ''"),
    ],
)
def test_a_record_that_cannot_be_is_refused_before_anything_changes(scene, change, why):
    call = {
        "tasks": [scene.task(pb.TASK_FINISHED)],
        "executors": [executor(scene.framework)],
        "frameworks": [pb.FrameworkInfo(name="f", id=pb.FrameworkID(value="f9"))],
    }
    change(call)
    old_link = scene.agent.link
    (event,) = scene.agent.register(**call)
    assert event.refused.message.startswith(why)
    assert scene.world.cluster.agents[scene.agent.id].link == old_link
    assert scene.record.tasks["t1"].state == pb.TASK_STAGING
    assert scene.used == ONE
    assert "f9" not in scene.world.cluster.frameworks
