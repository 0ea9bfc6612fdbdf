"""Streams of the agent's operator API: what a session writes goes out, what is sent goes in."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import fcntl
import io
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from agent.api.http import sessions
from agent.containers.session import Session
from mesos_py.http.binary import dumps as to_binary
from mesos_py.http.binary import loads as from_binary
from mesos_py.http.media import Media
from mesos_py.http.recordio import Reader, framed
from mesos_py.v1 import types_pb2 as pb
from mesos_py.v1.agent_operator_pb2 import Call, ProcessIO
from tests.kit.agent_core import command
from tests.kit.agent_http import JSON, ServedAgent, served
from tests.kit.nested_calls import body
from tests.kit.raw_http import Connection, Head, connected, request

WITHIN_S = 60
LAUNCH = "LAUNCH_NESTED_CONTAINER_SESSION"
NAMES = ("c1", "s")
MARK = "c1..s"
RECORDS = {"Content-Type": "application/recordio", "Message-Content-Type": "application/json"}
COMMAND = {"value": "sleep 9"}


class Scene:
    """An agent with a task; sessions within that, whose processes are the test's own."""

    def __init__(self, agent: ServedAgent) -> None:
        self.agent = agent
        self.host = agent.host
        agent.open()
        agent.world.framework.user = ""
        agent.world.run(command("t1"))
        agent.world.started("t1")

    def process(self) -> list[io.FileIO]:
        """What it reads, and what it writes to."""
        return self.host.opened[MARK]

    def session(self) -> Session:
        outermost = pb.ContainerID(value=NAMES[0])
        return self.agent.operator.nested.session(pb.ContainerID(value=NAMES[1], parent=outermost))

    def over(self, status: int = 0) -> None:
        for each in self.process():
            each.close()
        self.host.within.heard("probed", MARK, [status, "", ""])

    async def signalled(self) -> None:
        async with asyncio.timeout(WITHIN_S):
            await self.host.signalled.wait()

    async def open(
        self, connection: Connection, kind: str = LAUNCH, **headers: str
    ) -> tuple[Head, bytes]:
        more = {"command": COMMAND} if kind == LAUNCH else {}
        content = json.dumps(body(kind, NAMES, **more)).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await connection.opened("POST", "/api/v1", {**JSON, **named}, content)

    async def refused(self, content: dict[str, Any], headers: dict[str, str] = JSON) -> int:
        return (await self.agent.ask(content, headers))[0]


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with served(tmp_path) as agent:
        made = Scene(agent)
        yield made
        made.host.close()


@pytest.fixture
async def client(scene: Scene) -> AsyncIterator[Connection]:
    async with connected(scene.agent.http.port) as made:
        yield made


@pytest.fixture
async def other(scene: Scene) -> AsyncIterator[Connection]:
    async with connected(scene.agent.http.port) as made:
        yield made


def said(kind: str, text: bytes) -> dict[str, Any]:
    data = {"type": kind, "data": base64.b64encode(text).decode()}
    return {"type": "DATA", "data": data}


async def record(connection: Connection) -> Any:
    """The next one; each is a chunk."""
    (found,) = Reader().feed(await connection.chunk())
    return json.loads(found)


async def test_what_a_session_writes_is_its_answer(scene, client):
    head, _ = await scene.open(client)
    assert (head.status, head.headers["content-type"]) == (200, "application/json")
    _, out, err = scene.process()
    out.write(b"one")
    assert await record(client) == said("STDOUT", b"one")
    err.write(b"two\xff")
    assert await record(client) == said("STDERR", b"two\xff")
    out.write(b"last")
    scene.over(3 << 8)
    assert await record(client) == said("STDOUT", b"last")
    assert await client.chunk() == b""
    assert scene.host.signals() == []
    _, answer = await scene.agent.ask(body("WAIT_CONTAINER", NAMES))
    assert json.loads(answer)["wait_container"] == {"exit_status": 768}


