"""A scheduler's conversation over HTTP, with a server that does what the test says."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Self

import pytest
from aiohttp import web

from mesos_py.address import Address, MasterAddress
from mesos_py.errors import InternalError, MesosPyError, NotLeader, Refused, Unavailable
from mesos_py.http import binary, conversation
from mesos_py.http.conversation import STREAM_ID
from mesos_py.http.recordio import framed
from mesos_py.scheduler.lines import PATH, HttpLine
from mesos_py.v1 import scheduler_pb2 as pb

Call, Event = pb.Call, pb.Event
FORM = "application/x-protobuf"
HEARTBEAT = Event(type=Event.HEARTBEAT)
PATIENCE_S = 60.0


class Peer:
    """Answers SUBSCRIBE with a stream of what `says` gets (None: its end), and every other
    call with the next of `answers`, or 202."""

    def __init__(self) -> None:
        self.says: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.answers: list[web.Response] = []
        self.to_subscribe: web.Response | None = None
        self.calls: list[pb.Call] = []
        self.heads: list[Any] = []
        self.got = asyncio.Condition()
        self.port = 0

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[Self]:
        runner = web.ServerRunner(web.Server(self._answer), shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.port = runner.addresses[0][1]
        try:
            yield self
        finally:
            self.says.put_nowait(None)
            await runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        assert (request.method, request.path) == ("POST", PATH)
        # As a peer reads it that knows of proto2 only.
        call = binary.loads(pb.Call, await request.read())
        async with self.got:
            self.calls.append(call)
            self.heads.append(request.headers)
            self.got.notify_all()
        if call.type != Call.SUBSCRIBE:
            return self.answers.pop(0) if self.answers else web.Response(status=202)
        if self.to_subscribe is not None:
            return self.to_subscribe
        stream = web.StreamResponse(headers={"Content-Type": FORM, STREAM_ID: "stream 1"})
        await stream.prepare(request)
        with contextlib.suppress(ConnectionError):
            while (data := await self.says.get()) is not None:
                await stream.write(data)
        return stream

    def say(self, *events: pb.Event) -> None:
        for event in events:
            self.says.put_nowait(framed(binary.dumps(event)))

    async def kinds(self, count: int) -> list[str]:
        """Of the first `count` calls."""
        async with asyncio.timeout(PATIENCE_S), self.got:
            await self.got.wait_for(lambda: len(self.calls) >= count)
        return [Call.Type.Name(call.type) for call in self.calls[:count]]


class Client:
    """A conversation with the peer; what it has to write and what it has heard."""

    def __init__(self, address: Address, answer_s: float = 1000, **headers: str) -> None:
        self.line = HttpLine(address, headers)
        self.to_write: list[Any] = []
        self.heard: list[pb.Event] = []
        self.news = asyncio.Event()
        subscribe = Call(type=Call.SUBSCRIBE)
        subscribe.subscribe.framework_info.name = "f"
        opening = pb.Calls(calls=[subscribe])
        self.conversation = self.line.converse(opening, self.take, self.receive, answer_s)

    def take(self) -> pb.Calls | None:
        call = self.to_write.pop(0) if self.to_write else None
        if isinstance(call, Exception):
            raise call
        return pb.Calls(calls=[call]) if call is not None else None

    async def receive(self, batch: pb.Events) -> None:
        self.heard += batch.events
        self.news.set()

    async def hears(self) -> pb.Event:
        """Something; the newest of it."""
        async with asyncio.timeout(PATIENCE_S):
            await self.news.wait()
        self.news.clear()
        return self.heard[-1]

    def write(self, *calls: Any) -> None:
        self.to_write += calls
        self.conversation.wake()

    async def ended(self) -> MesosPyError | None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self.conversation.run()
        finally:
            await self.line.close()


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    async with Peer().serving() as peer:
        yield peer


def client_of(peer: Peer, **options: Any) -> Client:
    return Client(Address("127.0.0.1", peer.port), **options)


@contextlib.asynccontextmanager
async def talking(peer: Peer, **options: Any) -> AsyncIterator[tuple[Client, asyncio.Task[Any]]]:
    """A client whose stream is there, and its run."""
    client = client_of(peer, **options)
    running = asyncio.create_task(client.ended())
    peer.say(HEARTBEAT)
    await client.hears()
    yield client, running
    client.conversation.cut(None)
    await running


def kill(task_id: str = "t") -> pb.Call:
    made = Call(type=Call.KILL)
    made.framework_id.value = "f"
    made.kill.task_id.value = task_id
    return made


def teardown() -> pb.Call:
    made = Call(type=Call.TEARDOWN)
    made.framework_id.value = "f"
    return made


# --- the stream -------------------------------------------------------------------------------


async def test_it_says_what_it_speaks_and_who_it_is(peer: Peer) -> None:
    async with talking(peer, Authorization="Basic x") as (client, _):
        client.write(kill())
        assert await peer.kinds(2) == ["SUBSCRIBE", "KILL"]
    for head in peer.heads:
        assert head.getall("Content-Type") == head.getall("Accept") == [FORM]
        assert head["Authorization"] == "Basic x"
        assert head["User-Agent"].startswith("mesos-py/")
    assert STREAM_ID not in peer.heads[0]
    assert peer.heads[1][STREAM_ID] == "stream 1"


async def test_records_come_whole_however_they_are_cut(peer: Peer) -> None:
    client = client_of(peer)
    running = asyncio.create_task(client.ended())
    event = Event(type=Event.ERROR, error=Event.Error(message="x" * 100))
    data = framed(binary.dumps(event)) * 2
    for at in range(len(data)):
        peer.says.put_nowait(data[at : at + 1])
    peer.says.put_nowait(None)
    assert str(await running) == f"127.0.0.1:{peer.port} closed the link"
    assert client.heard == [event, event]


async def test_what_cannot_be_read_is_a_lost_link(peer: Peer) -> None:
    client = client_of(peer)
    peer.says.put_nowait(b"<html>")
    error = await client.ended()
    assert isinstance(error, Unavailable)
    assert "cannot be read" in str(error)


async def test_a_record_that_is_no_event_is_a_lost_link(peer: Peer) -> None:
    client = client_of(peer)
    peer.says.put_nowait(framed(b"\xff\xff\xff"))
    assert "cannot be read" in str(await client.ended())


async def test_nobody_there_is_unavailable_and_says_why(peer: Peer) -> None:
    client = Client(Address("127.0.0.1", 1))
    error = await client.ended()
    assert isinstance(error, Unavailable)
    assert str(error) == "cannot reach 127.0.0.1:1: Connect call failed ('127.0.0.1', 1)"
    assert not client.line.is_up


async def test_zookeeper_says_where_a_masters_http_is(peer: Peer) -> None:
    address = MasterAddress("127.0.0.1", 1)
    address.http = Address("127.0.0.1", peer.port)
    client = Client(address)
    peer.says.put_nowait(None)
    assert str(await client.ended()).startswith(f"127.0.0.1:{peer.port}")
    assert client.line.is_up


@pytest.mark.parametrize(
    ("location", "leader"),
    [
        ("//10.0.0.9:5050/api/v1/scheduler", "10.0.0.9:5050"),
        ("http://leader:5051/master/api/v1/scheduler?x=1", "leader:5051"),
        ("http://leader/api/v1/scheduler", "leader:80"),
        ("//[::1]:5050/x", "[::1]:5050"),
        ("/elsewhere", None),
        ("//leader:port/x", None),
        ("", None),
    ],
)
async def test_a_master_that_does_not_lead_names_the_leader(
    peer: Peer, location: str, leader: str | None
) -> None:
    peer.to_subscribe = web.Response(status=307, headers={"Location": location})
    error = await client_of(peer).ended()
    assert isinstance(error, NotLeader)
    assert error.leader == leader
    assert len(peer.calls) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Refused),
        (401, Refused),
        (403, Refused),
        (404, Unavailable),
        (408, Unavailable),
        (429, Unavailable),
        (501, Refused),
        (500, Unavailable),
        (503, Unavailable),
        (204, Unavailable),
    ],
)
async def test_what_is_no_stream_ends_with_what_the_peer_says(
    peer: Peer, status: int, kind: type[MesosPyError]
) -> None:
    peer.to_subscribe = web.Response(status=status, text=None if status == 204 else "because\n")
    error = await client_of(peer).ended()
    assert type(error) is kind
    reason = "No Content" if status == 204 else "because"
    assert str(error) == f"127.0.0.1:{peer.port} answers {status}: {reason}"


# --- calls --------------------------------------------------------------------------------------


async def test_calls_go_out_in_their_order(peer: Peer) -> None:
    async with talking(peer) as (client, _):
        client.write(*(kill(f"t{n}") for n in range(50)))
        await peer.kinds(51)
    assert [call.kill.task_id.value for call in peer.calls[1:]] == [f"t{n}" for n in range(50)]


async def test_a_large_call(peer: Peer) -> None:
    message = Call(type=Call.MESSAGE)
    message.framework_id.value = "f"
    message.message.agent_id.value = "a"
    message.message.executor_id.value = "e"
    message.message.data = bytes(700_000)
    async with talking(peer) as (client, _):
        client.write(message)
        await peer.kinds(2)
    assert peer.calls[1].message == message.message
    assert int(peer.heads[1]["Content-Length"]) > 700_000


async def test_a_refused_call_is_told_and_the_next_one_goes_out(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "MOMENT_S", 0)
    peer.answers = [web.Response(status=400, text="Not a valid UUID\n")]
    async with talking(peer) as (client, _):
        client.write(kill("one"), kill("two"))
        told = await client.hears()
        assert await peer.kinds(3) == ["SUBSCRIBE", "KILL", "KILL"]
    assert told.type == Event.REFUSED
    assert told.refused.call == Call.KILL
    assert told.refused.message.endswith("answers 400: Not a valid UUID")


@pytest.mark.parametrize("status", [400, 403, 503])
async def test_a_call_that_fails_with_its_stream_is_nobodys_fault(
    peer: Peer, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A master that has just been started does not know the framework yet."""
    monkeypatch.setattr(conversation, "MOMENT_S", PATIENCE_S)
    async with talking(peer) as (client, running):
        peer.answers = [web.Response(status=status, text="who?")]
        client.write(kill())
        await peer.kinds(2)
        peer.says.put_nowait(None)
        assert str(await running) == f"127.0.0.1:{peer.port} closed the link"
    assert client.heard == [HEARTBEAT]


