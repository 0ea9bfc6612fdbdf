"""What an agent brings when it registers: the two accounts are joined, the agent's is the truth."""

import pytest

from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import FakeAgent, FakeFramework, World

Event = agent_pb2.Event
Capability = pb.FrameworkInfo.Capability
PARTITION_AWARE = Capability(type=Capability.PARTITION_AWARE)
MULTI_ROLE = Capability(type=Capability.MULTI_ROLE)
ONE = Resources.parse("cpus:1;mem:32")


class Scene:
    """An agent, and a framework whose task t1 was launched there."""

    def __init__(self, aware=False):
        self.world = World()
        self.agent = self.world.agent()
        self.framework = self.world.framework(
            failover_timeout=1e6, capabilities=[PARTITION_AWARE] if aware else []
        )
        self.framework.start("t1")
        self.agent.take()
        self.framework.take()

    @property
    def record(self):
        return self.world.cluster.frameworks[self.framework.id]

    @property
    def used(self):
        return self.world.cluster.ledger.allocated(self.agent.id)

    def drops(self):
        return [reason for reason, _ in self.world.outbox.drops]

    def cut_off(self):
        """The agent is away until it is unreachable; what the framework heard is dropped."""
        self.agent.disconnect()
        self.world.advance(75)
        self.framework.take()

    def back(self, *tasks, executors=(), frameworks=None):
        """The agent registers again; the kinds of what it is told after REGISTERED."""
        infos = [self.framework.info] if frameworks is None else frameworks
        events = self.agent.register(tasks=tasks, executors=executors, frameworks=infos)
        assert events[0].type == Event.REGISTERED
        self.world.check()
        return events[1:]

    def task(self, state, task_id="t1", **fields):
        return self.agent.task(task_id, self.framework, state, **fields)

    def updates(self):
        return [(u.task_id.value, u.state, u.reason) for u in self.framework.updates()]


@pytest.fixture
def scene():
    made = Scene()
    yield made
    made.world.check()


@pytest.fixture(params=[False, True], ids=["non-PA", "PA"])
def aware(request):
    return request.param


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


REREGISTERED = pb.TaskStatus.REASON_AGENT_REREGISTERED
RECONCILIATION = pb.TaskStatus.REASON_RECONCILIATION


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
    scene = Scene(aware=True)
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
    scene = Scene(aware)
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
    scene = Scene(aware)
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


def test_a_task_that_never_reached_an_agent_is_dropped_by_it_and_the_room_freed(aware):
    """Cut between ACCEPT and the agent: RUN_TASKS is lost with the stream."""
    scene = Scene(aware)
    scene.agent.disconnect()
    (event,) = scene.back(frameworks=[])
    assert event.type == Event.RECONCILE
    state = pb.TASK_DROPPED if aware else pb.TASK_LOST
    uuid = scene.agent.report("t1", state, scene.framework, reason=RECONCILIATION)
    assert scene.updates() == [("t1", state, RECONCILIATION)]
    scene.framework.acknowledge(scene.agent, "t1", uuid)
    assert scene.record.tasks == {}
    assert scene.used == EMPTY
