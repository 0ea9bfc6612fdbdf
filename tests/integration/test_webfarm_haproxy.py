"""haproxy itself, without a cluster: started, spoken to, taken over, restored, ended."""

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from frameworks.webfarm.core.balancer import Mode
from frameworks.webfarm.core.haproxy import Front
from frameworks.webfarm.haproxy.process import Haproxy
from frameworks.webfarm.state import StateDirectory
from mesos_py.cli.exits import Exit
from mesos_py.errors import Conflict, InternalError, PortInUse, Unavailable
from tests.kit.local import LIMIT_S, MESOS_PY, environment
from tests.kit.webfarm import free_port

pytestmark = pytest.mark.needs("haproxy")
LOOPBACK = "127.0.0.1"


@asynccontextmanager
async def balancer(directory: Path, **changes) -> AsyncIterator[Haproxy]:
    """Started, and ended with the block."""
    front = replace(Front(bind=LOOPBACK, port=free_port(), slots=4, close_s=1), **changes)
    one = Haproxy(directory, front)
    await one.start()
    try:
        yield one
    finally:
        await one.close()
        one.leave()


@asynccontextmanager
async def server() -> AsyncIterator[int]:
    """Answers everything with 200; its port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
        writer.close()

    listening = await asyncio.start_server(answer, LOOPBACK)
    async with listening:
        yield listening.sockets[0].getsockname()[1]


async def slot(one: Haproxy, name: str = "s1"):
    return next(each for each in (await one.read()).slots if each.name == name)


async def until_well(one: Haproxy) -> None:
    async with asyncio.timeout(30):
        while not (await slot(one)).well:  # noqa: ASYNC110 (it tells nobody)
            await asyncio.sleep(0.05)


async def test_a_server_is_looked_at_then_open_then_held_then_gone(tmp_path):
    # A path that is longer than a socket's may be.
    directory = tmp_path / ("d" * 120)
    directory.mkdir()
    async with balancer(directory) as one, server() as port:
        assert [each.mode for each in (await one.read()).slots] == [Mode.FREE] * 4
        await one.put("s1", LOOPBACK, port)
        held = await slot(one)
        assert (held.mode, held.at) == (Mode.HELD, f"{LOOPBACK}:{port}")
        await until_well(one)
        await one.open("s1")
        assert (await slot(one)).mode is Mode.OPEN
        await one.hold("s1")
        assert (await slot(one)).mode is Mode.HELD
        await one.free("s1")
        assert (await slot(one)).mode is Mode.FREE


async def test_one_where_nobody_listens_is_not_well(tmp_path):
    async with balancer(tmp_path) as one:
        await one.put("s1", LOOPBACK, free_port())
        await asyncio.sleep(0.5)
        assert not (await slot(one)).well


async def test_another_one_takes_it_over_as_it_is(tmp_path):
    front = Front(bind=LOOPBACK, port=free_port(), slots=4)
    async with balancer(tmp_path, port=front.port, close_s=front.close_s) as one:
        epoch = (await one.read()).epoch
        other = Haproxy(tmp_path, front)
        assert await other.start() is True
        assert (await other.read()).epoch == epoch
        other.leave()
        with pytest.raises(Conflict, match="another configuration"):
            await Haproxy(tmp_path, Front(bind=LOOPBACK, port=front.port, slots=5)).start()


async def test_one_that_was_killed_comes_back_with_what_it_had(tmp_path):
    async with balancer(tmp_path) as one, server() as port:
        await one.put("s1", LOOPBACK, port)
        await until_well(one)
        await one.open("s1")
        epoch = (await one.read()).epoch
        os.kill(int(epoch.partition("@")[0]), signal.SIGKILL)
        await one.died()
        with pytest.raises(Unavailable):
            await one.read()
        assert await one.start() is False
        restored = await slot(one)
        assert (restored.mode, restored.at) == (Mode.OPEN, f"{LOOPBACK}:{port}")
        assert (await one.read()).epoch != epoch


async def test_a_port_that_somebody_has_is_said(tmp_path):
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        port = taken.getsockname()[1]
        one = Haproxy(tmp_path, Front(bind=LOOPBACK, port=port))
        with pytest.raises(PortInUse, match=str(port)):
            await one.start()
        one.leave()


def test_a_port_that_somebody_has_ends_the_command_with_that_word(tmp_path):
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        argv = [*MESOS_PY, "webfarm", "up", "--state-dir", str(tmp_path), "--bind", LOOPBACK]
        ended = subprocess.run(
            [*argv, "--port", port],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
    assert ended.returncode == Exit.NEGATIVE
    assert f"haproxy cannot have port {port}" in ended.stderr
    assert "Traceback" not in ended.stderr
    # And it is no farm.
    assert StateDirectory(tmp_path).record() is None


async def test_a_slot_that_is_none_is_refused(tmp_path):
    async with balancer(tmp_path) as one:
        with pytest.raises(InternalError, match=r"No such server"):
            await one.open("s9")