@pytest.mark.parametrize(
    ("status", "location", "error"),
    [
        (403, "", "answers 403: because"),
        (503, "", "answers 503: because"),
        (307, "//l:1/x", "the leader is l:1"),
    ],
)
async def test_a_stream_on_which_nothing_can_be_said_is_given_up(
    peer: Peer, status: int, location: str, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "MOMENT_S", 0)
    async with talking(peer) as (client, running):
        peer.answers = [web.Response(status=status, text="because", headers={"Location": location})]
        client.write(kill("one"), kill("two"))
        assert str(await running).endswith(error)
    assert len(peer.calls) == 2


async def test_a_peer_that_does_not_answer_a_call_is_given_up(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "CALL_S", 0.05)
    async with talking(peer) as (client, running):
        await peer.got.acquire()
        client.write(kill())
        try:
            assert "no answer to a call" in str(await running)
        finally:
            peer.got.release()


async def test_a_bug_in_what_gives_the_calls_ends_the_stream_with_it(peer: Peer) -> None:
    async with talking(peer) as (client, running):
        client.write(ZeroDivisionError("my bug"))
        error = await running
    assert isinstance(error, InternalError)
    assert isinstance(error.__cause__, ZeroDivisionError)


# --- ends ---------------------------------------------------------------------------------------


