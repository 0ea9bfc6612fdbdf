"""/metrics/snapshot of an agent: the names that people's alerts have."""

import pytest

from agent.api.older.metrics import Recovery, snapshot
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import AgentWorld, command, for_executor, status

# What an agent of Apache Mesos 1.11 was seen to have and this one has not: what is peculiar to
# its make.
NAMES = [
    "containerizer/fetcher/cache_size_total_bytes",
    "containerizer/fetcher/cache_size_used_bytes",
    "containerizer/fetcher/task_fetches_failed",
    "containerizer/fetcher/task_fetches_succeeded",
    "gc/path_removals_failed",
    "gc/path_removals_succeeded",
    "slave/container_launch_errors",
    "slave/cpus_percent",
    "slave/cpus_revocable_percent",
    "slave/cpus_revocable_total",
    "slave/cpus_revocable_used",
    "slave/cpus_total",
    "slave/cpus_used",
    "slave/disk_percent",
    "slave/disk_revocable_percent",
    "slave/disk_revocable_total",
    "slave/disk_revocable_used",
    "slave/disk_total",
    "slave/disk_used",
    "slave/executor_directory_max_allowed_age_secs",
    "slave/executors_preempted",
    "slave/executors_registering",
    "slave/executors_running",
    "slave/executors_terminated",
    "slave/executors_terminating",
    "slave/frameworks_active",
    "slave/gpus_percent",
    "slave/gpus_revocable_percent",
    "slave/gpus_revocable_total",
    "slave/gpus_revocable_used",
    "slave/gpus_total",
    "slave/gpus_used",
    "slave/invalid_framework_messages",
    "slave/invalid_status_updates",
    "slave/mem_percent",
    "slave/mem_revocable_percent",
    "slave/mem_revocable_total",
    "slave/mem_revocable_used",
    "slave/mem_total",
    "slave/mem_used",
    "slave/recovery_errors",
    "slave/recovery_time_secs",
    "slave/registered",
    "slave/tasks_failed",
    "slave/tasks_finished",
    "slave/tasks_gone",
    "slave/tasks_killed",
    "slave/tasks_killing",
    "slave/tasks_lost",
    "slave/tasks_running",
    "slave/tasks_staging",
    "slave/tasks_starting",
    "slave/uptime_secs",
    "slave/valid_framework_messages",
    "slave/valid_status_updates",
    "system/cpus_total",
    "system/load_15min",
    "system/load_1min",
    "system/load_5min",
    "system/mem_free_bytes",
    "system/mem_total_bytes",
]


@pytest.fixture
def world():
    return AgentWorld()


def numbers(world, **ours):
    return snapshot(
        world.core.state,
        ours,
        uptime_s=12.5,
        recovery=Recovery(seconds=0.25, errors=1),
        cache_bytes=2048,
    )


def test_all_names_are_there_and_are_numbers(world):
    found = numbers(world)
    assert sorted(found) == sorted(NAMES)
    assert all(isinstance(value, float) for value in found.values())
    assert (found["slave/registered"], found["slave/uptime_secs"]) == (1.0, 12.5)
    assert (found["slave/recovery_errors"], found["slave/recovery_time_secs"]) == (1.0, 0.25)
    assert found["containerizer/fetcher/cache_size_total_bytes"] == 2048.0
    assert numbers(AgentWorld(registered=False))["slave/registered"] == 0.0


def test_what_is_used(world):
    world.run(command("t1", cpus=2))
    found = numbers(world)
    named = found["slave/cpus_total"], found["slave/cpus_used"], found["slave/cpus_percent"]
    assert named == (8.0, 2.0, 0.25)
    # Of what there is not nothing is used, and nothing is divided by it.
    assert (found["slave/gpus_percent"], found["slave/disk_percent"]) == (0.0, 0.0)


def test_tasks_now_and_so_far(world):
    world.run(command("t1"), command("t2"), command("t3"))
    world.started("t1")
    world.started("t2")
    world.ended("t2", status=1 << 8)
    found = numbers(world)
    now = [found[f"slave/tasks_{name}"] for name in ("starting", "running", "failed", "finished")]
    assert now == [1.0, 1.0, 1.0, 0.0]
    assert found["slave/executors_running"] == 2.0
    assert found["slave/executors_terminated"] == 1.0
    assert found["slave/frameworks_active"] == 1.0


def test_executors_on_their_way(world):
    world.run(for_executor("a"))
    assert numbers(world)["slave/executors_registering"] == 1.0
    world.started("ex")
    world.subscribe("ex")
    found = numbers(world)
    assert (found["slave/executors_registering"], found["slave/executors_running"]) == (0.0, 1.0)
    world.report("ex", status("a", pb.TASK_RUNNING))
    world.report("ex", status("x", pb.TASK_RUNNING))
    world.report("ex", status("a", pb.TASK_RUNNING, uuid=b"short"))
    found = numbers(world)
    assert (found["slave/valid_status_updates"], found["slave/invalid_status_updates"]) == (1, 2)
    world.shut_down_executor("ex")
    assert numbers(world)["slave/executors_terminating"] == 1.0


def test_numbers_of_ours_that_count_the_same(world):
    found = numbers(world, fetcher_cache_bytes=7.0, sandbox_age_limit_seconds=3.0)
    assert found["containerizer/fetcher/cache_size_used_bytes"] == 7.0
    assert found["slave/executor_directory_max_allowed_age_secs"] == 3.0
