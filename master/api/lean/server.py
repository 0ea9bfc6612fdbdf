"""The port, its connections, and the calls that are none of the long-lived streams."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NoReturn

import grpc

from master.api.lean import http2
from master.api.lean.connection import Connection
from master.api.lean.flusher import Flusher
from master.api.lean.stream import Receiver, Stream
from master.api.lean.talks import Talk
from master.api.streams import Streams
from master.api.turns import Turns
from mesos_py import logs, rpc
from mesos_py.v1 import agent_pb2, scheduler_pb2

log = logs.get("master.front")

BACKLOG: Final = 4096
_LOOK_EVERY_S: Final = rpc.KEEPALIVE_S
# Connections are looked after in so many groups, one after the other.
_GROUPS: Final = 10
_UNIMPLEMENTED: Final = 12
_UNKNOWN: Final = 2
_INVALID_ARGUMENT: Final = 3
_DEADLINE_EXCEEDED: Final = 4
_INTERNAL: Final = 13


class LeanServer:
    """Of one event loop.  Services are added by the generated functions, as to a server of
    grpc.aio; `add_streams` adds those of this package."""

    def __init__(self, turns: Turns) -> None:
        self._methods: dict[str, Any] = {}
        self._kinds: dict[str, bool] = {}
        self._soon: Callable[[], Awaitable[Streams]] | None = None
        self._now: Callable[[], Streams | None] = lambda: None
        self._flusher = Flusher()
        self._turns = turns
        self._sockets: list[socket.socket] = []
        self._listening: list[asyncio.Server] = []
        self._groups: list[dict[Connection, None]] = [{} for _ in range(_GROUPS)]
        self._numbers = itertools.count()
        self._looking: asyncio.TimerHandle | None = None
        self._calls: set[asyncio.Task[None]] = set()
        # Set whenever a stream or a connection has ended.
        self._changed = asyncio.Event()

    # ---- As a server of grpc.aio --------------------------------------------------

    def bind(self, ip: str, port: int) -> int:
        """As rpc.bind."""
        family = socket.AF_INET6 if ":" in ip else socket.AF_INET
        try:
            bound = socket.create_server(
                (ip, port), family=family, backlog=BACKLOG, dualstack_ipv6=ip == "::"
            )
        except OSError as error:
            raise rpc.bind_error(ip, port) from error
        self._sockets.append(bound)
        return int(bound.getsockname()[1])

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """What the generated functions call beside the next one; it says nothing more."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Any]) -> None:
        for name, handler in handlers.items():
            self._methods[f"/{service}/{name}"] = handler

    def add_streams(
        self, now: Callable[[], Streams | None], soon: Callable[[], Awaitable[Streams]]
    ) -> None:
        """Serve SchedulerService and AgentService: see streams.add_streams; `now` gives
        the streams of a leadership that has begun."""
        self._now, self._soon = now, soon
        for module, service, method, agent in (
            (scheduler_pb2, "SchedulerService", "Subscribe", False),
            (agent_pb2, "AgentService", "Connect", True),
        ):
            name = module.DESCRIPTOR.services_by_name[service].full_name
            self._kinds[f"/{name}/{method}"] = agent

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        for bound in self._sockets:
            self._listening.append(
                await loop.create_server(self._connection, sock=bound, backlog=BACKLOG)
            )
        self._looking = loop.call_later(_LOOK_EVERY_S / _GROUPS, self._look, 0)

    async def stop(self, grace_s: float) -> None:
        """Take nothing new, give what there is `grace_s` to end, and cut the rest."""
        if self._looking is not None:
            self._looking.cancel()
        for listening in self._listening:
            listening.close()
        for bound in self._sockets:
            bound.close()
        for connection in self._connections():
            connection.leave()
        await self._until(lambda: not any(c.streams for c in self._connections()), grace_s)
        for connection in self._connections():
            connection.close()
        # Who does not read what is left for him is cut.
        await self._until(lambda: not self._connections(), grace_s)
        for connection in self._connections():
            connection.abort()
        await self._until(lambda: not self._connections(), grace_s)
        for call in self._calls:
            call.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)

    async def _until(self, condition: Callable[[], bool], within_s: float) -> None:
        """Connections and streams have ended so far that the condition holds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()

    def _connections(self) -> list[Connection]:
        return [connection for group in self._groups for connection in group]

    def _connection(self) -> Connection:
        connection = Connection(self, self._flusher, self._turns)
        self._groups[next(self._numbers) % _GROUPS][connection] = None
        return connection

    def _look(self, group: int) -> None:
        loop = asyncio.get_running_loop()
        self._looking = loop.call_later(_LOOK_EVERY_S / _GROUPS, self._look, (group + 1) % _GROUPS)
        for connection in list(self._groups[group]):
            connection.look()

    # ---- As who accepts --------------------------------------------------------------

    def ended(self) -> None:
        self._changed.set()

    def lost(self, connection: Connection) -> None:
        self._changed.set()
        for group in self._groups:
            group.pop(connection, None)

    def opened(self, stream: Stream, path: str, headers: Mapping[str, str]) -> Receiver | None:
        agent = self._kinds.get(path)
        if agent is not None and self._soon is not None:
            talk = Talk(stream, self._flusher)
            streams = self._now()
            if streams is not None:
                talk.begin(streams.agents if agent else streams.schedulers)
            else:
                self._keep(talk.begin_soon(self._soon, agent))
            return talk
        handler = self._methods.get(path)
        if handler is None or handler.request_streaming:
            stream.finish(http2.trailer(_UNIMPLEMENTED, f"no such method: {path[:200]}"))
            return None
        return PlainCall(stream, handler, http2.timeout_s(headers.get("grpc-timeout")), self._keep)

    def _keep(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        return task


class _Aborted(Exception):
    def __init__(self, trailer: bytes) -> None:
        super().__init__()
        self.trailer = trailer


class Context:
    """As much of grpc.aio's ServicerContext as our services use."""

    def __init__(self, peer: str) -> None:
        self._peer = peer

    def peer(self) -> str:
        return self._peer

    async def abort(
        self,
        code: grpc.StatusCode,
        details: str = "",
        trailing_metadata: tuple[tuple[str, str | bytes], ...] = (),
    ) -> NoReturn:
        number: int = code.value[0]
        raise _Aborted(http2.trailer(number, details, trailing_metadata))


