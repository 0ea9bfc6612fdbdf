"""The service that custom executors connect back to, over a Unix socket."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio

from agent.api.executor_streams import Call, Event, ExecutorStreams, Stream, new_stream
from agent.core.effects import ExecutorKey
from mesos_py import logs, rpc
from mesos_py.errors import InvalidValue, MesosPyError
from mesos_py.outbox import Outbox
from mesos_py.v1 import executor_pb2
from mesos_py.v1.executor_pb2_grpc import (
    ExecutorServiceServicer,
    add_ExecutorServiceServicer_to_server,
)

log = logs.get("agent.executors")

# sun_path of sockaddr_un, its final zero included.
MAX_SOCKET_PATH: Final = 108
SOCKET_NAME: Final = "executors.sock"

Context = grpc.aio.ServicerContext[executor_pb2.Calls, executor_pb2.Events]


class ExecutorService(ExecutorServiceServicer):
    """Executors that come over gRPC."""

    def __init__(self, streams: ExecutorStreams) -> None:
        self._streams = streams
        self._events = streams.events

    async def Subscribe(  # type: ignore[override]  # the aio form of a handler
        self, _requests: AsyncIterator[executor_pb2.Calls], context: Context
    ) -> None:
        first = await context.read()
        if _is_end(first) or not first.calls:
            return
        subscribe, *more = first.calls
        key = (subscribe.framework_id.value, subscribe.executor_id.value)
        stream = new_stream()
        refusal = self._opened(key, subscribe, stream)
        if refusal is not None:
            log.warning("executor refused", framework=key[0], executor=key[1], reason=refusal)
            error = Event(type=Event.ERROR, error=Event.Error(message=refusal))
            await context.write(executor_pb2.Events(events=[error]))
            return
        log.info("executor subscribed", framework=key[0], executor=key[1])
        self._take(key, more, stream)
        reading = asyncio.create_task(self._read(key, context, stream))
        try:
            async for batch in stream.batches():
                await context.write(executor_pb2.Events(events=batch))
        except MesosPyError as error:
            log.warning("executor cut off", framework=key[0], executor=key[1], error=error)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            self._streams.lost(key, stream)

    def _opened(self, key: ExecutorKey, call: Call, stream: Stream) -> str | None:
        """Take the stream in and answer it; returns why it is refused."""
        if call.type != Call.SUBSCRIBE:
            return "the first call of a stream must be SUBSCRIBE"
        try:
            rpc.negotiate(call.subscribe.protocol_version)
        except MesosPyError as error:
            return error.message
        return self._streams.subscribed(key, call.subscribe, stream)

    async def _read(self, key: ExecutorKey, context: Context, stream: Outbox[Event]) -> None:
        try:
            while not _is_end(calls := await context.read()):
                self._take(key, calls.calls, stream)
        finally:
            stream.close("the executor has ended its stream")

    def _take(self, key: ExecutorKey, calls: Any, stream: Outbox[Event]) -> None:
        for call in calls:
            if stream.closed is not None:
                break
            refusal = self._taken(key, call)
            if refusal is not None:
                log.warning("call refused", framework=key[0], executor=key[1], reason=refusal)
                stream.put(Event(type=Event.ERROR, error=Event.Error(message=refusal)))
                stream.close(refusal)
        self._events.executors_told()

    def _taken(self, key: ExecutorKey, call: Call) -> str | None:
        if (call.framework_id.value, call.executor_id.value) != key:
            return f"a call in the name of executor {call.executor_id.value!r}"
        if call.type == Call.UPDATE:
            return self._events.executor_update(key, call.update.status)
        if call.type == Call.MESSAGE:
            self._events.executor_message(key, call.message.data)
        elif call.type != Call.HEARTBEAT:
            return f"call {call.type} is not known here"
        return None


def _is_end(message: object) -> bool:
    return message is grpc.aio.EOF


class ExecutorServer:
    """The gRPC server on its Unix socket, whose path is short enough for the kernel.

    Raises InvalidValue when there is no place for such a path.
    """

    def __init__(self, work_dir: Path) -> None:
        self._work_dir = work_dir
        self._server: grpc.aio.Server | None = None
        self._elsewhere: Path | None = None
        self.path = self._choose_path()

    @property
    def endpoint(self) -> str:
        """What executors find in MESOS_PY_EXECUTOR_ENDPOINT."""
        return f"unix:{self.path}"

    def _choose_path(self) -> Path:
        path = self._work_dir / SOCKET_NAME
        if len(bytes(path)) < MAX_SOCKET_PATH:
            return path
        # The same again after a restart: executors come back to it.
        digest = hashlib.sha256(bytes(self._work_dir)).hexdigest()[:14]
        places = [Path(base, f"mesos-py-{digest}") for base in (tempfile.gettempdir(), "/tmp")]
        short = [each for each in places if len(bytes(each / SOCKET_NAME)) < MAX_SOCKET_PATH]
        directory = self._elsewhere = short[0]
        # Executors of other users must get at the socket, and at nothing else there.
        try:
            directory.mkdir(mode=0o700, exist_ok=True)
            there = directory.lstat()
            if not stat.S_ISDIR(there.st_mode) or there.st_uid != os.getuid():
                raise InvalidValue("work-dir", str(self._work_dir), f"{directory} is not ours")
            directory.chmod(0o711)
        except OSError as error:
            text = f"cannot make {directory} for its socket: {error.strerror}"
            raise InvalidValue("work-dir", str(self._work_dir), text) from None
        return directory / SOCKET_NAME

    async def start(self, service: ExecutorService) -> None:
        # Left by an agent that was killed; the lock says that it is not another's.
        self.path.unlink(missing_ok=True)
        self._server = rpc.new_server()
        add_ExecutorServiceServicer_to_server(service, self._server)
        self._server.add_insecure_port(f"unix:{self.path}")
        await self._server.start()
        # Executors run as the users of their tasks.
        self.path.chmod(0o666)

    async def close(self) -> None:
        if self._server is not None:
            await self._server.stop(0.2)
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)
        if self._elsewhere is not None:
            with contextlib.suppress(OSError):
                self._elsewhere.rmdir()
