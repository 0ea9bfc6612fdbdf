"""Streams between the core and the models of its peers: ordered, slow, now and then broken.

What either side sends waits in its stream until the driver delivers it.  Each
direction keeps its order and a broken one loses its last messages; between streams
there is no order at all.  The end of a stream is a message like the others, so that
the two sides notice it at different times, and a peer may be back on a new stream
before the master knows that the old one has ended.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from mesos_py.v1 import agent_pb2, scheduler_pb2
from tests.kit.core import RecordingOutbox


class End:
    """The last thing in either direction of a stream."""

    def __repr__(self) -> str:
        return "END"


END: Final = End()


class Peer(Protocol):
    """Who has the other end of a stream."""

    name: str

    def receive(self, stream: Stream, event: Any) -> None: ...

    def lost(self, stream: Stream) -> None:
        """The stream has ended, as far as this side can see."""
        ...


@dataclass(eq=False, slots=True)
class Stream:
    number: int
    peer: Peer
    of_agent: bool
    up: deque[Any] = field(default_factory=deque)
    down: deque[Any] = field(default_factory=deque)
    # The link is dead and neither side knows.
    frozen: bool = False
    # Nothing more may be put into the direction.
    up_ended: bool = False
    down_ended: bool = False

    def send(self, call: Any) -> None:
        if not self.up_ended:
            self.up.append(call)

    def end_up(self) -> None:
        if not self.up_ended:
            self.up_ended = True
            self.up.append(END)

    def end_down(self) -> None:
        if not self.down_ended:
            self.down_ended = True
            self.down.append(END)


class Net(RecordingOutbox):
    """All streams; the core's outbox."""

    def __init__(self) -> None:
        super().__init__()
        self.streams: dict[int, Stream] = {}
        # Whether there was more than one master.
        self.successors = False
        # Sees every event at the moment at which the core sends it.
        self.on_event: Callable[[int, Any], None] = lambda link, event: None
        self._numbers = 0

    def open(self, peer: Peer, of_agent: bool) -> Stream:
        self._numbers += 1
        stream = self.streams[self._numbers] = Stream(self._numbers, peer, of_agent)
        return stream

    # ---- The core's side -----------------------------------------------------

    def to_framework(self, link: int, event: Any) -> None:
        self._put(link, event)

    def to_agent(self, link: int, event: Any) -> None:
        self._put(link, event)

    def close(self, link: int, reason: str) -> None:
        """What was put before still goes down; some of what comes up is read no more."""
        stream = self.streams.get(link)
        if stream is not None:
            stream.end_down()
            stream.end_up()

    def dropped(self, reason: str, **ids: object) -> None:
        pass

    def _put(self, link: int, event: Any) -> None:
        self.on_event(link, event)
        stream = self.streams.get(link)
        if stream is not None and not stream.down_ended:
            stream.down.append(event)

    # ---- Faults --------------------------------------------------------------

    def break_off(self, stream: Stream, rng: random.Random) -> None:
        """The connection breaks: each direction loses what was sent last."""
        stream.frozen = False
        for queue, ended in ((stream.up, stream.up_ended), (stream.down, stream.down_ended)):
            if ended and not queue:
                continue  # its end has been noticed already
            if ended:
                queue.pop()
            for _ in range(rng.randint(0, len(queue))):
                queue.pop()
            queue.append(END)
        stream.up_ended = stream.down_ended = True

    def leave(self, stream: Stream, rng: random.Random) -> None:
        """The peer's process is gone: it reads nothing more."""
        self.break_off(stream, rng)
        stream.down.clear()
        self._tidy(stream)

    def forget(self, peer: Peer, but: Stream | None) -> None:
        """What the peer said on its older streams never arrives."""
        for stream in list(self.streams.values()):
            if stream.peer is peer and stream is not but:
                stream.frozen = False
                over = stream.up_ended and not stream.up
                stream.up.clear()
                stream.down.clear()
                stream.up_ended = stream.down_ended = True
                if not over:
                    stream.up.append(END)
                self._tidy(stream)

    # ---- Delivery ------------------------------------------------------------

    def deliverable(self) -> list[tuple[Stream, bool]]:
        """Directions in which something waits; true: up, to the master."""
        found = []
        for stream in self.streams.values():
            if not stream.frozen:
                if stream.up:
                    found.append((stream, True))
                if stream.down:
                    found.append((stream, False))
        return found

    def take_up(self, stream: Stream) -> Any:
        item = stream.up.popleft()
        if item is END:
            # The handler is over: it sends nothing more, and the peer will notice.
            stream.end_down()
            self._tidy(stream)
        return item

    def deliver_down(self, stream: Stream) -> Any:
        item = stream.down.popleft()
        if item is END:
            stream.end_up()
            stream.peer.lost(stream)
            self._tidy(stream)
        else:
            stream.peer.receive(stream, item)
        return item

    def _tidy(self, stream: Stream) -> None:
        if stream.up_ended and stream.down_ended and not stream.up and not stream.down:
            self.streams.pop(stream.number, None)


def may_vanish(stream: Stream, item: Any) -> bool:
    """Updates and acknowledgements are said again until they have been heard."""
    if stream.of_agent:
        return bool(item.type == agent_pb2.Call.UPDATE and item.update.status.uuid)
    return bool(item.type == scheduler_pb2.Call.ACKNOWLEDGE)
