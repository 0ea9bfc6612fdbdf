"""`mesos-py run` on real daemons: output, exit codes, waiting, interrupting."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mesos_py.cli.running.runner import KILL_WAIT_S
from tests.kit.local import LIMIT_S, Local
from tests.kit.waiting import gone, until

RESOURCES = "cpus:2;mem:1024;ports:[21100-21199]"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Local]:
    directory = tmp_path_factory.mktemp("run")
    with Local(directory, "--agents", "2", "--resources", RESOURCES) as cluster:
        yield cluster
        # Whatever a test did, nothing of it may run on.
        assert cluster.json("tasks") == []


def python(code: str) -> list[str]:
    return ["--", sys.executable, "-c", code]


def pid_in(file: Path) -> int:
    until(lambda: file.exists() and file.read_text().endswith("\n"))
    return int(file.read_text())


# --- output -------------------------------------------------------------------


def test_stdout_and_stderr_are_kept_apart_and_nothing_is_added(cluster):
    ended = cluster.cli("run", "printf out; printf err >&2")
    assert (ended.code, ended.out, ended.err) == (0, b"out", "err")


def test_megabytes_of_any_bytes_arrive_whole(cluster):
    code = (
        "import hashlib, sys; data = bytes(range(256)) * 20000;"
        "sys.stdout.buffer.write(data); sys.stderr.buffer.write(data[::-1])"
    )
    process = cluster.start("run", *python(code))
    out, err = process.communicate(timeout=LIMIT_S)
    data = bytes(range(256)) * 20000
    assert hashlib.sha256(out).digest() == hashlib.sha256(data).digest()
    assert hashlib.sha256(err).digest() == hashlib.sha256(data[::-1]).digest()


def test_output_comes_while_the_task_runs(cluster, tmp_path):
    process = cluster.start("run", f"echo early; while ! [ -e {tmp_path}/go ]; do sleep 0.05; done")
    assert process.stdout is not None
    assert process.stdout.readline() == b"early\n"
    (tmp_path / "go").touch()
    assert process.wait(LIMIT_S) == 0
    process.communicate()


def test_lines_of_several_begin_with_their_task(cluster):
    ended = cluster.cli("run", "-n", "3", "--name", "it", "--cpus", "0.1", "echo a; printf b")
    wanted = [f"it.{n} | {letter}" for n in range(3) for letter in "ab"]
    assert sorted(ended.out.decode().splitlines()) == wanted


def test_without_prefix_lines_are_only_the_tasks_own(cluster):
    command = "echo $MESOS_PY_INSTANCE of $MESOS_PY_INSTANCES"
    ended = cluster.cli("run", "-n", "3", "--cpus", "0.1", "--no-prefix", command)
    assert sorted(ended.out.splitlines()) == [b"0 of 3", b"1 of 3", b"2 of 3"]


def test_a_reader_that_goes_away_ends_the_task(cluster, tmp_path):
    command = f"echo $$ > {tmp_path}/pid; exec yes"
    process = cluster.start("run", command)
    assert process.stdout is not None
    assert process.stdout.read(2) == b"y\n"
    process.stdout.close()
    assert process.wait(LIMIT_S) == 141
    assert process.stderr is not None
    assert b"nobody reads the output" in process.stderr.read()
    process.stderr.close()
    assert gone(pid_in(tmp_path / "pid"))


# --- exit codes ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "code"),
    [("true", 0), ("exit 7", 7), ("exit 255", 255), ("kill -9 $$", 137), ("kill $$", 143)],
)
def test_it_ends_as_its_command_ends(cluster, command, code):
    assert cluster.cli("run", command).code == code


def test_a_program_that_does_not_exist_ends_as_in_a_shell(cluster):
    ended = cluster.cli("run", "--", "/no/such/program")
    assert ended.code == 127
    assert "/no/such/program" in ended.err


def test_of_several_the_first_that_is_not_zero_counts(cluster):
    command = "sleep 0.$((3 - MESOS_PY_INSTANCE)); exit $((MESOS_PY_INSTANCE * 3))"
    ended = cluster.cli("run", "-n", "3", "--cpus", "0.1", "--name", "it", command)
    assert ended.code == 3
    assert "mesos-py run: it.2: FAILED: Command exited with status 6" in ended.err


def test_a_user_that_does_not_exist_is_a_task_that_never_ran(cluster):
    ended = cluster.cli("run", "--user", "no-such-user", "true")
    assert ended.code == 4
    assert "no-such-user" in ended.err
    assert ended.err.startswith("mesos-py run: true: ")


def test_quiet_says_nothing(cluster):
    assert cluster.cli("run", "-q", "kill -9 $$").err == ""


@pytest.mark.parametrize("option", [["--role", "-x"], ["--cpus", "-1"], ["--mem", "nan"]])
def test_bad_input_starts_nothing(cluster, option):
    before = len(cluster.json("frameworks", "--all"))
    ended = cluster.cli("run", *option, "true")
    assert ended.code == 2
    assert ended.err.startswith(f"mesos-py: error: {option[0]}")
    assert len(cluster.json("frameworks", "--all")) == before


# --- what the command is given ------------------------------------------------


def test_variables_reach_the_command(cluster):
    ended = cluster.cli("run", "-e", "A=x y", "--env", "B", "echo $A-$B", env={"B": "from here"})
    assert ended.out == b"x y-from here\n"


def test_ports_are_distinct_and_of_the_agent(cluster):
    command = "echo $PORT $PORT0 $PORT1 $PORTS"
    ended = cluster.cli("run", "-n", "2", "--ports", "2", "--cpus", "0.1", "--no-prefix", command)
    lines = [line.split() for line in ended.out.decode().splitlines()]
    for first, zeroth, second, both in lines:
        assert (first, f"{zeroth},{second}") == (zeroth, both)
    ports = [int(port) for line in lines for port in line[3].split(",")]
    assert len(set(ports)) == 4
    assert all(21100 <= port <= 21199 for port in ports)


@pytest.mark.needs("root")
def test_the_command_runs_as_the_user_that_is_named(cluster):
    assert cluster.cli("run", "--user", "nobody", "id -un").out == b"nobody\n"


def test_a_failed_attempt_is_repeated(cluster):
    command = "echo attempt $MESOS_PY_ATTEMPT; [ $MESOS_PY_ATTEMPT = 2 ]"
    ended = cluster.cli("run", "--name", "it", "--retry", "5", command)
    assert ended.code == 0
    assert ended.out == b"attempt 0\nattempt 1\nattempt 2\n"
    assert ended.err.count("mesos-py run: it: FAILED") == 2


def test_retries_run_out(cluster):
    ended = cluster.cli("run", "--retry", "1", "echo x; exit 9")
    assert (ended.code, ended.out) == (9, b"x\nx\n")


# --- waiting ------------------------------------------------------------------


def test_what_can_never_fit_is_explained_while_it_waits(cluster):
    process = cluster.start("run", "--cpus", "100", "true")
    assert process.stderr is not None
    line = process.stderr.readline().decode()
    assert line.startswith("mesos-py run: waiting: ")
    assert "needs 100 cpus, largest agent has 2" in line
    explained = cluster.cli("explain", "true").out.decode()
    assert "needs 100 cpus, largest agent has 2" in explained
    process.send_signal(signal.SIGINT)
    assert process.wait(LIMIT_S) == 130
    process.communicate()


def test_a_host_that_is_not_there_is_explained_too(cluster):
    ended = cluster.cli("run", "--host", "no-such-host", "--timeout", "8s", "true")
    assert ended.code == 124
    assert "mesos-py run: waiting: " in ended.err


def test_what_waits_runs_as_soon_as_there_is_room(cluster, tmp_path):
    fill = f"touch {tmp_path}/full.$MESOS_PY_INSTANCE; "
    fill += f"while ! [ -e {tmp_path}/go ]; do sleep 0.05; done"
    filling = cluster.start("run", "-n", "2", "--cpus", "2", fill)
    until(lambda: len(list(tmp_path.glob("full.*"))) == 2)
    waiting = cluster.start("run", "--cpus", "2", "echo ran")
    assert waiting.stderr is not None
    assert b"waiting: " in waiting.stderr.readline()
    (tmp_path / "go").touch()
    out, _ = waiting.communicate(timeout=LIMIT_S)
    assert out == b"ran\n"
    filling.communicate(timeout=LIMIT_S)
    assert filling.returncode == 0


def test_more_instances_than_room_all_run(cluster):
    ended = cluster.cli("run", "-n", "12", "--cpus", "1", "--no-prefix", "echo x")
    assert (ended.code, ended.out) == (0, b"x\n" * 12)


# --- ending early -------------------------------------------------------------


def running(cluster: Local, tmp_path: Path, *options: str) -> tuple[subprocess.Popen[bytes], int]:
    """A run whose task is there, and the pid of a grandchild of the task's shell."""
    command = f"sh -c 'sleep 600 & echo $! > {tmp_path}/pid; wait'"
    process = cluster.start("run", *options, command)
    return process, pid_in(tmp_path / "pid")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_ends_its_tasks_before_it_ends(cluster, tmp_path, number, code):
    process, pid = running(cluster, tmp_path)
    process.send_signal(number)
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == code
    assert gone(pid)
    assert b"interrupted; ending 1 task" in err


