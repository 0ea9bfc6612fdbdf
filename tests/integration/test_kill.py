"""Killing tasks on a real agent: gently, then by force, always as a whole."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from mesos_py.errors import Conflict, InvalidValue, NotFound
from mesos_py.states import (
    TASK_FINISHED,
    TASK_GONE,
    TASK_KILLED,
    TASK_KILLING,
    TASK_RUNNING,
    TASK_UNKNOWN,
)
from mesos_py.v1.types_pb2 import TaskStatus
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework, pid_of, what
from tests.kit.waiting import gone, until

# Says that it has got SIGTERM, and goes on.
STUBBORN = "trap 'touch {told}' TERM; touch {ready}; while :; do sleep 0.02; done"


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("kill")) as cluster:
        cluster.start_agent("a", executor_shutdown_grace_period="200ms")
        cluster.operator.version()
        yield cluster


@pytest.fixture
def cluster(running) -> Iterator[Cluster]:
    with running.undisturbed():
        yield running


@pytest.fixture
def framework(cluster) -> Iterator[Framework]:
    with Framework(cluster.address, reports_killing=True) as framework:
        yield framework


class Stubborn:
    """A running task that ignores SIGTERM."""

    def __init__(self, framework: Framework, directory: Path, **options) -> None:
        self.told = directory / "told"
        ready = directory / "ready"
        command = STUBBORN.format(told=self.told, ready=ready)
        self.status = framework.run(command, **options)
        self.task_id = self.status.task_id.value
        self.pid = pid_of(self.status)
        until(ready.exists)


# --- gently -------------------------------------------------------------------


def test_a_killed_task_gets_sigterm_and_is_killed_whatever_its_exit_status(framework, tmp_path):
    ready = tmp_path / "ready"
    task_id = framework.launch(
        f"trap 'exit 3' TERM; touch {ready}; while :; do sleep 0.02; done", kill_grace_s=60
    )
    until(ready.exists)
    framework.driver.kill_task(task_id)
    killed = framework.status(task_id, TASK_KILLED)
    assert framework.states(task_id) == ["STARTING", "RUNNING", "KILLING", "KILLED"]
    assert killed.message == "Command exited with status 3"
    assert killed.exit_status.exit_code == 3


def test_killing_is_said_only_to_those_who_know_it(cluster, tmp_path):
    with Framework(cluster.address, reports_killing=False) as framework:
        task = Stubborn(framework, tmp_path)
        framework.driver.kill_task(task.task_id, grace_s=0)
        framework.status(task.task_id, TASK_KILLED)
        assert framework.states(task.task_id) == ["STARTING", "RUNNING", "KILLED"]


def test_the_program_behind_a_shell_gets_sigterm_too(framework, tmp_path):
    """A shell that waits for its child keeps the signal to itself: the group is told."""
    ready, told = tmp_path / "ready", tmp_path / "told"
    program = f"trap 'touch {told}; exit' TERM; touch {ready}; while :; do sleep 0.02; done"
    task_id = framework.launch(f'sh -c "{program}"; echo after', kill_grace_s=60)
    until(ready.exists)
    framework.driver.kill_task(task_id)
    framework.status(task_id, TASK_KILLED)
    assert told.exists()


# --- by force -----------------------------------------------------------------


def test_at_the_end_of_the_grace_it_is_killed_by_force(framework, tmp_path):
    # Of which it needs little, unless the machine stands still.
    task = Stubborn(framework, tmp_path, kill_grace_s=2.5)
    framework.driver.kill_task(task.task_id)
    framework.status(task.task_id, TASK_KILLING)
    killed = framework.status(task.task_id, TASK_KILLED)
    assert task.told.exists()
    assert killed.exit_status.signal == signal.SIGKILL
    assert gone(task.pid)


def test_the_grace_of_the_kill_counts_before_that_of_the_task(framework, tmp_path):
    task = Stubborn(framework, tmp_path, kill_grace_s=3600)
    framework.driver.kill_task(task.task_id, grace_s=0)
    framework.status(task.task_id, TASK_KILLED)


def test_a_second_kill_may_shorten_the_grace(framework, tmp_path):
    task = Stubborn(framework, tmp_path)
    framework.driver.kill_task(task.task_id, grace_s=3600)
    until(task.told.exists)
    framework.driver.kill_task(task.task_id, grace_s=0)
    framework.status(task.task_id, TASK_KILLED)


def test_a_second_kill_does_not_lengthen_the_grace(framework, tmp_path):
    task = Stubborn(framework, tmp_path)
    framework.driver.kill_task(task.task_id, grace_s=0.5)
    framework.driver.kill_task(task.task_id, grace_s=3600)
    framework.status(task.task_id, TASK_KILLED)


def test_children_that_left_the_session_die_with_the_task(framework, tmp_path):
    """Neither a new session nor a double fork lets a process get away."""
    escape = f"setsid sh -c 'setsid sh -c \"echo \\$\\$ > {tmp_path}/pid; exec sleep 600\" &'"
    task_id = framework.launch(f"{escape}; exec sleep 600")
    framework.status(task_id, TASK_RUNNING)
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    framework.driver.kill_task(task_id, grace_s=0)
    framework.status(task_id, TASK_KILLED)
    assert gone(int((tmp_path / "pid").read_text()))


def test_its_resources_are_nobodys_before_it_is_gone(framework, tmp_path):
    task = Stubborn(framework, tmp_path, cpus=4)
    framework.driver.kill_task(task.task_id, grace_s=3600)
    until(task.told.exists)
    assert "cpus" not in what(framework.offer()).scalars
    framework.driver.kill_task(task.task_id, grace_s=0)
    framework.offer(has="cpus:4")
    assert gone(task.pid)


# --- early, late, twice, in vain ---------------------------------------------------


def test_a_kill_right_behind_the_launch_ends_the_task(framework):
    """In whichever state it meets the task: nothing of it goes on."""
    for number in range(10):
        offer = framework.offer()
        task = framework.task("exec sleep 600", offer, task_id=f"early-{number}")
        framework.driver.launch_tasks(offer, task, filters=0)
        framework.driver.kill_task(task.task_id, grace_s=0)
        framework.status(task.task_id.value, TASK_KILLED)


def test_a_task_that_is_killed_twice_ends_once(cluster, framework, tmp_path):
    task = Stubborn(framework, tmp_path)
    for _ in range(5):
        framework.driver.kill_task(task.task_id, grace_s=0)
    framework.status(task.task_id, TASK_KILLED)
    cluster.wait_for_history(framework.id)
    assert framework.states(task.task_id).count("KILLED") == 1


def test_a_kill_of_a_task_that_has_ended_is_answered_and_changes_nothing(cluster, framework):
    task_id = framework.launch("true")
    status = framework.status(task_id, TASK_FINISHED)
    cluster.wait_for_history(framework.id)
    framework.driver.kill_task(task_id, status.agent_id)
    answer = framework.wait_for("update", lambda s: not s.uuid)
    assert answer.state == TASK_GONE
    assert answer.reason == TaskStatus.REASON_RECONCILIATION
    assert cluster.task(framework.id, task_id).state == TASK_FINISHED


def test_a_kill_of_an_unknown_task_is_answered(framework):
    framework.driver.kill_task("never-launched")
    answer = framework.status("never-launched", TASK_UNKNOWN)
    assert (answer.source, answer.uuid) == (TaskStatus.SOURCE_MASTER, b"")


def test_a_kill_that_names_another_agent_is_refused_and_the_task_goes_on(framework, tmp_path):
    task = Stubborn(framework, tmp_path)
    framework.driver.kill_task(task.task_id, "another-agent")
    refused = framework.wait_for("refused")
    assert (refused.field, refused.value) == ("agent_id", "another-agent")
    assert not task.told.exists()


# --- operators ----------------------------------------------------------------


def test_an_operator_can_kill_a_task(cluster, framework, tmp_path):
    task = Stubborn(framework, tmp_path)
    cluster.operator.kill_task(framework.id, task.task_id, grace_s=0)
    framework.status(task.task_id, TASK_KILLED)


def test_an_operators_kill_of_what_is_not_there_is_an_error(cluster, framework, tmp_path):
    task = Stubborn(framework, tmp_path)
    with pytest.raises(NotFound, match="task 'nothing'"):
        cluster.operator.kill_task(framework.id, "nothing")
    with pytest.raises(NotFound, match="framework 'nobody'"):
        cluster.operator.kill_task("nobody", task.task_id)
    with pytest.raises(InvalidValue, match="grace_period"):
        cluster.operator.kill_task(framework.id, task.task_id, grace_s=-1)
    assert not task.told.exists()
    cluster.operator.kill_task(framework.id, task.task_id, grace_s=0)
    framework.status(task.task_id, TASK_KILLED)
    cluster.wait_for_history(framework.id)
    with pytest.raises(Conflict, match="has ended already"):
        cluster.operator.kill_task(framework.id, task.task_id)
