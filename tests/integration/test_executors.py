"""Custom executors on a real agent: processes of their own, over a Unix socket or over HTTP."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mesos_py.resources import Resources
from mesos_py.states import (
    TASK_ERROR,
    TASK_FAILED,
    TASK_FINISHED,
    TASK_KILLED,
    TASK_RUNNING,
)
from mesos_py.tasks import custom_executor, executor_task
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1.types_pb2 import ExecutorInfo, Offer, TaskInfo, TaskStatus
from tests.kit import echo_executor, faces
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework, what
from tests.kit.waiting import gone, until

ECHO = [sys.executable, echo_executor.__file__]


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("executors")) as cluster:
        cluster.start_agent(
            "a",
            "cpus:4;mem:4096;disk:0;ports:[21400-21401]",
            executor_shutdown_grace_period="10s",
        )
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


def echo(name: str = "echo", **options) -> ExecutorInfo:
    return custom_executor(name, ECHO, cpus=0.5, mem=64, env=faces.of_executors(), **options)


def task_for(executor: ExecutorInfo, offer: Offer, task_id: str, data: bytes = b"run") -> TaskInfo:
    return executor_task(task_id, task_id, offer, executor, data=data, cpus=1, mem=100)


def start(framework: Framework, executor: ExecutorInfo, task_id: str = "one") -> TaskStatus:
    """A task that runs in the executor: its RUNNING, with the executor's pid as data."""
    offer = framework.offer()
    framework.driver.launch_tasks(offer, task_for(executor, offer, task_id), filters=0)
    return framework.status(task_id, TASK_RUNNING)


def executors(cluster: Cluster) -> list[str]:
    answer = cluster.operator.execute(op.Call(type=op.Call.GET_EXECUTORS))
    return [e.executor_info.executor_id.value for e in answer.get_executors.executors]


# --- a life ---------------------------------------------------------------------------


def test_a_task_runs_in_its_executor_and_the_executor_has_the_word(cluster, framework):
    offer = framework.offer()
    framework.driver.launch_tasks(offer, task_for(echo(), offer, "one", b"finish"), filters=0)
    finished = framework.status("one", TASK_FINISHED)
    assert framework.states("one") == ["RUNNING", "FINISHED"]
    assert finished.message == "as asked"
    assert finished.source == TaskStatus.SOURCE_EXECUTOR
    assert finished.executor_id.value == "echo"
    assert finished.agent_id.value == cluster.agent_id("a")


def test_tasks_with_an_equal_executor_share_its_process(cluster, framework):
    first = start(framework, echo(), "one")
    second = start(framework, echo(), "two")
    assert first.data == second.data
    assert executors(cluster) == ["echo"]
    assert Path(f"/proc/{int(first.data)}").exists()


def test_tasks_of_one_call_reach_their_executor_in_order(cluster, framework):
    offer = framework.offer()
    ids = [f"t{n}" for n in range(20)]
    tasks = [executor_task(i, i, offer, echo(), data=b"finish", cpus=0.1, mem=1) for i in ids]
    framework.driver.launch_tasks(offer, tasks, filters=0)
    for task_id in ids:
        framework.status(task_id, TASK_FINISHED)
    parts = cluster.operator.read_log(framework.id, "t0", "tasks")
    assert b"".join(part.data for part in parts).decode().split() == ids


def test_an_executor_is_charged_once_beside_its_tasks_and_stays_when_they_end(framework):
    first = framework.offer()
    whole = what(first)
    framework.driver.launch_tasks(first, task_for(echo(), first, "one"), filters=0)
    framework.status("one", TASK_RUNNING)
    second = framework.offer()
    assert what(second) == whole - Resources.parse("cpus:1.5;mem:164")
    framework.driver.launch_tasks(second, task_for(echo(), second, "two"), filters=0)
    framework.status("two", TASK_RUNNING)
    assert what(framework.offer()) == whole - Resources.parse("cpus:2.5;mem:264")
    for task_id in ("one", "two"):
        framework.driver.kill_task(task_id)
        framework.status(task_id, TASK_KILLED)
    until(lambda: sum(what(o).scalar("cpus") for o in framework.live_offers()) == 2)
    assert framework.all("executor lost") == []


def test_an_offer_names_the_frameworks_executors_there(cluster, framework):
    start(framework, echo())
    assert [e.value for e in framework.offer().executor_ids] == ["echo"]
    with Framework(cluster.address) as other:
        framework.give_back()
        framework.end()
        assert not other.offer().executor_ids


def test_a_kill_is_the_executors_to_carry_out_with_the_grace_it_is_told(framework):
    start(framework, echo())
    framework.driver.kill_task("one", grace_s=2.5)
    assert framework.status("one", TASK_KILLED).message == "grace 2.5"


def test_messages_go_both_ways(cluster, framework):
    start(framework, echo())
    agent_id = cluster.agent_id("a")
    data = bytes(range(256)) * 100
    framework.driver.send_framework_message("echo", agent_id, data)
    assert framework.wait_for("message") == (agent_id, "echo", data[::-1])


def test_a_message_to_an_agent_that_is_not_there_is_refused_aloud(framework):
    framework.driver.send_framework_message("echo", "no-such-agent", b"x")
    refused = framework.wait_for("refused")
    assert refused.code == "not-found"
    assert "no-such-agent" in refused.message


