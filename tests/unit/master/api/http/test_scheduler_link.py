"""What a stream over HTTP has in its queue."""

import json
from typing import Any

import pytest

from master.api.http.scheduler_link import Form, SchedulerLink
from master.api.links import Links
from mesos_py.http.media import Media
from mesos_py.http.recordio import Reader
from mesos_py.outbox import Outbox
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

Event = sched.Event


def link(media: Media = Media.JSON, *, ours: bool = False, echoed: bool = False) -> SchedulerLink:
    form = Form(media, ours=ours, newer_resources=False, echoed=echoed)
    return SchedulerLink(1, "peer", Outbox(), form, "id", lambda agent_id: None)


def records(of: SchedulerLink) -> list[Any]:
    # One record in each entry, so that each can be a chunk.
    found = [record for entry in of.queue.take() for record in Reader().feed(entry)]
    return [json.loads(record) for record in found]


def error() -> Event:
    return Event(type=Event.ERROR, error=Event.Error(message="no"))


def test_each_event_is_a_record() -> None:
    to = link()
    to.put(Event(type=Event.HEARTBEAT))
    to.put(error())
    assert records(to) == [{"type": "HEARTBEAT"}, {"type": "ERROR", "error": {"message": "no"}}]


@pytest.mark.parametrize("kind", [Event.REFUSED, Event.STANDBY, Event.NEEDS, Event.GUARANTEE])
def test_events_of_our_own_are_for_those_who_know_them(kind: Event.Type.ValueType) -> None:
    for ours in (False, True):
        to = link(ours=ours)
        to.put(Event(type=kind))
        assert len(to.queue) == ours


def test_a_heartbeat_follows_each_event_that_is_none() -> None:
    to = link(echoed=True)
    to.put(error())
    to.put(Event(type=Event.HEARTBEAT))
    assert [record["type"] for record in records(to)] == ["ERROR", "HEARTBEAT", "HEARTBEAT"]


def test_nothing_is_sent_of_inverse_offers_that_are_for_others() -> None:
    to = link()
    event = Event(type=Event.INVERSE_OFFERS)
    event.inverse_offers.inverse_offers.add().revocation.reason = "r"
    to.put(event)
    assert len(to.queue) == 0


def test_in_protobuf_what_is_zero_is_there_if_it_is_required() -> None:
    to = link(Media.PROTOBUF)
    event = Event(type=Event.UPDATE)
    event.update.status.state = pb.TASK_STARTING
    to.put(event)
    (entry,) = to.queue.take()
    assert entry.endswith(b"\x10\x00")


async def test_it_is_a_link_of_the_core_like_any_other() -> None:
    links = Links(10, 1000)
    form = Form(Media.JSON, ours=False, newer_resources=False, echoed=False)

    def make(number: int, peer: str, queue: Outbox[bytes]) -> SchedulerLink:
        return SchedulerLink(number, peer, queue, form, "id", lambda agent_id: None)

    made = links.open_as(make, "peer", lambda: None)
    assert links.get(made.number) is made
    links.to_framework(made.number, error())
    assert [record["type"] for record in records(made)] == ["ERROR"]
    links.forget(made)
    assert links.get(made.number) is None
