"""`mesos-py local`: ready when it says so, and everything gone when it ends."""

import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.local import LIMIT_S, MESOS_PY, Ended, Local, environment
from tests.kit.waiting import gone, until

# A task that leaves its parent, its session and its process group.
ESCAPING = "setsid setsid sleep 600 & echo $! > {file}; sleep 600"


def local(directory: Path, *args: str, **options) -> Ended:
    """Run `local` to its end, in its own temporary directory."""
    process = subprocess.run(
        [*MESOS_PY, "local", *args],
        cwd=directory,
        env={**environment(), "TMPDIR": str(directory), **options.pop("env", {})},
        capture_output=True,
        timeout=LIMIT_S,
    )
    return Ended(process.returncode, process.stdout, process.stderr)


def pids_below(pid: int) -> list[int]:
    """All processes that come from `pid`; none if that is gone meanwhile."""
    found: list[int] = []
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return found
    for child in children:
        found += [int(child), *pids_below(int(child))]
    return found


# --- with a command -----------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill $$", 143)]
)
def test_it_ends_as_its_command_ends(tmp_path, script, code):
    assert local(tmp_path, "--agents", "1", "--", "sh", "-c", script).code == code


def test_its_command_finds_the_master_and_all_agents_and_has_stdout_for_itself(tmp_path):
    command = [*MESOS_PY, "agents", "--json"]
    ended = local(tmp_path, "--agents", "3", "--attributes", "rack:a", "--", *command)
    assert ended.code == 0
    assert ended.out.startswith(b"[\n")
    assert ended.out.count(b'"state": "connected"') == 3
    assert ended.out.count(b'"rack": "a"') == 3
    assert ended.err.startswith("ready master=127.0.0.1:")


def test_its_command_finds_the_http_of_the_master(tmp_path):
    script = (
        "import os, urllib.request;"
        "url = 'http://' + os.environ['MESOS_PY_MASTER_HTTP'] + '/health';"
        "print(urllib.request.urlopen(url, timeout=60).status)"
    )
    ended = local(tmp_path, "--agents", "0", "--", sys.executable, "-c", script)
    assert (ended.code, ended.out) == (0, b"200\n")


def test_its_command_reads_its_stdin(tmp_path):
    argv = [*MESOS_PY, "local", "--agents", "0", "--", "cat"]
    process = subprocess.run(
        argv, input=b"typed", capture_output=True, cwd=tmp_path, env=environment(), timeout=LIMIT_S
    )
    assert (process.returncode, process.stdout) == (0, b"typed")


def test_its_temporary_directory_is_removed(tmp_path):
    local(tmp_path, "--agents", "1", "--", "true")
    assert list(tmp_path.iterdir()) == []


def test_what_the_command_leaves_in_the_background_ends_too(tmp_path):
    script = f"setsid sleep 600 & echo $! > {tmp_path}/pid"
    assert local(tmp_path, "--agents", "0", "--", "sh", "-c", script).code == 0
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_command_that_does_not_exist_is_said_before_anything_starts(tmp_path):
    ended = local(tmp_path, "--", "no-such-program")
    assert ended.code == 2
    assert ended.err == "mesos-py: error: COMMAND: 'no-such-program': no such program\n"


def test_tasks_of_a_command_that_is_terminated_end_with_it(tmp_path):
    command = [*MESOS_PY, "run", f"echo $$ > {tmp_path}/pid; sleep 600"]
    argv = [*MESOS_PY, "local", "--agents", "1", "--", *command]
    process = subprocess.Popen(argv, cwd=tmp_path, env=environment(), stderr=subprocess.DEVNULL)
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    process.terminate()
    assert process.wait(LIMIT_S) == 143
    assert gone(int((tmp_path / "pid").read_text()))


def test_ctrl_c_in_a_terminal_is_the_commands_to_act_on(tmp_path):
    """The shell survives Ctrl-C by its trap, and so the cluster does."""
    script = (
        "trap 'echo caught; got=1' INT; echo waiting;"
        ' while [ -z "$got" ]; do sleep 0.05; done; echo still here'
    )
    pid, terminal = in_a_terminal(tmp_path, "--agents", "0", "--", "sh", "-c", script)
    try:
        read_until(terminal, b"waiting")
        os.write(terminal, b"\x03")
        assert b"caught" in read_until(terminal, b"still here")
    finally:
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0


@pytest.mark.parametrize(
    ("command", "sign", "code"),
    [([], b"Ctrl-C ends", 0), (["--", "sh", "-c", "echo up; exec sleep 600"], b"up", 129)],
)
def test_a_terminal_that_is_closed_ends_everything(tmp_path, command, sign, code):
    pid, terminal = in_a_terminal(tmp_path, "--agents", "1", *command)
    try:
        read_until(terminal, sign)
        below = pids_below(pid)
        assert len(below) >= 3
    finally:
        os.close(terminal)
        _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == code
    for each in below:
        assert gone(each)


