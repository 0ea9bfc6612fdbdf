"""The HTTP server of a daemon: one place for bounds, paths and what errors look like.

A connection that has nothing to do is kept, for however long: clients of Mesos do not
expect their idle connections to be closed.  Only when the bound on connections is reached
does the one that has been idle for longest make room.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from aiohttp import HttpVersion11, web
from aiohttp.http_exceptions import HttpProcessingError

from mesos_py import logs
from mesos_py.errors import MesosPyError, PortInUse, TooLarge
from mesos_py.http import silence
from mesos_py.http.answers import HttpRefusal, status_of

log = logs.get("http")

Answer: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

# aiohttp closes idle connections after a time; this is its "never".
_NEVER_S: Final = 10 * 365 * 86400.0
_SHUTDOWN_S: Final = 0.2
_BUSY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\n"
    b"Content-Length: 21\r\nConnection: close\r\n\r\ntoo many connections\n"
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What the server takes from its clients."""

    body_bytes: int = 32 * 1024 * 1024
    # Of one header, and of the request line.
    header_bytes: int = 16 * 1024
    connections: int = 10_000
    # From the head of a request to the end of its body.
    body_s: float = 60.0
    # A connection is broken when nothing is heard of its other side for so long, not even
    # by TCP; 0: when the kernel gives up.
    silence_s: float = 0.0


class Routes:
    """Who answers which path.  The longest route that the path begins with counts, so that a
    slash at the end, or more behind it, is allowed."""

    def __init__(self, process: str = "") -> None:
        """`process`: also reachable below this name, such as "master"."""
        self.process = process
        self._answers: dict[tuple[str, ...], tuple[Answer, bool]] = {}

    def add(self, path: str, answer: Answer, *, exact: bool = False) -> None:
        """`exact`: nothing may follow."""
        self._answers[_parts(path)] = (answer, exact)

    def paths(self) -> list[str]:
        """All that there are, in order."""
        return sorted("/" + "/".join(parts) for parts in self._answers)

    def find(self, path: str) -> Answer | None:
        parts = _parts(path)
        if parts and parts[0] == self.process and len(parts) > 1:
            parts = parts[1:]
        for end in range(len(parts), -1, -1):
            found = self._answers.get(parts[:end])
            if found is not None:
                answer, exact = found
                return answer if not exact or end == len(parts) else None
        return None


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part)


class HttpServer:
    """Serves `routes`.  Used from one event loop."""

    def __init__(self, routes: Routes, limits: Limits | None = None) -> None:
        self._routes = routes
        self._limits = limits if limits is not None else Limits()
        # Connections with a request, and those without, the longest idle first.
        self._busy: set[web.RequestHandler] = set()
        self._idle: OrderedDict[web.RequestHandler, None] = OrderedDict()
        self._runner: web.AppRunner | None = None
        self._listening: asyncio.Server | None = None
        self.port = 0
        # Requests that were answered, by status; faults of ours; connections that were
        # closed, or not taken, for want of room.
        self.answered: dict[int, int] = {}
        self.failures = self.crowded_out = 0
        # What came and is no request, or not the body that its head says.
        self.unreadable = 0

    @property
    def connections(self) -> int:
        """How many are open."""
        server = self._runner.server if self._runner is not None else None
        return len(server.connections) if server is not None else 0

    async def start(self, ip: str, port: int, flag: str = "http-port") -> int:
        """Listen; the port (0 picks one).  Raises PortInUse."""
        limits = self._limits
        app = web.Application(client_max_size=limits.body_bytes)
        # Those that are known are found sooner than by the pattern for all others.
        for path in [*self._routes.paths(), "/{path:.*}"]:
            app.router.add_route("*", path, self._serve, expect_handler=_expected)
        app.on_response_prepare.append(_plain)
        runner = self._runner = web.AppRunner(
            app,
            access_log=None,
            logger=_Heard(self),
            handle_signals=False,
            shutdown_timeout=_SHUTDOWN_S,
            # Who has gone is not served any more.
            handler_cancellation=True,
            keepalive_timeout=_NEVER_S,
            max_line_size=limits.header_bytes,
            max_field_size=limits.header_bytes,
        )
        await runner.setup()
        try:
            loop = asyncio.get_running_loop()
            listening = self._listening = await loop.create_server(
                self._connected, ip, port, start_serving=False
            )
            if limits.silence_s:
                for each in listening.sockets:
                    silence.bound(each, limits.silence_s)
            await listening.start_serving()
        except OSError as error:
            await self.close()
            reason = error.strerror or str(error)
            text = f"{flag}: {ip}:{port} cannot be bound: {reason}"
            raise PortInUse(text, ip=ip, port=port) from None
        self.port = int(listening.sockets[0].getsockname()[1])
        return self.port

    async def close(self) -> None:
        """Stop listening and end all connections.  Idempotent."""
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    # ---- Connections ---------------------------------------------------------------

    def _connected(self) -> asyncio.Protocol:
        server = self._runner.server if self._runner is not None else None
        if server is None:
            return _Refused()
        known = server.connections
        if len(known) < self._limits.connections or self._made_room(known):
            return server()
        self.crowded_out += 1
        return _Refused()

    def _made_room(self, known: list[web.RequestHandler]) -> bool:
        """Close the connection that has been idle for longest; False if there is none."""
        open_ones = set(known)
        while self._idle:
            oldest, _ = self._idle.popitem(last=False)
            if oldest in open_ones:
                break
        else:
            silent = (each for each in known if each not in self._busy)
            found = next(silent, None)
            if found is None:
                return False
            oldest = found
        self.crowded_out += 1
        oldest.force_close()
        if oldest.transport is not None:
            oldest.transport.abort()
        return True

    def _now_idle(self, connection: web.RequestHandler) -> None:
        self._idle[connection] = None
        if len(self._idle) > self._limits.connections:
            # Those that were closed meanwhile by their clients are not told of.
            still = [each for each in self._idle if each.transport is not None]
            self._idle = OrderedDict.fromkeys(still)

    # ---- Requests ------------------------------------------------------------------

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        connection = request.protocol
        self._idle.pop(connection, None)
        self._busy.add(connection)
        try:
            answer = await self._answer(request)
        finally:
            self._busy.discard(connection)
            if connection.transport is not None:
                self._now_idle(connection)
        self.answered[answer.status] = self.answered.get(answer.status, 0) + 1
        return answer

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        try:
            found = self._routes.find(request.rel_url.path)
            if found is None:
                raise HttpRefusal(404, f"path: {request.rel_url.path[:200]!r}: is not served")
            return await found(request)
        except MesosPyError as error:
            return refusal(error)
        except web.HTTPException as error:
            return text(error.status, f"{error.reason}\n")
        except ConnectionError:
            raise
        except Exception:
            # A fault of ours, which may not concern the next request.
            self.failures += 1
            log.exception("request failed", method=request.method, path=request.path)
            return text(503, "the request could not be carried out; see the log\n")

    async def body(self, request: web.Request) -> bytes:
        """The whole body.  Raises TooLarge, and HttpRefusal if it does not come, or is broken."""
        try:
            if request.content.is_eof():
                # It is here: nothing to wait for.
                return await request.read()
            async with asyncio.timeout(self._limits.body_s):
                return await request.read()
        except TimeoutError:
            raise HttpRefusal(408, f"body: did not end within {self._limits.body_s:g} s") from None
        except web.HTTPRequestEntityTooLarge:
            most = self._limits.body_bytes
            raise TooLarge(f"body: allowed are {most} bytes", limit=most) from None
        except (web.RequestPayloadError, HttpProcessingError) as error:
            raise HttpRefusal(400, f"body: is broken: {error}") from None


