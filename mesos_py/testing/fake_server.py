"""What the fake master and the fake agent share: a gRPC server of streams of batches,
on a thread of its own, that does what a test tells it."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

import grpc.aio

from mesos_py import rpc
from mesos_py.errors import MesosPyError, Unavailable
from mesos_py.testing.loop_thread import PATIENCE_S, Log, LoopThread


class _HasType(Protocol):
    @property
    def type(self) -> int: ...


Call = TypeVar("Call", bound=_HasType)
Event = TypeVar("Event")


class Stream:
    """One stream, begun with `call`.  Made and used on the fake's loop."""

    def __init__(self, call: Any) -> None:
        self.call = call
        # Its place among those that wait, as last told to it.
        self.told: int | None = None
        self.queue: asyncio.Queue[Any] = asyncio.Queue()


class FakeServer(ABC, Generic[Call, Event]):
    """Methods without an underscore are for the test's thread, unless they say otherwise;
    they return when the thing is done."""

    def __init__(self, name: str) -> None:
        # What the next streams get in place of an answer.
        self.refusal: Event | MesosPyError | None = None
        # Accept streams and calls, say nothing at all.
        self.silent = False
        self._name = name
        self._thread: LoopThread | None = None
        self._server: grpc.aio.Server | None = None
        self._log = Log()
        self._answered = Log()
        self._current: Stream | None = None
        # Streams that take the place of the present one when it ends, in order.
        self._waiting: list[Stream] = []

    # ---- Life ----------------------------------------------------------------

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop_server()
        self._loop.close()

    def _enter(self) -> None:
        self._thread = LoopThread(self._name)
        self.start_server()

    def stop_server(self) -> None:
        """Die: every stream ends, new ones are refused by the system."""
        self._loop.wait(self._stop())

    def start_server(self) -> None:
        """Come (back) at the same address."""
        self._loop.wait(self._start())

    async def _start(self) -> None:
        server = rpc.new_server()
        self._bind(server)
        await server.start()
        self._server = server

    async def _stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.stop(None)

    @property
    def _loop(self) -> LoopThread:
        if self._thread is None:
            raise AssertionError(f"use the {self._name} in a `with` block")
        return self._thread

    # ---- What came -----------------------------------------------------------

    @property
    def calls(self) -> list[Call]:
        """All calls so far, SUBSCRIBE included."""
        return self._log.all()

    def forget_calls(self) -> None:
        self._log.clear()

    def wait_for(self, kind: int, count: int = 1, timeout_s: float = PATIENCE_S) -> list[Call]:
        """The calls of this type, once there are `count`; AssertionError if that is late."""
        return self._log.wait(lambda call: call.type == kind, count, timeout_s)

    def wait_for_subscription(self, count: int = 1, timeout_s: float = PATIENCE_S) -> None:
        """Until the `count`-th stream has been answered with SUBSCRIBED."""
        self._answered.wait(lambda _: True, count, timeout_s)

    # ---- What is said --------------------------------------------------------

    def send(self, *events: Event) -> None:
        """Send events on the present stream, as one batch."""
        self._loop.do(lambda: self._put(self._batch(list(events))))

    def cut(self, error: MesosPyError | None = None) -> None:
        """End the present stream with `error` (Unavailable)."""
        self._loop.do(lambda: self._put(error or Unavailable(f"the {self._name} cut the stream")))

    def end(self) -> None:
        """End the present stream in order."""
        self._loop.do(lambda: self._put(None))

    def end_with(self, event: Event) -> None:
        """Say one last thing on the present stream."""

        def put() -> None:
            self._put(self._batch([event]))
            self._put(None)

        self._loop.do(put)

    def reply(self, *events: Event) -> None:
        """Like `send`, for subclasses on the fake's loop; nothing if there is no stream."""
        if self._current is not None:
            self._current.queue.put_nowait(self._batch(list(events)))

    def _put(self, what: Any) -> None:
        if self._current is None:
            raise AssertionError("nobody is subscribed")
        self._current.queue.put_nowait(what)

    # ---- For subclasses: on the fake's loop ----------------------------------

    @abstractmethod
    def _bind(self, server: grpc.aio.Server) -> None:
        """Add the service and the address."""

    @abstractmethod
    def _batch(self, events: list[Event]) -> Any:
        """The message that carries events."""

    @abstractmethod
    def _answer(self, call: Call) -> list[Event]:
        """The first events on a stream that began with `call`."""

    def _on_call(self, call: Call) -> None:
        """A call after the first has arrived."""

    def _on_subscribed(self) -> None:
        """The first answer has been sent."""

    def _waits(self, call: Call) -> bool:
        """Whether the stream that begins with `call` waits for the end of the present one."""
        return False

    def _tell_waiting(self) -> None:
        """The streams that wait have changed, or their order."""

    def _on_waiting_call(self, stream: Stream, call: Call) -> None:
        """A call after the first, on a stream that waits."""

    def _end_after(self, call: Call) -> bool:
        """Whether the stream ends with this call."""
        return False

    async def serve(self, requests: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        """One stream, to its end.  Called by gRPC."""
        first = await anext(requests, None)
        if first is None:
            return  # it left without a word
        for call in first.calls:
            self._log.add(call)
        if isinstance(self.refusal, MesosPyError):
            await rpc.abort(context, self.refusal)
        if self.refusal is not None:
            yield self._batch([self.refusal])
            return
        stream = Stream(first.calls[0])
        waits = self._waits(stream.call)
        if waits:
            self._waiting.append(stream)
            self._tell_waiting()
        else:
            self._current = stream
        reader = asyncio.create_task(self._read(requests, stream))
        try:
            if not self.silent and not waits:
                yield self._batch(self._answer(first.calls[0]))
                self._answered.add(stream)
                self._on_subscribed()
            while (what := await stream.queue.get()) is not None:
                if isinstance(what, MesosPyError):
                    await rpc.abort(context, what)
                yield what
        finally:
            self._left(stream)
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    def _left(self, stream: Stream) -> None:
        """The stream has ended: if it was the present one, the next that waits is."""
        if stream in self._waiting:
            self._waiting.remove(stream)
            self._tell_waiting()
        if self._current is not stream:
            return
        self._current = None
        # While the fake dies, those that wait end with it.
        if self._waiting and self._server is not None:
            following = self._current = self._waiting.pop(0)
            following.queue.put_nowait(self._batch(self._answer(following.call)))
            self._answered.add(following)
            self._on_subscribed()
            self._tell_waiting()

    async def _read(self, requests: AsyncIterator[Any], stream: Stream) -> None:
        async for batch in requests:
            for call in batch.calls:
                self._log.add(call)
                if stream in self._waiting:
                    self._on_waiting_call(stream, call)
                    continue
                self._on_call(call)
                if self._end_after(call):
                    stream.queue.put_nowait(None)
        # The peer has closed its side.
        stream.queue.put_nowait(None)


__all__ = ["FakeServer"]
