"""A master for tests of frameworks: real gRPC on loopback, and it does what it is told.

::

    with FakeMaster() as master:
        driver = SchedulerDriver(MyScheduler(), framework, master.address)
        driver.start()
        master.wait_for_subscription()
        master.offer(make_offer("o1"))
        [accept] = master.wait_for(Call.ACCEPT)

It decides nothing by itself.  One that runs tasks is `fake_cluster.FakeCluster`.
All methods are for the test's thread; they return when the thing is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from types import TracebackType
from typing import Any

import grpc.aio

from mesos_py import rpc
from mesos_py.errors import MesosPyError, NotLeader, Unavailable
from mesos_py.testing.loop_thread import PATIENCE_S, Log, LoopThread
from mesos_py.v1.scheduler_pb2 import Call, Calls, Event, Events
from mesos_py.v1.scheduler_pb2_grpc import (
    SchedulerServiceServicer,
    add_SchedulerServiceServicer_to_server,
)
from mesos_py.v1.types_pb2 import (
    AgentID,
    ExecutorID,
    FrameworkID,
    MasterInfo,
    Offer,
    OfferID,
    Resource,
    TaskStatus,
)

Context = grpc.aio.ServicerContext[Calls, Events]


class _Subscription:
    """One stream.  Made and used on the fake's loop."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.queue: asyncio.Queue[Events | MesosPyError | None] = asyncio.Queue()


