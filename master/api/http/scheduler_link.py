"""A scheduler's stream over HTTP as a link of the core."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import Message

from master.api.http.dressing import dressed
from master.api.links import Link
from mesos_py.http.fields import OURS
from mesos_py.http.media import Media
from mesos_py.http.recordio import framed
from mesos_py.outbox import Outbox
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

_HEARTBEAT: Final = sched.Event(type=sched.Event.HEARTBEAT)


@dataclass(frozen=True, slots=True)
class Form:
    """How a client wants its events."""

    media: Media
    # Also those that Mesos does not have: it has said that it knows us.
    ours: bool
    # Resources in the form of refined reservations.
    newer_resources: bool
    # A heartbeat follows each event, for clients that read one record behind.
    echoed: bool


class SchedulerLink(Link):
    """Its queue holds records, ready to be sent; `stream_id` is what its calls must bear."""

    def __init__(
        self,
        number: int,
        peer: str,
        queue: Outbox[bytes],
        form: Form,
        stream_id: str,
        agent_of: Callable[[str], pb.AgentInfo | None],
    ) -> None:
        super().__init__(number, peer, queue)
        self.form = form
        self.stream_id = stream_id
        self._agent_of = agent_of
        self._heartbeat = framed(form.media.dumps(_HEARTBEAT))

    def put(self, event: Message) -> None:
        assert isinstance(event, sched.Event)
        form = self.form
        if event.type >= OURS and not form.ours:
            return
        if event.type == sched.Event.HEARTBEAT:
            self.queue.put(self._heartbeat, len(self._heartbeat))
            return
        told = dressed(event, self._agent_of, newer_resources=form.newer_resources, ours=form.ours)
        if told is None:
            return
        record = framed(form.media.dumps(told, ours=form.ours))
        self.queue.put(record, len(record))
        if form.echoed:
            self.queue.put(self._heartbeat, len(self._heartbeat))


__all__ = ["Form", "SchedulerLink"]
