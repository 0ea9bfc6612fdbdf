"""Lists, logs, kill and explain on real daemons, and the demo as a whole."""

import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.local import LIMIT_S, MESOS_PY, Local, environment
from tests.kit.waiting import gone, until

ROOT = Path(__file__).parents[2]
TASK_KEYS = {
    "id", "name", "framework_id", "agent_id", "state", "source", "reason", "message", "exit_code",
    "pid", "resources", "started", "ended",
}  # fmt: skip


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Local]:
    directory = tmp_path_factory.mktemp("looking")
    with Local(directory, "--agents", "2", "--resources", "cpus:2;mem:512") as cluster:
        yield cluster


@pytest.fixture
def go(tmp_path) -> str:
    """What a command waits for until the test makes it."""
    return f"while ! [ -e {tmp_path}/go ]; do sleep 0.05; done"


def test_a_running_task_and_the_same_one_ended(cluster, tmp_path, go):
    before = time.time()
    run = cluster.start("run", "--name", "row", "--cpus", "0.5", f"echo $$ > {tmp_path}/pid; {go}")
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    until(lambda: [r for r in cluster.json("tasks") if r["state"] == "TASK_RUNNING"])
    (row,) = [row for row in cluster.json("tasks") if row["name"] == "row"]
    assert set(row) >= TASK_KEYS
    assert row["resources"] == {"cpus": 0.5, "mem": 128.0}
    assert before - 1 < row["started"] < time.time() + 1
    assert (row["exit_code"], row["ended"]) == (None, None)
    assert Path(f"/proc/{row['pid']}").exists()
    (tmp_path / "go").touch()
    run.communicate(timeout=LIMIT_S)
    (ended,) = [r for r in cluster.json("tasks", "--all") if r["id"] == row["id"]]
    assert (ended["state"], ended["exit_code"], ended["pid"]) == ("TASK_FINISHED", 0, row["pid"])
    assert ended["started"] == row["started"]
    assert ended["ended"] >= ended["started"]
    assert row["id"] not in [r["id"] for r in cluster.json("tasks")]


def test_agents_show_what_is_used_while_it_is(cluster, tmp_path, go):
    run = cluster.start("run", "--cpus", "1.5", f"touch {tmp_path}/up; {go}")
    until((tmp_path / "up").exists)
    agents = cluster.json("agents")
    assert sorted(row["tasks"] for row in agents) == [0, 1]
    assert sorted(row["allocated"].get("cpus", 0) for row in agents) == [0, 1.5]
    (tmp_path / "go").touch()
    run.communicate(timeout=LIMIT_S)
    assert {row["free"]["cpus"] for row in cluster.json("agents")} == {2.0}


# --- logs ---------------------------------------------------------------------


def test_the_log_of_an_ended_task_can_be_read(cluster):
    cluster.cli("run", "--name", "said", "echo one; echo two; echo err >&2")
    assert cluster.cli("logs", "said").out == b"one\ntwo\n"
    assert cluster.cli("logs", "said", "--stderr").out == b"err\n"
    assert cluster.cli("logs", "said", "--tail", "1").out == b"two\n"
    assert cluster.cli("logs", "said", "-f").out == b"one\ntwo\n"


def test_following_goes_on_until_the_task_ends(cluster, tmp_path, go):
    run = cluster.start("run", "--name", "slow", f"echo one; {go}; echo two")
    until(lambda: any(row["name"] == "slow" for row in cluster.json("tasks")))
    follow = cluster.start("logs", "-f", "slow")
    assert follow.stdout is not None
    assert follow.stdout.readline() == b"one\n"
    (tmp_path / "go").touch()
    out, err = follow.communicate(timeout=LIMIT_S)
    assert (follow.returncode, out, err) == (0, b"two\n", b"")
    run.communicate(timeout=LIMIT_S)


def test_an_interrupted_follower_has_code_130_and_says_nothing(cluster, tmp_path, go):
    run = cluster.start("run", "--name", "watched", f"echo one; {go}")
    until(lambda: any(row["name"] == "watched" for row in cluster.json("tasks")))
    follow = cluster.start("logs", "-f", "watched")
    assert follow.stdout is not None
    follow.stdout.readline()
    follow.send_signal(2)
    _, err = follow.communicate(timeout=LIMIT_S)
    assert (follow.returncode, err.strip()) == (130, b"")
    (tmp_path / "go").touch()
    run.communicate(timeout=LIMIT_S)


@pytest.mark.parametrize("path", ["../../x", "/etc/passwd", "none"])
def test_only_files_of_the_sandbox_can_be_read(cluster, path):
    cluster.cli("run", "--name", "boxed", "true")
    ended = cluster.cli("logs", "boxed-", "--file", path)
    assert ended.code in (1, 2)
    assert ended.out == b""
    assert ended.err.startswith("mesos-py: error: ")


# --- exec -----------------------------------------------------------------------


@pytest.fixture
def host(cluster, tmp_path, go) -> Iterator[str]:
    """A task that runs."""
    name = f"host-{tmp_path.name}"
    run = cluster.start("run", "--name", name, "--cpus", "0.1", go)
    try:
        until(lambda: states_of(cluster, name) == ["TASK_RUNNING"])
        yield name
    finally:
        (tmp_path / "go").touch()
        run.communicate(timeout=LIMIT_S)


def states_of(cluster: Local, name: str) -> list[str]:
    return [row["state"] for row in cluster.json("tasks") if row["name"] == name]


def test_a_command_within_a_task_has_our_input_and_we_its_output_and_code(cluster, host):
    script = "cat; echo err >&2; exit 7"
    words = ["exec", "-i", "--timeout", "60s", host, "--", "sh", "-c", script]
    process = cluster.start(*words, stdin=subprocess.PIPE)
    out, err = process.communicate(b"typed\n", timeout=LIMIT_S)
    assert (process.returncode, out, err) == (7, b"typed\n", b"err\n")


