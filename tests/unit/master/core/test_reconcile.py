"""RECONCILE: the answers of Mesos v1, row by row."""

import pytest

from mesos_py.resources import Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World

PARTITION_AWARE = pb.FrameworkInfo.Capability(type=pb.FrameworkInfo.Capability.PARTITION_AWARE)


class Scene:
    def __init__(self, aware=False):
        self.world = World()
        self.agent = self.world.agent()
        capabilities = [PARTITION_AWARE] if aware else []
        self.framework = self.world.framework(failover_timeout=1000.0, capabilities=capabilities)

    def ask(self, *tasks):
        """The answers, after a look at what every answer must have."""
        answers = self.framework.reconcile(*tasks)
        for status in answers:
            assert status.source == pb.TaskStatus.SOURCE_MASTER
            assert status.reason == pb.TaskStatus.REASON_RECONCILIATION
            assert status.message.startswith("reconciliation: ")
            assert status.timestamp == self.world.clock.wall_s
            assert not status.HasField("uuid")
        self.world.check()
        return answers

    def states(self, *tasks):
        return [(s.task_id.value, s.state) for s in self.ask(*tasks)]


@pytest.fixture(params=[False, True], ids=["non-PA", "PA"])
def aware(request):
    return request.param


def told(state, aware):
    return state if aware else pb.TASK_LOST


# ---- Known tasks -----------------------------------------------------------------------


def test_a_task_that_nothing_was_heard_of_is_staging():
    scene = Scene()
    scene.framework.start("t1")
    assert scene.states(("t1", "")) == [("t1", pb.TASK_STAGING)]


def test_the_answer_is_what_was_last_forwarded_although_more_is_known():
    scene = Scene()
    scene.framework.start("t1")
    scene.agent.report("t1", pb.TASK_STARTING, scene.framework, latest=pb.TASK_FINISHED)
    assert scene.states(("t1", "")) == [("t1", pb.TASK_STARTING)]


def test_an_ended_task_is_known_until_its_end_is_acknowledged():
    scene = Scene()
    scene.framework.start("t1")
    uuid = scene.agent.report("t1", pb.TASK_FINISHED, scene.framework)
    assert scene.states(("t1", scene.agent.id)) == [("t1", pb.TASK_FINISHED)]
    scene.framework.acknowledge(scene.agent, "t1", uuid)
    assert scene.states(("t1", "")) == [("t1", pb.TASK_LOST)]


def test_the_answer_repeats_health_check_container_and_executor():
    scene = Scene()
    (offer,) = scene.framework.offers()
    task = scene.world.custom_task("t1", own="")
    scene.framework.launch(offer, task)
    scene.agent.report(
        "t1",
        pb.TASK_RUNNING,
        scene.framework,
        healthy=True,
        check_status=pb.CheckStatusInfo(type=pb.CheckInfo.COMMAND),
        container_status=pb.ContainerStatus(executor_pid=77),
        data=b"data",
        message="message",
        labels=pb.Labels(labels=[pb.Label(key="k")]),
    )
    (status,) = scene.ask(("t1", ""))
    assert status.healthy
    assert status.check_status.type == pb.CheckInfo.COMMAND
    assert status.container_status.executor_pid == 77
    assert status.executor_id.value == "e1"
    assert status.agent_id.value == scene.agent.id
    # Not these (Mesos).
    assert not status.HasField("data")
    assert not status.HasField("labels")


def test_a_task_without_such_details_is_answered_without():
    scene = Scene()
    scene.framework.start("t1")
    scene.agent.report("t1", pb.TASK_RUNNING, scene.framework)
    (status,) = scene.ask(("t1", ""))
    for field in ("healthy", "check_status", "container_status", "executor_id"):
        assert not status.HasField(field)


# ---- Unknown tasks ------------------------------------------------------------------------


def test_unknown_on_an_agent_that_is_registered_is_gone(aware):
    scene = Scene(aware)
    assert scene.states(("x", scene.agent.id)) == [("x", told(pb.TASK_GONE, aware))]


def test_unknown_on_an_agent_that_is_away_for_a_moment_is_gone_too(aware):
    scene = Scene(aware)
    scene.agent.disconnect()
    assert scene.states(("x", scene.agent.id)) == [("x", told(pb.TASK_GONE, aware))]


def test_unknown_on_an_unreachable_agent_is_unreachable_and_since_when(aware):
    scene = Scene(aware)
    scene.agent.disconnect()
    scene.world.advance(75)
    since = scene.world.clock.wall_s
    scene.world.advance(5)
    (status,) = scene.ask(("x", scene.agent.id))
    assert status.state == told(pb.TASK_UNREACHABLE, aware)
    assert status.unreachable_time.nanoseconds == pytest.approx(since * 1e9, abs=1e6)


def test_unknown_on_an_agent_that_nobody_knows_is_unknown(aware):
    scene = Scene(aware)
    assert scene.states(("x", "nowhere")) == [("x", told(pb.TASK_UNKNOWN, aware))]


def test_a_task_on_an_unreachable_agent_that_is_asked_for_without_the_agent_is_unknown(aware):
    scene = Scene(aware)
    scene.framework.start("t1")
    scene.agent.disconnect()
    scene.world.advance(75)
    assert scene.states(("t1", "")) == [("t1", told(pb.TASK_UNKNOWN, aware))]
    assert scene.states(("t1", scene.agent.id)) == [("t1", told(pb.TASK_UNREACHABLE, aware))]


