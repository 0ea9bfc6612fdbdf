"""Command tasks on a real agent: states, what they are given, what is left of them."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mesos_py.resources import Resources
from mesos_py.states import TASK_ERROR, TASK_FAILED, TASK_FINISHED, TASK_KILLED, TASK_RUNNING
from mesos_py.tasks import launch
from mesos_py.v1.types_pb2 import TaskStatus
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework, pid_of, what
from tests.kit.waiting import gone, until

RESOURCES = "cpus:4;mem:4096;disk:100;ports:[21200-21205]"


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("launch")
    with Cluster(directory, max_completed_tasks_per_framework="5") as cluster:
        cluster.start_agent("a", RESOURCES)
        _ = cluster.operator.version()
        yield cluster


@pytest.fixture
def cluster(running) -> Iterator[Cluster]:
    with running.undisturbed():
        yield running


@pytest.fixture
def framework(cluster) -> Iterator[Framework]:
    with Framework(cluster.address) as framework:
        yield framework


def test_a_task_starts_runs_and_finishes_and_each_state_says_who_says_it(cluster, framework):
    task_id = framework.launch(["sleep", "0.1"])
    finished = framework.status(task_id, TASK_FINISHED)
    assert framework.states(task_id) == ["STARTING", "RUNNING", "FINISHED"]
    assert finished.message == "Command exited with status 0"
    assert finished.exit_status.code == 0
    for status in framework.statuses(task_id):
        assert len(status.uuid) == 16
        assert status.source == TaskStatus.SOURCE_EXECUTOR
        assert status.agent_id.value == cluster.agent_id("a")
        assert status.timestamp > 0
