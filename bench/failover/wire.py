"""One gRPC stream over a TCP connection of its own, as the peers of a bench hold thousands.

HTTP/2 is written out here, as little of it as one stream needs: a channel of gRPC costs
its process about a millisecond to open and two threads' attention after that, so that
thousands of them in one process would measure that process and not the master.  What
the master sees is the same: a connection per peer, the same frames, the same flow control.
"""

from __future__ import annotations

import asyncio
import struct
from typing import Final, Protocol

DATA: Final = 0
HEADERS: Final = 1
RST_STREAM: Final = 3
SETTINGS: Final = 4
PING: Final = 6
GOAWAY: Final = 7
WINDOW_UPDATE: Final = 8
ACK: Final = 1
END_STREAM: Final = 1
END_HEADERS: Final = 4
INITIAL_WINDOW: Final = 4
_STREAM: Final = 1
HEAD_BYTES: Final = 9
PREFIX_BYTES: Final = 5
FRAME_BYTES: Final = 16_384
FIRST_WINDOW: Final = 65_535
MOST: Final = 2**31 - 1


class Receiver(Protocol):
    """Who is told of a stream."""

    def received(self, message: bytes) -> None: ...

    def ended(self) -> None:
        """By either side, once; nothing is received after."""
        ...


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload) << 8 | kind) + struct.pack(">BI", flags, stream) + payload


def _text(value: str) -> bytes:
    raw = value.encode()
    assert len(raw) < 127, "longer texts have a longer length"
    return bytes([len(raw)]) + raw


def beginning() -> bytes:
    """All that stands before the first stream.

    The windows for what we receive are as wide as they can be and never opened again:
    no peer of a bench receives two gigabytes.
    """
    return (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW, MOST))
        + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", MOST - FIRST_WINDOW))
    )


def request(authority: str, method: str) -> bytes:
    """The headers of a stream that calls `method`, as the payload of its HEADERS frame."""
    headers = b"\x83\x86"  # :method POST, :scheme http
    headers += b"\x04" + _text(method)  # :path
    headers += b"\x01" + _text(authority)  # :authority
    headers += b"\x0f\x10" + _text("application/grpc")  # content-type
    headers += b"\x00" + _text("te") + _text("trailers")
    return headers


def preface(authority: str, method: str) -> bytes:
    """All that stands before the first message: the same for every connection."""
    headers = request(authority, method)
    return beginning() + frame(HEADERS, END_HEADERS, _STREAM, headers)


class Wire(asyncio.Protocol):
    """One connection.  `send` may be called from `connection_made` on."""

    def __init__(self, receiver: Receiver, opening: bytes) -> None:
        """`opening` is a `preface`."""
        self._receiver = receiver
        self._opening = opening
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        # Messages in the DATA frames so far, not yet complete.
        self._data = bytearray()
        # What may still be sent, of the connection and of the stream.
        self._windows = [FIRST_WINDOW, FIRST_WINDOW]
        self._first_window = FIRST_WINDOW
        self._unsent = bytearray()
        self._over = False

    def send(self, message: bytes) -> None:
        """Send one message, or keep it until the peer's window has room."""
        self._unsent += struct.pack(">BI", 0, len(message)) + message
        self._flush()

    def cut(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    # ---- Protocol ------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._opening)

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        at = 0
        while len(buffer) - at >= HEAD_BYTES:
            word, flags, stream = struct.unpack_from(">IBI", buffer, at)
            length, kind = word >> 8, word & 0xFF
            end = at + HEAD_BYTES + length
            if len(buffer) < end:
                break
            payload = bytes(buffer[at + HEAD_BYTES : end])
            at = end
            self._take(kind, flags, stream, payload)
            if self._over:
                return
        del buffer[:at]

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    # ---- Frames --------------------------------------------------------------

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == DATA:
            self._take_data(payload)
        elif kind == WINDOW_UPDATE:
            self._windows[1 if stream else 0] += struct.unpack(">I", payload)[0]
            self._flush()
        elif kind == PING and not flags & ACK:
            self._write(frame(PING, ACK, 0, payload))
        elif kind == SETTINGS and not flags & ACK:
            self._take_settings(payload)
        if kind in (RST_STREAM, GOAWAY) or (kind in (DATA, HEADERS) and flags & END_STREAM):
            self._end()

    def _take_data(self, payload: bytes) -> None:
        data = self._data
        data += payload
        while len(data) >= PREFIX_BYTES:
            end = PREFIX_BYTES + int.from_bytes(data[1:PREFIX_BYTES], "big")
            if len(data) < end:
                return
            message = bytes(data[PREFIX_BYTES:end])
            del data[:end]
            self._receiver.received(message)

    def _take_settings(self, payload: bytes) -> None:
        for name, value in struct.iter_unpack(">HI", payload):
            if name == INITIAL_WINDOW:
                self._windows[1] += value - self._first_window
                self._first_window = value
        self._write(frame(SETTINGS, ACK, 0, b""))
        self._flush()

    def _flush(self) -> None:
        while self._unsent and (room := min(*self._windows, FRAME_BYTES)) > 0:
            part = bytes(self._unsent[:room])
            del self._unsent[:room]
            self._windows[0] -= len(part)
            self._windows[1] -= len(part)
            self._write(frame(DATA, 0, _STREAM, part))

    def _write(self, frame: bytes) -> None:
        if self._transport is not None and not self._over:
            self._transport.write(frame)

    def _end(self) -> None:
        if not self._over:
            self._over = True
            self.cut()
            self._receiver.ended()
