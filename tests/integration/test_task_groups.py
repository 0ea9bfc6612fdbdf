"""Groups of tasks on a real cluster: from LAUNCH_GROUP to executors that take them."""

import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from mesos_py.resources import Resources
from mesos_py.states import TASK_ERROR, TASK_FAILED, TASK_FINISHED, TASK_KILLED, TASK_RUNNING
from mesos_py.tasks import (
    Command,
    command_task,
    custom_executor,
    default_executor,
    executor_task,
    health_command,
)
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1.types_pb2 import CheckInfo, ContainerInfo, ExecutorInfo, TaskStatus, Volume
from tests.kit import echo_executor
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework
from tests.kit.recorder import PATIENCE_S
from tests.kit.waiting import gone, until

SandboxPath = Volume.Source.SandboxPath
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


def test_a_custom_executor_gets_a_group_and_its_tasks_are_its_own(cluster, framework):
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
    assert executors(cluster) == ["echo"]


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


# ---- The agent's own executor ------------------------------------------------------


def launch(
    framework: Framework,
    commands: dict[str, Command],
    executor_id: str = "pod",
    uris: dict[str, list[str]] | None = None,
    **more: Any,
) -> None:
    """A group of these commands, by id of the task."""
    offer = framework.offer()
    tasks = [
        command_task(
            name, name, offer, command, cpus=0.3, mem=32, uris=(uris or {}).get(name, ()), **more
        )
        for name, command in commands.items()
    ]
    framework.driver.launch_group(offer, default_executor(executor_id), tasks, filters=0)


def output(cluster: Cluster, framework: Framework, task_id: str, name: str = "stdout") -> str:
    parts = cluster.operator.read_log(framework.id, task_id, name)
    return b"".join(part.data for part in parts).decode()


def executors(cluster: Cluster) -> list[str]:
    answer = cluster.operator.execute(op.Call(type=op.Call.GET_EXECUTORS))
    return [each.executor_info.executor_id.value for each in answer.get_executors.executors]


def pid_of(cluster: Cluster, framework: Framework, task_id: str) -> int:
    """Of a task whose first word that is."""
    framework.status(task_id, TASK_RUNNING)
    until(lambda: output(cluster, framework, task_id).endswith("\n"))
    return int(output(cluster, framework, task_id))


# It says its pid, and goes on.
STAY = "echo $$; exec sleep 1000"
# The same, deaf to TERM; its sleep is in the same process group.
DEAF = "trap '' TERM; echo $$; while :; do sleep 1000; done"


def test_each_task_has_its_directory_and_the_executor_ends_with_the_last(cluster, framework):
    text = "echo out; echo err >&2; pwd >where; env >environment"
    launch(framework, {"one": text, "latest": text})
    for name in ("one", "latest"):
        status = framework.status(name, TASK_FINISHED)
        assert framework.states(name) == ["STARTING", "RUNNING", "FINISHED"]
        assert (status.executor_id.value, status.exit_status.exit_code) == ("pod", 0)
        assert output(cluster, framework, name) == "out\n"
        assert output(cluster, framework, name, "stderr") == "err\n"
        where = output(cluster, framework, name, "where").strip()
        assert where.endswith(f"/tasks/{name}")
        environment = output(cluster, framework, name, "environment").splitlines()
        told = dict(line.split("=", 1) for line in environment)
        assert (told["MESOS_TASK_ID"], told["MESOS_SANDBOX"]) == (name, where)
        # Nothing that is meant for the executor.
        assert not [each for each in told if "ENDPOINT" in each or "GRPC" in each]
    until(lambda: executors(cluster) == [])


def test_one_that_fails_ends_its_group_and_no_other(cluster, framework):
    launch(framework, {"stays": STAY})
    launch(framework, {"beside": STAY, "bad": "sleep 0.1; exit 3"})
    assert framework.status("bad", TASK_FAILED).message == "Command exited with status 3"
    assert framework.status("beside", TASK_KILLED).exit_status.signal == signal.SIGTERM
    assert framework.states("stays") == ["STARTING", "RUNNING"]
    framework.driver.kill_task("stays")
    framework.status("stays", TASK_KILLED)
    until(lambda: executors(cluster) == [])


def test_a_kill_ends_the_group_after_its_grace(cluster, framework):
    launch(framework, {"gentle": STAY, "deaf": DEAF}, kill_grace_s=0.2)
    pids = [pid_of(cluster, framework, name) for name in ("gentle", "deaf")]
    framework.driver.kill_task("gentle")
    framework.status("gentle", TASK_KILLED)
    assert framework.status("deaf", TASK_KILLED).exit_status.signal == signal.SIGKILL
    assert all(gone(pid) for pid in pids)