class FakeMaster:
    """See the module's docstring.

    heartbeat_s: the interval told to schedulers; a HEARTBEAT is sent after SUBSCRIBED and
        whenever `heartbeat` is called, so that no test depends on time.
    """

    def __init__(
        self, *, heartbeat_s: float = 15.0, guaranteed_share: Iterable[Resource] = ()
    ) -> None:
        self.heartbeat_s = heartbeat_s
        self.guaranteed_share = list(guaranteed_share)
        # What the next subscriptions get in place of SUBSCRIBED.
        self.refusal: Event | MesosPyError | None = None
        # Accept streams and calls, say nothing at all.
        self.silent = False
        self._thread: LoopThread | None = None
        self._server: grpc.aio.Server | None = None
        self._port = 0
        self._log = Log()
        self._subscriptions = Log()
        self._current: _Subscription | None = None
        self._frameworks = 0

    # ---- Life ----------------------------------------------------------------

    def __enter__(self) -> FakeMaster:
        self._thread = LoopThread("fake master")
        self._thread.wait(self._start())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._thread is not None
        self._thread.wait(self._stop())
        self._thread.close()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def stop_server(self) -> None:
        """Die: every stream ends, new ones are refused by the system."""
        self._loop.wait(self._stop())

    def start_server(self) -> None:
        """Come back at the same address."""
        self._loop.wait(self._start())

    async def _start(self) -> None:
        server = rpc.new_server()
        add_SchedulerServiceServicer_to_server(_Service(self), server)
        self._port = rpc.bind(server, "127.0.0.1", self._port)
        await server.start()
        self._server = server

    async def _stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.stop(None)

    @property
    def _loop(self) -> LoopThread:
        assert self._thread is not None, "use the fake in a `with` block"
        return self._thread

    # ---- What came -----------------------------------------------------------

    @property
    def calls(self) -> list[Call]:
        """All calls so far, SUBSCRIBE included."""
        return self._log.all()

    def forget_calls(self) -> None:
        self._log.clear()

    def wait_for(
        self, kind: Call.Type.ValueType, count: int = 1, timeout_s: float = PATIENCE_S
    ) -> list[Call]:
        """The calls of this type, once there are `count`; AssertionError if that is late."""
        return self._log.wait(lambda call: call.type == kind, count, timeout_s)

    def wait_for_subscription(self, count: int = 1, timeout_s: float = PATIENCE_S) -> None:
        """Until the `count`-th stream has been answered with SUBSCRIBED."""
        self._subscriptions.wait(lambda _: True, count, timeout_s)

    # ---- What is said --------------------------------------------------------

    def send(self, *events: Event) -> None:
        """Send events to the present subscription, as one batch."""
        self._loop.do(lambda: self._put(Events(events=events)))

    def offer(self, *offers: Offer) -> None:
        self.send(Event(type=Event.OFFERS, offers=Event.Offers(offers=offers)))

    def rescind(self, offer_id: str) -> None:
        rescind = Event.Rescind(offer_id=OfferID(value=offer_id))
        self.send(Event(type=Event.RESCIND, rescind=rescind))

    def update(self, *statuses: TaskStatus) -> None:
        self.send(
            *(Event(type=Event.UPDATE, update=Event.Update(status=status)) for status in statuses)
        )

    def message(self, agent_id: str, executor_id: str, data: bytes) -> None:
        message = Event.Message(
            agent_id=AgentID(value=agent_id), executor_id=ExecutorID(value=executor_id), data=data
        )
        self.send(Event(type=Event.MESSAGE, message=message))

    def failure(self, agent_id: str, executor_id: str = "", status: int | None = None) -> None:
        """An agent is lost or, with `executor_id`, an executor has ended."""
        failure = Event.Failure(agent_id=AgentID(value=agent_id), status=status)
        if executor_id:
            failure.executor_id.value = executor_id
        self.send(Event(type=Event.FAILURE, failure=failure))

    def heartbeat(self) -> None:
        self.send(Event(type=Event.HEARTBEAT))

    def error(self, message: str) -> None:
        """Say ERROR and end the stream: the subscription is over for good."""
        self.send(Event(type=Event.ERROR, error=Event.Error(message=message)))
        self._loop.do(lambda: self._put(None))

    def cut(self, error: MesosPyError | None = None) -> None:
        """End the present stream with `error` (Unavailable)."""
        self._loop.do(lambda: self._put(error or Unavailable("the fake master cut the stream")))

    def does_not_lead(self, leader: str | None) -> None:
        """Send the next subscriptions away, to `leader` if that is known."""
        self.refusal = NotLeader(leader)

    # ---- On the loop ---------------------------------------------------------

    def _put(self, what: Events | MesosPyError | None) -> None:
        if self._current is None:
            raise AssertionError("no scheduler is subscribed")
        self._current.queue.put_nowait(what)

    def on_call(self, call: Call) -> None:
        """A call has arrived.  For subclasses that decide something; on the fake's loop."""

    def on_subscribed(self) -> None:
        """A stream was answered with SUBSCRIBED.  For subclasses; on the fake's loop."""

    def reply(self, *events: Event) -> None:
        """Like `send`, for subclasses on the fake's loop; nothing if nobody is subscribed."""
        if self._current is not None:
            self._current.queue.put_nowait(Events(events=events))

    def _subscribed(self, call: Call) -> Events:
        self._frameworks += 1
        framework_id = call.subscribe.framework_info.id.value or f"framework-{self._frameworks}"
        subscribed = Event.Subscribed(
            framework_id=FrameworkID(value=framework_id),
            heartbeat_interval_seconds=self.heartbeat_s,
            master_info=MasterInfo(id="fake-master", port=self._port),
            guaranteed_share=self.guaranteed_share,
            protocol_version=1,
        )
        return Events(
            events=[
                Event(type=Event.SUBSCRIBED, subscribed=subscribed),
                Event(type=Event.HEARTBEAT),
            ]
        )

    async def serve(
        self, requests: AsyncIterator[Calls], context: Context
    ) -> AsyncIterator[Events]:
        """One stream, to its end."""
        first = await anext(requests)
        for call in first.calls:
            self._log.add(call)
        if isinstance(self.refusal, MesosPyError):
            await rpc.abort(context, self.refusal)
        if self.refusal is not None:
            yield Events(events=[self.refusal])
            return
        number = len(self._subscriptions.all()) + 1
        current = self._current = _Subscription(number)
        reader = asyncio.create_task(self._read(requests, current))
        try:
            if not self.silent:
                yield self._subscribed(first.calls[0])
                self._subscriptions.add(number)
                self.on_subscribed()
            while (what := await current.queue.get()) is not None:
                if isinstance(what, MesosPyError):
                    await rpc.abort(context, what)
                yield what
        finally:
            if self._current is current:
                self._current = None
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    async def _read(self, requests: AsyncIterator[Calls], current: _Subscription) -> None:
        async for batch in requests:
            for call in batch.calls:
                self._log.add(call)
                self.on_call(call)
                if call.type == Call.TEARDOWN:
                    current.queue.put_nowait(None)
        # The scheduler has left.
        current.queue.put_nowait(None)


class _Service(SchedulerServiceServicer):
    def __init__(self, master: FakeMaster) -> None:
        self._master = master

    async def Subscribe(self, request_iterator: Any, context: Any) -> AsyncIterator[Events]:
        async for batch in self._master.serve(aiter(request_iterator), context):
            yield batch


__all__ = ["FakeMaster"]