def test_anothers_task_is_unknown(aware):
    scene = Scene(aware)
    other = scene.world.framework("other")
    offers = [*scene.framework.offers(), *other.offers()]
    owner = other if offers[0].framework_id.value == other.id else scene.framework
    asker = scene.framework if owner is other else other
    owner.launch(offers[0], scene.world.task("t1"))
    (status,) = asker.reconcile(("t1", ""))
    assert status.state == pb.TASK_LOST


# ---- All tasks ---------------------------------------------------------------------------


def test_without_names_every_task_in_memory_is_answered_also_ended_ones():
    scene = Scene()
    scene.framework.start("t1", "t2", "t3", text="cpus:0.1;mem:1")
    scene.agent.report("t2", pb.TASK_RUNNING, scene.framework)
    scene.agent.report("t3", pb.TASK_FINISHED, scene.framework)
    assert scene.states() == [
        ("t1", pb.TASK_STAGING),
        ("t2", pb.TASK_RUNNING),
        ("t3", pb.TASK_FINISHED),
    ]


def test_without_names_unreachable_and_completed_tasks_are_left_out():
    scene = Scene(aware=True)
    scene.framework.start("t1", "t2", text="cpus:0.1;mem:1")
    uuid = scene.agent.report("t2", pb.TASK_FINISHED, scene.framework)
    scene.framework.acknowledge(scene.agent, "t2", uuid)
    scene.agent.disconnect()
    scene.world.advance(75)
    assert scene.states() == []


def test_a_framework_without_tasks_is_answered_nothing():
    assert Scene().states() == []


def test_many_questions_are_answered_in_their_order_repeats_too():
    scene = Scene()
    scene.framework.start("t1")
    answers = scene.states(("a", ""), ("t1", ""), ("a", ""), ("", ""))
    assert [name for name, _ in answers] == ["a", "t1", "a", ""]


# ---- Ends that nobody repeats ------------------------------------------------------------


@pytest.mark.parametrize("how", ["returns without it", "unreachable", "unregisters"])
def test_an_end_whose_agent_will_not_repeat_it_is_said_once_more(how):
    scene = Scene()
    scene.framework.start("t1")
    # The framework has been told of STARTING; FINISHED waits on the agent behind it.
    scene.agent.report("t1", pb.TASK_STARTING, scene.framework, latest=pb.TASK_FINISHED)
    scene.framework.take()
    match how:
        case "returns without it":
            scene.agent.register()
        case "unreachable":
            scene.agent.disconnect()
            scene.world.advance(75)
        case "unregisters":
            scene.agent.call(type=agent_pb2.Call.UNREGISTER)
    (status,) = scene.framework.updates()
    assert (status.state, status.reason) == (
        pb.TASK_FINISHED,
        pb.TaskStatus.REASON_RECONCILIATION,
    )
    record = scene.world.cluster.frameworks[scene.framework.id]
    assert record.tasks == {}
    assert [task.state for task in record.completed_tasks] == [pb.TASK_FINISHED]
    scene.world.check()


def test_an_end_that_could_not_be_said_is_said_when_the_agent_is_back():
    scene = Scene()
    scene.framework.start("t1")
    uuid = scene.agent.report("t1", pb.TASK_STARTING, scene.framework, latest=pb.TASK_FINISHED)
    scene.framework.disconnect()
    scene.agent.disconnect()
    scene.world.advance(75)
    scene.framework.subscribe()
    ended = scene.agent.task("t1", scene.framework, pb.TASK_FINISHED)
    scene.agent.register(tasks=[ended], frameworks=[scene.framework.info])
    scene.framework.take()
    scene.agent.report("t1", pb.TASK_STARTING, scene.framework, uuid=uuid, latest=pb.TASK_FINISHED)
    scene.agent.report("t1", pb.TASK_FINISHED, scene.framework)
    states = [status.state for status in scene.framework.updates()]
    assert states == [pb.TASK_STARTING, pb.TASK_FINISHED]
    scene.world.check()


def test_no_answer_about_a_task_whose_agent_may_still_be_on_its_way_to_a_new_master() -> None:
    world = World()
    framework = world.framework("old", id=pb.FrameworkID(value="from-before"))
    assert framework.reconcile(("t", "")) == []
    assert world.cluster.counters["dropped/reconcile-too-early"] == 1
    world.advance(world.cluster.options.agent_timeout_s)
    assert [status.state for status in framework.reconcile(("t", ""))] == [pb.TASK_LOST]


def test_a_framework_that_is_new_to_this_master_is_answered_at_once() -> None:
    world = World()
    framework = world.framework("new")
    assert [status.state for status in framework.reconcile(("t", ""))] == [pb.TASK_LOST]


def test_a_kill_of_a_task_that_is_not_back_yet_waits_for_it() -> None:
    world = World()
    framework = world.framework("old", id=pb.FrameworkID(value="from-before"))
    framework.kill("t")
    assert framework.updates() == []
    agent = world.agent()
    agent.disconnect()
    events = agent.register(
        tasks=[
            pb.Task(
                name="t",
                task_id=pb.TaskID(value="t"),
                framework_id=framework.info.id,
                agent_id=agent.info.id,
                state=pb.TASK_RUNNING,
                resources=Resources.of(cpus=1).to_proto(),
            )
        ],
        frameworks=[framework.info],
    )
    kills = [event.kill_task for event in events if event.type == agent_pb2.Event.KILL_TASK]
    assert [kill.task_id.value for kill in kills] == ["t"]
    world.check()
