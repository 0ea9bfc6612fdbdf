"""The agent's file server: what it gives, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest

from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import FRAMEWORK, command
from tests.kit.agent_master import (
    AgentProcess,
    FakeMaster,
    descriptors_of,
    eventually,
    running_agent,
)


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


class Client:
    def __init__(self, session: aiohttp.ClientSession, port: int) -> None:
        self.session = session
        self.port = port

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/files/{FRAMEWORK}/{path}"

    async def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        answer = await self.answer(path, **headers)
        return answer.status, answer.body

    async def answer(self, path: str, **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.get(self.url(path), headers=named) as answer:
            return Answer(answer.status, answer.headers, await answer.read())

    async def json(self, path: str) -> Any:
        return json.loads((await self.answer(path)).body)

    async def raw(self, target: str) -> bytes:
        """As a client that does not tidy its paths."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        try:
            return await reader.read()
        finally:
            writer.close()
            await writer.wait_closed()


@pytest.fixture
async def master() -> AsyncIterator[FakeMaster]:
    async with FakeMaster() as made:
        yield made


@pytest.fixture
async def agent(master: FakeMaster, tmp_path: Path) -> AsyncIterator[AgentProcess]:
    async with running_agent(master, tmp_path / "agent") as made:
        yield made


@pytest.fixture
async def client(master: FakeMaster, agent: AgentProcess) -> AsyncIterator[Client]:
    async with aiohttp.ClientSession() as session:
        yield Client(session, master.registrations[-1].agent_info.http_port)


async def finished(master: FakeMaster, task_id: str, script: str) -> None:
    master.run(command(task_id, script))
    await master.status(task_id, pb.TASK_FINISHED)


async def test_files_in_whole_and_in_part(master, client):
    await finished(master, "t", "printf 0123456789; mkdir out; head -c 3000000 /dev/zero > out/big")
    assert await client.get("t/latest/stdout") == (200, b"0123456789")
    assert await client.get("t/latest/stdout?offset=7") == (200, b"789")
    assert await client.get("t/latest/stdout?offset=-2") == (200, b"89")
    assert await client.get("t/latest/stdout", Range="bytes=2-4") == (206, b"234")
    assert await client.get("t/latest/stdout", Range="bytes=8-") == (206, b"89")
    assert await client.get("t/latest/stdout", Range="bytes=-3") == (206, b"789")
    assert await client.get("t/latest/stdout", Range="bytes=5-99") == (206, b"56789")
    for wrong in ("bytes=10-", "bytes=5-2", "lines=1-2", "bytes=0-1,3-4"):
        answer = await client.answer("t/latest/stdout", Range=wrong)
        assert (answer.status, answer.headers["Content-Range"]) == (416, "bytes */10")
    status, data = await client.get("t/latest/out/big")
    assert (status, len(data)) == (200, 3_000_000)
    assert await client.get("t/latest/stderr") == (200, b"")


async def test_what_is_known_is_not_sent_again_and_what_changed_is_sent_whole(master, client):
    await finished(master, "t", "printf 0123456789")
    answer = await client.answer("t/latest/stdout")
    etag = answer.headers["ETag"]
    assert (await client.answer("t/latest/stdout", If_None_Match=etag)).status == 304
    part = {"Range": "bytes=8-"}
    assert await client.get("t/latest/stdout", If_Range=etag, **part) == (206, b"89")
    assert (await client.get("t/latest/stdout", If_Range='"other"', **part))[0] == 200
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    async with client.session.head(client.url("t/latest/stdout")) as headed:
        assert (headed.status, headed.headers["Content-Length"]) == (200, "10")
    download = await client.answer("t/latest/stdout?download")
    assert download.headers["Content-Disposition"] == 'attachment; filename="stdout"'


async def test_directories_are_listed(master, client):
    await finished(master, "t", "mkdir d; ln -s /etc link; mkfifo pipe; printf xyz > d/file")
    listed = await client.json("t/latest")
    kinds = {each["name"]: each["kind"] for each in listed["entries"]}
    assert kinds == {
        "d": "directory",
        "link": "link",
        "pipe": "other",
        "stderr": "file",
        "stdout": "file",
    }
    assert not listed["more"]
    (row,) = (await client.json("t/latest/d/"))["entries"]
    assert (row["name"], row["size"], row["mode"]) == ("file", 3, "-rw-r--r--")


