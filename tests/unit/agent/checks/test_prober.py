"""Probes that the agent makes itself: against servers of this test."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import AsyncIterator, Iterator

import pytest

from agent.checks import dial, tcp
from agent.checks.prober import Prober
from agent.core.effects import StartProbe, StopProbe
from agent.core.health import Outcome
from mesos_py.health import CommandProbe, HttpProbe, Probe, TcpProbe
from mesos_py.v1 import types_pb2 as pb


class Containers:
    def __init__(self) -> None:
        self.commands: list[tuple[str, str, int]] = []
        self.stopped: list[tuple[str, str]] = []

    def probe(
        self, container_id: str, kind: str, number: int, command: pb.CommandInfo, timeout_s: float
    ) -> None:
        self.commands.append((container_id, kind, number))

    def stop_probe(self, container_id: str, kind: str) -> None:
        self.stopped.append((container_id, kind))


class Scene:
    def __init__(self) -> None:
        self.containers = Containers()
        self.ended: list[tuple[str, str, int, Outcome]] = []
        self.told = asyncio.Event()
        # The task's first process; one of ours has our network.
        self.pid = os.getpid()
        self.prober = Prober(lambda _: self.containers, lambda _: self.pid, self)

    def probe_ended(self, container_id: str, kind: str, number: int, outcome: Outcome) -> None:
        self.ended.append((container_id, kind, number, outcome))

    def containers_told(self) -> None:
        self.told.set()

    def start(self, probe: Probe) -> None:
        self.prober.start(StartProbe("c", "health", 5, probe, 20.0))

    async def outcome(self, probe: Probe) -> Outcome:
        self.start(probe)
        await self.told.wait()
        ((container_id, kind, number, outcome),) = self.ended
        assert (container_id, kind, number) == ("c", "health", 5)
        return outcome


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    made = Scene()
    yield made
    await made.prober.close()


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.setblocking(False)
        yield made


def port_of(made: socket.socket) -> int:
    return int(made.getsockname()[1])


async def answer(listening: socket.socket, *answers: str) -> list[str]:
    """Answer one request after the other; their first lines."""
    loop = asyncio.get_running_loop()
    asked = []
    for each in answers:
        connection, _ = await loop.sock_accept(listening)
        with connection:
            asked.append((await loop.sock_recv(connection, 65536)).decode().splitlines()[0])
            await loop.sock_sendall(connection, each.encode())
    return asked


def status(code: int, *headers: str) -> str:
    return "\r\n".join([f"HTTP/1.1 {code} X", "Content-Length: 0", *headers, "", ""])


@pytest.mark.parametrize(
    ("code", "good"), [(200, True), (399, True), (400, False), (404, False), (503, False)]
)
async def test_http_is_good_from_200_to_399(scene, listening, code, good):
    serving = asyncio.create_task(answer(listening, status(code)))
    outcome = await scene.outcome(HttpProbe(port_of(listening), "/up?a=%20b"))
    assert (outcome.good, outcome.value) == (good, code)
    assert outcome.text.endswith(f"was answered {code}")
    assert await serving == ["GET /up?a=%20b HTTP/1.1"]


async def test_redirects_are_followed(scene, listening):
    to = f"Location: http://127.0.0.1:{port_of(listening)}/b"
    serving = asyncio.create_task(answer(listening, status(302, to), status(204)))
    outcome = await scene.outcome(HttpProbe(port_of(listening), "/a"))
    assert (outcome.good, outcome.value) == (True, 204)
    assert await serving == ["GET /a HTTP/1.1", "GET /b HTTP/1.1"]


async def test_redirects_without_end_have_an_end(scene, listening):
    to = f"Location: http://127.0.0.1:{port_of(listening)}/a"
    serving = asyncio.create_task(answer(listening, *[status(302, to)] * 12))
    outcome = await scene.outcome(HttpProbe(port_of(listening), "/a"))
    serving.cancel()
    assert outcome == Outcome(
        False, None, f"GET http://127.0.0.1:{port_of(listening)}/a: more than 10 redirects"
    )


@pytest.mark.parametrize("said", ["nonsense\r\n\r\n", "HTTP/1.1 200 X\r\nbad header\r\n\r\n", ""])
async def test_what_is_no_http_is_not_good(scene, listening, said):
    # One that hangs up is asked once more.
    serving = asyncio.create_task(answer(listening, said, said))
    outcome = await scene.outcome(HttpProbe(port_of(listening)))
    serving.cancel()
    assert (outcome.good, outcome.value) == (False, None)


async def test_tcp(scene, listening):
    outcome = await scene.outcome(TcpProbe(port_of(listening)))
    assert (outcome.good, outcome.value) == (True, 1)


async def test_nobody_listens(scene, listening):
    port = port_of(listening)
    listening.close()
    outcome = await scene.outcome(TcpProbe(port))
    assert outcome == Outcome(False, 0, f"port {port}: Connection refused")


@pytest.mark.parametrize("probe", [TcpProbe(80), HttpProbe(80)])
async def test_no_socket_to_look_with_says_nothing_of_the_task(scene, monkeypatch, probe):
    def no_more(family: int) -> socket.socket:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(dial, "_socket", no_more)
    outcome = await scene.outcome(probe)
    assert outcome.good is None
    assert "Too many open files" in outcome.text


@pytest.mark.parametrize("probe", [TcpProbe(80), HttpProbe(80)])
async def test_a_network_that_is_gone_says_nothing_of_the_task(scene, probe):
    scene.pid = 2**22 + 1
    outcome = await scene.outcome(probe)
    assert outcome.good is None
    assert f"/proc/{scene.pid}/ns/net" in outcome.text


def test_a_socket_of_a_network_that_is_gone_cannot_be_made():
    with pytest.raises(dial.CannotLook, match="/proc/self/ns/none"):
        dial.open_socket(socket.AF_INET, ["/proc/self/ns/none"])


async def test_a_fault_of_ours_says_nothing_of_the_task(scene, monkeypatch):
    async def broken(*_: object) -> Outcome:
        raise RuntimeError("a bug")

    monkeypatch.setattr(tcp, "tried", broken)
    outcome = await scene.outcome(TcpProbe(80))
    assert outcome == Outcome(None, None, "RuntimeError: a bug")


async def test_what_is_stopped_is_not_told(scene, listening):
    scene.start(HttpProbe(port_of(listening)))  # nobody answers
    connection, _ = await asyncio.get_running_loop().sock_accept(listening)
    with connection:
        scene.prober.stop(StopProbe("c", "health"))
        # The agent's end is closed.
        while await asyncio.get_running_loop().sock_recv(connection, 65536):
            pass
    assert scene.ended == []
    assert scene.containers.stopped == []


async def test_commands_are_the_containers_affair(scene):
    scene.start(CommandProbe(pb.CommandInfo(value="true")))
    scene.prober.stop(StopProbe("c", "health"))
    assert scene.containers.commands == [("c", "health", 5)]
    assert scene.containers.stopped == [("c", "health")]