@pytest.mark.needs("root")
def test_one_that_is_not_well_is_killed_with_its_group(cluster, framework):
    # Run where the task is, and as the task; well until that was seen.
    look = (
        'test "$(id -un) $(pwd) $MESOS_TASK_ID" = "nobody $MESOS_SANDBOX ill" '
        "&& cat well && touch seen"
    )
    text = "touch well; until test -f seen; do sleep 0.02; done; rm well; exec sleep 1000"
    health = health_command(look, delay_s=0, interval_s=0.1, grace_s=PATIENCE_S, failures=1)
    offer = framework.offer()
    ill = command_task("ill", "ill", offer, text, cpus=0.3, mem=32, health=health, user="nobody")
    other = command_task("other", "other", offer, STAY, cpus=0.3, mem=32)
    framework.driver.launch_group(offer, default_executor("pod"), [ill, other], filters=0)
    status = framework.status("ill", TASK_KILLED)
    assert status.healthy is False
    assert "Health check failed (1 of 1 in a row): the command exited with" in status.message
    told = [each.healthy for each in framework.statuses("ill") if each.HasField("healthy")]
    assert told == [True, False, False]
    assert output(cluster, framework, "ill", "stderr") == ""
    framework.status("other", TASK_KILLED)


def test_a_check_tells_what_it_has_found(cluster, framework):
    offer = framework.offer()
    task = command_task("looked-at", "looked-at", offer, STAY, cpus=0.3, mem=32)
    task.check.type, task.check.delay_seconds = CheckInfo.COMMAND, 0
    task.check.command.command.value = "exit 7"
    framework.driver.launch_group(offer, default_executor("pod"), [task], filters=0)

    def told() -> list[int]:
        return [s.check_status.command.exit_code for s in framework.statuses("looked-at")]

    until(lambda: 7 in told())
    assert framework.states("looked-at") == ["STARTING", "RUNNING"]
    framework.driver.kill_task("looked-at")
    framework.status("looked-at", TASK_KILLED)


def test_a_command_that_is_not_there_fails_its_group(framework):
    launch(framework, {"missing": ["/no/such/program"], "other": STAY})
    status = framework.status("missing", TASK_FAILED)
    assert "cannot run '/no/such/program'" in status.message
    assert status.reason == TaskStatus.REASON_CONTAINER_LAUNCH_FAILED
    framework.status("other", TASK_KILLED)


def test_uris_are_fetched_into_the_tasks_own_directory(cluster, framework, tmp_path):
    (tmp_path / "file").write_text("content")
    uris = {"reads": [str(tmp_path / "file")], "lacks": [str(tmp_path / "missing")]}
    launch(framework, {"reads": "cat file"}, uris=uris)
    framework.status("reads", TASK_FINISHED)
    assert output(cluster, framework, "reads") == "content"
    # Another one, since the first is about to end.
    launch(framework, {"lacks": "true", "waits": STAY}, "pod2", uris=uris)
    assert "missing" in framework.status("lacks", TASK_FAILED).message
    framework.status("waits", TASK_KILLED)


def test_a_kill_stops_what_is_fetched(cluster, framework):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(PATIENCE_S)
        uris = {"fetches": [f"http://127.0.0.1:{silent.getsockname()[1]}/file"]}
        launch(framework, {"fetches": "true", "runs": STAY}, uris=uris)
        framework.status("runs", TASK_RUNNING)
        connection, _ = silent.accept()
        with connection:
            framework.driver.kill_task("fetches")
            status = framework.status("fetches", TASK_KILLED)
            assert status.message == "Killed before it was started"
            framework.status("runs", TASK_KILLED)
    assert framework.states("fetches") == ["STARTING", "KILLED"]


def volume(container_path: str, kind: SandboxPath.Type.ValueType, path: str) -> ContainerInfo:
    source = Volume.Source(type=Volume.Source.SANDBOX_PATH)
    source.sandbox_path.type, source.sandbox_path.path = kind, path
    shown = Volume(container_path=container_path, mode=Volume.RW, source=source)
    return ContainerInfo(type=ContainerInfo.MESOS, volumes=[shown])


def test_tasks_share_a_directory_of_their_executors_sandbox(cluster, framework):
    offer = framework.offer()
    says = "echo hello >ours/new; mv ours/new ours/said"
    reads = "until test -e a/theirs/said; do sleep 0.02; done; cat a/theirs/said"
    tasks = []
    for name, command, where in (("says", says, "ours"), ("reads", reads, "a/theirs")):
        task = command_task(name, name, offer, command, cpus=0.3, mem=32)
        task.container.CopyFrom(volume(where, SandboxPath.PARENT, "data/shared"))
        tasks.append(task)
    framework.driver.launch_group(offer, default_executor("pod"), tasks, filters=0)
    framework.status("reads", TASK_FINISHED)
    assert output(cluster, framework, "reads") == "hello\n"
    framework.status("says", TASK_FINISHED)


