"""A master for tests of frameworks: real gRPC on loopback, and it does what it is told.

::

    with FakeMaster() as master:
        driver = SchedulerDriver(MyScheduler(), framework, master.address)
        driver.start()
        master.wait_for_subscription()
        master.offer(make_offer("o1"))
        [accept] = master.wait_for(Call.ACCEPT)

It decides nothing by itself, but that of several instances that stand by (SUBSCRIBE with
`standby`) the first is subscribed and the next when it goes.  One that runs tasks is
`fake_cluster.FakeCluster`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any, Self

import grpc.aio

from mesos_py import rpc
from mesos_py.errors import NotLeader
from mesos_py.testing.fake_server import FakeServer, Stream
from mesos_py.testing.loop_thread import PATIENCE_S, Log
from mesos_py.v1.scheduler_pb2 import Call, Event, Events
from mesos_py.v1.scheduler_pb2_grpc import (
    SchedulerServiceServicer,
    add_SchedulerServiceServicer_to_server,
)
from mesos_py.v1.types_pb2 import (
    AgentID,
    ExecutorID,
    FrameworkID,
    InverseOffer,
    MasterInfo,
    Offer,
    OfferID,
    Request,
    Resource,
    TaskStatus,
)


class FakeMaster(FakeServer[Call, Event]):
    """See the module's docstring.

    heartbeat_s: the interval told to schedulers; a HEARTBEAT is sent after SUBSCRIBED and
        whenever `heartbeat` is called, so that no test depends on time.
    """

    def __init__(
        self, *, heartbeat_s: float = 15.0, guaranteed_share: Iterable[Resource] = ()
    ) -> None:
        super().__init__("fake master")
        self.heartbeat_s = heartbeat_s
        self.guaranteed_share = list(guaranteed_share)
        self._port = 0
        self._frameworks = 0
        self._stood_by = Log()

    def __enter__(self) -> Self:
        self._enter()
        return self

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    # ---- What is said --------------------------------------------------------

    def offer(self, *offers: Offer) -> None:
        self.send(Event(type=Event.OFFERS, offers=Event.Offers(offers=offers)))

    def rescind(self, offer_id: str) -> None:
        rescind = Event.Rescind(offer_id=OfferID(value=offer_id))
        self.send(Event(type=Event.RESCIND, rescind=rescind))

    def inverse_offer(self, *offers: InverseOffer) -> None:
        inverse_offers = Event.InverseOffers(inverse_offers=offers)
        self.send(Event(type=Event.INVERSE_OFFERS, inverse_offers=inverse_offers))

    def rescind_inverse_offer(self, offer_id: str) -> None:
        rescind = Event.RescindInverseOffer(inverse_offer_id=OfferID(value=offer_id))
        self.send(Event(type=Event.RESCIND_INVERSE_OFFER, rescind_inverse_offer=rescind))

    def answer_needs(
        self, accepted: Iterable[Request] = (), *, admitted: bool = True, message: str = ""
    ) -> None:
        """Say what became of the needs that the framework has stated."""
        needs = Event.Needs(accepted=accepted, admitted=admitted, message=message)
        self.send(Event(type=Event.NEEDS, needs=needs))

    def guarantee(self, *resources: Resource) -> None:
        """Say that the framework is guaranteed that from now on."""
        self.guaranteed_share = list(resources)
        guarantee = Event.Guarantee(resources=resources)
        self.send(Event(type=Event.GUARANTEE, guarantee=guarantee))

    def update(self, *statuses: TaskStatus) -> None:
        self.send(*(update_event(status) for status in statuses))

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
        self.end_with(Event(type=Event.ERROR, error=Event.Error(message=message)))

    def does_not_lead(self, leader: str | None) -> None:
        """Send the next subscriptions away, to `leader` if that is known."""
        self.refusal = NotLeader(leader)

    def wait_for_standby(self, count: int = 1, timeout_s: float = PATIENCE_S) -> None:
        """Until `count` streams have been answered with STANDBY, since the beginning."""
        self._stood_by.wait(lambda _: True, count, timeout_s)

    # ---- On the loop ---------------------------------------------------------

    def _bind(self, server: grpc.aio.Server) -> None:
        add_SchedulerServiceServicer_to_server(_Service(self), server)
        self._port = rpc.bind(server, "127.0.0.1", self._port)

    def _batch(self, events: list[Event]) -> Events:
        return Events(events=events)

    def _end_after(self, call: Call) -> bool:
        return call.type == Call.TEARDOWN

    def _answer(self, call: Call) -> list[Event]:
        self._frameworks += 1
        framework_id = call.subscribe.framework_info.id.value or f"framework-{self._frameworks}"
        subscribed = Event.Subscribed(
            framework_id=FrameworkID(value=framework_id),
            heartbeat_interval_seconds=self.heartbeat_s,
            master_info=MasterInfo(id="fake-master", port=self._port),
            guaranteed_share=self.guaranteed_share,
            protocol_version=1,
        )
        return [
            Event(type=Event.SUBSCRIBED, subscribed=subscribed),
            Event(type=Event.HEARTBEAT),
        ]

    def _waits(self, call: Call) -> bool:
        return call.subscribe.standby and self._current is not None

    def _tell_waiting(self) -> None:
        for ahead, stream in enumerate(self._waiting):
            if stream.told == ahead:
                continue
            if stream.told is None:
                self._stood_by.add(stream)
            stream.told = ahead
            standby = Event.Standby(
                framework_id=stream.call.subscribe.framework_info.id,
                ahead=ahead,
                heartbeat_interval_seconds=self.heartbeat_s,
                master_info=MasterInfo(id="fake-master", port=self._port),
                protocol_version=1,
            )
            events = [Event(type=Event.STANDBY, standby=standby)]
            stream.queue.put_nowait(self._batch(events))

    def _on_waiting_call(self, stream: Stream, call: Call) -> None:
        refused = Event.Refused(call=call.type, code="refused", message="this instance stands by")
        stream.queue.put_nowait(self._batch([Event(type=Event.REFUSED, refused=refused)]))


class _Service(SchedulerServiceServicer):
    def __init__(self, master: FakeMaster) -> None:
        self._master = master

    async def Subscribe(self, request_iterator: Any, context: Any) -> AsyncIterator[Events]:
        async for batch in self._master.serve(aiter(request_iterator), context):
            yield batch


def update_event(status: TaskStatus) -> Event:
    return Event(type=Event.UPDATE, update=Event.Update(status=status))


__all__ = ["FakeMaster", "update_event"]
