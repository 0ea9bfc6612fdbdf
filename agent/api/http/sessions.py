"""Calls of the operator API that are streams: what comes out of a session, and what goes in."""

from __future__ import annotations

import asyncio
import contextlib
import select
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Final, NamedTuple

from aiohttp import web
from aiohttp.http import HttpVersion11
from aiohttp.http_exceptions import HttpProcessingError

from agent.containers.nested import Nested
from agent.containers.session import Kind, Session
from agent.core.nested import size_of, wanted
from mesos_py import logs
from mesos_py.enums import name_of
from mesos_py.errors import InvalidValue
from mesos_py.http.answers import HttpRefusal
from mesos_py.http.media import RECORDIO, Media, accepted_media, accepts
from mesos_py.http.recordio import Reader, framed
from mesos_py.http.server import empty
from mesos_py.http.stream import Heartbeat, cutter, respond
from mesos_py.outbox import Outbox
from mesos_py.v1.agent_operator_pb2 import Call, ProcessIO

log = logs.get("agent.http")

STREAMED: Final = frozenset(
    {
        Call.LAUNCH_NESTED_CONTAINER_SESSION,
        Call.ATTACH_CONTAINER_INPUT,
        Call.ATTACH_CONTAINER_OUTPUT,
    }
)
MAX_INPUT_BYTES: Final = 4 * 1024 * 1024
# What is kept for one who looks on and reads slowly.
MAX_BEHIND_BYTES: Final = 1024 * 1024
# For so long a session's own client may take nothing; its process waits for it meanwhile.
MAX_STALL_S: Final = 300.0
_FIRST_RECORD_S: Final = 60.0
# How often it is seen to whether one who sends input is still there.
_LOOK_S: Final = 1.0
_GONE: Final = select.POLLRDHUP | select.POLLHUP | select.POLLERR
# So many records of one client are taken before others have their turn.
_AT_ONCE: Final = 64
_KINDS: Final = {Kind.STDOUT: ProcessIO.Data.STDOUT, Kind.STDERR: ProcessIO.Data.STDERR}


class Records:
    """The calls of a request that is a stream."""

    def __init__(self, request: web.Request, media: Media) -> None:
        """Raises HttpRefusal for one that is packed: a few of its bytes can be any number of
        records."""
        packed = request.headers.get("Content-Encoding", "identity")
        if packed.lower() != "identity":
            raise HttpRefusal(415, f"Content-Encoding: {packed[:100]!r}: no stream is packed")
        self._content = request.content
        self._media = media
        self._taken = 0
        self._reader = Reader(MAX_INPUT_BYTES)
        self._ready: deque[bytes] = deque()

    async def next(self) -> Call | None:
        """None: there are no more.  Raises InvalidValue, TooLarge, HttpRefusal."""
        while not self._ready:
            try:
                data = await self._content.readany()
            except (web.RequestPayloadError, HttpProcessingError) as error:
                raise HttpRefusal(400, f"body: is broken: {error}") from None
            if not data:
                if self._reader.within:
                    raise InvalidValue("record", "", "is cut off")
                return None
            self._ready.extend(self._reader.feed(data))
        self._taken += 1
        if self._taken % _AT_ONCE == 0:
            await asyncio.sleep(0)
        return self._media.loads(Call, self._ready.popleft(), "record")


@contextlib.asynccontextmanager
async def within_time() -> AsyncIterator[None]:
    """Raises HttpRefusal if the first record does not come."""
    try:
        async with asyncio.timeout(_FIRST_RECORD_S):
            yield
    except TimeoutError:
        raise HttpRefusal(408, f"body: no record within {_FIRST_RECORD_S:g} s") from None


class _Form(NamedTuple):
    """How a stream is written."""

    media: Media
    headers: Mapping[str, str]

    def record(self, io: ProcessIO) -> bytes:
        return framed(self.media.dumps(io))

    def data(self, kind: Kind, data: bytes) -> bytes:
        piece = ProcessIO.Data(type=_KINDS[kind], data=data)
        return self.record(ProcessIO(type=ProcessIO.DATA, data=piece))

    def heartbeat(self, interval_s: float) -> Heartbeat:
        control = ProcessIO.Control(type=ProcessIO.Control.HEARTBEAT)
        control.heartbeat.interval.nanoseconds = int(interval_s * 1e9)
        record = self.record(ProcessIO(type=ProcessIO.CONTROL, control=control))
        return Heartbeat(record, interval_s)


