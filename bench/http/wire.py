"""A scheduler's side of HTTP, as little work as it can be: one stream of events, and
connections for its calls.

What the peers spend is taken from the two cores that the master runs on, so there is no HTTP
library here.  Each connection has one call on its way at a time, as clients' pools do.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable
from typing import Final

from bench.processes import BenchFailed
from mesos_py.address import Address
from mesos_py.http.recordio import Reader

PATH: Final = "/api/v1/scheduler"
STREAM_ID: Final = "Mesos-Stream-Id"
# Connections for calls that a client keeps.
CALLERS: Final = 8
_OVER: Final = "the stream of events has ended"
_END: Final = b"\r\n\r\n"
_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([0-9]{3})")
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)
_STREAM_ID: Final = re.compile(rb"\r\nmesos-stream-id: *([^\r]+)", re.IGNORECASE)


def head(method: str, host: Address, path: str, *headers: str) -> bytes:
    """The head of a request, without the line that ends it."""
    return "\r\n".join((f"{method} {path} HTTP/1.1", f"Host: {host}", *headers, "")).encode()


class Chunks:
    """Takes the body of an answer that comes in chunks; gives those that are whole."""

    def __init__(self) -> None:
        self._rest = b""
        # Whether the last one has come.
        self.ended = False

    def feed(self, data: bytes) -> list[bytes]:
        if self._rest:
            data = self._rest + data
        at, found = 0, []
        while (end := data.find(b"\r\n", at)) >= 0:
            size = int(data[at:end], 16)
            if len(data) < end + 2 + size + 2:
                break
            at = end + 2 + size + 2
            if size:
                found.append(data[end + 2 : at - 2])
            else:
                self.ended = True
        self._rest = data[at:]
        return found


class EventStream(asyncio.Protocol):
    """Sends one request; hands on each record of its answer."""

    def __init__(self, request: bytes, received: Callable[[bytes], None]) -> None:
        self._request = request
        self._received = received
        self._head = b""
        self._chunks = Chunks()
        self._records = Reader()
        self._transport: asyncio.Transport | None = None
        # Set when the answer has begun, or has failed to.
        self.begun = asyncio.Event()
        self.stream_id = ""
        # Why there is no stream any more.
        self.failed = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self.stream_id:
            self._head += data
            begun, found, data = self._head.partition(_END)
            if not found:
                return
            named = _STREAM_ID.search(begun)
            if named is None:
                self.failed = f"SUBSCRIBE: {self._head[:300].decode(errors='replace')}"
                self.close()
                return
            self.stream_id = named[1].decode()
            self.begun.set()
        for chunk in self._chunks.feed(data):
            for record in self._records.feed(chunk):
                self._received(record)
        if self._chunks.ended:
            self.failed = self.failed or _OVER

    def connection_lost(self, exc: Exception | None) -> None:
        self.failed = self.failed or _OVER
        self.begun.set()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class Caller(asyncio.Protocol):
    """One connection for calls."""

    def __init__(self, callers: Callers) -> None:
        self._callers = callers
        self._rest = b""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._rest += data
        end = self._rest.find(_END)
        if end < 0:
            return
        length = _LENGTH.search(self._rest, 0, end + 2)
        size = int(length[1]) if length is not None else 0
        if len(self._rest) < end + len(_END) + size:
            return
        answer, self._rest = self._rest, b""
        self._callers.answered(self, answer)


class Callers:
    """Sends calls, in order as far as connections are free; counts the answers."""

    def __init__(self, host: Address, media: str, stream_id: str) -> None:
        self._host = host
        named = (f"Content-Type: {media}", f"{STREAM_ID}: {stream_id}")
        self._head = head("POST", host, PATH, *named) + b"Content-Length: "
        self._free: list[Caller] = []
        self._all: list[Caller] = []
        self._waiting: deque[bytes] = deque()
        self.sent = 0
        # Answers that are not 200 or 202.
        self.refused: list[str] = []

    async def connect(self) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(CALLERS):
            host, port = self._host.host, self._host.port
            _, caller = await loop.create_connection(lambda: Caller(self), host, port)
            self._all.append(caller)
        self._free = list(self._all)

    def send(self, body: bytes) -> None:
        request = self._head + b"%d\r\n\r\n" % len(body) + body
        if self._free:
            self._send(self._free.pop(), request)
        else:
            self._waiting.append(request)

    def answered(self, caller: Caller, answer: bytes) -> None:
        status = _STATUS.match(answer)
        if status is None or status[1] not in (b"200", b"202"):
            self.refused.append(answer[:300].decode(errors="replace"))
        if self._waiting:
            self._send(caller, self._waiting.popleft())
        else:
            self._free.append(caller)

    def close(self) -> None:
        for caller in self._all:
            if caller.transport is not None:
                caller.transport.abort()

    def _send(self, caller: Caller, request: bytes) -> None:
        if caller.transport is None or caller.transport.is_closing():
            raise BenchFailed("a connection for calls has been closed")
        self.sent += 1
        caller.transport.write(request)


__all__ = ["CALLERS", "PATH", "STREAM_ID", "Caller", "Callers", "Chunks", "EventStream", "head"]