def in_a_terminal(directory: Path, *args: str) -> tuple[int, int]:
    """Start `local` as the leader of a session with a terminal: pid, the other end of it."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(directory)
        argv = [*MESOS_PY, "local", *args]
        os.execve(argv[0], argv, environment())
    return pid, terminal


def read_until(terminal: int, wanted: bytes) -> bytes:
    said = b""
    while wanted not in said:
        assert select.select([terminal], [], [], LIMIT_S)[0], said
        said += os.read(terminal, 1000)
    return said


# --- without a command --------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_in_peace_with_tasks_running(tmp_path, number):
    with Local(tmp_path, "--agents", "2") as cluster:
        file = tmp_path / "pid"
        run = cluster.start("run", ESCAPING.format(file=file), stderr=subprocess.DEVNULL)
        until(lambda: file.exists() and file.read_text())
        below = pids_below(cluster.process.pid)
        cluster.process.send_signal(number)
        assert cluster.process.wait(LIMIT_S) == 0
        run.kill()
        run.communicate()
        for pid in [*below, int(file.read_text())]:
            assert gone(pid)


def test_when_it_is_killed_outright_nothing_stays(tmp_path):
    env = {**environment(), "TMPDIR": str(tmp_path)}
    argv = [*MESOS_PY, "local", "--agents", "2"]
    process = subprocess.Popen(
        argv, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    master = process.stdout.readline().decode().partition("=")[2].strip()
    file = tmp_path / "pid"
    run = subprocess.Popen(
        [*MESOS_PY, "run", "--master", master, ESCAPING.format(file=file)],
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.DEVNULL,
    )
    until(lambda: file.exists() and file.read_text())
    below = [*pids_below(process.pid), int(file.read_text())]
    assert len(below) > 5
    process.kill()
    process.communicate()
    run.kill()
    run.wait()
    until(lambda: all(gone(pid) for pid in below))
    until(lambda: not list(tmp_path.glob("mesos-py-local-*")))


@pytest.mark.parametrize("name", ["master", "agent-2"])
def test_a_daemon_that_dies_ends_it_and_the_end_of_its_log_is_shown(tmp_path, name):
    with Local(tmp_path, "--agents", "2") as cluster:
        (keeper,) = map(int, _children(cluster.process.pid))
        (victim,) = (
            pid
            for pid in map(int, _children(keeper))
            if f"/{name}.port" in Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
        )
        os.kill(victim, signal.SIGKILL)
        _, err = cluster.process.communicate(timeout=LIMIT_S)
        assert cluster.process.returncode == 1
        last = err.decode().splitlines()[-1]
        assert last == f"mesos-py: error: {name} was ended by SIGKILL"
        assert f"\n{name}: " in err.decode()


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_a_given_work_directory_keeps_sandboxes_and_logs(tmp_path):
    with Local(tmp_path, "--agents", "1") as cluster:
        cluster.cli("run", "echo kept")
    logs = {path.name for path in cluster.work_dir.glob("*.log")}
    assert logs == {"master.log", "agent-1.log"}
    (out,) = {path.resolve() for path in cluster.work_dir.rglob("stdout")}
    assert out.read_text() == "kept\n"


def test_a_work_directory_can_be_used_again(tmp_path):
    for _ in range(2):
        with Local(tmp_path, "--agents", "1") as cluster:
            assert cluster.cli("run", "echo x").out == b"x\n"


# --- resources ----------------------------------------------------------------


def test_agents_of_one_machine_share_no_port(tmp_path):
    command = [*MESOS_PY, "agents", "--json"]
    text = "cpus:1;mem:64;ports:[20100-20199]"
    ended = local(tmp_path, "--agents", "2", "--resources", text, "--", *command)
    first, second = (row["total"] for row in json.loads(ended.out))
    assert {first["ports"], second["ports"]} == {"[20100-20149]", "[20150-20199]"}
    assert (first["cpus"], first["mem"]) == (second["cpus"], second["mem"]) == (1.0, 64.0)


# --- what goes wrong ----------------------------------------------------------


@pytest.mark.parametrize("text", ["cpus", "cpus:-1", "cpus:nan", "mem:x", "ports:[5-1]"])
def test_malformed_resources_are_bad_input(tmp_path, text):
    ended = local(tmp_path, "--resources", text, "--", "true")
    assert ended.code == 2
    assert ended.err.startswith("mesos-py: error: resources")
    assert len(ended.err.splitlines()) == 1


def test_a_port_in_use_is_named(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ended = local(tmp_path, "--port", port, "--", "true")
    assert ended.code == 1
    assert ended.err.splitlines()[-1] == "mesos-py: error: master ended with exit status 1"
    assert f"port {port} on 127.0.0.1 is in use" in ended.err


def test_two_at_the_same_work_directory_do_not_disturb_each_other(tmp_path):
    with Local(tmp_path, "--agents", "1") as first:
        ended = local(tmp_path, "--work-dir", str(first.work_dir), "--", "true")
        assert ended.code == 1
        assert f"{first.work_dir}" in ended.err
        assert first.cli("run", "echo unharmed").out == b"unharmed\n"


@pytest.mark.parametrize("args", [["--agents", "-1"], ["--agents", "x"], ["--port", "70000"]])
def test_impossible_numbers_are_bad_input(tmp_path, args):
    assert local(tmp_path, *args, "--", "true").code == 2