async def test_the_forms_of_an_answer(scene, client):
    for accept in ("text/plain", ""):
        assert (await scene.open(client, Accept=accept))[0].status == 406
    records = "application/recordio"
    assert (await scene.open(client, Accept=records, Message_Accept="text/plain"))[0].status == 406
    assert (await scene.open(client, Message_Accept="application/json"))[0].status == 406
    assert scene.host.sent == []
    head, _ = await scene.open(client, Accept=records, Message_Accept="application/x-protobuf")
    assert head.headers["content-type"] == records
    assert head.headers["message-content-type"] == "application/x-protobuf"
    scene.process()[1].write(b"x")
    (found,) = Reader().feed(await client.chunk())
    assert from_binary(ProcessIO, found).data == ProcessIO.Data(
        type=ProcessIO.Data.STDOUT, data=b"x"
    )


async def test_a_session_ends_with_its_client(scene, client):
    await scene.open(client)
    await client.close()
    await scene.signalled()
    assert scene.host.signals() == [(MARK, 9)]
    scene.over(9)


async def test_what_runs_already_or_cannot_be_started_is_no_stream(scene, client, other):
    await scene.open(client)
    assert (await scene.open(other))[0].status == 202
    scene.host.refusal = "no"
    refused = body(LAUNCH, ("c1", "t"), command=COMMAND)
    assert await scene.refused(refused) == 400
    assert await scene.refused(body(LAUNCH, ("c1", "u"))) == 400
    assert await scene.refused(body(LAUNCH, ("c9", "u"), command=COMMAND)) == 400


async def test_a_client_that_takes_nothing_is_cut_off(scene, client, monkeypatch):
    monkeypatch.setattr(sessions, "MAX_STALL_S", 0.1)
    await scene.open(client)
    _, out, _ = scene.process()

    def write() -> None:
        with contextlib.suppress(BrokenPipeError):
            while True:
                out.write(b"x" * 65_536)

    writing = asyncio.create_task(asyncio.to_thread(write))
    await scene.signalled()
    scene.host.within.heard("probed", MARK, [9, "", ""])
    await writing


async def test_a_client_that_does_not_take_the_end_is_cut_off(scene, client, monkeypatch):
    async def never(_: web.StreamResponse, data: bytes = b"") -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(sessions, "MAX_STALL_S", 0.1)
    monkeypatch.setattr(web.StreamResponse, "write_eof", never)
    await scene.open(client)
    scene.over()
    async with asyncio.timeout(WITHIN_S):
        assert await client.ended()


async def test_nothing_goes_out_behind_the_end_for_which_no_other_waits(scene, client, monkeypatch):
    beaten = asyncio.Event()
    closed = []
    write_eof = web.StreamResponse.write_eof

    async def beat(*_: object) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            beaten.set()

    async def end(answer: web.StreamResponse, data: bytes = b"") -> None:
        closed.append(session.closed.done())
        await beaten.wait()
        await write_eof(answer, data)

    monkeypatch.setattr(sessions, "_beat", beat)
    monkeypatch.setattr(web.StreamResponse, "write_eof", end)
    await scene.open(client)
    session = scene.session()
    # When that has come, heartbeats have begun.
    scene.process()[1].write(b"x")
    assert await record(client) == said("STDOUT", b"x")
    scene.over()
    async with asyncio.timeout(WITHIN_S):
        assert await client.chunk() == b""
    # (aiohttp ends it once more.)
    assert closed[0]


async def test_others_look_on_until_the_end(scene, client, other):
    await scene.open(client)
    head, _ = await scene.open(other, "ATTACH_CONTAINER_OUTPUT")
    assert (head.status, head.headers["content-type"]) == (200, "application/json")
    scene.process()[1].write(b"x")
    assert await record(other) == await record(client) == said("STDOUT", b"x")
    scene.over()
    assert await other.chunk() == await client.chunk() == b""


async def test_one_who_looks_on_and_falls_behind_is_cut_off(scene, client, other, monkeypatch):
    monkeypatch.setattr(sessions, "MAX_BEHIND_BYTES", 100)
    await scene.open(client)
    await scene.open(other, "ATTACH_CONTAINER_OUTPUT")
    scene.process()[1].write(b"x" * 1000)
    assert await other.ended()
    assert await record(client) == said("STDOUT", b"x" * 1000)


