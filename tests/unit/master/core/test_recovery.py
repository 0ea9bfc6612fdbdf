"""A new leader: whom it expects, whom it takes for lost and when, and when it offers."""

import pytest

from master.core.explain import findings
from mesos_py.clock import Now
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import maintenance_pb2 as maintenance
from mesos_py.v1 import registry_pb2 as reg
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import FakeAgent
from tests.kit.scenes import LeaderScene, agent_record, recovered

Event = agent_pb2.Event


# ---- What is recovered --------------------------------------------------------------------


def test_agents_that_were_there_are_expected_and_the_others_stay_what_they_were():
    moment = pb.TimeInfo(nanoseconds=1_500_000_000 * 10**9)
    world = recovered(
        {
            "agent/a1": agent_record("a1"),
            "agent/a2": agent_record("a2", unreachable_time=moment),
            "agent/a3": agent_record("a3", gone_time=moment),
            "agent/a4": agent_record("a4", gone_time=moment, unreachable_time=moment),
        }
    )
    c = world.cluster
    assert list(c.expected) == ["a1"]
    assert list(c.agents) == ["a2"]
    assert c.agents["a2"].unreachable == Now(world.clock.monotonic_s, 1.5e9)
    assert c.gone == {"a3": 1.5e9, "a4": 1.5e9}
    world.check()


def test_unreachable_agents_are_in_the_order_in_which_they_were_lost():
    times = {"a1": 30, "a2": 10, "a3": 20}
    records = {
        f"agent/{name}": agent_record(name, unreachable_time=pb.TimeInfo(nanoseconds=second))
        for name, second in times.items()
    }
    world = recovered(records, max_remembered_agents=2)
    assert list(world.cluster.unreachable) == ["a3", "a1"]
    assert "agent/a2" not in world.cluster.registry
    assert list(world.cluster.agents) == ["a3", "a1"]


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("agent/a1", b"\xff\xff\xff", "cannot be decoded"),
        ("agent/a1", agent_record("a2"), "agent_info.id: 'a2': filed under a1"),
        ("agent/a/1", agent_record("a/1"), "must not contain a slash"),
        ("weight/a", b"\xff", "cannot be decoded"),
        ("weight/a", reg.Weight(weight=-1), "must be a finite number above zero"),
        ("weight//", reg.Weight(weight=1), "role"),
        ("maintenance", b"\xff", "cannot be decoded"),
    ],
)
def test_a_damaged_record_costs_that_record_only(key, value, why):
    world = recovered({key: value, "agent/good": agent_record("good")})
    assert list(world.cluster.expected) == ["good"]
    ((reason, ids),) = world.outbox.drops
    assert (reason, ids["record"]) == ("registry-record-damaged", key)
    assert why in ids["why"]
    assert world.cluster.counters["dropped/registry-record-damaged"] == 1
    assert key not in world.cluster.registry


def test_an_agent_whose_record_was_damaged_is_admitted_anew():
    world = recovered({"agent/a1": b"\xff"})
    agent = FakeAgent(world, "web1", "cpus:4", {})
    agent.info.id.value = "a1"
    agent.register()
    world.stored()
    assert agent.greeted()[0].type == Event.REGISTERED
    assert reg.Agent.FromString(world.records["agent/a1"]).info == agent.info


def test_weights_and_records_of_other_kinds_are_taken_over():
    schedule = reg.Maintenance(schedule=maintenance.Schedule())
    world = recovered(
        {"weight/a": reg.Weight(weight=3), "maintenance": schedule, "later/x": b"\xff"}
    )
    assert world.cluster.weights == {"a": 3.0}
    assert world.cluster.registry.read("maintenance", reg.Maintenance()) == schedule
    assert list(world.cluster.registry.keys("later/")) == ["later/x"]
    assert world.outbox.drops == []


# ---- Expected agents -----------------------------------------------------------------------


def test_an_expected_agent_that_comes_back_is_as_it_was_and_nobody_hears_of_it():
    scene = LeaderScene(1)
    framework = scene.world.framework()
    scene.back(0)
    assert scene.agents[0].take() == []
    assert scene.cluster.expected == {}
    assert scene.cluster.counters["agents_reregistered"] == 1
    assert scene.world.outbox.writes == []
    assert len(framework.offers()) == 1
    scene.answering([0], 300)
    assert scene.lost() == 0


def test_tasks_of_an_expected_agent_are_not_announced_since_nobody_took_them_for_lost():
    scene = LeaderScene(1)
    framework = scene.world.framework(id=pb.FrameworkID(value="f1"), failover_timeout=1e6)
    task = scene.agents[0].task("t1", "f1", pb.TASK_RUNNING)
    scene.back(0, tasks=[task], frameworks=[framework.info])
    assert framework.updates() == []
    assert framework.reconcile(("t1", ""))[0].state == pb.TASK_RUNNING


