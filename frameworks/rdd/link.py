"""The driver's end of the links to its executors, and its block service.

Has a thread with an event loop of its own; its methods may be called from any thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, Final, Protocol, TypeVar

import grpc
import grpc.aio

from frameworks.rdd import wire
from frameworks.rdd.channels import Channels
from frameworks.rdd.files import Content
from frameworks.rdd.messages import BlockId, FromDriver, FromExecutor, Hello
from mesos_py import logs, rpc
from mesos_py.errors import MesosPyError, Unavailable

T = TypeVar("T")

_GRACE_S: Final = 1.0
_START_S: Final = 30.0
_log = logs.get("rdd.link")


class Ends(Protocol):
    """Who is told of executors, by the link's thread, which must not be kept waiting."""

    def joined(self, hello: Hello) -> str:
        """Why it is not welcome, or ""."""
        ...

    def heard(self, executor_id: str, message: FromExecutor) -> None: ...

    def left(self, executor_id: str, reason: str) -> None:
        """Once for each that has joined, unless the link is stopped before."""
        ...


class _Peer:
    """One executor's stream, as what is to be sent on it."""

    def __init__(self) -> None:
        self.queue: list[FromDriver] = []
        self.some = asyncio.Event()
        self.closing = ""
        self.refusal = ""
        # Once it has joined.
        self.executor_id = ""
        self.address = ""

    def add(self, messages: Sequence[FromDriver]) -> None:
        self.queue.extend(messages)
        self.some.set()

    def close(self, reason: str) -> None:
        self.closing = self.closing or reason
        self.some.set()


class _Blocks(wire.Blocks):
    def __init__(self, secret: str) -> None:
        super().__init__(secret)
        # Or where in which file: (path, start, size).
        self.kept: dict[BlockId, bytes | tuple[str, int, int]] = {}

    def find(self, block: BlockId) -> tuple[int, Iterator[bytes | memoryview]] | None:
        content = self.kept.get(block)
        if content is None:
            return None
        if isinstance(content, bytes):
            return len(content), wire.in_pieces(content)
        path, start, size_bytes = content
        try:
            with io.FileIO(path) as file:
                return size_bytes, Content(file.fileno(), size_bytes, start)
        except OSError as error:
            _log.warning("an added file is gone", path=path, error=error)
            return None


