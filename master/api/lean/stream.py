"""One call of a peer: its messages in both directions, within its windows."""

from __future__ import annotations

from typing import Final, Protocol

from master.api.lean import http2
from master.api.lean.http2 import MESSAGE_HEAD, PREFIX_BYTES, Code, frame
from mesos_py import rpc

# What a stream may send beyond what was taken of it.
STREAM_WINDOW: Final = 256 * 1024
_UNIMPLEMENTED: Final = 12
_RESOURCE_EXHAUSTED: Final = 8


class Receiver(Protocol):
    """Who is told of one stream."""

    def received(self, message: bytes) -> bool:
        """A message.  False: it is not taken yet; `Stream.grant` will say when it is."""
        ...

    def half_closed(self) -> None:
        """The peer says nothing more, and may still listen."""
        ...

    def gone(self) -> None:
        """The stream is over, by the peer's will or with its connection; once, and never
        after `Stream.finish` or `reset`."""
        ...

    def writable(self) -> None:
        """`Stream.ready` is true again."""
        ...


class Wire(Protocol):
    """What a stream needs of its connection.

    `window`: what the connection may still send; `paused`: its socket takes no more.
    """

    peer: str
    window: int
    paused: bool

    def put(self, part: bytes) -> None:
        """Send it at the end of this round."""
        ...

    def wait(self, stream: Stream) -> None:
        """Call its `opened` when more can be sent."""
        ...

    def forget(self, stream: Stream) -> None:
        """It is over."""
        ...


class Stream:
    """One call of the peer."""

    __slots__ = (
        "_answered",
        "_early",
        "_ending",
        "_given",
        "_part",
        "_unsent",
        "connection",
        "done",
        "number",
        "receiver",
        "remote_done",
        "window",
    )

    def __init__(self, connection: Wire, number: int, window: int) -> None:
        self.connection = connection
        self.number = number
        # What may be sent on it.
        self.window = window
        self.receiver: Receiver | None = None
        # Whether the peer, and whether this side, has ended it.
        self.remote_done = self.done = False
        self._part: bytearray | None = None
        # Taken since the window was opened last, and how much of `_part` counts there:
        # that is taken back once the message is whole, for then all of it counts.
        self._given = self._early = 0
        self._answered = False
        self._unsent = b""
        self._ending: bytes | None = None

    @property
    def ready(self) -> bool:
        """Whether a message would be sent at once, or at least begun."""
        return not (self._unsent or self.done or self.connection.paused) and self.window > 0

    # ---- Out -------------------------------------------------------------------

    def send(self, message: bytes) -> None:
        """Send a message, all of it sooner or later.  Only while `ready`."""
        connection, size = self.connection, len(message) + PREFIX_BYTES
        if not self._answered:
            self._answer()
        if size <= http2.FRAME_BYTES and size <= self.window and size <= connection.window:
            self.window -= size
            connection.window -= size
            head = MESSAGE_HEAD.pack(size << 8, 0, self.number, 0, len(message))
            connection.put(head + message)
            return
        self._unsent = b"\x00" + len(message).to_bytes(4, "big") + message
        self.go_on()

    def go_on(self) -> None:
        """Send more of what is left, as far as the windows are open."""
        connection, unsent, at = self.connection, self._unsent, 0
        while at < len(unsent) and not connection.paused:
            room = min(self.window, connection.window, http2.FRAME_BYTES)
            if room <= 0:
                break
            part = unsent[at : at + room]
            at += len(part)
            self.window -= len(part)
            connection.window -= len(part)
            connection.put(frame(http2.DATA, 0, self.number, part))
        self._unsent = unsent[at:]
        if self._unsent:
            connection.wait(self)
        elif self._ending is not None:
            self._end(self._ending)

    def opened(self) -> None:
        """A window is open again, or the socket takes more."""
        if self.done:
            return
        if self._unsent:
            self.go_on()
        if not self.ready:
            self.connection.wait(self)
        elif self.receiver is not None:
            self.receiver.writable()

    def finish(self, trailer: bytes) -> None:
        """End the call with a status, after what is still being sent."""
        if self.done or self._ending is not None:
            return
        self.receiver = None
        if self._unsent:
            self._ending = trailer
        else:
            self._end(trailer)

    def reset(self, code: Code = Code.CANCEL) -> None:
        """End the call at once, without a status."""
        if not self.done:
            self.done, self.receiver = True, None
            self.connection.put(
                frame(http2.RST_STREAM, 0, self.number, int(code).to_bytes(4, "big"))
            )
            self.connection.forget(self)

    def _answer(self) -> None:
        self._answered = True
        self.connection.put(frame(http2.HEADERS, http2.END_HEADERS, self.number, http2.ANSWER))

    def _end(self, trailer: bytes) -> None:
        self.done = True
        block = trailer if self._answered else http2.ANSWER + trailer
        flags = http2.END_HEADERS | http2.END_STREAM
        self.connection.put(frame(http2.HEADERS, flags, self.number, block))
        if not self.remote_done:
            # So that the peer stops sending, too.
            no_error = int(Code.NO_ERROR).to_bytes(4, "big")
            self.connection.put(frame(http2.RST_STREAM, 0, self.number, no_error))
        self.connection.forget(self)

    # ---- In --------------------------------------------------------------------

    def grant(self, size: int) -> None:
        """So much of what the peer has sent is taken: it may send as much again."""
        self._given += size
        if self._given >= STREAM_WINDOW // 2 and not (self.done or self.remote_done):
            opened = self._given.to_bytes(4, "big")
            self._given = 0
            self.connection.put(frame(http2.WINDOW_UPDATE, 0, self.number, opened))

    def take(self, payload: bytes) -> None:
        """A part of the peer's messages."""
        if self.receiver is None:
            # Its end waits for what is still being sent: nobody wants to hear more.
            self._part = None
            self.grant(len(payload))
            return
        part = self._part
        if part is None:
            size = len(payload)
            # Its length is five bytes, of which the first is 0 unless it is compressed.
            if int.from_bytes(payload[:PREFIX_BYTES], "big") == size - PREFIX_BYTES:
                self._hand_on(payload[PREFIX_BYTES:])
                return
            part = self._part = bytearray()
        part += payload
        while len(part) >= PREFIX_BYTES:
            size = int.from_bytes(part[1:PREFIX_BYTES], "big")
            if part[0]:
                self._refuse(_UNIMPLEMENTED, "messages must not be compressed")
                return
            if size > rpc.MAX_MESSAGE_BYTES:
                text = f"a message of {size} bytes; at most {rpc.MAX_MESSAGE_BYTES} are taken"
                self._refuse(_RESOURCE_EXHAUSTED, text)
                return
            end = PREFIX_BYTES + size
            if len(part) < end:
                # What is here of it does not count, or it could not come whole.
                self.grant(len(part) - self._early)
                self._early = len(part)
                return
            message = bytes(part[PREFIX_BYTES:end])
            del part[:end]
            self._given -= self._early
            self._early = 0
            self._hand_on(message)
        if not part:
            self._part = None

    def _hand_on(self, message: bytes) -> None:
        receiver = self.receiver
        if receiver is None or receiver.received(message):
            self.grant(len(message) + PREFIX_BYTES)

    def _refuse(self, code: int, details: str) -> None:
        receiver = self.receiver
        self.finish(http2.trailer(code, details))
        if receiver is not None:
            receiver.gone()
