"""Many gRPC streams over one TCP connection, as cheap as they can be.

The peers of this bench share two cores with the master that it measures, so what they
spend is taken from it.  Hundreds of agents share a connection: frames of many of them
are read by one system call and written by one.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from typing import Final

from bench.failover.wire import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    FIRST_WINDOW,
    FRAME_BYTES,
    GOAWAY,
    HEAD_BYTES,
    HEADERS,
    INITIAL_WINDOW,
    PING,
    PREFIX_BYTES,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Receiver,
    beginning,
    frame,
    request,
)

_head: Final = struct.Struct(">IBI")
# Head and prefix of a message that fits into one frame.
_whole: Final = struct.Struct(">IBIBI")


class Connection(asyncio.Protocol):
    """Opens streams with `open`, once it is connected."""

    def __init__(self, authority: str) -> None:
        self._authority = authority
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._rest = b""
        self._next_stream = 1
        self._receivers: dict[int, Receiver] = {}
        # Of messages that have not come whole.
        self._parts: dict[int, bytearray] = {}
        self._out: list[bytes] = []
        self._window = self._first_window = FIRST_WINDOW
        # What may still be sent on each stream, and what waits for a window.
        self._windows: dict[int, int] = {}
        self._blocked: deque[tuple[int, bytes]] = deque()
        self.received_messages = self.sent_messages = 0

    def open(self, method: str, receiver: Receiver) -> int:
        stream, self._next_stream = self._next_stream, self._next_stream + 2
        self._receivers[stream] = receiver
        self._windows[stream] = self._first_window
        self._put(frame(HEADERS, END_HEADERS, stream, request(self._authority, method)))
        return stream

    def send(self, stream: int, message: bytes) -> None:
        """Goes out with all else that is sent in this round of the loop."""
        self.sent_messages += 1
        size = len(message) + PREFIX_BYTES
        if self._blocked or size > FRAME_BYTES or not self._take_window(stream, size):
            whole = struct.pack(">BI", 0, len(message)) + message
            parts = range(0, size, FRAME_BYTES)
            self._blocked.extend((stream, whole[at : at + FRAME_BYTES]) for at in parts)
            self._unblock()
            return
        self._put(_whole.pack(size << 8 | DATA, 0, stream, 0, len(message)) + message)

    def close(self) -> None:
        self._receivers.clear()
        if self._transport is not None:
            self._transport.abort()

    # ---- Protocol ------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(beginning())

    def data_received(self, data: bytes) -> None:
        if self._rest:
            data = self._rest + data
        at, most = 0, len(data)
        while most - at >= HEAD_BYTES:
            word, flags, stream = _head.unpack_from(data, at)
            end = at + HEAD_BYTES + (word >> 8)
            if most < end:
                break
            self._take(word & 0xFF, flags, stream, data[at + HEAD_BYTES : end])
            at = end
        self._rest = data[at:]

    def connection_lost(self, exc: Exception | None) -> None:
        receivers, self._receivers = self._receivers, {}
        for receiver in receivers.values():
            receiver.ended()

    # ---- Frames --------------------------------------------------------------

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == DATA:
            self._take_data(stream, payload)
        elif kind == WINDOW_UPDATE:
            self._widen(stream, int.from_bytes(payload, "big"))
        elif kind == PING and not flags & ACK:
            self._put(frame(PING, ACK, 0, payload))
        elif kind == SETTINGS and not flags & ACK:
            self._take_settings(payload)
        if kind == RST_STREAM or (kind in (DATA, HEADERS) and flags & END_STREAM):
            receiver = self._receivers.pop(stream, None)
            if receiver is not None:
                receiver.ended()
        elif kind == GOAWAY and self._transport is not None:
            self._transport.abort()

    def _take_data(self, stream: int, payload: bytes) -> None:
        receiver = self._receivers.get(stream)
        if receiver is None:
            return
        parts = self._parts.pop(stream, None)
        if parts is None:
            if len(payload) - PREFIX_BYTES == int.from_bytes(payload[1:PREFIX_BYTES], "big"):
                self.received_messages += 1
                receiver.received(payload[PREFIX_BYTES:])
                return
            parts = bytearray()
        parts += payload
        while len(parts) >= PREFIX_BYTES:
            end = PREFIX_BYTES + int.from_bytes(parts[1:PREFIX_BYTES], "big")
            if len(parts) < end:
                break
            self.received_messages += 1
            receiver.received(bytes(parts[PREFIX_BYTES:end]))
            del parts[:end]
        if parts:
            self._parts[stream] = parts

    def _take_settings(self, payload: bytes) -> None:
        for name, value in struct.iter_unpack(">HI", payload):
            if name == INITIAL_WINDOW:
                for stream in self._windows:
                    self._windows[stream] += value - self._first_window
                self._first_window = value
        self._put(frame(SETTINGS, ACK, 0, b""))
        self._unblock()

    def _widen(self, stream: int, by: int) -> None:
        if stream:
            self._windows[stream] += by
        else:
            self._window += by
        self._unblock()

    def _take_window(self, stream: int, size: int) -> bool:
        windows = self._windows
        if size > self._window or size > windows[stream]:
            return False
        self._window -= size
        windows[stream] -= size
        return True

    def _unblock(self) -> None:
        # In order: one that waits holds the others of this connection back.
        while self._blocked and self._take_window(self._blocked[0][0], len(self._blocked[0][1])):
            stream, part = self._blocked.popleft()
            self._put(frame(DATA, 0, stream, part))

    def _put(self, part: bytes) -> None:
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(part)

    def _flush(self) -> None:
        if self._transport is not None:
            self._transport.write(b"".join(self._out))
        self._out.clear()
