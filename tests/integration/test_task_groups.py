"""Groups of tasks on a real cluster: from LAUNCH_GROUP to executors that take them."""

import sys
from collections.abc import Iterator

import pytest

from mesos_py.resources import Resources
from mesos_py.states import TASK_ERROR, TASK_FINISHED, TASK_KILLED, TASK_RUNNING
from mesos_py.tasks import custom_executor, executor_task
from mesos_py.v1.types_pb2 import ExecutorInfo, TaskStatus
from tests.kit import echo_executor
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework, what
from tests.kit.waiting import until

ECHO = [sys.executable, echo_executor.__file__]


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("groups")) as cluster:
        cluster.start_agent("a", "cpus:4;mem:4096;disk:1000")
        cluster.operator.version()
        yield cluster


@pytest.fixture
def cluster(running) -> Iterator[Cluster]:
    with running.undisturbed():
        yield running


@pytest.fixture
def framework(cluster) -> Iterator[Framework]:
    with Framework(cluster.address) as framework:
        yield framework


def echo() -> ExecutorInfo:
    return custom_executor("echo", ECHO, cpus=0.5, mem=64, resources=Resources.of(disk=10))


def test_a_custom_executor_gets_a_group_and_its_tasks_are_its_own(framework):
    offer = framework.offer()
    tasks = [
        executor_task(name, name, offer, echo(), data=data, cpus=1, mem=32)
        for name, data in (("run", b"run"), ("end", b"finish"))
    ]
    framework.driver.launch_group(offer, echo(), tasks, filters=0)
    framework.status("end", TASK_FINISHED)
    assert framework.status("run", TASK_RUNNING).executor_id.value == "echo"
    framework.driver.kill_task("run")
    framework.status("run", TASK_KILLED)
    # What is left is the executor's own.
    until(lambda: sum(what(each).scalar("cpus") for each in framework.live_offers()) == 3.5)


def test_a_group_with_a_bad_task_is_refused_whole(framework):
    offer = framework.offer()
    tasks = [
        executor_task(name, name, offer, echo(), cpus=cpus, mem=32)
        for name, cpus in (("good", 1), ("large", 100))
    ]
    framework.driver.launch_group(offer, echo(), tasks, filters=0)
    for name in ("good", "large"):
        status = framework.status(name, TASK_ERROR)
        assert status.reason == TaskStatus.REASON_TASK_GROUP_INVALID
        assert "'large': resources.cpus: 100 wanted" in status.message
