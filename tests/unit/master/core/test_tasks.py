"""Status updates up and acknowledgements down: twice, late, never, and in any order."""

import itertools

import pytest

from mesos_py.resources import EMPTY, Resources
from mesos_py.states import TERMINAL
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World
from tests.kit.scenes import TaskScene

WHOLE = Resources.parse("cpus:4;mem:4096")
ONE = Resources.parse("cpus:1;mem:32")


@pytest.fixture
def scene():
    made = TaskScene()
    yield made
    made.world.check()


# ---- Updates ---------------------------------------------------------------------------


def test_an_update_is_passed_on_as_it_came(scene):
    uuid = scene.report(pb.TASK_RUNNING, message="up", healthy=True)
    (status,) = scene.framework.updates()
    assert (status.state, status.uuid, status.message, status.healthy) == (
        pb.TASK_RUNNING,
        uuid,
        "up",
        True,
    )
    assert status.source == pb.TaskStatus.SOURCE_AGENT
    assert (scene.task.state, scene.task.update_state) == (pb.TASK_RUNNING, pb.TASK_RUNNING)
    assert scene.used == ONE


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_every_terminal_state_frees_what_the_task_had(scene, state):
    uuid = scene.report(state)
    assert scene.used == EMPTY
    assert scene.task.state == state
    assert scene.task.ended_wall_s == scene.world.clock.wall_s
    scene.framework.acknowledge(scene.agent, "t1", uuid)
    assert scene.record.tasks == {}
    assert [task.state for task in scene.record.completed_tasks] == [state]


def test_the_resources_are_freed_by_the_news_before_the_framework_has_seen_the_end(scene):
    scene.report(pb.TASK_STARTING, latest=pb.TASK_FINISHED)
    assert scene.used == EMPTY
    assert scene.states() == [("t1", pb.TASK_STARTING)]
    assert (scene.task.state, scene.task.update_state) == (pb.TASK_FINISHED, pb.TASK_STARTING)
    assert scene.task.task_id in scene.record.tasks


def test_three_times_finished_is_counted_once_and_all_are_passed_on(scene):
    uuid = scene.report(pb.TASK_FINISHED)
    scene.report(pb.TASK_FINISHED, uuid=uuid)
    scene.report(pb.TASK_FINISHED, uuid=uuid)
    assert scene.states() == [("t1", pb.TASK_FINISHED)] * 3
    assert scene.world.cluster.counters["task_states/TASK_FINISHED"] == 1
    for _ in range(3):
        scene.framework.acknowledge(scene.agent, "t1", uuid)
    assert scene.acknowledged() == [uuid] * 3
    assert len(scene.record.completed_tasks) == 1
    assert scene.world.cluster.ledger.free(scene.agent.id) == WHOLE


def test_an_update_of_an_unknown_task_is_passed_on_so_that_it_can_be_acknowledged(scene):
    uuid = scene.report(pb.TASK_FINISHED, "unknown")
    assert scene.states() == [("unknown", pb.TASK_FINISHED)]
    scene.framework.acknowledge(scene.agent, "unknown", uuid)
    assert scene.acknowledged() == [uuid]
    assert "unknown" not in scene.record.tasks


@pytest.mark.parametrize(
    ("first", "late"),
    [
        (pb.TASK_FINISHED, pb.TASK_RUNNING),
        (pb.TASK_FINISHED, pb.TASK_STARTING),
        (pb.TASK_KILLED, pb.TASK_KILLING),
    ],
)
def test_what_comes_after_the_end_changes_nothing_and_is_acknowledged(scene, first, late):
    scene.report(first)
    scene.framework.take()
    uuid = scene.report(late)
    assert scene.task.state == first
    assert scene.states() == []
    assert scene.acknowledged() == [uuid]
    assert scene.used == EMPTY


def test_a_second_end_does_not_replace_the_first(scene):
    scene.report(pb.TASK_FINISHED)
    last = scene.report(pb.TASK_FAILED)
    assert scene.task.state == pb.TASK_FINISHED
    assert [status.state for status in scene.task.statuses] == [pb.TASK_FINISHED]
    assert "update-backwards" in scene.drops()
    scene.framework.acknowledge(scene.agent, "t1", last)
    assert scene.record.tasks == {}


@pytest.mark.parametrize(
    ("new", "old"),
    list(itertools.combinations([pb.TASK_KILLING, pb.TASK_RUNNING, pb.TASK_STARTING], 2)),
)
def test_a_state_never_moves_back(scene, new, old):
    scene.report(new)
    scene.report(old)
    assert (scene.task.state, scene.task.update_state) == (new, new)
    assert "update-backwards" in scene.drops()


def test_a_task_may_report_the_same_state_many_times_and_keeps_the_newest(scene):
    scene.report(pb.TASK_RUNNING, healthy=True)
    scene.report(pb.TASK_RUNNING, healthy=False)
    (status,) = scene.task.statuses
    assert not status.healthy
    assert scene.world.cluster.counters["task_states/TASK_RUNNING"] == 1