# --- an end ---------------------------------------------------------------------------


def test_a_shutdown_is_told_to_the_executor_and_its_tasks_end_as_it_says(cluster, framework):
    running = start(framework, echo())
    framework.driver.shutdown_executor("echo", running.agent_id)
    assert framework.status("one", TASK_KILLED).message == "shut down"
    _, executor_id, status = framework.wait_for("executor lost")
    assert (executor_id, status) == ("echo", 0)
    assert executors(cluster) == []
    assert gone(int(running.data))


def test_a_killed_executor_takes_its_tasks_with_it_and_its_room_is_free_again(cluster, framework):
    whole = what(framework.offer())
    framework.driver.decline_offers(framework.all("offers")[0][0], filters=0)
    running = start(framework, echo())
    os.kill(int(running.data), signal.SIGKILL)
    failed = framework.status("one", TASK_FAILED)
    assert failed.reason == TaskStatus.REASON_EXECUTOR_TERMINATED
    assert failed.source == TaskStatus.SOURCE_AGENT
    assert failed.message == "Executor terminated with signal SIGKILL"
    agent_id, executor_id, status = framework.wait_for("executor lost")
    assert (agent_id, executor_id, status) == (cluster.agent_id("a"), "echo", signal.SIGKILL)
    assert what(framework.gather("cpus:4;mem:4096")) == whole


def test_what_a_killed_executor_has_started_dies_with_it(framework, tmp_path):
    command = (
        f"sh -c 'echo $$ > {tmp_path}/pid; exec sleep 600' & "
        f"exec {sys.executable} {echo_executor.__file__}"
    )
    executor = custom_executor("parent", command, env=faces.of_executors())
    running = start(framework, executor)
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    os.kill(int(running.data), signal.SIGKILL)
    framework.status("one", TASK_FAILED)
    assert gone(int((tmp_path / "pid").read_text()))


def test_an_executor_that_exits_by_itself_tells_with_which_status(cluster, framework):
    running = start(framework, echo())
    framework.driver.send_framework_message("echo", running.agent_id, b"exit 7")
    failed = framework.status("one", TASK_FAILED)
    assert failed.message == "Executor exited with status 7"
    assert os.waitstatus_to_exitcode(framework.wait_for("executor lost")[2]) == 7
    again = start(framework, echo(), "two")
    assert again.data != running.data


def test_an_executor_that_cannot_be_started_fails_its_tasks_with_the_reason(cluster, framework):
    offer = framework.offer()
    executor = custom_executor("none", ["/no/such/program"])
    framework.driver.launch_tasks(offer, task_for(executor, offer, "one"), filters=0)
    failed = framework.status("one", TASK_FAILED)
    assert failed.reason == TaskStatus.REASON_CONTAINER_LAUNCH_FAILED
    assert "/no/such/program" in failed.message
    framework.wait_for("executor lost")
    assert executors(cluster) == []


def test_an_executor_that_never_connects_is_given_up(tmp_path):
    with Cluster(tmp_path) as cluster:
        cluster.start_agent("a", executor_registration_timeout="300ms")
        with Framework(cluster.address) as framework:
            offer = framework.offer()
            executor = custom_executor("mute", "exec sleep 600")
            framework.driver.launch_tasks(offer, task_for(executor, offer, "one"), filters=0)
            failed = framework.status("one", TASK_FAILED)
            assert failed.reason == TaskStatus.REASON_EXECUTOR_REGISTRATION_TIMEOUT
            assert cluster.strays() == []


def test_the_end_of_the_framework_ends_its_executors(cluster, framework):
    running = start(framework, echo())
    framework.end()
    until(lambda: gone(int(running.data)))
    cluster.wait_until(lambda: not cluster.used())
    sandbox = next(cluster.directory.glob(f"a/**/{framework.id}/**/shutdown"))
    assert sandbox.exists()


def test_an_executor_survives_the_masters_end(tmp_path):
    with Cluster(tmp_path) as cluster:
        cluster.start_agent("a", registration_backoff="50ms")
        with Framework(cluster.address) as framework:
            running = start(framework, echo())
            cluster.restart_master()
            framework.wait_for("reregistered")
            cluster.wait_until(lambda: executors(cluster) == ["echo"])
            again = start(framework, echo(), "two")
            assert again.data == running.data
            framework.driver.kill_task("one")
            framework.status("one", TASK_KILLED)


# --- what cannot be -------------------------------------------------------------------


def test_another_description_under_a_running_executors_id_is_an_error(cluster, framework):
    running = start(framework, echo())
    offer = framework.offer()
    other = custom_executor("echo", ["/bin/true"])
    framework.driver.launch_tasks(offer, task_for(other, offer, "two"), filters=0)
    error = framework.status("two", TASK_ERROR)
    assert error.message.startswith("executor.executor_id: 'echo': ")
    assert not gone(int(running.data))


def test_an_executor_that_does_not_fit_beside_its_task_is_an_error(cluster, framework):
    offer = framework.offer()
    large = custom_executor("large", ECHO, cpus=3.5, mem=64)
    framework.driver.launch_tasks(offer, task_for(large, offer, "one"), filters=0)
    error = framework.status("one", TASK_ERROR)
    assert error.message == "resources.cpus: 4.5 wanted, the offers have 4 left"
    assert executors(cluster) == []