class Link:
    """Implements backend.BlockServer, too."""

    def __init__(self, secret: str, ends: Ends) -> None:
        self._secret = wire.checked_secret(secret)
        self._ends = ends
        self._blocks = _Blocks(secret)
        self._peers: dict[str, _Peer] = {}
        self._channels = Channels()
        self._address = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._fetches: set[asyncio.Task[Any]] = set()
        # What other threads have said and the loop has not seen yet.
        self._lock = threading.Lock()
        self._said: list[tuple[str, FromDriver]] = []
        self._stopped = False

    # ---- any thread ------------------------------------------------------------------------

    @property
    def address(self) -> str:
        return self._address

    def start(self, ip: str, host: str, port: int) -> None:
        """Serve at ip and port (0: any); `host` is what executors call.

        Returns when it does.  Raises PortInUse, or InvalidValue of the ip.
        """
        ready: Future[None] = Future()
        self._thread = threading.Thread(
            target=self._run, args=(ready, ip, host, port), name="rdd-link", daemon=True
        )
        self._thread.start()
        try:
            ready.result(_START_S)
        except BaseException:
            self.stop()
            raise

    def send(self, executor_id: str, message: FromDriver) -> None:
        """In order; nothing if it is not there (any more)."""
        with self._lock:
            wake = not self._said
            self._said.append((executor_id, message))
        if wake:
            self._call(self._pass_on)

    def cut(self, executor_id: str, reason: str) -> None:
        """End its stream after what was sent to it."""
        self._call(lambda: self._cut(executor_id, reason))

    def put(self, block: BlockId, content: bytes) -> None:
        self._blocks.kept[block] = content

    def put_file(self, block: BlockId, path: str, start: int, size_bytes: int) -> None:
        self._blocks.kept[block] = (path, start, size_bytes)

    def remove(self, blocks: Iterable[BlockId]) -> None:
        for block in blocks:
            self._blocks.kept.pop(block, None)

    def fetch(self, address: str, block: BlockId) -> Future[bytes]:
        """See backend.BlockServer."""
        future: Future[bytes] = Future()
        if not self._call(lambda: self._begin(self._fetch(address, block), future)):
            future.set_exception(Unavailable("the link is closed", address=address))
        return future

    def stop(self) -> None:
        """All streams are ended.  May be called twice."""
        with self._lock:
            first, self._stopped = not self._stopped, True
        if first and (loop := self._loop) is not None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._ending.set)
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    # ---- the link's own thread -------------------------------------------------------------

    def _call(self, what: Any) -> bool:
        with self._lock:
            loop = None if self._stopped else self._loop
            if loop is None:
                return False
            loop.call_soon_threadsafe(what)
        return True

    def _run(self, ready: Future[None], ip: str, host: str, port: int) -> None:
        try:
            asyncio.run(self._serve(ready, ip, host, port))
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)
            else:
                _log.exception("the link to the executors has ended")

    async def _serve(self, ready: Future[None], ip: str, host: str, port: int) -> None:
        self._ending = asyncio.Event()
        server = rpc.new_server()
        handlers: wire.Handlers = {
            wire.CONNECT: grpc.stream_stream_rpc_method_handler(self._connect),
            **self._blocks.handlers(),
        }
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(wire.SERVICE, handlers),)
        )
        bound = rpc.bind(server, ip, port)
        await server.start()
        self._address = wire.address(host, bound)
        with self._lock:
            self._loop = asyncio.get_running_loop()
            if self._stopped:
                self._ending.set()
        ready.set_result(None)
        try:
            await self._ending.wait()
        finally:
            with self._lock:
                # From now on nobody is heard; those who were have their turn.
                self._loop = None
            await asyncio.sleep(0)
            for peer in self._peers.values():
                peer.close("the driver's context was stopped")
            for task in self._fetches:
                task.cancel()
            if self._fetches:
                await asyncio.wait(self._fetches)
            await server.stop(_GRACE_S)
            await self._channels.close()

    def _pass_on(self) -> None:
        with self._lock:
            said, self._said = self._said, []
        for executor_id, message in said:
            if (peer := self._peers.get(executor_id)) is not None:
                peer.add((message,))

    def _cut(self, executor_id: str, reason: str) -> None:
        if (peer := self._peers.get(executor_id)) is not None:
            peer.close(reason)

    async def _connect(
        self, requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext[bytes, bytes]
    ) -> None:
        """One executor's stream."""
        if not wire.is_allowed(context, self._secret):
            await wire.refuse(context)
        peer = _Peer()
        writer = asyncio.create_task(self._write(peer, context))
        reader = asyncio.create_task(self._read(peer, requests))
        try:
            # gRPC cancels this when the peer is gone.
            await asyncio.wait({reader, writer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            reason = peer.closing or _reason(reader) or _reason(writer)
            for task in (reader, writer):
                task.cancel()
            await asyncio.wait({reader, writer})
            if peer.executor_id:
                del self._peers[peer.executor_id]
                if not self._ending.is_set():
                    self._ends.left(peer.executor_id, reason or "its link broke")
                await self._channels.forget(peer.address)
        if peer.refusal:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, peer.refusal)

    async def _read(self, peer: _Peer, requests: AsyncIterator[bytes]) -> None:
        joiner = wire.Joiner()
        async for piece in requests:
            for record in joiner.add(piece):
                if peer.executor_id:
                    self._ends.heard(peer.executor_id, record)
                    continue
                peer.refusal = self._welcome(record, peer)
                if peer.refusal:
                    return
                peer.executor_id, peer.address = record.executor_id, record.block_address

    def _welcome(self, record: Any, peer: _Peer) -> str:
        """Why it may not join, or ""."""
        if not isinstance(record, Hello):
            return "the first message is Hello"
        if record.executor_id in self._peers:
            return f"executor {record.executor_id} is here already"
        # Before it is told of: whoever is told may send at once.
        self._peers[record.executor_id] = peer
        if refusal := self._ends.joined(record):
            del self._peers[record.executor_id]
        return refusal

    async def _write(self, peer: _Peer, context: grpc.aio.ServicerContext[bytes, bytes]) -> None:
        while True:
            await peer.some.wait()
            peer.some.clear()
            queue, peer.queue = peer.queue, []
            if queue:
                for piece in wire.pieces(queue):
                    await context.write(piece)
            if peer.closing:
                return

    def _begin(self, work: Coroutine[Any, Any, T], future: Future[T]) -> None:
        if not future.set_running_or_notify_cancel():
            work.close()
            return
        task = asyncio.ensure_future(work)
        self._fetches.add(task)

        def done(ended: asyncio.Task[T]) -> None:
            self._fetches.discard(ended)
            if ended.cancelled():
                future.set_exception(Unavailable("the link is closed"))
            elif (error := ended.exception()) is not None:
                future.set_exception(error)
            else:
                future.set_result(ended.result())

        task.add_done_callback(done)

    async def _fetch(self, address: str, block: BlockId) -> bytes:
        try:
            async with self._channels.used(address) as channel:
                parts = [part async for part in wire.fetch(channel, self._secret, block, address)]
        except Unavailable:
            raise
        except MesosPyError as error:
            raise Unavailable(error.message, address=address) from None
        return b"".join(parts)


def _reason(task: asyncio.Task[None]) -> str:
    """Why it has ended by itself; "" if it has not."""
    if not task.done() or task.cancelled():
        return ""
    error = task.exception()
    return f"its link broke: {error}" if error is not None else "it has ended its link"


__all__ = ["Ends", "Link"]
