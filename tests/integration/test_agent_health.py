"""Health checks and checks by a real agent: commands, HTTP, TCP, and what they do to tasks."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from mesos_py.tasks import health_command, health_http, health_tcp
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import command
from tests.kit.agent_master import (
    AgentProcess,
    FakeMaster,
    children_of,
    eventually,
    processes_of,
    running_agent,
)

SOON: dict[str, Any] = {"delay_s": 0, "interval_s": 0.1, "grace_s": 0}
REASON_HEALTH = pb.TaskStatus.REASON_TASK_HEALTH_CHECK_STATUS_UPDATED


@pytest.fixture
async def master() -> AsyncIterator[FakeMaster]:
    async with FakeMaster() as made:
        yield made


@pytest.fixture
async def agent(master: FakeMaster, tmp_path: Path) -> AsyncIterator[AgentProcess]:
    async with running_agent(master, tmp_path / "agent") as made:
        yield made


async def until_nothing_runs_of(task_id: str) -> None:
    await eventually(lambda: not processes_of(task_id))


async def healthy(master: FakeMaster, task_id: str, wanted: bool = True) -> pb.TaskStatus:
    """Wait until the task is said to be healthy, or not to be."""

    def found() -> pb.TaskStatus | None:
        told = [s for s in master.updates(task_id) if s.HasField("healthy")]
        return next((s for s in told if s.healthy is wanted), None)

    status: pb.TaskStatus = await master.until(found)
    return status


async def test_a_command_check_runs_as_the_task_does_and_makes_it_healthy(master, agent):
    times = {**SOON, "grace_s": 60}
    check = health_command('test "$(pwd)" = "$MESOS_SANDBOX" && test -f up && test $X = 1', **times)
    variables = [pb.Environment.Variable(name="X", value="1")]
    info = pb.CommandInfo(
        value="touch up; exec sleep 1000", environment=pb.Environment(variables=variables)
    )
    master.run(command("t", command=info, health_check=check))
    status = await healthy(master, "t")
    assert (status.state, status.reason) == (pb.TASK_RUNNING, REASON_HEALTH)
    assert master.states("t")[:2] == ["STARTING", "RUNNING"]
    assert not master.updates("t")[1].HasField("healthy")


async def test_a_command_check_that_fails_kills_the_task_and_says_why(master, agent):
    check = health_command("echo it is broken >&2; exit 3", failures=2, **SOON)
    master.run(command("t", "exec sleep 1000", health_check=check))
    ended = await master.status("t", pb.TASK_KILLED)
    assert ended.healthy is False
    assert ended.message == (
        "Health check failed (2 of 2 in a row): the command exited with status 3: it is broken; "
        "Command terminated with signal SIGTERM"
    )
    told = [s.healthy for s in master.updates("t") if s.HasField("healthy")]
    assert told == [False, False, False]
    # Nothing of the probes is in the task's own output.
    assert (agent.sandbox("t") / "stderr").read_text() == ""
    assert not processes_of("t")


async def test_a_task_becomes_healthy_once_its_server_answers(master, agent, unused_port):
    server = (
        "import http.server, os\n"
        "class H(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        to = {'/a': 302, '/ok': 204}.get(self.path, 503)\n"
        "        self.send_response(to)\n"
        "        self.send_header('Location', '/ok')\n"
        "        self.end_headers()\n"
        f"http.server.HTTPServer(('127.0.0.1', {unused_port}), H).serve_forever()\n"
    )
    times: dict[str, Any] = {**SOON, "grace_s": 60}
    good = health_http(unused_port, "/a", **times)
    run = pb.CommandInfo(shell=False, value=sys.executable, arguments=["python", "-c", server])
    probed = pb.CheckInfo(
        type=pb.CheckInfo.HTTP, http=pb.CheckInfo.Http(port=unused_port, path="/other")
    )
    probed.delay_seconds, probed.interval_seconds = 0, 0.1
    master.run(command("t", command=run, health_check=good, check=probed))
    status = await healthy(master, "t")
    assert status.message.endswith("was answered 204")

    def answered() -> pb.TaskStatus | None:
        told = [s for s in master.updates("t") if s.check_status.http.HasField("status_code")]
        return told[-1] if told else None

    result = await master.until(answered)
    assert result.check_status.http.status_code == 503
    assert result.state == pb.TASK_RUNNING


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (lambda port: health_tcp(port, failures=1, **SOON), "Connection refused"),
        (lambda port: health_tcp(port, ipv6=True, failures=1, **SOON), ""),
        (lambda port: health_http(port, failures=1, **SOON), "Connection refused"),
        (lambda port: health_http(port, scheme="https", failures=1, **SOON), "Connection refused"),
    ],
)
async def test_a_server_that_is_not_there_is_not_healthy(master, agent, unused_port, check, words):
    master.run(command("t", "exec sleep 1000", health_check=check(unused_port)))
    ended = await master.status("t", pb.TASK_KILLED)
    assert str(unused_port) in ended.message
    assert words in ended.message


@pytest.fixture
def silent() -> Iterator[int]:
    """A server that takes connections and never says a word."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        # The kernel takes them; nobody accepts.
        made.listen(100)
        yield int(made.getsockname()[1])