@pytest.mark.parametrize("kind", [LAUNCH, "ATTACH_CONTAINER_OUTPUT"])
async def test_a_stream_has_heartbeats(scene, client, other, kind):
    await scene.open(client)
    scene.agent.http.operator._heartbeat_s = 0.01
    if kind == LAUNCH:
        content = json.dumps(body(kind, ("c1", "t"), command=COMMAND)).encode()
    else:
        content = json.dumps(body(kind, NAMES)).encode()
    await other.opened("POST", "/api/v1", JSON, content)
    control = {"type": "HEARTBEAT", "heartbeat": {"interval": {"nanoseconds": 10_000_000}}}
    for _ in range(2):
        assert await record(other) == {"type": "CONTROL", "control": control}


async def test_only_sessions_are_attached_to(scene, client):
    for kind in (LAUNCH, "ATTACH_CONTAINER_OUTPUT"):
        # Over gRPC, and to a container of their own.
        assert await scene.refused({"type": kind}) == 400
    for names, status in (((*NAMES,), 404), (("c1",), 400), (("c9",), 404)):
        assert await scene.refused(body("ATTACH_CONTAINER_OUTPUT", names)) == status
        await sending(client, names)
        assert (await client.head()).status == status
        client = await again(scene, client)
    await client.close()


async def again(scene: Scene, client: Connection) -> Connection:
    """A new one: what was answered before its request had ended is not used any more."""
    await client.close()
    made = await asyncio.open_connection("127.0.0.1", scene.agent.http.port)
    return Connection(*made)


# ---- Input ------------------------------------------------------------------------------


