"""Taking back: when it is over, what goes wrong on the way, what is called off."""

import pytest

from master.core.cluster import Options
from mesos_py.states import TASK_KILLED, TASK_RUNNING
from mesos_py.v1 import agent_pb2
from tests.kit.revoking import PREEMPTED, Call, Event, Scene


@pytest.fixture
def scene():
    made = Scene()
    yield made
    made.world.check()


def at_once():
    return Scene(Options(revocation_grace_s=0.0))


# ---- Over -------------------------------------------------------------------------------


def test_it_is_called_off_for_what_is_not_there(scene):
    gone = scene.world.framework("gone")
    scene.world.take_back(gone, scene.agent, "cpus:1", "x")
    scene.world.advance(5)
    assert scene.ends() == [(("x",), False)]
    role = scene.world.take_back(scene.framework, scene.agent, "cpus:1", "nobody's")
    scene.world.advance(5)
    assert scene.ends() == [(role.task_ids, False)]
    assert scene.kills() == []


def test_it_is_void_at_once_for_a_framework_that_has_ended(scene):
    plan = scene.take_back("cpus:1", "t1")
    scene.world.advance(5)
    scene.end("t1")
    scene.ends()
    scene.framework.call(type=Call.TEARDOWN)
    scene.world.script.plans.append(plan)
    scene.world.cluster.want_allocation(scene.world.clock.now())
    scene.world.settle()
    assert scene.ends() == [(("t1",), False)]
    assert scene.counters["dropped/revocation-stale"] == 1


@pytest.mark.parametrize("when", ["asked", "killed"])
def test_an_agent_that_is_lost_gives_nothing_back(scene, when):
    scene.take_back("cpus:1", "t1")
    if when == "killed":
        scene.world.advance(5)
    scene.agent.disconnect()
    scene.world.advance(80)
    assert scene.ends() == [(("t1",), False)]
    assert not scene.world.cluster.revoking.by_name
    assert not scene.world.cluster.timers.has("revoke", "m-O1")


def test_a_framework_that_ends_gives_it_back_when_its_tasks_are_gone(scene):
    scene.take_back("cpus:1", "t1")
    scene.framework.call(type=Call.TEARDOWN)
    scene.world.advance(6)
    assert scene.ends() == []
    scene.end("t3")
    assert scene.ends() == [(("t1",), True)]


def test_part_of_it_counts_as_freed_if_no_more_can_come(scene):
    scene.take_back("cpus:2", "t1", "unknown")
    scene.world.advance(5)
    assert scene.killed() == ["t1"]
    scene.end("t1")
    assert scene.ends() == [(("t1", "unknown"), True)]


# ---- Faults -------------------------------------------------------------------------------


def test_the_order_is_repeated_with_its_reason_to_an_agent_that_was_away(scene):
    scene.take_back("cpus:1", "t1")
    scene.agent.disconnect()
    scene.world.advance(6)
    tasks = [
        scene.agent.task(f"t{n}", scene.framework, TASK_RUNNING, "cpus:1;mem:100")
        for n in range(1, 5)
    ]
    events = scene.agent.register(tasks, frameworks=[scene.framework.info])
    (order,) = [e.kill_task for e in events if e.type == agent_pb2.Event.KILL_TASK]
    assert (order.task_id.value, order.reason) == ("t1", PREEMPTED)
    scene.end("t1")
    assert scene.ends() == [(("t1",), True)]


def test_an_agent_that_comes_back_without_its_tasks_has_given_them_up(scene):
    scene.take_back()
    scene.agent.disconnect()
    scene.agent.register(frameworks=[scene.framework.info])
    for n in range(1, 5):
        scene.agent.report(f"t{n}", TASK_KILLED, scene.framework)
    scene.world.settle()
    assert scene.ends() == [(("t1", "t2"), True)]


def test_after_a_pause_of_the_master_frameworks_get_their_time_back(scene):
    scene.take_back("cpus:1", "t1")
    scene.world.clock.advance(100)
    scene.world.core.tick(scene.world.clock.now())
    assert scene.kills() == []
    scene.world.advance(5)
    assert scene.killed() == ["t1"]


def test_an_order_of_the_framework_itself_keeps_the_reason_of_ours(scene):
    scene.take_back("cpus:1", "t1")
    scene.world.advance(5)
    scene.agent.take()
    scene.framework.kill("t1")
    (order,) = scene.kills()
    assert order.reason == PREEMPTED


def test_stages_are_counted(scene):
    scene.take_back()
    scene.accept(scene.asked()[0])
    scene.world.advance(5)
    scene.end("t1")
    scene.end("t2")
    stages = {name: n for name, n in scene.counters.items() if name.startswith("revocations/")}
    assert stages == {
        f"revocations/{each}": 1 for each in ("planned", "asked", "accepted", "freed")
    }


# ---- Called off ---------------------------------------------------------------------------


def test_what_is_called_off_is_asked_for_no_more_and_nothing_is_killed(scene):
    plan = scene.take_back()
    (offer,) = scene.asked()
    scene.world.call_off(plan)
    (event,) = scene.framework.take()
    assert event.type == Event.RESCIND_INVERSE_OFFER
    assert event.rescind_inverse_offer.inverse_offer_id == offer.id
    assert scene.ends() == [(("t1", "t2"), False)]
    scene.world.advance(10.0)
    assert scene.kills() == []


def test_what_is_being_killed_already_is_called_off_too_late(scene):
    plan = scene.take_back()
    scene.world.advance(6.0)
    assert scene.killed() == ["t1", "t2"]
    scene.world.call_off(plan)
    assert scene.ends() == []
    scene.end("t1")
    scene.end("t2")
    assert scene.ends() == [(("t1", "t2"), True)]


def test_calling_off_what_is_over_or_unknown_is_harmless(scene):
    plan = scene.take_back()
    for name in ("t1", "t2"):
        scene.end(name)
    assert len(scene.ends()) == 1
    scene.world.call_off(plan)
    scene.world.call_off(plan)
    assert scene.ends() == []