async def test_a_probe_without_an_answer_ends_by_its_timeout(master, agent, silent):
    times: dict[str, Any] = {**SOON, "timeout_s": 0.2, "failures": 1}
    master.run(
        command("http", "exec sleep 1000", health_check=health_http(silent, **times)),
        command("cmd", "exec sleep 1000", health_check=health_command("sleep 1000", **times)),
        # It leaves children of its own behind, and does not listen to SIGTERM.
        command("deaf", "exec sleep 1000", health_check=health_command(DEAF, **times)),
        # The kernel's answer is one.
        command("tcp", "exec sleep 1000", health_check=health_tcp(silent, **SOON)),
    )
    for name in ("http", "cmd", "deaf"):
        ended = await master.status(name, pb.TASK_KILLED)
        assert "no answer within 0.2 s" in ended.message
    await healthy(master, "tcp")
    for name in ("cmd", "deaf"):
        await until_nothing_runs_of(name)


DEAF = "trap '' TERM; (trap '' TERM; setsid sleep 1000 &); while :; do sleep 100; done"


async def test_a_probe_neither_holds_up_the_end_of_its_task_nor_outlives_it(master, agent):
    check = health_command(f"touch begun; {DEAF}", **{**SOON, "timeout_s": 500})
    script = "while ! test -f begun; do sleep 0.01; done; exit 7"
    master.run(command("t", script, health_check=check))
    ended = await master.status("t", pb.TASK_FAILED)
    assert ended.exit_status.exit_code == 7
    await until_nothing_runs_of("t")


async def test_what_a_probe_writes_is_limited(master, agent):
    check = health_command("yes", **{**SOON, "timeout_s": 500, "failures": 1})
    master.run(command("t", "exec sleep 1000", health_check=check))
    ended = await master.status("t", pb.TASK_KILLED)
    assert "it wrote more than 1 MiB" in ended.message
    await until_nothing_runs_of("t")


async def test_a_command_check_that_cannot_be_run_says_so(master, agent):
    check = health_command(["/no/such/probe"], failures=1, **SOON)
    master.run(command("t", "exec sleep 1000", health_check=check))
    ended = await master.status("t", pb.TASK_KILLED)
    assert "it could not be run: cannot run '/no/such/probe': No such file" in ended.message


@pytest.mark.needs("root")
async def test_a_command_check_runs_as_the_tasks_user(master, agent, tmp_path):
    for directory in [tmp_path, *tmp_path.parents][:4]:
        directory.chmod(directory.stat().st_mode | 0o011)
    check = health_command('test "$(id -un)" = nobody && touch mine', **SOON)
    info = pb.CommandInfo(value="exec sleep 1000", user="nobody")
    master.run(command("t", command=info, health_check=check))
    await healthy(master, "t")
    assert (agent.sandbox("t") / "mine").owner() == "nobody"


async def test_the_warden_may_die_without_harm_to_a_healthy_task(master, agent):
    # Most of the time a probe is under way.
    check = health_command(
        "test -f up && sleep 0.2", failures=1, **{**SOON, "interval_s": 0, "grace_s": 60}
    )
    master.run(command("t", "touch up; echo $$; exec sleep 1000", health_check=check))
    await healthy(master, "t")
    for _ in range(2):
        (warden,) = wardens(agent)
        os.kill(warden, signal.SIGKILL)
        await until_replaced(agent, warden)
        before = len(agent.log.read_text())
        await asyncio.sleep(0.3)  # probes of a task that is well have nothing to show for it
        assert "Traceback" not in agent.log.read_text()[before:]
    assert master.states("t") == ["STARTING", "RUNNING", "RUNNING"]
    (agent.sandbox("t") / "up").unlink()
    ended = await master.status("t", pb.TASK_KILLED)
    assert ended.healthy is False
    await until_nothing_runs_of("t")


