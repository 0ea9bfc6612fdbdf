"""Peers of a master that say just what a test wants, also what no library of ours would."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, Self, TypeVar

import grpc

from mesos_py import rpc
from mesos_py.resources import Resources
from mesos_py.v1 import agent_pb2, scheduler_pb2
from mesos_py.v1.agent_pb2_grpc import AgentServiceStub
from mesos_py.v1.scheduler_pb2_grpc import SchedulerServiceStub
from mesos_py.v1.types_pb2 import (
    AgentID,
    AgentInfo,
    FrameworkID,
    FrameworkInfo,
    Offer,
    TaskState,
    TaskStatus,
)
from tests.kit.recorder import PATIENCE_S, Recorder

Batch = TypeVar("Batch")
Event = TypeVar("Event")


class _End:
    """Stands at the end of the events of a stream that is over."""


class RawStream(Generic[Batch, Event]):
    """One stream of batches; everything that arrives is noted, at once or on demand."""

    def __init__(self, address: str, method: Callable[[grpc.Channel], Any]) -> None:
        self._channel = grpc.insecure_channel(address, options=rpc.channel_options())
        self._out: queue.SimpleQueue[Batch | None] = queue.SimpleQueue()
        self._call = method(self._channel)(self._sent())
        self.seen: Recorder[Event | _End] = Recorder()
        self._status: tuple[grpc.StatusCode, str] | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Break the stream off."""
        self._out.put(None)
        self._call.cancel()
        if self._reader.is_alive():
            self._reader.join(PATIENCE_S)
        self._channel.close()

    def _sent(self) -> Iterator[Batch]:
        while (batch := self._out.get()) is not None:
            yield batch

    def _read(self) -> None:
        try:
            for batch in self._call:
                for event in batch.events:
                    self.seen.note(event)
            self._status = (grpc.StatusCode.OK, "")
        except grpc.RpcError:
            self._status = (self._call.code(), self._call.details())
        self.seen.note(_End())

    def write(self, batch: Batch) -> None:
        self._out.put(batch)

    def half_close(self) -> None:
        """Say that nothing more will be sent."""
        self._out.put(None)

    def events(self) -> list[Event]:
        return [event for event in self.seen.all() if not isinstance(event, _End)]

    def event(
        self, kind: int, where: Callable[[Any], object] = lambda _: True, count: int = 1
    ) -> Any:
        """The `count`-th event of this type of those that `where` wants."""

        def look(seen: list[Event | _End]) -> list[Any] | None:
            found = [e for e in seen if not isinstance(e, _End) and e.type == kind and where(e)]  # type: ignore[attr-defined]
            if len(found) < count:
                assert not (seen and isinstance(seen[-1], _End)), "the stream has ended"
                return None
            return found

        return self.seen.wait(look, f"{count} x event {kind}")[count - 1]

    def ended(self) -> tuple[grpc.StatusCode, str]:
        """The status with which the master has ended the stream, once it has."""
        self.seen.wait(
            lambda seen: True if seen and isinstance(seen[-1], _End) else None, "the stream's end"
        )
        assert self._status is not None
        return self._status