def test_a_volume_that_is_in_the_way_of_another_fails_its_group(framework):
    offer = framework.offer()
    task = command_task("bad", "bad", offer, "true", cpus=0.3, mem=32)
    task.container.CopyFrom(volume("data", SandboxPath.SELF, "data"))
    other = command_task("other", "other", offer, STAY, cpus=0.3, mem=32)
    framework.driver.launch_group(offer, default_executor("pod"), [other, task], filters=0)
    status = framework.status("bad", TASK_FAILED)
    text = "container.volumes[0].container_path: 'data': something else is there already"
    assert status.message == text
    framework.status("other", TASK_KILLED)


def test_a_command_task_has_volumes_in_its_own_sandbox(cluster, framework):
    offer = framework.offer()
    task = command_task("alone", "alone", offer, "echo x >a/shown/f; cat d/f", cpus=1, mem=32)
    task.container.CopyFrom(volume("a/shown", SandboxPath.SELF, "d"))
    framework.driver.launch_tasks(offer, [task], filters=0)
    framework.status("alone", TASK_FINISHED)
    assert output(cluster, framework, "alone") == "x\n"


@pytest.mark.needs("root")
def test_a_task_runs_as_its_user_and_reaches_its_directory(cluster, framework):
    launch(framework, {"own": "id -un; cat ../../tasks/own/stdout >copy"}, user="nobody")
    framework.status("own", TASK_FINISHED)
    assert output(cluster, framework, "own", "copy") == "nobody\n"


def test_what_a_task_leaves_behind_is_gone_before_its_end_is_told(cluster, framework):
    # In a session of its own, and nobody's child.
    launch(framework, {"leaves": "setsid sleep 1000 & echo $!; sleep 0.2"})
    framework.status("leaves", TASK_FINISHED)
    assert gone(int(output(cluster, framework, "leaves")))


def test_what_a_running_task_leaves_behind_is_reaped_when_it_ends(cluster, framework):
    launch(framework, {"leaves": f"for i in 1 2 3 4 5; do (true &); done; {STAY}"})
    pid = pid_of(cluster, framework, "leaves")
    executor = psutil.Process(psutil.Process(pid).ppid())
    until(lambda: [child.pid for child in executor.children()] == [pid])


def test_the_end_of_the_executor_is_the_end_of_its_tasks(cluster, framework):
    launch(framework, {"a": STAY, "b": DEAF, "c": "echo $$; exec env -i sleep 1000"})
    pids = [pid_of(cluster, framework, name) for name in ("a", "b", "c")]
    until(lambda: b"MESOS" not in Path(f"/proc/{pids[2]}/environ").read_bytes())
    os.kill(psutil.Process(pids[0]).ppid(), signal.SIGKILL)
    for name in ("a", "b", "c"):
        status = framework.status(name, TASK_FAILED)
        assert status.reason == TaskStatus.REASON_EXECUTOR_TERMINATED
    assert all(gone(pid) for pid in pids)


def test_a_torn_down_framework_leaves_nothing(cluster):
    with Framework(cluster.address) as framework:
        launch(framework, {"a": STAY, "b": STAY})
        pids = [pid_of(cluster, framework, name) for name in ("a", "b")]
    until(lambda: all(gone(pid) for pid in pids))
    until(lambda: executors(cluster) == [])


def test_groups_go_on_while_their_agent_is_started_again(tmp_path):
    with Cluster(tmp_path) as cluster:
        agent = cluster.start_agent(
            "a",
            "cpus:4;mem:4096;disk:1000",
            tasks_on_exit="keep",
            executor_reregistration_timeout="60s",
        )
        with Framework(cluster.address) as framework:
            waits = f"echo $$; until test -e {tmp_path}/go; do sleep 0.05; done"
            launch(framework, {"waits": waits, "stays": STAY})
            pid = pid_of(cluster, framework, "waits")
            agent.kill()
            (tmp_path / "go").touch()
            until(lambda: gone(pid))
            cluster.start_agent(
                "a",
                "cpus:4;mem:4096;disk:1000",
                tasks_on_exit="keep",
                executor_reregistration_timeout="60s",
            )
            framework.status("waits", TASK_FINISHED)
            framework.driver.kill_task("stays")
            framework.status("stays", TASK_KILLED)
            until(lambda: executors(cluster) == [])
