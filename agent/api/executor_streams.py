"""Who of the executors is connected, by whatever way: one stream for each.

Executors of our SDK come over the gRPC service, those of Mesos by HTTP.  Which way a
stream is written is its owner's business; an executor has one, and its newest counts.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from agent.core.effects import ExecutorKey
from agent.core.executors import Standing
from mesos_py.outbox import Outbox
from mesos_py.v1 import executor_pb2
from mesos_py.v1 import types_pb2 as pb

Call = executor_pb2.Call
Event = executor_pb2.Event

# A refusal for which the executor can do nothing.
INTERNAL: Final = "internal error; see the agent's log"


class Stream(Protocol):
    """What an executor is told is put into it; an Outbox, or who writes to one."""

    def put(self, item: Event, size: int, /) -> bool: ...

    def close(self, reason: str, *, drain: bool = True) -> None: ...


class ExecutorEvents(Protocol):
    """Who hears what executors say.  Called on the event loop."""

    def executor_standing(self, key: ExecutorKey) -> Standing:
        """Who speaks when this executor does."""
        ...

    def executor_subscribed(self, key: ExecutorKey, call: Call.Subscribe) -> str | None:
        """Returns why it is refused; None: SUBSCRIBED is on its way."""
        ...

    def executor_update(self, key: ExecutorKey, status: pb.TaskStatus) -> str | None: ...

    def executor_message(self, key: ExecutorKey, data: bytes) -> None: ...

    def executor_disconnected(self, key: ExecutorKey) -> None: ...

    def executors_told(self) -> None:
        """That was all for now: act on it."""
        ...


class ExecutorStreams:
    """The streams of executors, by (framework id, executor id)."""

    def __init__(self, events: ExecutorEvents) -> None:
        self.events = events
        self._streams: dict[ExecutorKey, Stream] = {}

    def send(self, key: ExecutorKey, event: Event) -> None:
        stream = self._streams.get(key)
        if stream is not None:
            # Tasks may be as large as messages.
            stream.put(event, 512 + event.ByteSize())

    def close_stream(self, key: ExecutorKey, reason: str) -> None:
        """End the executor's stream once what was sent before is out."""
        stream = self._streams.get(key)
        if stream is not None:
            stream.close(reason)

    def close(self, reason: str) -> None:
        """End all streams: the agent goes."""
        for stream in self._streams.values():
            stream.close(reason)

    def subscribed(self, key: ExecutorKey, call: Call.Subscribe, stream: Stream) -> str | None:
        """Take the stream in, in place of an earlier one; returns why it is refused."""
        before = self._streams.get(key)
        self._streams[key] = stream
        refusal = self.events.executor_subscribed(key, call)
        if refusal is not None:
            if before is None:
                del self._streams[key]
            else:
                self._streams[key] = before
            return refusal
        if before is not None:
            before.close("the executor has connected again", drain=False)
        self.events.executors_told()
        return None

    def lost(self, key: ExecutorKey, stream: Stream) -> None:
        """The stream has ended."""
        # One that connected again has taken its place already.
        if self._streams.get(key) is stream:
            del self._streams[key]
            self.events.executor_disconnected(key)
            self.events.executors_told()


def new_stream() -> Outbox[Event]:
    """For the handler that runs now: it is ended if its executor reads too slowly."""
    handler = asyncio.current_task()

    def cut_off(_reason: str) -> None:
        if handler is not None:
            handler.cancel()

    return Outbox(on_overflow=cut_off)