async def test_finish_writes_what_is_left_and_closes(peer: Peer) -> None:
    async with talking(peer) as (client, running):
        client.write(kill("one"), kill("two"))
        client.conversation.finish(PATIENCE_S)
        assert await running is None
        assert await peer.kinds(3) == ["SUBSCRIBE", "KILL", "KILL"]


async def test_after_teardown_it_is_the_peer_that_ends_the_stream(peer: Peer) -> None:
    async with talking(peer) as (client, running):
        client.write(teardown())
        client.conversation.finish(PATIENCE_S)
        await peer.kinds(2)
        assert not running.done()
        peer.says.put_nowait(None)
        assert await running is None


async def test_a_peer_that_does_not_end_it_is_not_waited_for(peer: Peer) -> None:
    async with talking(peer) as (client, running):
        client.write(teardown())
        client.conversation.finish(0.01)
        assert "did not end the stream" in str(await running)


async def test_first_cut_counts(peer: Peer) -> None:
    client = client_of(peer)
    first, second = Refused("first"), Refused("second")
    client.conversation.cut(first)
    client.conversation.cut(second)
    assert await client.ended() is first
    assert peer.calls == []


async def test_cut_while_it_runs(peer: Peer) -> None:
    reason = Refused("enough")
    async with talking(peer) as (client, running):
        client.conversation.cut(reason)
        assert await running is reason


async def test_cancelled_task_is_cancelled(peer: Peer) -> None:
    running = asyncio.create_task(client_of(peer).ended())
    await peer.kinds(1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_no_answer_in_time_ends_the_stream(peer: Peer) -> None:
    client = client_of(peer, answer_s=0.05)
    assert str(await client.ended()) == f"no answer from 127.0.0.1:{peer.port} for 0.05 s"
    assert client.conversation.unanswered


async def test_silence_after_the_answer_ends_the_stream(peer: Peer) -> None:
    async with talking(peer) as (client, running):
        client.conversation.expect(0.05)
        assert str(await running) == f"silence from 127.0.0.1:{peer.port} for 0.05 s"