def test_an_end_with_older_news_is_an_end(scene):
    uuid = scene.report(pb.TASK_FINISHED, latest=pb.TASK_RUNNING)
    assert scene.task.state == pb.TASK_FINISHED
    assert scene.used == EMPTY
    scene.framework.acknowledge(scene.agent, "t1", uuid)
    assert scene.record.tasks == {}


@pytest.mark.parametrize("state", [pb.TASK_UNREACHABLE, pb.TASK_UNKNOWN, 77, -1])
def test_a_state_that_no_agent_can_report_changes_nothing(scene, state):
    scene.report(state, latest=pb.TASK_RUNNING)
    scene.report(pb.TASK_RUNNING, latest=state)
    assert scene.task.state == pb.TASK_STAGING
    assert scene.states() == []
    assert scene.drops() == ["update-impossible-state"] * 2


@pytest.mark.parametrize("uuid", [b"", b"short", b"x" * 17])
def test_an_update_that_nobody_could_acknowledge_is_dropped(scene, uuid):
    scene.report(pb.TASK_RUNNING, uuid=uuid)
    assert scene.states() == []
    assert scene.task.state == pb.TASK_STAGING
    assert scene.drops() == ["update-without-uuid"]


def test_an_end_that_nobody_could_acknowledge_is_the_end_at_once(scene):
    scene.report(pb.TASK_KILLED, uuid=b"")
    (status,) = scene.framework.updates()
    assert status.state == pb.TASK_KILLED
    assert not status.HasField("uuid")
    assert scene.record.tasks == {}
    assert scene.used == EMPTY


def test_an_update_for_a_framework_that_is_away_is_applied_and_waits(scene):
    scene.framework.disconnect()
    uuid = scene.report(pb.TASK_FINISHED)
    assert scene.used == EMPTY
    assert scene.drops() == ["update-framework-away"]
    scene.framework.subscribe()
    scene.report(pb.TASK_FINISHED, uuid=uuid)
    assert scene.states() == [("t1", pb.TASK_FINISHED)]
    scene.framework.acknowledge(scene.agent, "t1", uuid)
    assert scene.record.tasks == {}


def test_an_update_for_a_framework_that_nobody_knows_is_dropped(scene):
    scene.agent.report("t9", pb.TASK_FINISHED, "nobody")
    assert scene.drops() == ["update-unknown-framework"]


def test_an_agent_that_waits_for_a_framework_that_nobody_knows_is_told_of_its_end(scene):
    scene.agent.report("t9", pb.TASK_FINISHED, "nobody")
    assert scene.agent.orders() == ["SHUTDOWN_FRAMEWORK"]
    scene.agent.report("t9", pb.TASK_FINISHED, "nobody", uuid=b"")
    assert scene.agent.orders() == []


def test_an_update_from_another_agent_than_the_tasks_does_not_count(scene):
    stranger = scene.world.agent()
    scene.framework.take()
    stranger.take()
    uuid = stranger.report("t1", pb.TASK_FINISHED, scene.framework)
    assert scene.states() == []
    assert scene.task.state == pb.TASK_STAGING
    assert scene.used == ONE
    # It is acknowledged for the framework, or would be repeated for ever.
    (event,) = stranger.take(agent_pb2.Event.ACKNOWLEDGE)
    assert event.acknowledge.uuid == uuid


def test_ports_are_offered_again_only_when_the_processes_are_gone():
    world = World()
    agent = world.agent(resources="cpus:4;ports:[31000-31001]")
    framework = world.framework()
    framework.start("t1", text="cpus:1;ports:[31000-31000]")
    framework.kill("t1")
    agent.report("t1", pb.TASK_KILLING, framework)
    world.advance(8)
    shown = [Resources.from_proto("o", o.resources) for o in framework.offers()]
    assert all(not r.contains(Resources.parse("ports:[31000-31000]")) for r in shown)
    agent.report("t1", pb.TASK_KILLED, framework)
    world.advance(6)
    offers = world.cluster.offers.values()
    free = world.cluster.ledger.free(agent.id)
    bundles = [free, *(offer.resources for offer in offers)]
    assert any(b.contains(Resources.parse("ports:[31000-31000]")) for b in bundles)
    world.check()


# ---- Acknowledgements -----------------------------------------------------------------------


def test_an_acknowledgement_goes_to_the_agent(scene):
    uuid = scene.report(pb.TASK_RUNNING)
    scene.framework.acknowledge(scene.agent, "t1", uuid)
    (event,) = scene.agent.take()
    assert event.acknowledge.framework_id.value == scene.framework.id
    assert event.acknowledge.task_id.value == "t1"
    assert event.acknowledge.uuid == uuid
    assert "t1" in scene.record.tasks