def test_a_second_interrupt_does_not_wait(cluster, tmp_path):
    command = f"trap '' TERM; echo $$ > {tmp_path}/pid; sleep 600"
    process = cluster.start("run", command)
    pid = pid_in(tmp_path / "pid")
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert b"interrupted" in process.stderr.readline()
    time.sleep(0.6)  # sooner, it would count as the same Ctrl-C
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130
    assert time.monotonic() - started < KILL_WAIT_S / 2
    until(lambda: gone(pid))


def test_a_run_that_takes_too_long_is_ended(cluster, tmp_path):
    process, pid = running(cluster, tmp_path, "--timeout", "6s")
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 124
    assert b"not done within 6 s; ending 1 task" in err
    assert gone(pid)


def test_a_task_that_is_killed_by_an_operator_is_no_success(cluster, tmp_path):
    process, pid = running(cluster, tmp_path, "--name", "victim")
    assert cluster.cli("kill", "victim").code == 0
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 143
    assert b"mesos-py run: victim: KILLED" in err
    assert gone(pid)


def test_a_framework_that_is_torn_down_is_an_error(cluster, tmp_path):
    process, pid = running(cluster, tmp_path, "--name", "torn")
    assert cluster.cli("teardown", "torn").code == 0
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 1
    assert err.decode().splitlines()[-1].startswith("mesos-py: error: ")
    until(lambda: gone(pid))


def test_tasks_of_a_run_that_is_killed_outright_end_soon(cluster, tmp_path):
    process, pid = running(cluster, tmp_path)
    process.kill()
    process.communicate()
    until(lambda: gone(pid))


def test_the_last_output_of_a_killed_task_is_shown(cluster, tmp_path):
    command = (
        f"trap 'echo last words; exit 0' TERM; echo $$ > {tmp_path}/pid;"
        " while :; do sleep 0.05; done"
    )
    process = cluster.start("run", command)
    pid_in(tmp_path / "pid")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, out) == (130, b"last words\n")


def test_nothing_is_left_of_the_frameworks(cluster):
    assert cluster.json("frameworks") == []
    assert os.getpid() not in [row["pid"] for row in cluster.json("tasks", "--all")]
