"""The bytes of HTTP/2 (RFC 9113) and of gRPC over it, as far as a server needs them."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable
from enum import IntEnum
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD: Final = struct.Struct(">IBI")
# Head and prefix of a message that is a frame of its own.
MESSAGE_HEAD: Final = struct.Struct(">IBIBI")
HEAD_BYTES: Final = 9
# Before each message: whether it is compressed, and its length.
PREFIX_BYTES: Final = 5
# What every peer takes, and the most that we do.
FRAME_BYTES: Final = 16_384
FIRST_WINDOW: Final = 65_535
MOST: Final = 2**31 - 1
STREAM_MASK: Final = MOST

DATA: Final = 0
HEADERS: Final = 1
PRIORITY: Final = 2
RST_STREAM: Final = 3
SETTINGS: Final = 4
PUSH_PROMISE: Final = 5
PING: Final = 6
GOAWAY: Final = 7
WINDOW_UPDATE: Final = 8
CONTINUATION: Final = 9

ACK: Final = 1
END_STREAM: Final = 1
END_HEADERS: Final = 4
PADDED: Final = 8
PRIORITIZED: Final = 0x20

MAX_CONCURRENT_STREAMS: Final = 3
INITIAL_WINDOW: Final = 4
MAX_HEADER_LIST: Final = 6


class Code(IntEnum):
    """Why a stream or a connection is ended (RFC 9113, section 7)."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    ENHANCE_YOUR_CALM = 11


class Broken(Exception):
    """The peer's bytes are no HTTP/2 that may be: the connection ends."""

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return HEAD.pack(len(payload) << 8 | kind, flags, stream) + payload


def unpadded(flags: int, payload: bytes) -> bytes:
    """What stands between the padding of a DATA or HEADERS frame, and before it."""
    if flags & PADDED:
        if not payload or payload[0] >= len(payload):
            raise Broken(Code.PROTOCOL_ERROR, "a frame is padded beyond its length")
        payload = payload[1 : len(payload) - payload[0]]
    return payload


# ---- What we say in headers ------------------------------------------------------------
# Literals only, never put into the peer's table: so there is no state on this side.


def _length(size: int) -> bytes:
    if size < 127:
        return bytes([size])
    out, rest = bytearray([127]), size - 127
    while rest > 127:
        out.append(rest & 127 | 128)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def header(name: bytes, value: bytes) -> bytes:
    return b"\x00" + _length(len(name)) + name + _length(len(value)) + value


# Entry 8 of the static table is ":status: 200".
ANSWER: Final = b"\x88" + header(b"content-type", b"application/grpc")
# Entry 8's name with another value; for who does not speak gRPC at all.
UNSUPPORTED: Final = b"\x08\x03415"


def trailer(
    code: int, details: str = "", metadata: Iterable[tuple[str, str | bytes]] = ()
) -> bytes:
    """The status of a call, as a block of headers."""
    block = header(b"grpc-status", b"%d" % code)
    if details:
        block += header(b"grpc-message", _percent(details))
    for name, value in metadata:
        raw = value if isinstance(value, bytes) else value.encode()
        if name.endswith("-bin"):
            raw = base64.b64encode(raw).rstrip(b"=")
        block += header(name.encode(), raw)
    return block


def _percent(text: str) -> bytes:
    return b"".join(
        b"%c" % byte if 0x20 <= byte <= 0x7E and byte != 0x25 else b"%%%02X" % byte
        for byte in text.encode()
    )


_UNITS: Final = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}


def timeout_s(text: str | None) -> float | None:
    """The seconds of a grpc-timeout; None for none, and for what is none."""
    if not text or text[-1] not in _UNITS or not text[:-1].isdecimal() or len(text) > 9:
        return None
    return int(text[:-1]) * _UNITS[text[-1]]