async def test_what_tasks_publish_is_found_by_its_url_and_outlives_them(master, agent, client):
    script = "mkdir published; echo shuffled > published/part-0; echo $MESOS_PY_FILES_URL"
    await finished(master, "t", script)
    url = agent.output("t").strip()
    assert url.startswith(client.url("t/"))
    async with client.session.get(f"{url}/published/part-0") as answer:
        assert await answer.text() == "shuffled\n"


async def test_an_agent_that_is_started_anew_serves_at_the_same_place(master, tmp_path):
    ports = []
    for _ in range(2):
        async with running_agent(master, tmp_path / "agent"):
            ports.append(master.registrations[-1].agent_info.http_port)
    # Unless somebody else is there meanwhile.
    with socket.create_server(("127.0.0.1", ports[0])):
        async with running_agent(master, tmp_path / "agent"):
            ports.append(master.registrations[-1].agent_info.http_port)
    assert ports[0] == ports[1] != ports[2]


async def test_a_port_that_is_taken_keeps_the_agent_from_starting(master, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        agent = AgentProcess(master.address, tmp_path / "agent", "--http-port", str(port))
        assert await agent.ended() != 0
    assert f"http-port: 127.0.0.1:{port} cannot be bound" in agent.log.read_text()


async def test_following_gives_what_comes_and_ends_with_the_task(master, agent, client):
    master.run(command("t", "echo one; while [ ! -e go ]; do sleep 0.02; done; echo two"))
    await master.status("t", pb.TASK_RUNNING)
    await eventually(lambda: agent.output("t"))
    async with client.session.get(client.url("t/latest/stdout?follow=1")) as answer:
        assert await answer.content.readline() == b"one\n"
        (agent.sandbox("t") / "go").touch()
        assert await answer.content.readline() == b"two\n"
        assert await answer.content.read() == b""
    assert await client.get("t/latest/stdout?follow=1&offset=-4") == (200, b"two\n")


async def test_a_follower_does_not_keep_the_agent_from_ending(master, agent, client):
    master.run(command("t", "echo one; sleep 1000"))
    await master.status("t", pb.TASK_RUNNING)
    await eventually(lambda: agent.output("t"))
    async with client.session.get(client.url("t/latest/stdout?follow=1")) as answer:
        assert await answer.content.readline() == b"one\n"
        agent.process.terminate()
        assert await agent.ended() == 0
        assert await answer.content.read() == b""


async def test_clients_that_hang_up_leave_nothing_open(master, agent, client):
    master.run(command("t", "echo x; sleep 1000"))
    await master.status("t", pb.TASK_RUNNING)
    await eventually(lambda: agent.output("t"))
    target = f"/files/{FRAMEWORK}/t/latest/stdout"

    async def hang_up(path: str, *, read: bool) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await writer.drain()
        if read:
            await reader.read(1)
        writer.close()
        await writer.wait_closed()

    await hang_up(target, read=True)
    before = descriptors_of(agent.pid)
    for path in (target, f"{target}?follow=1"):
        for read in (True, False):
            await asyncio.gather(*(hang_up(path, read=read) for _ in range(20)))
    await eventually(lambda: descriptors_of(agent.pid) <= before)


async def test_what_is_not_there_is_said_in_words(master, agent, client):
    await finished(master, "t", "true")
    for path, status, text in (
        ("t/latest/none", 404, "is not in the sandbox"),
        ("none/latest/stdout", 404, "is not on this agent"),
        ("t/none/stdout", 404, "is not on this agent"),
        ("t/latest/stdout/x", 403, "links are not followed"),
        ("t/latest/stdout?offset=x", 400, "is not a whole number"),
    ):
        got, body = await client.get(path)
        assert (got, text in body.decode()) == (status, True), body
    async with client.session.post(client.url("t/latest/stdout")) as answer:
        assert answer.status == 405


async def test_a_removed_sandbox_is_gone_since(master, tmp_path):
    flags = ("--gc-delay", "0", "--disk-watch-interval", "50ms")
    async with (
        running_agent(master, tmp_path / "agent", *flags),
        aiohttp.ClientSession() as session,
    ):
        client = Client(session, master.registrations[-1].agent_info.http_port)
        await finished(master, "t", "true")
        await eventually(lambda: not list((tmp_path / "agent").glob("agents/*/frameworks/*")))
        status, body = await client.get("t/latest/stdout")
        assert (status, b"was removed at 20" in body) == (410, True)


async def test_paths_and_links_that_lead_elsewhere_show_nothing(master, agent, client, tmp_path):
    """The field case: ../, absolute, %2e%2e, sibling, planted links, a race in a loop."""
    canary = tmp_path / "canary"
    canary.write_text("secret")
    canary.chmod(0o600)
    script = f"""
        mkdir real; echo inside > real/file
        ln -s {canary} file-link; ln -s {tmp_path} dir-link; ln -s real own-link; mkfifo pipe
        rm stdout; ln -s {canary} stdout
        while :; do
            echo mine > next; mv next race; ln -s {canary} next; mv next race
            mkdir next; echo mine > next/canary; mv -T next swap 2>/dev/null || rm -r next swap
            ln -s {tmp_path} next; mv -T next swap 2>/dev/null || rm -r next swap
        done
    """
    master.run(command("t", script))
    await master.status("t", pb.TASK_RUNNING)
    await eventually((agent.sandbox("t") / "race").exists)
    sandbox = agent.sandbox("t")
    sibling = sandbox.with_name(sandbox.name + "-x")
    sibling.mkdir()
    (sibling / "file").write_text("secret")
    up = "../" * 8
    prefix = f"/files/{FRAMEWORK}/t/{sandbox.name}"
    for target in (
        f"{prefix}/../{sibling.name}/file",
        f"{prefix}/{up}canary",
        f"{prefix}/%2e%2e/{sibling.name}/file",
        f"{prefix}/..%2f{sibling.name}%2ffile",
        f"{prefix}/{canary}",
        f"{prefix}/%2f{canary}",
        f"/..{canary}",
        f"/files/..{canary}",
        str(canary),
        f"/files/{FRAMEWORK}/../../../../../canary",
        f"{prefix}/file-link",
        f"{prefix}/dir-link/canary",
        f"{prefix}/own-link/file",
        f"{prefix}/stdout",
        f"{prefix}/stdout?follow=1",
        f"{prefix}/dir-link",
        f"{prefix}/pipe",
    ):
        answer = await client.raw(target)
        assert answer.split()[1] in (b"400", b"403", b"404"), target
        assert b"secret" not in answer
    assert (await client.get("t/latest/real/file"))[1] == b"inside\n"
    for _ in range(100):
        for path in ("race", "swap/canary", "race?follow=1"):
            if path.endswith("=1"):
                async with client.session.get(client.url(f"t/latest/{path}")) as answer:
                    assert answer.status in (200, 403, 404)
                continue
            _, body = await client.get(f"t/latest/{path}")
            assert b"secret" not in body
    assert canary.read_text() == "secret"
    master.kill("t", 0)
    await master.status("t", pb.TASK_KILLED)


async def test_logs_are_rotated_under_a_follower(master, tmp_path):
    """`logs --follow` neither misses nor repeats a line of a task that writes a lot."""
    from tests.integration.test_agent_files import Reader

    flags = ("--max-log-size", "128KB", "--max-log-files", "1")
    async with running_agent(master, tmp_path / "agent", *flags) as agent:
        reader = Reader(master)
        script = "for i in 1 2; do seq 1 40000; while [ ! -e go$i ]; do sleep 0.05; done; done"
        master.run(command("t", script))
        await master.status("t", pb.TASK_RUNNING)
        following = asyncio.create_task(reader.read("t", follow=True))
        rotated: set[int] = set()
        part = agent.sandbox("t") / "stdout.1"
        for number in (1, 2):
            await eventually(lambda: part.exists() and part.stat().st_ino not in rotated)
            rotated.add(part.stat().st_ino)
            (agent.sandbox("t") / f"go{number}").touch()
        await master.status("t", pb.TASK_FINISHED)
        whole = b"".join(b"%d\n" % number for number in range(1, 40001)) * 2
        assert await following == whole
        # What is left is the end of it, in one piece.
        kept = await reader.read("t")
        assert len(kept) < len(whole)
        assert whole.endswith(kept)
        assert await reader.read("t", offset=-6) == b"40000\n"
        await reader.close()
