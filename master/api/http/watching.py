"""SUBSCRIBE of the operator API: the state as it is, and then all that happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from aiohttp import web

from master.api.events import Subscriber
from master.api.http import writing
from master.api.http.batches import Batches
from master.api.operator import OperatorService
from mesos_py.http import recordio
from mesos_py.http.media import Media
from mesos_py.http.stream import Heartbeat, cutter, respond
from mesos_py.v1 import operator_pb2 as op


def _encoder(media: Media) -> Callable[[op.Event], bytes]:
    def encode(event: op.Event) -> bytes:
        writing.event_as_mesos(event)
        return recordio.framed(media.dumps(event))

    return encode


# The same for all subscribers of a kind: an event is encoded once for all of them.
_ENCODERS: Final = {media: _encoder(media) for media in Media}


async def subscribe(
    operator: OperatorService, request: web.Request, media: Media, batches: Batches
) -> web.StreamResponse:
    """Until the client goes, reads too slowly, or this master leads no more."""
    encode = _ENCODERS[media]
    subscriber = Subscriber(encode, cutter(request))
    interval_s = operator.cluster.options.heartbeat_s
    beat = encode(op.Event(type=op.Event.HEARTBEAT))
    # Before the state is looked at: all is told that comes after what it shows.
    operator.events.join(subscriber)
    try:
        first = await batches.get(
            (operator, "SUBSCRIBED", media), lambda: _subscribed(operator, media, interval_s)
        )
        subscriber.begin(recordio.framed(first), beat)
        return await respond(
            request,
            subscriber.queue,
            {"Content-Type": media.value},
            may_write=operator.certain,
            heartbeat=Heartbeat(beat, interval_s),
        )
    finally:
        operator.events.leave(subscriber)


async def _subscribed(operator: OperatorService, media: Media, interval_s: float) -> bytes:
    state = await operator.snapshots.state()
    await writing.as_mesos(state)
    if media is Media.JSON:
        content = await writing.state_object(state.get_state)
        within = f'"get_state":{content},"heartbeat_interval_seconds":{interval_s!r}'
        return f'{{"type":"SUBSCRIBED","subscribed":{{{within}}}}}'.encode()
    event = op.Event(type=op.Event.SUBSCRIBED)
    event.subscribed.get_state.CopyFrom(state.get_state)
    event.subscribed.heartbeat_interval_seconds = interval_s
    return await asyncio.to_thread(media.dumps, event)


__all__ = ["subscribe"]
