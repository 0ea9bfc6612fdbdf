"""The fake agent of mesos_py.testing, come to by the HTTP API of Mesos."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from mesos_py.errors import MesosPyError
from mesos_py.executor.lines import PATH
from mesos_py.http import binary
from mesos_py.http.recordio import framed
from mesos_py.testing.fake_agent import FakeAgent
from mesos_py.v1.executor_pb2 import Call, Calls

FORM: Final = "application/x-protobuf"


class Cut(Exception):
    """The stream is to break off."""


class Context:
    """What the fake takes for gRPC's."""

    async def abort(self, *_: object) -> None:
        raise Cut


class HttpFakeAgent(FakeAgent):
    """As FakeAgent; a port it has had is its own for all its lives."""

    def __init__(self, directory: Path, **options: Any) -> None:
        super().__init__(directory, **options)
        # Bound all the time, so that nobody else takes the port while the agent is gone.
        self._place = _bound(0)
        self._port: int = self._place.getsockname()[1]
        endpoint = f"http://127.0.0.1:{self._port}"
        self.environment = dataclasses.replace(self.environment, agent_endpoint=endpoint)
        self._runner: web.ServerRunner | None = None
        # Calls after the first, for the present stream.
        self._calls: asyncio.Queue[Calls] = asyncio.Queue()
        # How calls after the first are answered, one by one; else 202.
        self.answers: list[web.Response] = []
        self.heads: list[Any] = []

    def __exit__(self, *how: Any) -> None:
        super().__exit__(*how)
        self._place.close()

    @property
    def environ(self) -> dict[str, str]:
        found = super().environ
        endpoint = found.pop("MESOS_PY_EXECUTOR_ENDPOINT")
        return {**found, "MESOS_AGENT_ENDPOINT": endpoint.removeprefix("http://")}

    async def _start(self) -> None:
        server = web.Server(self._serve, handler_cancellation=True)
        runner = web.ServerRunner(server, shutdown_timeout=0.01)
        await runner.setup()
        await web.SockSite(runner, _bound(self._port)).start()
        self._runner = runner

    async def _stop(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        assert (request.method, request.path) == ("POST", PATH)
        # As a peer reads it that knows of proto2 only.
        call = binary.loads(Call, await request.read())
        self.heads.append(request.headers)
        if call.type == Call.SUBSCRIBE:
            return await self._stream(request, call)
        if self.answers:
            return self.answers.pop(0)
        self._calls.put_nowait(Calls(calls=[call]))
        return web.Response(status=202)

    async def _stream(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        if isinstance(self.refusal, MesosPyError):
            return web.Response(status=400, text=self.refusal.message)
        stream = web.StreamResponse(headers={"Content-Type": FORM})
        await stream.prepare(request)
        self._calls = asyncio.Queue()
        batches: Any = self.serve(_requests(call, self._calls), Context())
        try:
            async with contextlib.aclosing(batches):
                async for batch in batches:
                    for event in batch.events:
                        await stream.write(framed(binary.dumps(event)))
        except Cut:
            assert request.transport is not None
            request.transport.abort()
        return stream


def _bound(port: int) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(("127.0.0.1", port))
    return made


async def _requests(first: Call, calls: asyncio.Queue[Calls]) -> AsyncIterator[Calls]:
    yield Calls(calls=[first])
    while True:
        yield await calls.get()
