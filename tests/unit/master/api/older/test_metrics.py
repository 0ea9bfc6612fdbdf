"""/metrics/snapshot: names that people's alerts have, with the numbers that they mean."""

import pytest

from master.api.older.metrics import snapshot
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World


@pytest.fixture
def world():
    made = World()
    yield made
    made.check()


def numbers(world, *, leading=True):
    return snapshot(world.cluster, uptime_s=12.5, leading=leading)


def test_an_empty_cluster_has_all_names_and_divides_by_nothing(world):
    found = numbers(world)
    assert (found["master/elected"], found["master/uptime_secs"]) == (1.0, 12.5)
    for kind in ("cpus", "mem", "disk", "gpus"):
        assert found[f"master/{kind}_total"] == found[f"master/{kind}_percent"] == 0.0
    without = snapshot(None, uptime_s=12.5, leading=False)
    assert without["master/elected"] == 0.0
    assert set(without) == set(found)
    assert all(isinstance(value, float) for value in found.values())
    assert found["system/cpus_total"] >= 1.0
    assert found["system/mem_total_bytes"] >= found["system/mem_free_bytes"] > 0.0


def test_what_is_used_and_what_became_of_tasks(world):
    agent = world.agent(resources="cpus:4;mem:4096")
    framework = world.framework("it")
    world.settle()
    framework.launch(framework.offers()[0], world.task("t1"), world.task("t2"))
    agent.report("t1", pb.TASK_RUNNING, framework)
    uuid = agent.report("t2", pb.TASK_FAILED, framework)
    framework.acknowledge(agent, "t2", uuid)
    found = numbers(world)
    assert found["master/cpus_total"] == 4.0
    assert found["master/cpus_used"] == 1.0
    assert found["master/cpus_percent"] == 0.25
    assert found["master/tasks_running"] == 1.0
    assert found["master/tasks_staging"] == 0.0
    assert found["master/tasks_failed"] == 1.0
    assert found["master/slave_registrations"] == 1.0
    prefix = f"master/frameworks/it/{framework.id}/"
    assert found[prefix + "subscribed"] == 1.0
    assert found[prefix + "tasks/active/task_running"] == 1.0
    assert found[prefix + "offers/accepted"] == 1.0
    assert found[prefix + "roles/*/suppressed"] == 0.0


def test_agents_that_are_away_are_told_apart(world):
    agents = [world.agent() for _ in range(3)]
    agents[0].disconnect()
    world.advance(world.cluster.options.agent_timeout_s + 1)
    agents[1].disconnect()
    found = numbers(world)
    states = ("active", "inactive", "connected", "disconnected", "unreachable")
    assert [found[f"master/slaves_{each}"] for each in states] == [1.0, 1.0, 1.0, 1.0, 1.0]
    assert found["master/slave_unreachable_completed"] == 1.0
