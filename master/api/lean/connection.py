"""One TCP connection of a peer, and the streams that it has opened.

What arrives is handed on in the order in which it lies in the buffer, until the turn is
over (`Turns`): then nothing more is read from the socket, so that the peer is held back
by TCP itself, and the rest is taken in a later round.  What is sent waits in a list for
the end of the round and leaves in one write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, Protocol

from hpack import Decoder, HPACKError

from master.api.lean import http2
from master.api.lean.flusher import Flusher
from master.api.lean.http2 import HEAD, HEAD_BYTES, Broken, Code, frame
from master.api.lean.stream import STREAM_WINDOW, Receiver, Stream
from master.api.turns import Turns
from mesos_py import logs

log = logs.get("master.front")

# What a peer may send beyond what was read.
CONNECTION_WINDOW: Final = 16 * 1024 * 1024
MAX_STREAMS: Final = 100_000
MAX_HEADER_BYTES: Final = 16 * 1024
# Who has said no more than that has his turn before those who say much.
SHORT_BYTES: Final = 4096
# What a peer may ask for while it does not read what it is answered.
MAX_UNREAD: Final = 100_000
# While so much waits to be written to the socket, streams are not asked for more.
WRITE_BUFFER: Final = 256 * 1024

_ANSWERED: Final = frozenset({http2.HEADERS, http2.PING, http2.SETTINGS})


class Accepting(Protocol):
    """Who decides what a new stream is for."""

    def opened(self, stream: Stream, path: str, headers: Mapping[str, str]) -> Receiver | None:
        """None: it has been finished at once."""
        ...

    def ended(self) -> None:
        """A stream is over."""
        ...

    def lost(self, connection: Connection) -> None:
        """The connection is no more."""
        ...


class Connection(asyncio.Protocol):
    """See the module's docstring."""

    def __init__(self, accepting: Accepting, flusher: Flusher, turns: Turns) -> None:
        self._accepting = accepting
        self._flusher = flusher
        self._turns = turns
        self._transport: asyncio.Transport | None = None
        self.peer = ""
        self.streams: dict[int, Stream] = {}
        # What may be sent; whether the socket takes no more for now.
        self.window = http2.FIRST_WINDOW
        self.paused = False
        self._first_window = http2.FIRST_WINDOW
        self._waiting: dict[int, Stream] = {}
        self._rest = b""
        self._greeted = self._over = self._held = self._leaving = False
        # Frames that are answered, since the socket took no more.
        self._unread = 0
        self._last = 0
        self._received = 0
        self._decoder: Decoder | None = None
        # A block of headers that is not complete: its stream, flags and bytes.
        self._block: tuple[int, int, bytes] | None = None
        self._out: list[bytes] = []
        self._heard = True
        self._asked = False

    # ---- For streams -------------------------------------------------------------

    def put(self, part: bytes) -> None:
        """Goes out at the end of this round."""
        if not self._out:
            self._flusher.add_connection(self)
        self._out.append(part)

    def flush(self) -> None:
        if self._transport is not None and self._out:
            self._transport.write(b"".join(self._out))
        self._out.clear()

    def wait(self, stream: Stream) -> None:
        """Tell it when more can be sent."""
        self._waiting[stream.number] = stream

    def forget(self, stream: Stream) -> None:
        self.streams.pop(stream.number, None)
        self._waiting.pop(stream.number, None)
        self._accepting.ended()

    # ---- For the server ----------------------------------------------------------

    def look(self) -> None:
        """Called now and then: a peer that says nothing is asked, and if it does not
        answer until the next time, it is gone."""
        if self._heard or self._held:
            # What waits to be taken may be the answer.
            self._heard = self._asked = False
        elif self._asked:
            log.info("peer does not answer", peer=self.peer)
            self.abort()
        else:
            self._asked = True
            self.put(frame(http2.PING, 0, 0, bytes(8)))

    def leave(self) -> None:
        """Take no new streams; those that there are go on."""
        self._leaving = True
        self.put(_goaway(self._last, Code.NO_ERROR, ""))

    def close(self) -> None:
        """End it after what was put."""
        self.flush()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # ---- asyncio.Protocol --------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(WRITE_BUFFER)
        name = transport.get_extra_info("peername")
        if name:
            self.peer = f"{name[0]}:{name[1]}"
        self.put(_GREETING)

    def connection_lost(self, exc: Exception | None) -> None:
        self._over = True
        self._transport = None
        streams, self.streams = self.streams, {}
        for stream in streams.values():
            receiver, stream.receiver = stream.receiver, None
            stream.done = True
            if receiver is not None:
                receiver.gone()
        self._waiting.clear()
        self._accepting.lost(self)

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self._unread = 0
        self._open_all()

    def data_received(self, data: bytes) -> None:
        self._heard = True
        if self._rest:
            data = self._rest + data
            self._rest = b""
        if self._held:
            # Only now: mostly its turn comes before it says more, and to ask the kernel
            # for silence and then for news again costs more than to read.
            self._rest = data
            if self._transport is not None:
                self._transport.pause_reading()
        elif self._turns.free():
            self._process(data)
        else:
            self._hold(data)

    def _hold(self, data: bytes) -> None:
        """Take it in a later round."""
        self._rest = data
        if not self._held:
            self._held = True
            self._turns.queue(self._go_on, short=len(data) <= SHORT_BYTES)

    def _go_on(self) -> None:
        self._held = False
        if self._over or self._transport is None:
            return
        data, self._rest = self._rest, b""
        self._process(data)
        self._read_again()

    def _read_again(self) -> None:
        transport = self._transport
        if self._held or transport is None or transport.is_closing():
            return
        if not transport.is_reading():
            transport.resume_reading()

    def _process(self, data: bytes) -> None:
        try:
            self._frames(data)
        except Broken as broken:
            self._break(broken)
        except Exception as error:
            # A fault of ours with this peer's bytes must not concern the others.
            log.exception("connection failed", peer=self.peer)
            self._break(Broken(Code.INTERNAL_ERROR, type(error).__name__))

    def _break(self, broken: Broken) -> None:
        log.warning("connection broken", peer=self.peer, reason=str(broken))
        self._over = True
        self.put(_goaway(self._last, broken.code, str(broken)))
        self.close()

    # ---- Frames --------------------------------------------------------------------

    def _frames(self, data: bytes) -> None:
        at, most = self._greeting(data), len(data)
        spent, streams = self._turns.spent, self.streams
        while self._greeted and most - at >= HEAD_BYTES:
            word, flags, number = HEAD.unpack_from(data, at)
            size, kind = word >> 8, word & 0xFF
            if size > http2.FRAME_BYTES:
                raise Broken(Code.FRAME_SIZE_ERROR, f"a frame of {size} bytes")
            end = at + HEAD_BYTES + size
            if most < end:
                break
            if spent():
                self._hold(data[at:])
                return
            payload = data[at + HEAD_BYTES : end]
            at = end
            number &= http2.STREAM_MASK
            if self._block is not None and kind != http2.CONTINUATION:
                raise Broken(Code.PROTOCOL_ERROR, "headers are not continued")
            if kind:
                self._take(kind, flags, number, payload)
            else:
                self._data(streams.get(number), number, flags, payload)
        self._rest = data[at:]

    def _greeting(self, data: bytes) -> int:
        """Where the frames begin; where they would if not all of the preface is there."""
        if self._greeted:
            return 0
        most = len(http2.PREFACE)
        if data[:most] != http2.PREFACE[: len(data)]:
            raise Broken(Code.PROTOCOL_ERROR, "no HTTP/2")
        self._greeted = len(data) >= most
        return most if self._greeted else 0

    def _data(self, stream: Stream | None, number: int, flags: int, payload: bytes) -> None:
        self._received += len(payload)
        if self._received >= CONNECTION_WINDOW // 2:
            self._widen()
        if stream is None or stream.remote_done:
            if number > self._last or not number % 2:
                raise Broken(Code.PROTOCOL_ERROR, f"data on stream {number}")
        elif flags:
            self._flagged(stream, flags, payload)
        else:
            stream.take(payload)

    def _flagged(self, stream: Stream, flags: int, payload: bytes) -> None:
        content = http2.unpadded(flags, payload)
        stream.grant(len(payload) - len(content))
        if content:
            stream.take(content)
        if flags & http2.END_STREAM:
            self._half_closed(stream)

    def _half_closed(self, stream: Stream) -> None:
        if not stream.remote_done:
            stream.remote_done = True
            if stream.receiver is not None:
                stream.receiver.half_closed()

    def _widen(self) -> None:
        opened = self._received.to_bytes(4, "big")
        self._received = 0
        self.put(frame(http2.WINDOW_UPDATE, 0, 0, opened))

    def _take(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if self.paused and kind in _ANSWERED:
            self._unread += 1
            if self._unread > MAX_UNREAD:
                raise Broken(Code.ENHANCE_YOUR_CALM, "asks on and on, and reads no answer")
        match kind:
            case http2.HEADERS:
                self._headers(number, flags, payload)
            case http2.CONTINUATION:
                self._continued(number, flags, payload)
            case http2.WINDOW_UPDATE:
                self._window_update(number, payload)
            case http2.PING:
                self._pinged(flags, payload)
            case http2.SETTINGS:
                if not flags & http2.ACK:
                    self._settings(payload)
            case http2.RST_STREAM:
                self._reset(number)
            case http2.PUSH_PROMISE:
                raise Broken(Code.PROTOCOL_ERROR, "a client promises nothing")
            case _:
                pass  # PRIORITY, GOAWAY, and what we do not know

    def _pinged(self, flags: int, payload: bytes) -> None:
        if len(payload) != 8:
            raise Broken(Code.FRAME_SIZE_ERROR, "a ping of another size")
        if not flags & http2.ACK:
            self.put(frame(http2.PING, http2.ACK, 0, payload))

    def _settings(self, payload: bytes) -> None:
        if len(payload) % 6:
            raise Broken(Code.FRAME_SIZE_ERROR, "settings of another size")
        for at in range(0, len(payload), 6):
            name = int.from_bytes(payload[at : at + 2], "big")
            value = int.from_bytes(payload[at + 2 : at + 6], "big")
            if name == http2.INITIAL_WINDOW:
                if value > http2.MOST:
                    raise Broken(Code.FLOW_CONTROL_ERROR, "a window beyond all bounds")
                for stream in self.streams.values():
                    stream.window += value - self._first_window
                self._first_window = value
        self.put(frame(http2.SETTINGS, http2.ACK, 0, b""))
        self._open_all()

    def _window_update(self, number: int, payload: bytes) -> None:
        by = int.from_bytes(payload, "big") & http2.MOST
        if len(payload) != 4 or (not by and not number):
            raise Broken(Code.PROTOCOL_ERROR, "a window is opened by nothing")
        if not number:
            self.window += by
            if self.window > http2.MOST:
                raise Broken(Code.FLOW_CONTROL_ERROR, "a window beyond all bounds")
            self._open_all()
            return
        stream = self.streams.get(number)
        if stream is not None:
            was = stream.window
            stream.window += by
            if stream.window > http2.MOST:
                raise Broken(Code.FLOW_CONTROL_ERROR, "a window beyond all bounds")
            if number in self._waiting or was <= 0:
                self._waiting.pop(number, None)
                stream.opened()

    def _open_all(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for stream in waiting.values():
            stream.opened()

    def _reset(self, number: int) -> None:
        stream = self.streams.get(number)
        if stream is not None:
            stream.done = True
            receiver, stream.receiver = stream.receiver, None
            self.forget(stream)
            if receiver is not None:
                receiver.gone()

    # ---- New streams -------------------------------------------------------------

    def _headers(self, number: int, flags: int, payload: bytes) -> None:
        content = http2.unpadded(flags, payload)
        if flags & http2.PRIORITIZED:
            content = content[5:]
        if flags & http2.END_HEADERS:
            self._opened(number, flags, content)
        else:
            self._block = (number, flags, content)

    def _continued(self, number: int, flags: int, payload: bytes) -> None:
        if self._block is None or self._block[0] != number:
            raise Broken(Code.PROTOCOL_ERROR, "a continuation of nothing")
        _, first, content = self._block
        content += payload
        if len(content) > MAX_HEADER_BYTES:
            raise Broken(Code.ENHANCE_YOUR_CALM, "headers without an end")
        self._block = None
        if flags & http2.END_HEADERS:
            self._opened(number, first, content)
        else:
            self._block = (number, first, content)

    def _opened(self, number: int, flags: int, block: bytes) -> None:
        headers = self._decoded(block)
        known = self.streams.get(number)
        if known is not None:
            # Trailers of the peer, which end its side.
            self._half_closed(known)
            return
        if number <= self._last:
            return  # of a stream that is over
        if not number % 2:
            raise Broken(Code.PROTOCOL_ERROR, f"stream {number} is none of a client")
        self._last = number
        stream = Stream(self, number, self._first_window)
        if self._leaving or len(self.streams) >= MAX_STREAMS:
            # The peer may safely ask somebody else.
            stream.reset(Code.REFUSED_STREAM)
            return
        self.streams[number] = stream
        if not headers.get("content-type", "").startswith("application/grpc"):
            stream.done = True
            end = http2.END_HEADERS | http2.END_STREAM
            self.put(frame(http2.HEADERS, end, number, http2.UNSUPPORTED))
            self.forget(stream)
            return
        stream.receiver = self._accepting.opened(stream, headers.get(":path", ""), headers)
        if flags & http2.END_STREAM:
            self._half_closed(stream)

    def _decoded(self, block: bytes) -> dict[str, str]:
        if self._decoder is None:
            self._decoder = Decoder(MAX_HEADER_BYTES)
        try:
            found = self._decoder.decode(block, raw=True)
            # Latin 1: any byte may stand in metadata, and of those we read none.
            return {bytes(k).decode("latin-1"): bytes(v).decode("latin-1") for k, v in found}
        except HPACKError as error:
            raise Broken(Code.COMPRESSION_ERROR, f"headers: {error}") from None


def _goaway(last: int, code: Code, reason: str) -> bytes:
    payload = last.to_bytes(4, "big") + int(code).to_bytes(4, "big") + reason.encode()
    return frame(http2.GOAWAY, 0, 0, payload)


def _setting(name: int, value: int) -> bytes:
    return name.to_bytes(2, "big") + value.to_bytes(4, "big")


_GREETING: Final = frame(
    http2.SETTINGS,
    0,
    0,
    _setting(http2.MAX_CONCURRENT_STREAMS, MAX_STREAMS)
    + _setting(http2.INITIAL_WINDOW, STREAM_WINDOW)
    + _setting(http2.MAX_HEADER_LIST, MAX_HEADER_BYTES),
) + frame(http2.WINDOW_UPDATE, 0, 0, (CONNECTION_WINDOW - http2.FIRST_WINDOW).to_bytes(4, "big"))
