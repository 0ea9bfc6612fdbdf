"""An agent that operators start sessions at: it says what a test tells it to."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Self

from aiohttp import web

from mesos_py.address import Address
from mesos_py.http.media import Media
from mesos_py.http.recordio import Reader, framed
from mesos_py.v1.agent_operator_pb2 import Call, ProcessIO, Response

FORM = Media.PROTOBUF
Data = ProcessIO.Data


class FakeAgent:
    """`says` goes out as it is, None is the end; `typed` is what came in.  A call that is among
    `refusals` is refused; `status` is how the command ended, None if that is forgotten."""

    def __init__(self) -> None:
        self.says: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.status: int | None = 0
        self.refusals: dict[int, tuple[int, str]] = {}
        # Calls of these types are not answered until the end.
        self.silent: set[int] = set()
        self.calls: list[Call] = []
        self.typed: list[ProcessIO] = []
        self._news = asyncio.Condition()
        self._over = asyncio.Event()
        self.port = 0

    @property
    def address(self) -> Address:
        return Address("127.0.0.1", self.port)

    @property
    def text(self) -> bytes:
        return b"".join(each.data.data for each in self.typed)

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[Self]:
        runner = web.ServerRunner(web.Server(self._answer), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = runner.addresses[0][1]
        try:
            yield self
        finally:
            self._over.set()
            self.end()
            await runner.cleanup()

    def write(self, kind: Data.Type.ValueType, data: bytes) -> None:
        io = ProcessIO(type=ProcessIO.DATA, data=Data(type=kind, data=data))
        self.says.put_nowait(framed(FORM.dumps(io)))

    def end(self) -> None:
        self.says.put_nowait(None)

    async def until(self, count: int) -> None:
        """So many pieces have come in."""
        async with asyncio.timeout(60), self._news:
            await self._news.wait_for(lambda: len(self.typed) >= count)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        assert (request.method, request.path) == ("POST", "/api/v1")
        if request.headers["Content-Type"] == "application/recordio":
            return await self._attached(request)
        call = FORM.loads(Call, await request.read())
        self.calls.append(call)
        if call.type in self.silent:
            await self._over.wait()
        if call.type in self.refusals:
            return self._refusal(call.type)
        if call.type == Call.LAUNCH_NESTED_CONTAINER_SESSION:
            return await self._session(request)
        response = Response(type=Response.WAIT_NESTED_CONTAINER)
        if self.status is None:
            return web.Response(status=404)
        response.wait_nested_container.exit_status = self.status
        return web.Response(body=FORM.dumps(response), content_type=FORM.value)

    def _refusal(self, kind: int) -> web.Response:
        status, text = self.refusals[kind]
        return web.Response(status=status, text=text)

    async def _session(self, request: web.BaseRequest) -> web.StreamResponse:
        answer = web.StreamResponse()
        answer.enable_chunked_encoding()
        await answer.prepare(request)
        while (said := await self.says.get()) is not None:
            if said == b"":
                assert request.transport is not None
                request.transport.abort()
                return answer
            await answer.write(said)
        self._over.set()
        return answer

    async def _attached(self, request: web.BaseRequest) -> web.Response:
        if Call.ATTACH_CONTAINER_INPUT in self.refusals:
            await request.read()
            return self._refusal(Call.ATTACH_CONTAINER_INPUT)
        reader = Reader()
        while data := await request.content.readany():
            for record in reader.feed(data):
                asked = FORM.loads(Call, record).attach_container_input
                async with self._news:
                    if asked.type == Call.AttachContainerInput.PROCESS_IO:
                        self.typed.append(asked.process_io)
                    self._news.notify_all()
        return web.Response()
