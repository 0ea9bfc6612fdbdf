"""A stream of records, chunk by chunk."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web

from mesos_py.http import stream
from mesos_py.http.recordio import framed
from mesos_py.http.server import HttpServer, Routes
from mesos_py.http.stream import Heartbeat, cutter, respond
from mesos_py.outbox import Outbox
from tests.kit.raw_http import Connection, connected, request

HEADERS = {"Content-Type": "application/json"}


class Source:
    """A server with one stream."""

    def __init__(
        self,
        queue: Outbox[bytes],
        heartbeat: Heartbeat | None = None,
        may_write: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        self.queue = queue
        self.heartbeat = heartbeat
        self.may_write = may_write
        self.over = asyncio.Event()
        self.cut: Callable[[], None] = lambda: None

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.cut = cutter(request)
        try:
            more = {} if self.may_write is None else {"may_write": self.may_write}
            return await respond(request, self.queue, HEADERS, heartbeat=self.heartbeat, **more)
        finally:
            self.over.set()

    @contextlib.asynccontextmanager
    async def open(self, **headers: str) -> AsyncIterator[Connection]:
        routes = Routes()
        routes.add("/", self.answer)
        server = HttpServer(routes)
        await server.start("127.0.0.1", 0)
        try:
            async with connected(server.port) as client:
                await client.send(request("GET", "/", headers))
                yield client
        finally:
            await server.close()


def put(queue: Outbox[bytes], *records: bytes) -> None:
    for record in records:
        queue.put(framed(record))


@pytest.mark.parametrize("connection", ["keep-alive", "close"])
async def test_each_record_is_one_chunk(connection: str) -> None:
    queue: Outbox[bytes] = Outbox()
    put(queue, b"one", b"two")
    async with Source(queue).open(Connection=connection) as client:
        head = await client.head()
        assert head.status == 200
        assert head.headers["transfer-encoding"] == "chunked"
        assert head.headers["content-type"] == "application/json"
        assert [await client.chunk() for _ in range(2)] == [b"3\none", b"3\ntwo"]
        put(queue, b"x" * 300_000)
        assert await client.chunk() == b"300000\n" + b"x" * 300_000
        queue.close("enough")
        assert await client.chunk() == b""


async def test_a_client_that_goes_ends_it() -> None:
    queue: Outbox[bytes] = Outbox()
    source = Source(queue)
    async with source.open() as client:
        await client.head()
        await client.close()
        async with asyncio.timeout(90):
            await source.over.wait()


async def test_a_client_that_reads_too_slowly_is_cut_off() -> None:
    queue: Outbox[bytes] = Outbox(10_000, 40_000_000, lambda reason: source.cut())
    source = Source(queue)
    async with source.open() as client:
        await client.head()
        record = framed(b"x" * 1_000_000)
        # More than any buffer on the way holds: the writer waits for the client.
        for _ in range(200):
            if not queue.put(record, len(record)):
                break
            await asyncio.sleep(0)
        assert queue.overflow is not None
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await client.until_end()


@pytest.mark.parametrize("closed", ["before", "meanwhile"])
@pytest.mark.parametrize("what", ["write", "write_eof"])
async def test_a_client_that_does_not_take_the_rest_is_cut_off(monkeypatch, what, closed) -> None:
    stuck = asyncio.Event()

    async def never(_: web.StreamResponse, data: bytes = b"") -> None:
        stuck.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(stream, "MAX_STALL_S", 0.1)
    monkeypatch.setattr(web.StreamResponse, what, never)
    queue: Outbox[bytes] = Outbox()
    if what == "write":
        put(queue, b"one")
    if closed == "before":
        queue.close("enough")
    async with Source(queue).open() as client:
        await client.head()
        async with asyncio.timeout(90):
            if closed == "meanwhile" and what == "write":
                await stuck.wait()
            queue.close("enough")
            assert await client.ended()
    assert queue.on_close is None


async def test_who_may_not_write_any_more_ends_it() -> None:
    queue: Outbox[bytes] = Outbox()
    put(queue, b"one")

    async def never() -> bool:
        return False

    async with Source(queue, may_write=never).open() as client:
        await client.head()
        assert await client.chunk() == b""


async def test_heartbeats_at_once_and_at_intervals() -> None:
    queue: Outbox[bytes] = Outbox()
    heartbeat = Heartbeat(framed(b"beat"), 0.01, at_once=True)
    async with Source(queue, heartbeat).open() as client:
        await client.head()
        assert [await client.chunk() for _ in range(3)] == [b"4\nbeat"] * 3


async def test_for_a_client_of_http_1_0_without_chunks() -> None:
    queue: Outbox[bytes] = Outbox()
    put(queue, b"one")
    queue.close("enough")
    async with Source(queue).open() as client:
        await client.head()
        await client.until_end()
        await client.send(b"GET / HTTP/1.0\r\n\r\n")
        head = await client.head()
        assert "transfer-encoding" not in head.headers
        assert await client.ended()