class Sessions:
    """Answers those calls."""

    def __init__(self, nested: Nested, heartbeat_s: float) -> None:
        self._nested = nested
        self._heartbeat_s = heartbeat_s

    async def answer(
        self, request: web.Request, call: Call, rest: Records | None
    ) -> web.StreamResponse:
        """Raises MesosPyError."""
        if rest is not None:
            return await self._input(request, call.attach_container_input, rest)
        form = _form(request.headers)
        if call.type == Call.ATTACH_CONTAINER_OUTPUT:
            return await self._look_on(request, call.attach_container_output, form)
        return await self._launch(request, call.launch_nested_container_session, form)

    async def _launch(
        self, request: web.Request, asked: Call.LaunchNestedContainerSession, form: _Form
    ) -> web.StreamResponse:
        command = asked.command if asked.HasField("command") else None
        what = wanted(command, asked.container, session=True)
        session = await self._nested.open_session(asked.container_id, what)
        if session is None:
            return empty(202)
        try:
            return await self._follow(request, session, form)
        finally:
            self._nested.end_session(asked.container_id, session)

    async def _follow(
        self, request: web.Request, session: Session, form: _Form
    ) -> web.StreamResponse:
        answer = web.StreamResponse(headers=form.headers)
        if request.version >= HttpVersion11:
            answer.enable_chunked_encoding()
        await answer.prepare(request)
        beating = asyncio.create_task(_beat(answer, form.heartbeat(self._heartbeat_s)))
        try:
            async with contextlib.aclosing(session.pieces()) as pieces:
                async for kind, data in pieces:
                    async with asyncio.timeout(MAX_STALL_S):
                        await answer.write(form.data(kind, data))
            # Nothing may go out behind the end, and nobody needs to wait until that is taken.
            beating.cancel()
            session.close()
            async with asyncio.timeout(MAX_STALL_S):
                await answer.write_eof()
        except TimeoutError:
            log.warning("session cut off: nobody takes its output", peer=request.remote)
            cutter(request)()
        except ConnectionError:
            log.debug("session's client has gone", peer=request.remote)
        finally:
            beating.cancel()
        return answer

    async def _look_on(
        self, request: web.Request, asked: Call.AttachContainerOutput, form: _Form
    ) -> web.StreamResponse:
        session = self._nested.session(asked.container_id)
        cut = cutter(request)
        listener = _Listener(form, Outbox(max_bytes=MAX_BEHIND_BYTES, on_overflow=lambda _: cut()))
        with session.told(listener):
            beats = form.heartbeat(self._heartbeat_s)
            return await respond(request, listener.records, form.headers, heartbeat=beats)

    async def _input(
        self, request: web.Request, asked: Call.AttachContainerInput, rest: Records
    ) -> web.Response:
        if asked.type != Call.AttachContainerInput.CONTAINER_ID:
            text = "must be CONTAINER_ID in the first record"
            raise InvalidValue("attach_container_input.type", "PROCESS_IO", text)
        session = self._nested.session(asked.container_id)
        with session.writing():
            writing = asyncio.create_task(_written(session, rest))
            gone = asyncio.create_task(_gone(request))
            try:
                # It may end while its client has nothing to say.
                done = {writing, session.closed, gone}
                await asyncio.wait(done, return_when=asyncio.FIRST_COMPLETED)
                if writing.done():
                    await writing
            finally:
                writing.cancel()
                gone.cancel()
                await asyncio.wait({writing, gone})
        if not gone.cancelled():
            log.debug("input's client has gone", peer=request.remote)
            cutter(request)()
        return empty(200)


class _Listener:
    """One who looks on at a session."""

    def __init__(self, form: _Form, records: Outbox[bytes]) -> None:
        self.records = records
        self._form = form

    def heard(self, kind: Kind, data: bytes) -> None:
        record = self._form.data(kind, data)
        self.records.put(record, len(record))

    def ended(self) -> None:
        self.records.close("the session has ended")


async def _beat(answer: web.StreamResponse, heartbeat: Heartbeat) -> None:
    with contextlib.suppress(ConnectionError):
        while True:
            await asyncio.sleep(heartbeat.interval_s)
            await answer.write(heartbeat.record)


async def _gone(request: web.Request) -> None:
    """Until its client has gone.  While the process takes nothing, nothing is read from the
    connection, and its end is not found there."""
    watch = select.poll()
    while (transport := request.transport) is not None and not transport.is_closing():
        # While the transport is open this is the number of its socket, and of nothing else.
        watch.register(transport.get_extra_info("socket").fileno(), _GONE)
        if watch.poll(0):
            return
        await asyncio.sleep(_LOOK_S)


async def _written(session: Session, records: Records) -> None:
    """Until there are no more records, or the process takes none."""
    while (call := await records.next()) is not None:
        asked = call.attach_container_input
        if call.type != Call.ATTACH_CONTAINER_INPUT or not asked.HasField("process_io"):
            text = "must be there: only the first record names a container"
            raise InvalidValue("attach_container_input.process_io", "", text)
        io = asked.process_io
        if io.type == ProcessIO.DATA:
            if io.data.type != ProcessIO.Data.STDIN:
                name = name_of(ProcessIO.Data.Type, io.data.type)
                raise InvalidValue("process_io.data.type", name, "must be STDIN")
            if not io.data.data:
                session.end_input()
            elif not await session.write(io.data.data):
                return
        elif io.type != ProcessIO.CONTROL:
            raise InvalidValue("process_io.type", "", "must be DATA or CONTROL")
        elif io.control.type == ProcessIO.Control.TTY_INFO:
            session.resize(size_of("process_io.control.tty_info", io.control.tty_info))
        elif io.control.type != ProcessIO.Control.HEARTBEAT:
            raise InvalidValue("process_io.control.type", "", "must be HEARTBEAT or TTY_INFO")


def _form(headers: Mapping[str, str]) -> _Form:
    """Raises HttpRefusal 406."""
    accept = headers.get("Accept")
    if any(accepts(accept, media.value) for media in Media):
        if "Message-Accept" in headers:
            raise HttpRefusal(406, f"Message-Accept: is only for answers as {RECORDIO}")
        media = accepted_media(headers)
        return _Form(media, {"Content-Type": media.value})
    if not accepts(accept, RECORDIO):
        raise HttpRefusal(406, f"Accept: {(accept or '')[:100]!r}: allows no stream")
    media = accepted_media(headers, "Message-Accept")
    return _Form(media, {"Content-Type": RECORDIO, "Message-Content-Type": media.value})


__all__ = ["STREAMED", "Records", "Sessions", "within_time"]