async def until_replaced(agent: AgentProcess, warden: int) -> None:
    await eventually(lambda: wardens(agent) not in ([], [warden]))


def wardens(agent: AgentProcess) -> list[int]:
    found = []
    for pid in children_of(agent.pid):
        with contextlib.suppress(OSError):
            if b"agent.containers.warden" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


async def test_an_agent_that_was_stopped_does_not_hold_it_against_its_tasks(
    master, agent, unused_port
):
    times: dict[str, Any] = {**SOON, "timeout_s": 3.0, "failures": 1}
    script = "echo $$; exec sleep 1000"
    master.run(command("t", script, health_check=health_command("sleep 0.1", **times)))
    await healthy(master, "t")
    agent.process.send_signal(signal.SIGSTOP)
    await asyncio.sleep(4.5)  # far beyond the time-out; real time, since a process is stopped
    agent.process.send_signal(signal.SIGCONT)
    await asyncio.sleep(0.5)
    assert all(s.healthy for s in master.updates("t") if s.HasField("healthy"))
    master.run(command("after", "true"))
    await master.status("after", pb.TASK_FINISHED)


async def test_a_killed_task_with_checks_ends_as_killed(master, agent):
    check = health_command("sleep 1000", **{**SOON, "timeout_s": 900})
    master.run(command("t", "exec sleep 1000", health_check=check))
    await master.status("t", pb.TASK_RUNNING)
    master.kill("t", grace_s=20)
    ended = await master.status("t", pb.TASK_KILLED)
    assert not ended.HasField("healthy")
    await until_nothing_runs_of("t")


# ---- In the network of the task ---------------------------------------------------------

PLUGIN = """
from agent.isolation.base import Isolator, Preparation

class Elsewhere(Isolator):
    def prepare(self, container):
        return Preparation(namespaces=("/proc/{pid}/ns/uts", "/proc/{pid}/ns/net"))
"""

SERVER = """
import fcntl, http.server, socket, struct
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
    fcntl.ioctl(made, 0x8914, struct.pack("16sH22x", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS: up
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", PORT), H).serve_forever()
"""


@pytest.fixture
async def elsewhere(
    master: FakeMaster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[AgentProcess]:
    """An agent whose tasks have a network of their own (all of them the same)."""
    holder = await asyncio.create_subprocess_exec("unshare", "--net", "--uts", "sleep", "1000")
    await eventually(lambda: networks(holder.pid) != networks(os.getpid()))
    plugins = tmp_path / "plugins"
    distribution = plugins / "elsewhere-1.0.dist-info"
    distribution.mkdir(parents=True)
    (plugins / "elsewhere.py").write_text(PLUGIN.replace("{pid}", str(holder.pid)))
    (distribution / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1\n")
    (distribution / "entry_points.txt").write_text(
        "[mesos_py.isolators]\nelsewhere = elsewhere:Elsewhere\n"
    )
    path = os.pathsep.join([str(plugins), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    try:
        async with running_agent(master, tmp_path / "agent", "--isolation", "elsewhere") as made:
            yield made
    finally:
        holder.kill()
        await holder.wait()


def networks(pid: int) -> str:
    return str(Path(f"/proc/{pid}/ns/net").readlink())


@pytest.mark.needs("root", "unshare")
async def test_probes_look_into_the_network_of_their_task(master, elsewhere, unused_port):
    times: dict[str, Any] = {**SOON, "grace_s": 60}
    # A command is there too: its parent of parents is not.
    look = f"test $(readlink /proc/self/ns/net) = $(readlink /proc/{elsewhere.pid}/ns/net)"
    argv = ["python", "-c", SERVER.replace("PORT", str(unused_port))]
    run = pb.CommandInfo(shell=False, value=sys.executable, arguments=argv)
    master.run(
        command("server", command=run, health_check=health_http(unused_port, **times)),
        command("sleeps", "exec sleep 1000", health_check=health_tcp(unused_port, **times)),
        command("command", "exec sleep 1000", health_check=health_command(f"! {look}", **times)),
    )
    for name in ("server", "sleeps", "command"):
        await healthy(master, name)
    with socket.socket() as made:
        # Nothing of it can be reached from here.
        assert made.connect_ex(("127.0.0.1", unused_port)) != 0