def test_nobody_is_lost_before_the_whole_time_has_passed_since_this_master_listens():
    scene = LeaderScene(3)
    scene.back(0)
    scene.answering([0], 60)
    scene.world.advance(14.9)
    assert (scene.lost(), len(scene.cluster.expected)) == (0, 2)
    scene.world.advance(0.1)
    assert scene.lost() == 0  # not before it is stored
    framework = scene.world.framework()
    scene.world.stored()
    assert scene.lost() == 2
    assert framework.kinds() == ["SUBSCRIBED", "FAILURE", "FAILURE"][1:]
    for agent in scene.agents[1:]:
        record = reg.Agent.FromString(scene.world.records[f"agent/{agent.id}"])
        assert record.HasField("unreachable_time")
    scene.world.check()


def test_an_expected_agent_that_was_lost_may_still_come_back():
    scene = LeaderScene(1)
    scene.world.advance(75)
    scene.world.stored()
    framework = scene.world.framework(id=pb.FrameworkID(value="f1"), failover_timeout=1e6)
    task = scene.agents[0].task("t1", "f1", pb.TASK_RUNNING)
    scene.agents[0].register(tasks=[task], frameworks=[framework.info])
    scene.world.stored()
    assert scene.agents[0].greeted()[0].type == Event.REGISTERED
    (status,) = framework.updates()
    assert status.reason == pb.TaskStatus.REASON_AGENT_REREGISTERED
    scene.world.check()


def test_an_expected_agent_that_comes_back_while_it_is_marked_is_not_lost():
    scene = LeaderScene(1)
    scene.world.advance(75)
    framework = scene.world.framework()
    assert scene.agents[0].register() == []
    scene.world.stored()
    assert scene.agents[0].greeted()[0].type == Event.REGISTERED
    assert framework.kinds() == []
    assert (scene.lost(), scene.cluster.expected) == (0, {})
    scene.world.check()


def test_an_expected_agent_that_vanishes_again_while_it_is_marked_is_expected_anew():
    scene = LeaderScene(1)
    scene.world.advance(75)
    scene.agents[0].register()
    scene.agents[0].disconnect()
    scene.world.stored()
    assert (scene.lost(), len(scene.cluster.expected)) == (0, 1)
    scene.world.advance(74)
    scene.world.stored()
    assert scene.lost() == 0
    scene.world.advance(1)
    scene.world.stored()
    assert scene.lost() == 1
    scene.world.check()


def test_a_new_agent_at_the_address_of_an_expected_one_replaces_it():
    scene = LeaderScene(2)
    new = FakeAgent(scene.world, "h0", "cpus:4", {})
    new.info.port = scene.agents[0].info.port
    new.register()
    assert len(scene.cluster.expected) == 2
    scene.world.stored()
    new.greeted()
    assert list(scene.cluster.expected) == [scene.agents[1].id]
    assert f"agent/{scene.agents[0].id}" not in scene.world.records
    assert scene.cluster.recovery.missing == {scene.agents[1].id}
    scene.world.advance(75)
    scene.world.stored()
    assert scene.lost() == 1


@pytest.mark.parametrize("step_s", [3600.0, -3600.0])
def test_a_step_of_the_wall_clock_loses_nobody(step_s):
    scene = LeaderScene(3)
    scene.world.clock.wall_s += step_s
    scene.world.advance(74)
    assert scene.cluster.counters["agents_unreachable"] == 0
    scene.back(0, 1, 2)
    scene.world.clock.wall_s -= 2 * step_s
    scene.answering([0, 1, 2], 300)
    scene.world.stored()
    assert scene.lost() == 0


@pytest.mark.parametrize("stall_s", [16.0, 20.0, 74.0, 30_000.0])
def test_a_master_that_was_stopped_gives_expected_agents_their_time_anew(stall_s):
    scene = LeaderScene(3)
    scene.world.advance(60)
    scene.world.clock.advance(stall_s)
    scene.world.core.tick(scene.world.clock.now())
    scene.world.advance(74)
    scene.world.stored()
    assert scene.lost() == 0
    scene.back(0, 1, 2)
    scene.answering([0, 1, 2], 300)
    assert scene.lost() == 0


def test_two_hundred_expected_agents_all_come_back_late_and_none_is_lost():
    scene = LeaderScene(200)
    scene.world.advance(74.9)
    scene.back(*range(200))
    scene.answering(range(200), 300)
    assert (scene.lost(), len(scene.cluster.agents)) == (0, 200)
    assert scene.world.outbox.writes == []


def test_two_hundred_expected_agents_that_do_not_come_are_lost_at_the_limited_rate():
    scene = LeaderScene(200, removal_limit=2, removal_per_s=60.0)
    scene.world.advance(75 + 59 * 30 + 1)
    scene.world.stored()
    assert scene.lost() == 60
    late = next(n for n in range(200) if scene.agents[n].id in scene.cluster.removals)
    scene.back(late)
    scene.answering([late], 300 * 30)
    scene.world.stored()
    assert scene.lost() == 199
    scene.world.check()


