"""RECONCILE on a real master: an answer about each task, whatever has become of it."""

from collections.abc import Iterator

import pytest

from mesos_py.states import (
    TASK_FAILED,
    TASK_FINISHED,
    TASK_GONE,
    TASK_KILLED,
    TASK_LOST,
    TASK_RUNNING,
    TASK_STARTING,
    TASK_UNKNOWN,
    TASK_UNREACHABLE,
)
from mesos_py.v1.types_pb2 import TaskStatus
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework, pid_of
from tests.kit.proxy import Proxy

EXPLICIT_ACKS = {"implicit_acknowledgements": False}


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("reconciliation")) as cluster:
        cluster.start_agent("a")
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


def answers(framework: Framework, count: int) -> dict[str, TaskStatus]:
    """The first `count` statuses that the master itself has made, by task."""
    framework.wait_for("update", lambda s: not s.uuid, count=count)
    return {s.task_id.value: s for s in framework.all("update") if not s.uuid}


def test_without_names_all_living_tasks_are_reported_and_none_that_has_ended(cluster, framework):
    living = {framework.run("exec sleep 600").task_id.value: None for _ in range(3)}
    framework.status(framework.launch("true"), TASK_FINISHED)
    cluster.wait_for_history(framework.id)
    framework.driver.reconcile_tasks()
    found = answers(framework, 3)
    assert found.keys() == living.keys()
    for status in found.values():
        assert status.state == TASK_RUNNING
        assert status.source == TaskStatus.SOURCE_MASTER
        assert status.reason == TaskStatus.REASON_RECONCILIATION
        assert not status.uuid
        assert status.agent_id.value == cluster.agent_id("a")


def test_the_answer_says_where_the_task_runs(framework):
    running = framework.run("exec sleep 600")
    framework.driver.reconcile_tasks([running])
    (answer,) = answers(framework, 1).values()
    assert pid_of(answer) == pid_of(running)


@pytest.mark.parametrize("aware", [True, False])
def test_each_named_task_is_answered_by_what_is_known_of_it(cluster, aware):
    with Framework(cluster.address, partition_aware=aware) as framework:
        running = framework.run("exec sleep 600")
        ended = framework.status(framework.launch("true"), TASK_FINISHED)
        cluster.wait_for_history(framework.id)
        agent_id = cluster.agent_id("a")
        framework.driver.reconcile_tasks(
            [running, ended, ("unheard-of", agent_id), ("lost", "no-such-agent"), "nowhere"]
        )
        found = {task_id: status.state for task_id, status in answers(framework, 5).items()}
    assert found == {
        running.task_id.value: TASK_RUNNING,
        ended.task_id.value: TASK_GONE if aware else TASK_LOST,
        "unheard-of": TASK_GONE if aware else TASK_LOST,
        "lost": TASK_UNKNOWN if aware else TASK_LOST,
        "nowhere": TASK_UNKNOWN if aware else TASK_LOST,
    }


def test_an_answer_does_not_run_ahead_of_what_was_told(cluster):
    """The task has ended, but the framework has not yet acknowledged that it starts."""
    with Framework(cluster.address, driver=EXPLICIT_ACKS) as framework:
        task_id = framework.launch("exit 3")
        starting = framework.wait_for("update")
        cluster.wait_until(lambda: cluster.task(framework.id, task_id).state == TASK_FAILED)
        framework.driver.reconcile_tasks([task_id])
        (answer,) = answers(framework, 1).values()
        assert answer.state == starting.state == TASK_STARTING
        framework.driver.acknowledge(starting)
        framework.driver.acknowledge(framework.status(task_id, TASK_RUNNING))
        framework.driver.acknowledge(framework.status(task_id, TASK_FAILED))
        cluster.wait_for_history(framework.id)


def test_a_thousand_names_get_a_thousand_answers(framework):
    framework.driver.reconcile_tasks([f"unknown-{n}" for n in range(1000)])
    found = answers(framework, 1000)
    assert {status.state for status in found.values()} == {TASK_UNKNOWN}


def test_tasks_of_another_framework_are_unknown(cluster, framework):
    running = framework.run("exec sleep 600")
    with Framework(cluster.address) as other:
        other.driver.reconcile_tasks([running.task_id])
        assert other.status(running.task_id.value, TASK_UNKNOWN).message
        other.driver.kill_task(running.task_id)
        other.wait_for("update", lambda s: s.state == TASK_UNKNOWN, count=2)
    framework.driver.reconcile_tasks()
    assert answers(framework, 1)[running.task_id.value].state == TASK_RUNNING


def test_a_successor_learns_of_all_tasks_before_it_launches_any(cluster):
    first = Framework(cluster.address)
    with first:
        running = {first.run("exec sleep 600").task_id.value for _ in range(3)}
        first.driver.abort()
    with Framework(cluster.address, framework_id=first.id) as second:
        second.driver.reconcile_tasks()
        assert answers(second, 3).keys() == running


def test_a_task_on_an_agent_that_is_cut_off_is_unreachable(tmp_path):
    with Cluster(tmp_path, agent_reregister_timeout="200ms") as cluster:
        with Proxy(cluster.address) as way:
            cluster.start_agent("a", master=way.address, registration_backoff="50ms")
            with Framework(cluster.address) as framework:
                running = framework.run("exec sleep 600")
                agent_id = cluster.agent_id("a")
                way.cut()
                framework.status(running.task_id.value, TASK_UNREACHABLE)
                framework.driver.reconcile_tasks([running, ("unheard-of", agent_id)])
                framework.wait_for(
                    "update", lambda s: s.reason == TaskStatus.REASON_RECONCILIATION, count=2
                )
                for task_id in (running.task_id.value, "unheard-of"):
                    answer = framework.statuses(task_id)[-1]
                    assert answer.state == TASK_UNREACHABLE
                    assert answer.unreachable_time.nanoseconds > 0
                way.restore()
                framework.status(
                    running.task_id.value,
                    TASK_RUNNING,
                    lambda s: s.reason == TaskStatus.REASON_AGENT_REREGISTERED,
                )
                framework.driver.kill_task(running.task_id)
                framework.status(running.task_id.value, TASK_KILLED)