class Sending:
    """A request that goes on."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def chunk(self, data: bytes) -> None:
        await self._connection.send(b"%x\r\n%b\r\n" % (len(data), data))

    async def record(self, kind: str = "PROCESS_IO", **member: Any) -> None:
        call = body("ATTACH_CONTAINER_INPUT", type=kind, **member)
        await self.chunk(framed(json.dumps(call).encode()))

    async def io(self, **io: Any) -> None:
        await self.record(process_io=io)

    async def data(self, text: bytes) -> None:
        await self.io(**said("STDIN", text))

    async def end(self) -> None:
        await self._connection.send(b"0\r\n\r\n")


async def sending(connection: Connection, names: tuple[str, ...] = NAMES) -> Sending:
    """Begin to send input for that container."""
    headers = {**RECORDS, "Transfer-Encoding": "chunked"}
    await connection.send(request("POST", "/api/v1", headers, None))
    stream = Sending(connection)
    found = body("x", names)["x"]["container_id"]
    await stream.record("CONTAINER_ID", container_id=found)
    return stream


async def read(file: io.FileIO, size: int) -> bytes:
    async with asyncio.timeout(WITHIN_S):
        return await asyncio.to_thread(file.read, size)


async def test_what_is_sent_goes_into_the_session(scene, client, other):
    await scene.open(client)
    reading, _, _ = scene.process()
    stream = await sending(other)
    await stream.data(b"hello")
    assert await read(reading, 5) == b"hello"
    await stream.io(type="CONTROL", control={"type": "HEARTBEAT"})
    await stream.data(b"x")
    assert await read(reading, 5) == b"x"
    await stream.data(b"")
    assert await read(reading, 1) == b""
    await stream.end()
    assert (await other.head()).status == 200


async def test_many_records_at_once_leave_the_others_their_turn():
    turn = asyncio.Event()
    asyncio.get_running_loop().call_soon(turn.set)

    class Content:
        async def readany(self) -> bytes:
            return framed(json.dumps(body("GET_HEALTH")).encode()) * 1000

    request: Any = SimpleNamespace(headers={}, content=Content())
    records = sessions.Records(request, Media.JSON)
    for _ in range(1000):
        assert await records.next() is not None
    assert turn.is_set()


async def test_input_without_an_end_can_be_gone_on_with(scene, client, other):
    await scene.open(client)
    reading, _, _ = scene.process()
    stream = await sending(other)
    await stream.data(b"a")
    await stream.end()
    assert (await other.head()).status == 200
    assert await read(reading, 1) == b"a"
    stream = await sending(other)
    await stream.data(b"b")
    assert await read(reading, 1) == b"b"
    async with connected(scene.agent.http.port) as third:
        await sending(third)
        assert (await third.head()).status == 409


async def test_a_client_that_goes_while_the_process_takes_nothing_makes_room_for_another(
    scene, client, other, monkeypatch
):
    found = asyncio.Event()

    async def gone(_: web.Request) -> None:
        await found.wait()

    monkeypatch.setattr(sessions, "_gone", gone)
    await scene.open(client)
    reading, _, _ = scene.process()
    size = fcntl.fcntl(reading, fcntl.F_GETPIPE_SZ)
    stream = await sending(other)
    await stream.data(b"x" * (size + 100))
    assert await read(reading, 1) == b"x"
    found.set()
    assert await other.ended()
    found.clear()
    async with connected(scene.agent.http.port) as third:
        stream = await sending(third)
        await stream.end()
        assert (await third.head()).status == 200


@pytest.mark.parametrize("end", ["peer", "transport", "request"])
async def test_that_a_client_has_gone_is_found_without_reading(monkeypatch, end):
    monkeypatch.setattr(sessions, "_LOOK_S", 0.0)
    ours, theirs = socket.socketpair()
    closing = False
    transport: Any = SimpleNamespace(
        is_closing=lambda: closing, get_extra_info={"socket": ours}.__getitem__
    )
    request: Any = SimpleNamespace(transport=transport)
    with ours, theirs:
        theirs.send(b"x")
        watching = asyncio.create_task(sessions._gone(request))
        for _ in range(9):
            await asyncio.sleep(0)
        assert not watching.done()
        if end == "peer":
            theirs.close()
        elif end == "transport":
            closing = True
        else:
            request.transport = None
        async with asyncio.timeout(WITHIN_S):
            await watching


async def test_the_end_of_the_session_answers_who_has_nothing_to_say(scene, client, other):
    await scene.open(client)
    stream = await sending(other)
    await stream.data(b"a")
    assert await read(scene.process()[0], 1) == b"a"
    scene.over()
    assert (await other.head()).status == 200


WRONG: dict[str, Any] = {
    "data.type": {"type": "DATA", "data": {"type": "STDOUT", "data": "eA=="}},
    "process_io.type": {"type": "UNKNOWN"},
    "terminal": {"type": "CONTROL", "control": {"type": "TTY_INFO"}},
}


@pytest.mark.parametrize("what", WRONG)
async def test_what_is_no_input_is_refused(scene, client, other, what):
    await scene.open(client)
    stream = await sending(other)
    await stream.io(**WRONG[what])
    head = await other.head()
    assert head.status == 400
    assert what.encode() in await other.body(head)


async def test_data_of_a_type_that_is_unknown_here_is_refused(scene, client):
    await scene.open(client)
    first = Call(type=Call.ATTACH_CONTAINER_INPUT)
    asked = first.attach_container_input
    asked.type = Call.AttachContainerInput.CONTAINER_ID
    asked.container_id.CopyFrom(pb.ContainerID(value="s", parent=pb.ContainerID(value="c1")))
    second = Call(type=Call.ATTACH_CONTAINER_INPUT)
    asked = second.attach_container_input
    asked.type = Call.AttachContainerInput.PROCESS_IO
    asked.process_io.type = ProcessIO.DATA
    # As a newer peer may have it.
    asked.process_io.data.type = 99  # type: ignore[assignment]
    asked.process_io.data.data = b"x"
    content = b"".join(framed(to_binary(each)) for each in (first, second))
    headers = {**RECORDS, "Message-Content-Type": "application/x-protobuf"}
    status, answer = await scene.agent.ask(content, headers)
    assert status == 400
    assert b"process_io.data.type: '99': must be STDIN" in answer


async def test_only_the_first_record_names_the_container(scene, client, other):
    await scene.open(client)
    stream = await sending(other)
    await stream.record("CONTAINER_ID", container_id={"value": "c1"})
    assert (await other.head()).status == 400
    io = body("ATTACH_CONTAINER_INPUT", type="PROCESS_IO", process_io=said("STDIN", b"x"))
    for content, headers, status in (
        (framed(json.dumps(io).encode()), RECORDS, 400),
        (json.dumps(io).encode(), JSON, 415),
        (framed(json.dumps(body("GET_HEALTH")).encode()), RECORDS, 415),
        (framed(b"{}"), RECORDS, 400),
        (framed(json.dumps(io).encode()), {**RECORDS, "Content-Encoding": "identity"}, 400),
        (b"", {**RECORDS, "Content-Encoding": "deflate"}, 415),
        (b"9\n{}", RECORDS, 400),
        (b"5000000\n", RECORDS, 413),
    ):
        assert (await scene.agent.ask(content, headers))[0] == status, content