class RawScheduler(RawStream[scheduler_pb2.Calls, scheduler_pb2.Event]):
    """A scheduler of few principles.  Acknowledges nothing by itself."""

    Call: Final = scheduler_pb2.Call
    Event: Final = scheduler_pb2.Event

    def __init__(self, address: str) -> None:
        super().__init__(address, lambda channel: SchedulerServiceStub(channel).Subscribe)
        self.framework_id = ""

    def send(self, *calls: scheduler_pb2.Call) -> None:
        self.write(scheduler_pb2.Calls(calls=calls))

    def call(self, kind: scheduler_pb2.Call.Type.ValueType, **parts: Any) -> None:
        self.send(self.made(kind, **parts))

    def made(self, kind: scheduler_pb2.Call.Type.ValueType, **parts: Any) -> scheduler_pb2.Call:
        call = scheduler_pb2.Call(type=kind, **parts)
        if self.framework_id:
            call.framework_id.value = self.framework_id
        return call

    def subscribe(self, info: FrameworkInfo | None = None, **subscribe: Any) -> str:
        """Subscribe and wait for the answer; the framework's id."""
        info = info or framework_info()
        self.framework_id = info.id.value
        self.call(
            self.Call.SUBSCRIBE, subscribe=self.Call.Subscribe(framework_info=info, **subscribe)
        )
        subscribed = self.event(self.Event.SUBSCRIBED).subscribed
        self.framework_id = subscribed.framework_id.value
        return self.framework_id

    def offer(self, where: Callable[[Offer], object] = lambda _: True) -> Offer:
        """The first offer that `where` wants; rescinded and used ones are not left out."""

        def look(seen: list[Any]) -> Offer | None:
            for event in seen:
                if isinstance(event, scheduler_pb2.Event) and event.type == self.Event.OFFERS:
                    for offer in event.offers.offers:
                        if where(offer):
                            return offer
            return None

        return self.seen.wait(look, "an offer")

    def status(self, task_id: str, count: int = 1) -> TaskStatus:
        """The `count`-th status of the task."""
        wanted = self.event(
            self.Event.UPDATE, lambda e: e.update.status.task_id.value == task_id, count
        )
        status: TaskStatus = wanted.update.status
        return status

    def refused(
        self, kind: scheduler_pb2.Call.Type.ValueType, count: int = 1
    ) -> scheduler_pb2.Event.Refused:
        """The `count`-th refusal of a call of this type."""
        found = self.event(self.Event.REFUSED, lambda e: e.refused.call == kind, count)
        refused: scheduler_pb2.Event.Refused = found.refused
        return refused

    def acknowledge(self, status: TaskStatus) -> None:
        self.call(
            self.Call.ACKNOWLEDGE,
            acknowledge=self.Call.Acknowledge(
                agent_id=status.agent_id, task_id=status.task_id, uuid=status.uuid
            ),
        )

    def teardown(self) -> None:
        """End the framework and wait until the master has ended the stream."""
        self.call(self.Call.TEARDOWN)
        self.ended()


class RawAgent(RawStream[agent_pb2.Calls, agent_pb2.Event]):
    """An agent that runs nothing.  Answers no ping by itself."""

    Call: Final = agent_pb2.Call
    Event: Final = agent_pb2.Event

    def __init__(self, address: str) -> None:
        super().__init__(address, lambda channel: AgentServiceStub(channel).Connect)
        self.agent_id = ""

    def send(self, *calls: agent_pb2.Call) -> None:
        self.write(agent_pb2.Calls(calls=calls))

    def register(
        self, hostname: str, resources: str = "cpus:2;mem:512", agent_id: str = "", **register: Any
    ) -> str:
        info = AgentInfo(hostname=hostname, port=1, resources=Resources.parse(resources).to_proto())
        if agent_id:
            info.id.value = agent_id
        call = self.Call.Register(agent_info=info, version="raw", protocol_version=1, **register)
        self.send(self.Call(type=self.Call.REGISTER, register=call))
        registered = self.event(self.Event.REGISTERED).registered
        self.agent_id = registered.agent_id.value
        return self.agent_id

    def update(
        self,
        framework_id: str,
        task_id: str,
        state: TaskState.ValueType,
        uuid: bytes,
        latest: TaskState.ValueType | None = None,
    ) -> None:
        status = TaskStatus(state=state, uuid=uuid, agent_id=AgentID(value=self.agent_id))
        status.task_id.value = task_id
        status.source = TaskStatus.SOURCE_EXECUTOR
        update = self.Call.Update(
            framework_id=FrameworkID(value=framework_id),
            status=status,
            latest_state=state if latest is None else latest,
        )
        self.send(self.Call(type=self.Call.UPDATE, update=update))


def framework_info(name: str = "raw", **fields: Any) -> FrameworkInfo:
    """A framework whose tasks outlive a broken stream for an hour."""
    info = FrameworkInfo(name=name, user="root", failover_timeout=3600.0)
    framework_id = fields.pop("id", "")
    for field, value in fields.items():
        setattr(info, field, value)
    if framework_id:
        info.id.value = framework_id
    info.capabilities.add(type=FrameworkInfo.Capability.PARTITION_AWARE)
    return info