class _Heard:
    """What aiohttp has to say of its connections: a traceback, without this, for each one
    whose client does not speak HTTP."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server

    def debug(self, text: str, *_: object, exc_info: object = None, **__: object) -> None:
        """How a connection came to its end; of one that never began, why."""
        if isinstance(exc_info, HttpProcessingError):
            self.exception(text, exc_info=exc_info)

    def exception(self, text: str, *_: object, exc_info: object = None, **__: object) -> None:
        """Why an answer is aiohttp's own, or why there is none."""
        if isinstance(exc_info, (HttpProcessingError, web.RequestPayloadError)):
            self._server.unreadable += 1
            log.info("request cannot be read", error=exc_info)
        elif not isinstance(exc_info, ConnectionError):
            log.error("connection failed", doing=text, error=exc_info)


class _Refused(asyncio.Protocol):
    """A connection for which there is no room."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(_BUSY)
        transport.close()


# ---- Answers ----------------------------------------------------------------------------


async def _expected(request: web.Request) -> web.StreamResponse | None:
    """Before a request with an Expect header is served: what it is told, None: to go on."""
    expected = request.headers["Expect"]
    if request.version < HttpVersion11:
        return None
    if expected.lower() != "100-continue":
        return text(417, f"Expect: {expected[:100]!r}: must be 100-continue\n")
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    # No part of the answer.
    request.writer.output_size = 0
    return None


async def _plain(_: web.Request, answer: web.StreamResponse) -> None:
    """Before the head of an answer goes out: nothing is said of what there is not."""
    answer.headers.pop("Server", None)
    if isinstance(answer, web.Response) and not answer.body:
        answer.headers.pop("Content-Type", None)


def empty(status: int) -> web.Response:
    """An answer without a body."""
    return web.Response(status=status)


def text(status: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
    """An answer for a person."""
    return web.Response(status=status, text=message, headers=headers)


def as_json(content: Any) -> web.Response:
    """An answer for programs, as compact as a message of Mesos."""
    body = json.dumps(content, separators=(",", ":")).encode()
    return web.Response(body=body, headers={"Content-Type": "application/json"})


def refusal(error: MesosPyError) -> web.Response:
    """What an error of ours looks like to the client."""
    headers = error.headers if isinstance(error, HttpRefusal) else None
    if status_of(error) < 400:
        return web.Response(status=status_of(error), headers=headers)
    return text(status_of(error), f"{error.message}\n", headers)


__all__ = ["Answer", "HttpServer", "Limits", "Routes", "as_json", "empty", "refusal", "text"]