# ---- Too many are missing ------------------------------------------------------------------


def test_if_too_many_are_missing_nobody_is_lost_and_it_is_said():
    scene = LeaderScene(10, recovery_removal_percent=30.0)
    scene.back(*range(6))
    framework = scene.world.framework()
    scene.answering(range(6), 75)
    scene.world.stored()
    assert (scene.lost(), len(scene.cluster.expected)) == (0, 4)
    drops = [ids for reason, ids in scene.world.outbox.drops if reason == "too-many-agents-missing"]
    assert drops == [{"missing": 4, "expected": 10}]
    record = scene.cluster.frameworks[framework.id]
    assert findings(scene.cluster, record, scene.world.clock.now())[0] == (
        "4 of 10 agents are not back since the change of leader: more than may be taken for "
        "lost, so nobody is"
    )
    # One more comes: now the others may be lost, with the next look.
    scene.back(6)
    scene.answering(range(7), 75)
    scene.world.stored()
    assert scene.lost() == 3
    assert not scene.cluster.recovery.postponed


def test_as_many_as_allowed_are_lost():
    scene = LeaderScene(100, recovery_removal_percent=29.0)
    scene.back(*range(71))
    scene.answering(range(71), 75)
    scene.world.stored()
    assert scene.lost() == 29


def test_the_limit_is_about_a_change_of_leader_only():
    scene = LeaderScene(2, recovery_removal_percent=0.0)
    scene.back(0, 1)
    for agent in scene.agents:
        agent.disconnect()
    scene.world.advance(75)
    scene.world.stored()
    assert scene.lost() == 2


# ---- Hold-off ---------------------------------------------------------------------------------


def test_nothing_is_offered_before_most_agents_are_back():
    scene = LeaderScene(10)
    framework = scene.world.framework()
    scene.back(*range(7))
    assert framework.offers() == []
    assert scene.world.core.next_deadline_s() is not None
    scene.back(7)
    assert len(framework.offers()) == 8
    scene.back(8)
    assert len(framework.offers()) == 1


def test_after_a_while_what_is_there_is_offered():
    scene = LeaderScene(10)
    framework = scene.world.framework()
    scene.back(0)
    scene.world.advance(9.9)
    assert framework.offers() == []
    scene.world.advance(0.1)
    assert len(framework.offers()) == 1


def test_with_nobody_expected_offers_flow_at_once():
    world = recovered({})
    framework = world.framework()
    world.agent()
    assert len(framework.offers()) == 1


@pytest.mark.parametrize(
    "options", [{"allocation_recovery_factor": 0.0}, {"allocation_recovery_timeout_s": 0.0}]
)
def test_the_hold_off_may_be_turned_off(options):
    scene = LeaderScene(10, **options)
    scene.back(0)
    framework = scene.world.framework()
    assert len(framework.offers()) == 1


def test_the_same_agent_again_and_again_counts_once():
    scene = LeaderScene(10)
    framework = scene.world.framework()
    for _ in range(20):
        scene.back(0)
    assert framework.offers() == []


def test_new_agents_do_not_count_as_back():
    scene = LeaderScene(2)
    framework = scene.world.framework()
    scene.world.agent()
    scene.world.agent()
    assert framework.offers() == []


def test_that_offers_are_held_back_is_explained():
    scene = LeaderScene(10)
    framework = scene.world.framework()
    scene.back(0, 1, 2)
    record = scene.cluster.frameworks[framework.id]
    found = findings(scene.cluster, record, scene.world.clock.now())
    assert found[0] == "offers are held back until agents are back: 3 of 10"
    assert not any("due with the next allocation" in each for each in found)
    scene.world.advance(10)
    found = findings(scene.cluster, record, scene.world.clock.now())
    assert not any("held back" in each for each in found)


def test_the_shares_of_frameworks_that_only_agents_name_count():
    scene = LeaderScene(2)
    info = pb.FrameworkInfo(name="old", user="nobody", failover_timeout=1e6)
    info.id.value = "old"
    task = scene.agents[0].task("t1", "old", pb.TASK_RUNNING, "cpus:4;mem:32")
    scene.agents[0].register(tasks=[task], frameworks=[info])
    new = scene.world.framework("new")
    old = scene.world.framework("old", id=pb.FrameworkID(value="old"), failover_timeout=1e6)
    scene.agents[1].register()
    # The whole of the second agent goes to the one that has less.
    offers = {o.agent_id.value for o in new.offers()}
    assert scene.agents[1].id in offers
    assert all(o.agent_id.value != scene.agents[1].id for o in old.offers())
