"""The ways to talk to a master: HTTP with JSON, HTTP with protobuf, and gRPC.

Calls and events are dicts here, in the shape of the JSON of the wire, of events only what the
peers of the bench look at.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias

from bench.http.wire import PATH, Callers, EventStream, head
from bench.processes import BenchFailed
from bench.scale.connection import Connection
from bench.scale.peers import SCHEDULERS
from mesos_py.address import Address
from mesos_py.http import jsonpb
from mesos_py.http.media import Media
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

Shape: TypeAlias = dict[str, Any]
# One record of a stream, and what is in it.
Received: TypeAlias = Callable[[bytes, Sequence[Shape]], None]

FORMS: Final[dict[str, Media | None]] = {
    "HTTP, JSON": Media.JSON,
    "HTTP, protobuf": Media.PROTOBUF,
    "gRPC": None,
}
OPENED_WITHIN_S: Final = 60.0


def event_of(record: bytes, media: Media) -> Shape:
    """What is in a record of a stream over HTTP."""
    if media is Media.JSON:
        found: Shape = json.loads(record)
        return found
    return brief(sched.Event.FromString(record))


def call_of(call: Shape, media: Media | None) -> bytes:
    """The body of a call."""
    if media is Media.JSON:
        return json.dumps(call, separators=(",", ":")).encode()
    message = jsonpb.from_object(sched.Call, call)
    return message.SerializeToString() if media is None else media.dumps(message)


def brief(event: sched.Event) -> Shape:
    """What the peers look at in an event."""
    told: Shape = {"type": sched.Event.Type.Name(event.type)}
    if event.type == sched.Event.OFFERS:
        offers = [
            {"id": {"value": each.id.value}, "agent_id": {"value": each.agent_id.value}}
            for each in event.offers.offers
        ]
        told["offers"] = {"offers": offers}
    elif event.type == sched.Event.UPDATE:
        status = event.update.status
        shape: Shape = {
            "task_id": {"value": status.task_id.value},
            "agent_id": {"value": status.agent_id.value},
            "state": pb.TaskState.Name(status.state),
        }
        if status.uuid:
            shape["uuid"] = base64.b64encode(status.uuid).decode()
        told["update"] = {"status": shape}
    elif event.type == sched.Event.SUBSCRIBED:
        framework_id = event.subscribed.framework_id.value
        told["subscribed"] = {"framework_id": {"value": framework_id}}
    return told


class Line(Protocol):
    """An open connection of a scheduler."""

    def send(self, calls: Sequence[Shape]) -> None:
        """Send calls, in this order."""
        ...

    def trouble(self) -> str:
        """What no sound run has, or nothing."""
        ...

    def close(self) -> None: ...


class HttpLine:
    """A stream of events, and calls in requests of their own."""

    def __init__(self, media: Media, stream: EventStream, callers: Callers) -> None:
        self._media = media
        self._stream = stream
        self._callers = callers

    @classmethod
    async def open(cls, to: Address, media: Media, opening: bytes, received: Received) -> HttpLine:
        """`opening` is the body of the request for the stream."""
        loop = asyncio.get_running_loop()
        named = (f"Content-Type: {media.value}", f"Accept: {media.value}")
        request = head("POST", to, PATH, *named, f"Content-Length: {len(opening)}")
        request += b"\r\n" + opening

        def record(data: bytes) -> None:
            received(data, [event_of(data, media)])

        _, stream = await loop.create_connection(
            lambda: EventStream(request, record), to.host, to.port
        )
        async with asyncio.timeout(OPENED_WITHIN_S):
            await stream.begun.wait()
        if stream.failed:
            raise BenchFailed(stream.failed)
        callers = Callers(to, media.value, stream.stream_id)
        await callers.connect()
        return cls(media, stream, callers)

    def send(self, calls: Sequence[Shape]) -> None:
        for call in calls:
            self._callers.send(call_of(call, self._media))

    def trouble(self) -> str:
        return self._stream.failed or next(iter(self._callers.refused), "")

    def close(self) -> None:
        self._stream.close()
        self._callers.close()


class GrpcLine:
    """One stream for both ways; calls that are sent together are one message."""

    def __init__(self, wire: Connection, received: Received) -> None:
        self._wire = wire
        self._told = received
        self._ended = False
        self._stream = wire.open(SCHEDULERS, self)

    @classmethod
    async def open(cls, to: Address, opening: bytes, received: Received) -> GrpcLine:
        """`opening` is the call with which the stream begins."""
        loop = asyncio.get_running_loop()
        _, wire = await loop.create_connection(lambda: Connection(str(to)), to.host, to.port)
        line = cls(wire, received)
        call = sched.Call.FromString(opening)
        wire.send(line._stream, sched.Calls(calls=[call]).SerializeToString())
        return line

    def received(self, message: bytes) -> None:
        self._told(message, [brief(each) for each in sched.Events.FromString(message).events])

    def ended(self) -> None:
        self._ended = True

    def send(self, calls: Sequence[Shape]) -> None:
        made = sched.Calls(calls=[jsonpb.from_object(sched.Call, call) for call in calls])
        self._wire.send(self._stream, made.SerializeToString())

    def trouble(self) -> str:
        return "the stream of events has ended" if self._ended else ""

    def close(self) -> None:
        self._wire.close()


__all__ = ["FORMS", "GrpcLine", "HttpLine", "Line", "Shape", "brief", "call_of", "event_of"]
