"""`/api/v1/executor`: the way in for executors that were written for Apache Mesos.

An executor subscribes with one request, whose answer is its stream of events, and makes
its other calls with requests of their own.  What becomes of them is the core's business,
as for executors that come over gRPC.
"""

from __future__ import annotations

from typing import Final

from aiohttp import web

from agent.api.executor_streams import INTERNAL, ExecutorStreams
from agent.api.http import calls
from agent.core.effects import ExecutorKey
from agent.core.executors import Standing
from mesos_py import logs
from mesos_py.errors import Unavailable
from mesos_py.http.answers import HttpRefusal, not_allowed
from mesos_py.http.media import Media, accepted_media, content_media
from mesos_py.http.recordio import framed
from mesos_py.http.server import HttpServer, empty
from mesos_py.http.stream import Heartbeat, cutter, respond
from mesos_py.outbox import Outbox
from mesos_py.v1 import executor_pb2

log = logs.get("agent.executors")

PATH: Final = "/api/v1/executor"

Call = executor_pb2.Call
Event = executor_pb2.Event


class ExecutorApi:
    """Answers requests of executors; before `open` there is nobody to ask."""

    def __init__(self, server: HttpServer, heartbeat_s: float, *, echoed: bool = False) -> None:
        """`echoed`: a heartbeat follows each event."""
        self._server = server
        self._heartbeat_s = heartbeat_s
        self._echoed = echoed
        self._streams: ExecutorStreams | None = None

    def open(self, streams: ExecutorStreams) -> None:
        """The agent knows what ran before: executors are welcome."""
        self._streams = streams

    def close(self) -> None:
        """The agent goes: end the streams."""
        if self._streams is not None:
            self._streams.close("the agent ends")
            self._streams = None

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The order of the checks is that of Mesos.  Raises MesosPyError."""
        self._opened()
        if request.method != "POST":
            raise not_allowed(request.method, "POST")
        media = content_media(request.headers)
        call = media.loads(Call, await self._server.body(request))
        calls.check(call)
        key = (call.framework_id.value, call.executor_id.value)
        if call.type == Call.SUBSCRIBE:
            wanted = accepted_media(request.headers)
            streams = self._of_one(key, subscribing=True)
            return await self._subscribe(request, streams, key, call.subscribe, wanted)
        if call.type != Call.HEARTBEAT:
            self._take(self._of_one(key, subscribing=False), key, call)
        return empty(202)

    def _opened(self) -> ExecutorStreams:
        if self._streams is None:
            raise Unavailable("Agent has not finished recovery")
        return self._streams

    def _of_one(self, key: ExecutorKey, *, subscribing: bool) -> ExecutorStreams:
        """Raises HttpRefusal unless the executor is there."""
        # Asked again: the agent may have begun to go while the body came.
        streams = self._opened()
        standing = streams.events.executor_standing(key)
        if standing is Standing.SUBSCRIBED or (subscribing and standing is Standing.SILENT):
            return streams
        raise HttpRefusal(403 if standing is Standing.SILENT else 400, standing.value)

    def _take(self, streams: ExecutorStreams, key: ExecutorKey, call: Call) -> None:
        if call.type == Call.UPDATE:
            refusal = streams.events.executor_update(key, call.update.status)
            if refusal is not None:
                log.warning("call refused", framework=key[0], executor=key[1], reason=refusal)
                raise _refused(refusal)
        elif call.type == Call.MESSAGE:
            streams.events.executor_message(key, call.message.data)
        else:
            raise HttpRefusal(501, f"type: {Call.Type.Name(call.type)}: there is no such call")
        streams.events.executors_told()

    async def _subscribe(
        self,
        request: web.Request,
        streams: ExecutorStreams,
        key: ExecutorKey,
        call: Call.Subscribe,
        media: Media,
    ) -> web.StreamResponse:
        beat = framed(media.dumps(Event(type=Event.HEARTBEAT)))
        stream = _HttpStream(request, media, beat if self._echoed else b"")
        refusal = streams.subscribed(key, call, stream)
        if refusal is not None:
            log.warning("executor refused", framework=key[0], executor=key[1], reason=refusal)
            raise _refused(refusal)
        log.info("executor subscribed", framework=key[0], executor=key[1], by=media.value)
        try:
            return await respond(
                request,
                stream.records,
                {"Content-Type": media.value},
                heartbeat=Heartbeat(beat, self._heartbeat_s),
            )
        finally:
            streams.lost(key, stream)


def _refused(reason: str) -> HttpRefusal:
    return HttpRefusal(503 if reason == INTERNAL else 400, reason)


class _HttpStream:
    """An executor's stream: what is put in goes out as records of its kind of body."""

    def __init__(self, request: web.Request, media: Media, echo: bytes) -> None:
        """`echo`: the record that follows each; empty: none."""
        cut = cutter(request)
        self.records: Outbox[bytes] = Outbox(on_overflow=lambda _: cut())
        self._media = media
        self._echo = echo

    def put(self, event: Event, _size: int) -> bool:
        record = framed(self._media.dumps(as_mesos(event)))
        taken = self.records.put(record, len(record))
        if taken and self._echo:
            taken = self.records.put(self._echo, len(self._echo))
        return taken

    def close(self, reason: str, *, drain: bool = True) -> None:
        self.records.close(reason, drain=drain)


def as_mesos(event: Event) -> Event:
    """The event as its receiver reads it: an agent of Mesos has one port, that of HTTP."""
    if event.type != Event.SUBSCRIBED:
        return event
    told = Event()
    told.CopyFrom(event)
    info = told.subscribed.agent_info
    info.port = info.http_port
    return told
