"""Health through all of it: SDK, master, agent, and what the command line shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mesos_py.states import TASK_ERROR, TASK_KILLED, TASK_RUNNING
from mesos_py.tasks import health_command, health_tcp
from mesos_py.v1.types_pb2 import TaskStatus
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework

SOON: dict[str, Any] = {"delay_s": 0, "interval_s": 0.1, "grace_s": 60}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory: Path = tmp_path_factory.mktemp("health")
    with Cluster(directory) as made:
        made.start_agent("a")
        # Its channel lives as long as the cluster.
        assert made.operator.agents()
        yield made


@pytest.fixture
def framework(cluster: Cluster) -> Iterator[Framework]:
    with Framework(cluster.address) as made:
        yield made


def test_a_task_is_said_to_be_healthy_then_not_then_is_killed(cluster, framework):
    health = health_command("test -f up", **SOON, failures=2)
    script = "touch up; while test -f up; do sleep 0.02; test -f $STOP && rm up; done; sleep 1000"
    stop = cluster.directory / "stop"
    task_id = framework.launch(script, env={"STOP": str(stop)}, health=health)
    framework.status(task_id, TASK_RUNNING, lambda status: status.healthy)
    (row,) = json.loads(cluster.cli("tasks", "--json").out)
    assert (row["healthy"], row["reason"]) == (True, "REASON_TASK_HEALTH_CHECK_STATUS_UPDATED")
    assert b" healthy " in cluster.cli("tasks").out
    assert b"by its health check it is healthy" in cluster.cli("explain", task_id).out
    # What its health check has told since does not hide when it began to run.
    assert row["started"] == framework.status(task_id, TASK_RUNNING).timestamp
    framework.driver.reconcile_tasks([task_id])
    reconciled = framework.status(
        task_id, TASK_RUNNING, lambda s: s.reason == TaskStatus.REASON_RECONCILIATION
    )
    assert reconciled.healthy
    stop.touch()
    ended = framework.status(task_id, TASK_KILLED)
    assert ended.HasField("healthy")
    assert not ended.healthy
    assert framework.states(task_id) == ["STARTING", "RUNNING", "KILLED"]
    cluster.wait_for_history(framework.id)
    listed = cluster.cli("tasks", "--all", "--json", "--framework", framework.id)
    (row,) = json.loads(listed.out)
    assert (row["state"], row["healthy"]) == ("TASK_KILLED", False)


def test_a_check_that_makes_no_sense_is_a_task_error_that_names_it(cluster, framework):
    health = health_tcp(80)
    health.tcp.port = 70_000
    task_id = framework.launch("true", health=health)
    refused = framework.status(task_id, TASK_ERROR)
    assert refused.reason == TaskStatus.REASON_TASK_INVALID
    assert "health_check.tcp.port: 70000: must be a port from 1 to 65535" in refused.message


def test_a_run_that_is_not_healthy_is_ended_with_the_code_of_a_signal(cluster):
    times = ["--health-delay", "0s", "--health-interval", "50ms", "--health-grace", "0s"]
    ended = cluster.cli("run", "--health-cmd", "echo too hot; false", *times, "exec sleep 1000")
    assert ended.code == 143
    assert "too hot" in ended.err