def test_acknowledging_an_older_update_does_not_end_the_task(scene):
    running = scene.report(pb.TASK_RUNNING, latest=pb.TASK_FINISHED)
    scene.report(pb.TASK_FINISHED)
    scene.framework.acknowledge(scene.agent, "t1", running)
    assert "t1" in scene.record.tasks
    assert scene.acknowledged() == [running]


@pytest.mark.parametrize("uuid", [b"", b"short", b"x" * 17])
def test_an_acknowledgement_without_a_uuid_is_refused(scene, uuid):
    scene.report(pb.TASK_FINISHED)
    scene.framework.take()
    scene.framework.acknowledge(scene.agent, "t1", uuid)
    (refusal,) = scene.framework.refusals()
    assert (refusal.call, refusal.field) == (sched.Call.ACKNOWLEDGE, "uuid")
    assert scene.acknowledged() == []


@pytest.mark.parametrize("task_id", ["", "x" * 100_000, "a/b"])
def test_an_acknowledgement_for_what_is_no_task_id_goes_no_further(scene, task_id):
    scene.framework.acknowledge(scene.agent, task_id, b"u" * 16)
    (refusal,) = scene.framework.refusals()
    assert (refusal.call, refusal.field) == (sched.Call.ACKNOWLEDGE, "task_id")
    assert scene.acknowledged() == []


def test_an_acknowledgement_for_an_agent_that_is_away_is_dropped_and_given_again(scene):
    uuid = scene.report(pb.TASK_FINISHED)
    scene.agent.disconnect()
    scene.framework.acknowledge(scene.agent, "t1", uuid)
    assert "t1" in scene.record.tasks
    assert scene.drops() == ["acknowledge-agent-away"]
    ended = scene.agent.task("t1", scene.framework, pb.TASK_FINISHED, "cpus:1;mem:32")
    scene.agent.register(tasks=[ended], frameworks=[scene.framework.info])
    scene.report(pb.TASK_FINISHED, uuid=uuid)
    scene.framework.acknowledge(scene.agent, "t1", uuid)
    assert scene.acknowledged() == [uuid]
    assert scene.record.tasks == {}


def test_an_acknowledgement_that_is_lost_with_the_stream_is_passed_on_once_more(scene):
    uuid = scene.report(pb.TASK_FINISHED)
    scene.framework.acknowledge(scene.agent, "t1", uuid)
    # The agent never saw it: it comes back with the task and its update.
    ended = scene.agent.task(
        "t1",
        scene.framework,
        pb.TASK_FINISHED,
        "cpus:1;mem:32",
        status_update_state=pb.TASK_FINISHED,
        status_update_uuid=uuid,
    )
    scene.agent.register(tasks=[ended], frameworks=[scene.framework.info])
    scene.framework.take()
    scene.report(pb.TASK_FINISHED, uuid=uuid)
    assert scene.states() == []
    assert scene.acknowledged() == [uuid]
    assert [task.task_id for task in scene.record.completed_tasks] == ["t1"]


def test_an_acknowledgement_for_an_unknown_agent_is_dropped(scene):
    call = sched.Call.Acknowledge(
        agent_id=pb.AgentID(value="nowhere"), task_id=pb.TaskID(value="t1"), uuid=b"x" * 16
    )
    scene.framework.call(type=sched.Call.ACKNOWLEDGE, acknowledge=call)
    assert scene.drops() == ["acknowledge-agent-away"]


# ---- Many ------------------------------------------------------------------------------------


def test_losses_and_repeats_on_every_way_end_each_of_many_tasks_exactly_once():
    world = World()
    agent = world.agent(resources="cpus:200;mem:20000")
    framework = world.framework(failover_timeout=1000.0)
    (offer,) = framework.offers()
    names = [f"t{number}" for number in range(200)]
    framework.launch(offer, *(world.task(name, text="cpus:0.1;mem:1") for name in names))
    waiting = {}
    for number, name in enumerate(names):
        waiting[name] = (world.uuid(), pb.TASK_FINISHED if number % 3 else pb.TASK_FAILED)
    seen: dict[str, set[int]] = {}
    rounds = 0
    while waiting:
        rounds += 1
        for number, (name, (uuid, state)) in enumerate(list(waiting.items())):
            if (number + rounds) % 4 == 0:
                continue  # the update is lost
            agent.report(name, state, framework, uuid=uuid)
        for number, status in enumerate(framework.updates()):
            seen.setdefault(status.task_id.value, set()).add(status.state)
            if (number + rounds) % 3:  # else the acknowledgement is lost
                framework.acknowledge(agent, status.task_id.value, status.uuid)
        for event in agent.take(agent_pb2.Event.ACKNOWLEDGE):
            if rounds % 5:  # else it is lost on its way to the agent
                waiting.pop(event.acknowledge.task_id.value, None)
        assert rounds < 100
    assert len(seen) == 200
    assert all(len(states) == 1 for states in seen.values())
    record = world.cluster.frameworks[framework.id]
    assert record.tasks == {}
    assert len(record.completed_tasks) == 200
    assert world.cluster.ledger.allocated(agent.id) == EMPTY
    world.check()
