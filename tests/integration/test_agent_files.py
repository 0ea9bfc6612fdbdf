"""Logs and other files of sandboxes, read through the agent."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import grpc.aio
import pytest

from mesos_py import rpc
from mesos_py.errors import InvalidValue, MesosPyError, NotFound, Refused
from mesos_py.v1 import agent_pb2, agent_pb2_grpc
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import command
from tests.kit.agent_master import AgentProcess, FakeMaster, eventually, running_agent


class Reader:
    """Reads as the master does, over one channel."""

    def __init__(self, master: FakeMaster) -> None:
        self._channel = rpc.open_channel(f"127.0.0.1:{master.registrations[0].agent_info.port}")

    async def close(self) -> None:
        await self._channel.close()
        # gRPC keeps its sockets as long as anybody keeps a channel.
        del self._channel

    async def chunks(self, task_id: str, path: str = "stdout", **more) -> AsyncIterator[bytes]:
        request = agent_pb2.ReadLogRequest(
            framework_id=pb.FrameworkID(value="F1"),
            task_id=pb.TaskID(value=task_id),
            path=path,
            **more,
        )
        files: agent_pb2_grpc.AgentFilesAsyncStub = agent_pb2_grpc.AgentFilesStub(self._channel)
        call = files.ReadLog(request)
        try:
            async for chunk in call:
                yield chunk.data
        except grpc.aio.AioRpcError as error:
            raise rpc.from_rpc_error(error, "agent") from error
        finally:
            call.cancel()

    async def read(self, task_id: str, path: str = "stdout", **more) -> bytes:
        return b"".join([data async for data in self.chunks(task_id, path, **more)])

    async def error(self, task_id: str, path: str = "stdout", **more) -> MesosPyError:
        with pytest.raises(MesosPyError) as caught:
            await self.read(task_id, path, **more)
        return caught.value


@pytest.fixture
async def master() -> AsyncIterator[FakeMaster]:
    async with FakeMaster() as made:
        yield made


@pytest.fixture
async def agent(master: FakeMaster, tmp_path: Path) -> AsyncIterator[AgentProcess]:
    async with running_agent(master, tmp_path / "agent") as made:
        yield made


@pytest.fixture
async def reader(master: FakeMaster, agent: AgentProcess) -> AsyncIterator[Reader]:
    made = Reader(master)
    yield made
    await made.close()


async def finished(master: FakeMaster, task_id: str, script: str) -> None:
    master.run(command(task_id, script))
    await master.status(task_id, pb.TASK_FINISHED)


async def test_output_is_read_in_whole_in_part_and_from_the_end(master, reader):
    await finished(master, "t", "printf 0123456789; mkdir out; echo deep > out/part-0")
    assert await reader.read("t") == b"0123456789"
    assert await reader.read("t", offset=3, length=4) == b"3456"
    assert await reader.read("t", offset=-2) == b"89"
    assert await reader.read("t", offset=-100) == b"0123456789"
    assert await reader.read("t", offset=100) == b""
    assert await reader.read("t", "stderr") == b""
    assert await reader.read("t", "out/part-0") == b"deep\n"


async def test_a_large_file_comes_in_pieces(master, reader):
    await finished(master, "t", "head -c 3000000 /dev/zero")
    pieces = [data async for data in reader.chunks("t")]
    assert len(pieces) > 1
    assert sum(map(len, pieces)) == 3_000_000


async def test_following_gives_what_comes_and_ends_with_the_task(master, agent, reader):
    script = "echo one; while [ ! -e go ]; do sleep 0.02; done; echo two"
    master.run(command("t", script))
    chunks = reader.chunks("t", follow=True)
    assert await anext(chunks) == b"one\n"
    (agent.sandbox("t") / "go").touch()
    assert b"".join([data async for data in chunks]) == b"two\n"
    await master.status("t", pb.TASK_FINISHED)


async def test_following_may_begin_before_the_task_has_started_and_the_file_is_there(
    master, agent, reader
):
    following = asyncio.create_task(reader.read("t", "late", follow=True))
    # One that never comes is not waited for long.
    never = asyncio.create_task(reader.error("never", follow=True))
    await asyncio.sleep(0)
    master.run(command("t", "while [ ! -e go ]; do sleep 0.02; done; echo late > late"))
    await master.status("t", pb.TASK_RUNNING)
    (agent.sandbox("t") / "go").touch()
    assert await following == b"late\n"
    assert isinstance(await never, NotFound)


async def test_following_an_ended_task_ends_at_once(master, reader):
    await finished(master, "t", "echo x")
    assert await reader.read("t", follow=True) == b"x\n"
    assert isinstance(await reader.error("t", "nothing", follow=True), NotFound)


async def test_following_gives_only_so_many_bytes_as_asked_for(master, reader):
    master.run(command("t", "printf 12; sleep 0.1; printf 34; sleep 1000"))
    assert await reader.read("t", follow=True, length=3) == b"123"


async def test_a_file_that_is_cut_off_is_followed_from_its_new_start(master, agent, reader):
    script = (
        "exec >>log; echo the first; while [ ! -e go ]; do sleep 0.02; done; echo again; sleep 1000"
    )
    master.run(command("t", script))
    await master.status("t", pb.TASK_RUNNING)
    chunks = reader.chunks("t", "log", follow=True)
    assert await anext(chunks) == b"the first\n"
    # Whenever it is looked at, it is shorter than it was: only by that a cut is known.
    (agent.sandbox("t") / "log").write_text("")
    (agent.sandbox("t") / "go").touch()
    assert await anext(chunks) == b"again\n"
    await chunks.aclose()


async def test_tasks_that_the_agent_has_forgotten_are_found_by_their_place(master, tmp_path):
    flags = ("--max-completed-executors", "1")
    async with running_agent(master, tmp_path / "agent", *flags):
        reader = Reader(master)
        await finished(master, "old", "echo old")
        await finished(master, "new", "echo new")
        await eventually(lambda: len(master.calls) == 6)
        assert await reader.read("old") == b"old\n"
        await reader.close()


async def test_what_is_not_there_is_said(master, agent, reader):
    await finished(master, "t", "echo x")
    assert "is not in the sandbox" in (await reader.error("t", "nothing")).message
    assert "no sandbox" in (await reader.error("nobody")).message
    info = pb.CommandInfo(value="true", user="no-such-user")
    master.run(command("never", command=info))
    await master.status("never", pb.TASK_FAILED)
    assert "was not started" in (await reader.error("never")).message
    master.run(command("missing", command=pb.CommandInfo(shell=False, value="/no/such")))
    await master.status("missing", pb.TASK_FAILED)
    assert await reader.read("missing", "stderr") == b""


async def test_a_sandbox_that_was_removed_is_said_to_be_removed_and_when(master, agent, reader):
    await finished(master, "t", "echo x")
    shutil.rmtree(agent.sandbox("t"))
    error = await reader.error("t")
    assert isinstance(error, NotFound)
    assert "its sandbox was removed at 20" in error.message


@pytest.mark.parametrize(
    "path", ["../canary", "/etc/passwd", "", "a//b", "./stdout", "out/../stdout", "..", "x\0y"]
)
async def test_a_path_that_leads_elsewhere_is_refused(master, agent, reader, path):
    await finished(master, "t", "mkdir out")
    (agent.sandbox("t").parent / "canary").write_text("secret")
    assert isinstance(await reader.error("t", path), InvalidValue)


async def test_percent_signs_and_look_alikes_are_only_names(master, agent, reader):
    await finished(master, "t", "true")
    sibling = agent.sandbox("t").with_name(agent.sandbox("t").name + "-x")
    sibling.mkdir()
    (sibling / "stdout").write_text("secret")
    for path in ("%2e%2e/canary", "..%2fcanary", "\\..\\canary"):
        assert isinstance(await reader.error("t", path), NotFound)
    for task_id in ("../t", "..", "t/..", ""):
        assert isinstance(await reader.error(task_id), InvalidValue)


async def test_planting_links_shows_nothing_and_changes_nothing(master, agent, reader, tmp_path):
    """The field case: stdout, a directory, and a link race in a loop."""
    canary = tmp_path / "canary"
    canary.write_text("secret")
    canary.chmod(0o600)
    script = f"""
        mkdir real; echo inside > real/file
        ln -s {canary} file-link; ln -s {tmp_path} dir-link; ln -s real own-link; mkfifo pipe
        rm stdout; ln -s {canary} stdout; rm stderr; ln -s file-link stderr
        while :; do
            echo mine > next; mv next race; ln -s {canary} next; mv next race
            mkdir next; echo mine > next/canary; mv -T next swap 2>/dev/null || rm -r next swap
            ln -s {tmp_path} next; mv -T next swap 2>/dev/null || rm -r next swap
        done
    """
    master.run(command("t", script))
    await master.status("t", pb.TASK_RUNNING)
    await eventually((agent.sandbox("t") / "race").exists)
    assert await reader.read("t", "real/file") == b"inside\n"
    for path in ("stdout", "stderr", "file-link", "dir-link/canary", "own-link/file"):
        error = await reader.error("t", path)
        assert isinstance(error, Refused)
        assert "symbolic link" in error.message
    assert "no regular file" in (await reader.error("t", "pipe")).message
    for _ in range(100):
        for path in ("race", "swap/canary"):
            try:
                assert await reader.read("t", path) in (b"mine\n", b"")
            except (Refused, NotFound):
                continue
    assert canary.read_text() == "secret"
    master.kill("t", 0)
    await master.status("t", pb.TASK_KILLED)
