"""Command tasks on a real agent: states, what they are given, what is left of them."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mesos_py.resources import Resources
from mesos_py.states import TASK_ERROR, TASK_FAILED, TASK_FINISHED, TASK_RUNNING
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
        cluster.operator.version()  # its connection is there before any test begins
        yield cluster


@pytest.fixture
def cluster(running) -> Iterator[Cluster]:
    with running.undisturbed():
        yield running


@pytest.fixture
def framework(cluster) -> Iterator[Framework]:
    with Framework(cluster.address) as framework:
        yield framework


def log(cluster: Cluster, framework: Framework, task_id: str, path: str = "stdout") -> str:
    parts = cluster.operator.read_log(framework.id, task_id, path)
    return b"".join(part.data for part in parts).decode()


# --- states -------------------------------------------------------------------


def test_a_task_starts_runs_and_finishes_and_each_state_says_who_says_it(cluster, framework):
    task_id = framework.launch(["sleep", "0.1"])
    finished = framework.status(task_id, TASK_FINISHED)
    assert framework.states(task_id) == ["STARTING", "RUNNING", "FINISHED"]
    assert finished.message == "Command exited with status 0"
    assert finished.exit_status.exit_code == 0
    for status in framework.statuses(task_id):
        assert len(status.uuid) == 16
        assert status.source == TaskStatus.SOURCE_EXECUTOR
        assert status.agent_id.value == cluster.agent_id("a")
        assert status.timestamp > 0


def test_running_comes_with_the_pid_of_the_commands_own_process(framework):
    pid = pid_of(framework.run(["sleep", "600"]))
    # Empty in the middle of the exec, and then that of the program.
    until(Path(f"/proc/{pid}/cmdline").read_bytes)
    assert Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\x00600\x00"
    assert os.getsid(pid) == os.getpgid(pid) == pid


@pytest.mark.parametrize(
    ("command", "exit_code", "signal", "message"),
    [
        ("exit 7", 7, None, "Command exited with status 7"),
        ("exit 255", 255, None, "Command exited with status 255"),
        ("kill -9 $$", None, 9, "Command terminated with signal SIGKILL"),
        ("kill -SEGV $$", None, 11, "Command terminated with signal SIGSEGV"),
    ],
)
def test_a_task_that_does_not_end_well_has_failed_and_says_how(
    framework, command, exit_code, signal, message
):
    failed = framework.status(framework.launch(command), TASK_FAILED)
    ended = failed.exit_status
    assert (ended.exit_code if ended.HasField("exit_code") else None) == exit_code
    assert (ended.signal if ended.HasField("signal") else None) == signal
    assert failed.message == message


def test_a_program_that_does_not_exist_is_a_failed_launch_that_names_it(framework):
    failed = framework.status(framework.launch(["/no/such/program"]), TASK_FAILED)
    assert failed.reason == TaskStatus.REASON_CONTAINER_LAUNCH_FAILED
    assert "/no/such/program" in failed.message
    assert "No such file or directory" in failed.message


def test_a_user_that_does_not_exist_is_a_failed_launch_that_names_him(framework):
    failed = framework.status(framework.launch("true", user="no-such-user"), TASK_FAILED)
    assert failed.reason == TaskStatus.REASON_CONTAINER_LAUNCH_FAILED
    assert "no-such-user" in failed.message


def test_a_task_that_runs_too_long_fails_with_that_reason(framework):
    offer = framework.offer()
    task = framework.task("exec sleep 600", offer)
    task.max_completion_time.nanoseconds = int(0.2e9)
    framework.driver.launch_tasks(offer, task)
    failed = framework.status(task.task_id.value, TASK_FAILED)
    assert failed.reason == TaskStatus.REASON_MAX_COMPLETION_TIME_REACHED
    assert gone(pid_of(framework.status(task.task_id.value, TASK_RUNNING)))


# --- what a task is given -----------------------------------------------------


def test_a_command_finds_its_variables_and_its_sandbox(cluster, framework):
    task_id = framework.launch("echo $A; pwd; echo $MESOS_SANDBOX", env={"A": "x  y"})
    framework.status(task_id, TASK_FINISHED)
    first, where, sandbox = log(cluster, framework, task_id).splitlines()
    assert first == "x y"
    assert where == sandbox
    assert Path(where).is_relative_to(cluster.directory / "a")


def test_the_agents_own_variables_are_not_passed_on(cluster, framework):
    task_id = framework.launch("env")
    framework.status(task_id, TASK_FINISHED)
    names = {line.partition("=")[0] for line in log(cluster, framework, task_id).splitlines()}
    assert names & set(os.environ) <= {"PATH", "PWD", "SHLVL", "_", "OLDPWD", "HOME", "USER"}


def test_a_list_is_executed_as_it_is(cluster, framework):
    code = "import sys; print(sys.argv[1:])"
    task_id = framework.launch([sys.executable, "-c", code, "a b", "$HOME", "", "'"])
    framework.status(task_id, TASK_FINISHED)
    assert log(cluster, framework, task_id) == "['a b', '$HOME', '', \"'\"]\n"


def test_stdout_and_stderr_are_in_the_sandbox(cluster, framework):
    task_id = framework.launch("echo out; echo err >&2; echo more > file")
    framework.status(task_id, TASK_FINISHED)
    assert log(cluster, framework, task_id, "stdout") == "out\n"
    assert log(cluster, framework, task_id, "stderr") == "err\n"
    assert log(cluster, framework, task_id, "file") == "more\n"


@pytest.mark.needs("root")
def test_a_command_runs_as_the_user_that_is_named(cluster, framework):
    task_id = framework.launch("id -un; touch mine", user="nobody")
    framework.status(task_id, TASK_FINISHED)
    assert log(cluster, framework, task_id) == "nobody\n"


def test_no_file_of_the_agent_is_open_in_a_task(cluster, framework):
    task_id = framework.launch("for fd in /proc/$$/fd/*; do readlink $fd; done; true")
    framework.status(task_id, TASK_FINISHED)
    files = log(cluster, framework, task_id).splitlines()
    assert files[0] == "/dev/null"
    assert [Path(file).name for file in files[1:3]] == ["stdout", "stderr"]
    assert [file for file in files if "socket" in file or "eventpoll" in file] == []


def test_a_task_starts_with_no_signal_ignored_or_blocked(cluster, framework):
    task_id = framework.launch(["grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status"])
    framework.status(task_id, TASK_FINISHED)
    masks = [int(line.split()[1], 16) for line in log(cluster, framework, task_id).splitlines()]
    assert len(masks) == 2
    of_glibc = 0b11 << 31  # its posix_spawn leaves two signals of its own ignored
    assert [mask & ~of_glibc for mask in masks] == [0, 0]


# --- several tasks ------------------------------------------------------------


def test_several_tasks_of_one_accept_share_the_offer_and_the_rest_comes_back(framework):
    offer = framework.offer()
    tasks = [framework.task("exec sleep 600", offer, cpus=1, mem=100) for _ in range(3)]
    framework.driver.launch_tasks(offer, tasks, filters=0)
    pids = {pid_of(framework.status(task.task_id.value, TASK_RUNNING)) for task in tasks}
    assert len(pids) == 3
    rest = what(framework.offer())
    assert rest == what(offer) - Resources.parse("cpus:3;mem:300")


def test_of_several_tasks_only_the_one_that_is_wrong_is_not_launched(framework):
    offer = framework.offer()
    tasks = [framework.task("true", offer, cpus=cpus) for cpus in (1, 100, 1)]
    framework.driver.launch_tasks(offer, tasks, filters=0)
    first, wrong, last = (task.task_id.value for task in tasks)
    error = framework.status(wrong, TASK_ERROR)
    assert error.reason == TaskStatus.REASON_TASK_INVALID
    assert error.message == "resources.cpus: 100 wanted, the offers have 3 left"
    assert (error.source, error.uuid) == (TaskStatus.SOURCE_MASTER, b"")
    framework.status(first, TASK_FINISHED)
    framework.status(last, TASK_FINISHED)


def test_two_tasks_of_one_accept_cannot_have_the_same_port(framework):
    offer = framework.offer()
    port = Resources.parse("ports:[21200-21200]")
    tasks = [framework.task("true", offer, resources=port) for _ in range(2)]
    framework.driver.launch_tasks(offer, tasks, filters=0)
    framework.status(tasks[0].task_id.value, TASK_FINISHED)
    error = framework.status(tasks[1].task_id.value, TASK_ERROR)
    assert error.message.startswith("resources.ports: ")


def test_six_ports_are_six_tasks_room_and_a_seventh_is_refused(framework):
    offer = framework.offer()
    ports = ["[21200-21203]", "[21204-21205]", "[21206-21206]"]
    tasks = [
        framework.task("exec sleep 600", offer, resources=Resources.parse(f"ports:{text}"))
        for text in ports
    ]
    framework.driver.launch_tasks(offer, tasks, filters=0)
    for task in tasks[:2]:
        framework.status(task.task_id.value, TASK_RUNNING)
    error = framework.status(tasks[2].task_id.value, TASK_ERROR)
    assert "21206" in error.message
    assert "ports" not in what(framework.offer()).ranges


def test_ten_tenths_of_a_cpu_fit_on_one(framework):
    """Amounts are exact: no hair of a core is missing or left over."""
    offer = framework.offer()
    tasks = [framework.task("exec sleep 600", offer, cpus=0.1, mem=1) for _ in range(39)]
    tasks.append(framework.task("exec sleep 600", offer, cpus=4.1 - 4.0, mem=1))
    framework.driver.launch_tasks(offer, tasks, filters=0)
    for task in tasks:
        framework.status(task.task_id.value, TASK_RUNNING)
    assert "cpus" not in what(framework.offer()).scalars


# --- afterwards ---------------------------------------------------------------


def test_what_a_task_had_is_offered_again_when_it_has_ended(framework, tmp_path):
    until_told = f"while ! [ -e {tmp_path}/go ]; do sleep 0.02; done"
    task_id = framework.launch(until_told, cpus=4)
    framework.status(task_id, TASK_RUNNING)
    assert "cpus" not in what(framework.offer()).scalars
    (tmp_path / "go").touch()
    assert what(framework.offer(has="cpus:4")).scalar("cpus") == 4


def test_the_id_of_a_task_that_has_ended_may_be_used_again(cluster, framework):
    for count in (1, 2):
        framework.launch("exit 3", task_id="again")
        framework.wait_for("update", lambda s: s.state == TASK_FAILED, count=count)
        cluster.wait_for_history(framework.id, count)
    assert framework.states("again") == ["STARTING", "RUNNING", "FAILED"] * 2


def test_the_id_of_a_task_that_has_not_ended_cannot_be_used_again(framework):
    pid = pid_of(framework.run("exec sleep 600", task_id="twice"))
    framework.launch("true", task_id="twice")
    error = framework.wait_for("update", lambda s: s.state == TASK_ERROR)
    assert error.message == "task_id: 'twice': a task with this id has not ended yet"
    assert not gone(pid)


def test_the_history_of_ended_tasks_is_bounded(cluster, framework):
    ids = [framework.launch("true") for _ in range(8)]
    for task_id in ids:
        framework.status(task_id, TASK_FINISHED)
    until(lambda: len(cluster.operator.tasks(framework.id)) == 5)
    known = {task.task_id.value for task in cluster.operator.tasks(framework.id)}
    assert known <= set(ids)


def test_a_task_is_listed_with_what_it_was_launched_with(cluster, framework):
    offer = framework.offer()
    task = framework.task("exit 4", offer, name="a name", labels={"colour": "blue"}, cpus=0.25)
    framework.driver.launch_tasks(offer, task)
    framework.status(task.task_id.value, TASK_FAILED)
    (listed,) = cluster.operator.tasks(framework.id)
    assert listed.name == "a name"
    assert [(label.key, label.value) for label in listed.labels.labels] == [("colour", "blue")]
    assert str(Resources.from_proto("task", listed.resources)) == "cpus:0.25;mem:16"
    assert listed.state == TASK_FAILED
    assert listed.statuses[-1].exit_status.exit_code == 4
    assert listed.launched_time <= listed.ended_time