class PlainCall:
    """One request, and one answer or several."""

    def __init__(
        self, stream: Stream, handler: Any, timeout_s: float | None, keep: Callable[[Any], Any]
    ) -> None:
        self._stream = stream
        self._handler = handler
        self._timeout_s = timeout_s
        self._keep = keep
        self._request: bytes | None = None
        self._task: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()

    def received(self, message: bytes) -> bool:
        if self._request is not None:
            self._stream.finish(http2.trailer(_INTERNAL, "more than one request"))
            self.gone()
            return True
        self._request = message
        return True

    def half_closed(self) -> None:
        if self._request is None:
            self._stream.finish(http2.trailer(_INTERNAL, "no request"))
        elif self._task is None:
            self._task = self._keep(self._run(self._request))

    def gone(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def writable(self) -> None:
        self._writable.set()

    async def _run(self, request: bytes) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._answer(request)
            trailer = http2.trailer(0)
        except _Aborted as aborted:
            trailer = aborted.trailer
        except TimeoutError:
            trailer = http2.trailer(_DEADLINE_EXCEEDED, "Deadline Exceeded")
        except Exception as error:
            log.exception("call failed", peer=self._stream.connection.peer)
            trailer = http2.trailer(_UNKNOWN, f"Unexpected {type(error).__name__}")
        self._stream.finish(trailer)

    async def _answer(self, raw: bytes) -> None:
        handler, context = self._handler, Context(self._stream.connection.peer)
        try:
            request = handler.request_deserializer(raw)
        except Exception:
            raise _Aborted(http2.trailer(_INVALID_ARGUMENT, "the request is none")) from None
        if handler.response_streaming:
            async for response in handler.unary_stream(request, context):
                await self._write(handler.response_serializer(response))
        else:
            await self._write(
                handler.response_serializer(await handler.unary_unary(request, context))
            )

    async def _write(self, message: bytes) -> None:
        stream = self._stream
        while not stream.ready:
            if stream.done:
                raise asyncio.CancelledError
            self._writable.clear()
            stream.connection.wait(stream)
            await self._writable.wait()
        stream.send(message)
