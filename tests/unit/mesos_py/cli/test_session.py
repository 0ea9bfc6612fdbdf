"""The conversation with a command, with an agent that does what the test says."""

import asyncio
import io
import os
import socket
from collections.abc import AsyncIterator, Iterator

import pytest

from mesos_py.address import Address
from mesos_py.cli.session import Asked, Input, talking
from mesos_py.errors import Refused, Unavailable
from mesos_py.v1.agent_operator_pb2 import Call, ProcessIO
from mesos_py.v1.types_pb2 import CommandInfo, ContainerID, TTYInfo
from tests.unit.mesos_py.cli.fake_agent import Data, FakeAgent

LIMIT_S = 60.0
ID = ContainerID(value="new", parent=ContainerID(value="tasks"))
ASKED = Asked(ID, CommandInfo(shell=True, value="date"))
LAUNCH, ATTACH = Call.LAUNCH_NESTED_CONTAINER_SESSION, Call.ATTACH_CONTAINER_INPUT


@pytest.fixture
async def agent() -> AsyncIterator[FakeAgent]:
    async with FakeAgent().serving() as made:
        yield made


@pytest.fixture
def pipe() -> Iterator[tuple[io.FileIO, io.FileIO]]:
    reading, writing = os.pipe()
    with io.FileIO(reading) as one, io.FileIO(writing, "w") as other:
        yield one, other


class Heard:
    def __init__(self) -> None:
        self.pieces: list[tuple[bool, bytes]] = []

    def write(self, is_stderr: bool, data: bytes) -> None:
        self.pieces.append((is_stderr, data))


async def run(agent: FakeAgent, given: Input | None = None, asked: Asked = ASKED):
    """How it ended, and what was heard."""
    heard = Heard()
    async with talking(agent.address, LIMIT_S) as at:
        status = await at.run(asked, given or Input(None), heard.write)
    return status, heard.pieces


def size(rows: int, columns: int) -> TTYInfo:
    return TTYInfo(window_size=TTYInfo.WindowSize(rows=rows, columns=columns))


async def test_what_it_writes_and_how_it_ends_is_told(agent):
    agent.write(Data.STDOUT, b"\x00out")
    agent.write(Data.STDERR, b"err")
    agent.end()
    agent.status = 3 << 8
    asked = Asked(ID, CommandInfo(shell=True, value="date"), size(4, 5))
    assert await run(agent, asked=asked) == (3 << 8, [(False, b"\x00out"), (True, b"err")])
    launch, wait = agent.calls
    session = launch.launch_nested_container_session
    assert (session.container_id, session.command) == (ID, asked.command)
    assert session.container.tty_info == asked.terminal
    assert wait.wait_nested_container.container_id == ID


async def test_without_input_it_reads_the_end_at_once(agent):
    running = asyncio.create_task(run(agent))
    await agent.until(1)
    agent.end()
    await running
    assert [(each.type, each.data.data) for each in agent.typed] == [(ProcessIO.DATA, b"")]


async def test_input_is_passed_on_as_it_comes_to_its_end(agent, pipe):
    reading, writing = pipe
    running = asyncio.create_task(run(agent, Input(reading.fileno())))
    writing.write(b"one\n")
    await agent.until(1)
    assert agent.text == b"one\n"
    writing.write(b"two\n")
    await agent.until(2)
    writing.close()
    await agent.until(3)
    agent.end()
    await running
    assert agent.text == b"one\ntwo\n"
    assert agent.typed[-1].data.data == b""


async def test_a_file_can_be_the_input(agent, tmp_path):
    content = os.urandom(300_000)
    (tmp_path / "given").write_bytes(content)
    with (tmp_path / "given").open("rb") as file:
        running = asyncio.create_task(run(agent, Input(file.fileno())))
        while not agent.typed or agent.typed[-1].data.data:
            await agent.until(len(agent.typed) + 1)
        agent.end()
        await running
    assert agent.text == content


async def test_a_terminal_is_told_its_size_and_has_its_end_typed(agent, pipe):
    reading, writing = pipe
    given = Input(reading.fileno(), terminal=True)
    running = asyncio.create_task(run(agent, given))
    writing.write(b"x")
    await agent.until(1)
    given.resize(size(7, 8))
    await agent.until(2)
    writing.close()
    await agent.until(3)
    # After the end of what is typed, too.
    given.resize(size(9, 10))
    await agent.until(4)
    agent.end()
    await running
    typed, resized, ended, again = agent.typed
    assert (typed.data.data, ended.data.data) == (b"x", b"\x04")
    assert resized.control.type == ProcessIO.Control.TTY_INFO
    assert resized.control.tty_info == size(7, 8)
    assert again.control.tty_info == size(9, 10)


async def test_the_end_of_the_command_does_not_wait_for_its_input(agent, pipe):
    agent.end()
    assert (await run(agent, Input(pipe[0].fileno())))[0] == 0


async def test_a_silent_input_has_heartbeats(agent, pipe, monkeypatch):
    monkeypatch.setattr("mesos_py.cli.session.HEARTBEAT_S", 0.001)
    running = asyncio.create_task(run(agent, Input(pipe[0].fileno())))
    await agent.until(2)
    agent.end()
    await running
    assert {each.control.type for each in agent.typed} == {ProcessIO.Control.HEARTBEAT}


# ---- What goes wrong ---------------------------------------------------------------------


async def test_what_the_agent_refuses_is_told_in_its_words(agent):
    agent.refusals[LAUNCH] = (403, "not\nhere")
    with pytest.raises(Refused, match=rf"agent {agent.address} refuses: not here \(403\)"):
        await run(agent)


async def test_input_that_is_refused_ends_it(agent):
    agent.refusals[ATTACH] = (409, "somebody else writes")
    with pytest.raises(Refused, match="somebody else writes"):
        await run(agent)


async def test_a_command_that_has_ended_before_its_input_came_has_ended(agent):
    agent.refusals[ATTACH] = (404, "has ended already")
    agent.end()
    assert (await run(agent))[0] == 0


async def test_an_end_that_is_forgotten_is_not_known(agent):
    agent.end()
    agent.status = None
    assert (await run(agent))[0] is None


async def test_an_agent_that_is_not_there_is_away():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        address = Address("127.0.0.1", bound.getsockname()[1])
        async with talking(address, LIMIT_S) as at:
            with pytest.raises(Unavailable, match=f"agent {address} cannot be reached"):
                await at.run(ASKED, Input(None), Heard().write)


async def test_an_agent_that_breaks_off_is_away(agent):
    agent.write(Data.STDOUT, b"x")
    agent.says.put_nowait(b"")
    with pytest.raises(Unavailable, match="has broken off"):
        await run(agent)


async def test_an_agent_that_does_not_answer_is_away(agent):
    agent.silent.add(LAUNCH)
    async with talking(agent.address, 0.01) as at:
        with pytest.raises(Unavailable, match=r"within 0\.01 s"):
            await at.run(ASKED, Input(None), Heard().write)


async def test_what_is_no_record_is_told(agent):
    agent.says.put_nowait(b"<html>")
    with pytest.raises(Unavailable, match="cannot be read"):
        await run(agent)


async def test_a_reader_of_ours_that_has_gone_ends_it(agent):
    def gone(is_stderr: bool, data: bytes) -> None:
        raise BrokenPipeError

    agent.write(Data.STDOUT, b"x")
    async with talking(agent.address, LIMIT_S) as at:
        with pytest.raises(BrokenPipeError):
            await at.run(ASKED, Input(None), gone)
    agent.end()