def test_a_command_within_a_task_has_the_variables_and_directory_that_are_asked_for(
    cluster, host, tmp_path
):
    options = ["exec", "--timeout", "60s", "-e", "A=x y", "-e", "B", "-w", str(tmp_path), host]
    ended = cluster.cli(*options, "echo $A-$B; pwd", env={"B": "ours"})
    assert (ended.code, ended.out) == (0, f"x y-ours\n{tmp_path}\n".encode())
    ended = cluster.cli("exec", "--timeout", "60s", "-w", "not-there", host, "--", "id")
    assert (ended.code, ended.out) == (126, b"")
    assert "not-there" in ended.err


def test_an_interrupted_exec_ends_its_command(cluster, host):
    process = cluster.start("exec", "--timeout", "60s", host, "echo $$; exec sleep 600")
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, err.strip()) == (130, b"")
    until(lambda: gone(pid))


def test_a_command_with_a_terminal_has_every_key_and_ours_is_as_before(cluster, host):
    ours, theirs = os.openpty()
    try:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))
        before = termios.tcgetattr(theirs)
        script = "echo ready; read line; echo got $line; stty size"
        process = cluster.start("exec", "--timeout", "60s", "-it", host, script, stdin=theirs)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\r\n"
        os.write(ours, b"typed\r")
        out, err = process.communicate(timeout=LIMIT_S)
        assert (process.returncode, err) == (0, b"")
        assert out.endswith(b"got typed\r\n33 99\r\n")
        assert termios.tcgetattr(theirs) == before
    finally:
        os.close(ours)
        os.close(theirs)


# --- kill and explain ---------------------------------------------------------


def test_kill_gives_the_grace_that_is_named(cluster, tmp_path):
    command = f"trap '' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 0.05; done"
    run = cluster.start("run", "--name", "hard", command)
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    assert cluster.cli("kill", "hard", "--grace", "200ms").code == 0
    run.communicate(timeout=LIMIT_S)
    assert run.returncode == 137
    assert gone(int((tmp_path / "pid").read_text()))


def test_ids_by_their_beginning_and_names_that_are_shared(cluster, tmp_path, go):
    runs = [
        cluster.start("run", "--name", "twin", "--cpus", "0.1", f"touch {tmp_path}/{n}; {go}")
        for n in range(2)
    ]
    until(lambda: (tmp_path / "0").exists() and (tmp_path / "1").exists())
    ended = cluster.cli("kill", "twin")
    assert ended.code == 1
    first, second = sorted(r["id"] for r in cluster.json("tasks") if r["name"] == "twin")
    assert first in ended.err
    assert second in ended.err
    assert cluster.cli("kill", first[:-1]).out == f"killing task {first}\n".encode()
    # The other one may end by itself, but not sooner.
    until(lambda: any(run.poll() is not None for run in runs))
    (tmp_path / "go").touch()
    for run in runs:
        run.communicate(timeout=LIMIT_S)
    assert sorted(run.returncode for run in runs) == [0, 143]


def test_a_task_that_waits_is_explained_by_its_name(cluster):
    run = cluster.start("run", "--name", "giant", "--mem", "100000", "true")
    assert run.stderr is not None
    run.stderr.readline()
    (row,) = cluster.json("explain", "giant")
    assert "largest agent has 512" in row["findings"][0]
    assert [request["name"] for request in row["requests"]] == ["giant"]
    run.terminate()
    run.communicate(timeout=LIMIT_S)


def test_the_masters_version_is_ours(cluster):
    mine, its = cluster.json("version", "--remote")
    assert mine["version"] == its["version"]


def test_completion_in_a_real_bash_finds_a_task(cluster):
    cluster.cli("run", "--name", "findme", "true")
    script = (
        'eval "$(mesos-py completion bash)";'
        "COMP_WORDS=(mesos-py logs findm); COMP_CWORD=2;"
        '_mesos_py_completion mesos-py; echo "${COMPREPLY[@]}"'
    )
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**environment(cluster.master), "PATH": path}

    def completes() -> bool:
        argv = ["bash", "-c", script]
        ended = subprocess.run(argv, capture_output=True, env=env, timeout=LIMIT_S)
        return ended.stdout.startswith(b"findme-")

    # Nobody wants to wait for it long, so on a busy machine it may come too late.
    until(completes)


# --- the demo -----------------------------------------------------------------


def demo(*args: str, **options) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "examples.stdlib_census", *args]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=120, **options)


def test_the_demo_counts_right_and_uses_every_agent(cluster):
    ended = demo("--tasks", "16", env=environment(cluster.master))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "counting: 16 of 16 tasks have finished" in ended.stdout
    assert "The same as a count made here. 16 tasks took " in ended.stdout
    for row in cluster.json("agents"):
        assert row["id"] in ended.stdout


def test_the_demo_without_a_master_says_what_it_needs():
    ended = demo(env=environment())
    assert ended.returncode == 2
    assert "--master" in ended.stderr


def test_the_demo_with_no_master_there_fails():
    ended = demo("--master", "127.0.0.1:1", env=environment())
    assert ended.returncode == 1
    assert "127.0.0.1:1" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_demo_on_a_cluster_that_is_too_small_says_why(tmp_path):
    argv = [*MESOS_PY, "local", "--resources", "cpus:0.1;mem:10", "--"]
    argv += [sys.executable, "-m", "examples.stdlib_census", "--patience", "3"]
    ended = subprocess.run(
        argv, cwd=ROOT, capture_output=True, text=True, timeout=120, env=environment()
    )
    assert ended.returncode == 1
    assert "largest agent has" in ended.stderr
