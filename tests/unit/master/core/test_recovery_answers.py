"""What a new leader makes of frameworks that only agents name, and of tasks asked about."""

import pytest

from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import FakeAgent
from tests.kit.scenes import PARTITION_AWARE, LeaderScene, agent_record, recovered

# ---- Frameworks that only agents know ----------------------------------------------------------


def named(failover_timeout, agent_timeout_s=75.0):
    """A framework that an agent has brought, and whose scheduler has not come."""
    scene = LeaderScene(1, agent_timeout_s=agent_timeout_s)
    info = pb.FrameworkInfo(name="old", user="nobody", failover_timeout=failover_timeout)
    info.id.value = "old"
    task = scene.agents[0].task("t1", "old", pb.TASK_RUNNING)
    scene.agents[0].register(tasks=[task], frameworks=[info])
    scene.agents[0].take()
    return scene, info


@pytest.mark.parametrize(("failover_s", "within_s"), [(0.0, 75), (30.0, 75), (150.0, 150)])
def test_a_framework_whose_scheduler_never_comes_is_removed(failover_s, within_s):
    scene, _ = named(failover_s)
    scene.answering([0], within_s - 15)
    scene.world.advance(14)
    scene.agents[0].take()
    assert "old" in scene.cluster.frameworks
    scene.world.advance(1)
    assert "SHUTDOWN_FRAMEWORK" in scene.agents[0].orders()
    (task,) = scene.cluster.completed_frameworks["old"].completed_tasks
    assert task.state == pb.TASK_KILLED
    assert task.statuses[-1].message == (
        f"the framework has not subscribed to this master within {within_s} s"
    )
    scene.world.check()


def test_the_time_is_counted_from_the_first_report():
    scene, info = named(0.0)
    scene.answering([0], 60)
    scene.agents[0].register(frameworks=[info])
    scene.world.advance(15)
    assert "old" not in scene.cluster.frameworks


def test_a_framework_that_subscribes_in_time_stays_and_has_its_own_time_out_again():
    scene, _ = named(0.0)
    scene.world.advance(70)
    scene.agents[0].pong()
    framework = scene.world.framework("old", id=pb.FrameworkID(value="old"))
    scene.answering([0], 300)
    assert "old" in scene.cluster.frameworks
    framework.disconnect()
    assert "old" not in scene.cluster.frameworks


def test_after_a_stall_such_a_framework_has_time_to_come():
    scene, _ = named(0.0)
    scene.world.clock.advance(1000)
    scene.world.core.tick(scene.world.clock.now())
    scene.world.advance(74)
    assert "old" in scene.cluster.frameworks
    framework = scene.world.framework("old", id=pb.FrameworkID(value="old"))
    assert framework.kinds() == []


def test_a_task_of_such_a_framework_is_killed_if_it_was_asked_for_before_its_agent_came():
    scene = LeaderScene(2)
    framework = scene.world.framework("old", id=pb.FrameworkID(value="old"), failover_timeout=1e6)
    framework.kill("t1", scene.agents[0].id)
    framework.kill("t2")
    assert framework.updates() == []
    tasks = [scene.agents[0].task(name, "old", pb.TASK_RUNNING) for name in ("t1", "t2")]
    scene.agents[0].register(tasks=tasks, frameworks=[framework.info])
    assert scene.agents[0].take() == []
    assert scene.cluster.frameworks["old"].early_kills == {}


# ---- Reconciliation --------------------------------------------------------------------------


MOMENT = pb.TimeInfo(nanoseconds=1_500_000_000 * 10**9)


@pytest.fixture(params=[False, True], ids=["non-PA", "PA"])
def asked(request):
    """A world with agents of each kind, and a way to ask about a task that it does not know."""
    world = recovered(
        {
            "agent/expected": agent_record("expected"),
            "agent/away": agent_record("away", unreachable_time=MOMENT),
            "agent/gone": agent_record("gone", gone_time=MOMENT),
        }
    )
    capabilities = [PARTITION_AWARE] if request.param else []
    framework = world.framework(
        id=pb.FrameworkID(value="old"), failover_timeout=1e6, capabilities=capabilities
    )

    def ask(agent_id, state):
        wanted = state if request.param else pb.TASK_LOST
        found = framework.reconcile(("x", agent_id))
        assert [s.state for s in found] == ([wanted] if state is not None else [])
        killed = (framework.kill("x", agent_id), framework.updates())[1]
        assert [s.state for s in killed] == [s.state for s in found]
        return found[0] if found else None

    return world, framework, ask


def test_of_an_expected_agent_and_of_no_agent_while_one_is_expected_there_is_no_answer(asked):
    world, framework, ask = asked
    ask("expected", None)
    ask("", None)
    assert list(world.cluster.frameworks[framework.id].early_kills) == ["x"]


def test_unreachable_gone_and_unknown_agents_are_answered_also_while_one_is_expected(asked):
    _, _, ask = asked
    status = ask("away", pb.TASK_UNREACHABLE)
    assert status.unreachable_time == MOMENT
    assert not ask("gone", pb.TASK_GONE_BY_OPERATOR).HasField("unreachable_time")
    ask("nowhere", pb.TASK_UNKNOWN)


def test_once_the_expected_agent_is_back_there_are_answers(asked):
    world, _, ask = asked
    agent = FakeAgent(world, "web1", "cpus:4", {})
    agent.info.CopyFrom(agent_record("expected").info)
    agent.register()
    ask("expected", pb.TASK_GONE)
    ask("", pb.TASK_UNKNOWN)


def test_once_the_expected_agent_is_lost_there_are_answers(asked):
    world, _, ask = asked
    world.advance(75)
    ask("expected", None)
    world.stored()
    ask("expected", pb.TASK_UNREACHABLE)
    ask("", pb.TASK_UNKNOWN)


def test_an_agent_that_is_about_to_be_admitted_is_not_answered_for(asked):
    world, _, ask = asked
    agent = FakeAgent(world, "web9", "cpus:4", {})
    agent.info.id.value = "stranger"
    agent.register()
    ask("stranger", None)
    world.stored()
    ask("stranger", pb.TASK_GONE)


def test_an_unreachable_agent_on_its_way_back_is_unreachable_until_that_is_stored(asked):
    world, _, ask = asked
    agent = FakeAgent(world, "web1", "cpus:4", {})
    agent.info.CopyFrom(agent_record("away").info)
    agent.register()
    ask("away", pb.TASK_UNREACHABLE)
    world.stored()
    ask("away", pb.TASK_GONE)


def test_with_a_registry_a_framework_from_before_is_not_made_to_wait_for_strangers():
    world = recovered({})
    framework = world.framework(id=pb.FrameworkID(value="old"), failover_timeout=1e6)
    (status,) = framework.reconcile(("x", ""))
    assert status.state == pb.TASK_LOST
