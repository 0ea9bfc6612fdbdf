"""The peers of `bench/http`: what they read from the wire, and what they answer."""

import asyncio
import json
from collections.abc import Sequence

import pytest

from bench.http import Choices, polled_rows, rate_rows
from bench.http.floor import Floor
from bench.http.forms import Shape, brief, call_of, event_of
from bench.http.peers import Scheduler, ready_made
from bench.http.pollers import Poller, Seen
from bench.http.wire import Caller, Callers, Chunks, EventStream
from mesos_py.address import Address
from mesos_py.http import binary, jsonpb
from mesos_py.http.media import Media
from mesos_py.http.recordio import framed
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

HOST = Address("127.0.0.1", 5050)


class Transport(asyncio.Transport):
    def __init__(self):
        super().__init__()
        self.written, self.aborted = [], False

    def write(self, data):
        self.written.append(data)

    def is_closing(self):
        return self.aborted

    def abort(self):
        self.aborted = True


class Lines:
    """Takes what a scheduler sends."""

    def __init__(self) -> None:
        self.calls: list[Shape] = []

    def send(self, calls: Sequence[Shape]) -> None:
        self.calls += calls

    def trouble(self) -> str:
        return ""

    def close(self) -> None:
        pass


def update(state=pb.TASK_RUNNING, uuid=b"u" * 16, task_id="t"):
    event = sched.Event(type=sched.Event.UPDATE)
    status = event.update.status
    status.task_id.value, status.agent_id.value = task_id, "a"
    status.state, status.uuid = state, uuid
    return event


def offers(*ids):
    event = sched.Event(type=sched.Event.OFFERS)
    for each in ids:
        offer = event.offers.offers.add(hostname="h")
        offer.id.value, offer.agent_id.value = each, f"agent-of-{each}"
        offer.framework_id.value = "f"
    return event


@pytest.mark.parametrize("step", [1, 2, 7, 1000])
def test_chunks_are_found_wherever_they_are_cut(step):
    data = b"3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n"
    chunks, found = Chunks(), []
    for at in range(0, len(data), step):
        found += chunks.feed(data[at : at + step])
    assert found == [b"abc", b"0123456789"]
    assert chunks.ended


async def test_a_stream_hands_on_records_and_knows_when_it_is_over():
    got: list[bytes] = []
    stream = EventStream(b"request", got.append)
    stream.connection_made(Transport())
    answer = b"HTTP/1.1 200 OK\r\nMesos-Stream-Id: s-1\r\n\r\n"
    answer += b"".join(b"%x\r\n%b\r\n" % (len(framed(r)), framed(r)) for r in (b"one", b"two"))
    for byte in answer:
        stream.data_received(bytes([byte]))
    assert (stream.stream_id, got, stream.failed) == ("s-1", [b"one", b"two"], "")
    stream.data_received(b"0\r\n\r\n")
    assert "ended" in stream.failed


async def test_a_stream_that_is_refused_says_how():
    stream = EventStream(b"request", print)
    stream.connection_made(Transport())
    stream.data_received(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
    stream.connection_lost(None)
    assert stream.begun.is_set()
    assert "403" in stream.failed


def test_a_connection_has_one_call_at_a_time():
    callers = Callers(HOST, "application/json", "s")
    only, transport = Caller(callers), Transport()
    only.connection_made(transport)
    callers._free = [only]
    for body in (b"1", b"2", b"3"):
        callers.send(body)
    assert len(transport.written) == 1
    only.data_received(b"HTTP/1.1 202 Accepted\r\n")
    assert len(transport.written) == 1
    only.data_received(b"\r\n")
    only.data_received(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\nwhy")
    assert [each[-1:] for each in transport.written] == [b"1", b"2", b"3"]
    assert callers.sent == 3
    assert len(callers.refused) == 1


@pytest.mark.parametrize("media", list(Media))
@pytest.mark.parametrize("event", [update(), offers("o1", "o2")], ids=["update", "offers"])
def test_peers_see_the_same_in_all_forms(media, event):
    seen, wanted = event_of(media.dumps(event), media), brief(event)
    if media is Media.JSON:
        full = json.loads(jsonpb.dumps(event))
        assert seen == full
        return
    assert seen == wanted
    told = json.loads(jsonpb.dumps(event))
    assert wanted["type"] == told["type"]
    if event.type == sched.Event.UPDATE:
        status = told["update"]["status"]
        assert wanted["update"]["status"] == {
            name: status[name] for name in wanted["update"]["status"]
        }
    else:
        assert [each["id"] for each in wanted["offers"]["offers"]] == [
            each["id"] for each in told["offers"]["offers"]
        ]


def test_a_call_is_the_same_in_all_forms():
    call = {"type": "KILL", "framework_id": {"value": "f"}, "kill": {"task_id": {"value": "t"}}}
    wanted = jsonpb.from_object(sched.Call, call)
    assert jsonpb.loads(sched.Call, call_of(call, Media.JSON)) == wanted
    assert binary.loads(sched.Call, call_of(call, Media.PROTOBUF)) == wanted
    assert sched.Call.FromString(call_of(call, None)) == wanted


def scheduler():
    made, line = Scheduler("s", 2), Lines()
    made._line = line
    made.framework_id = "f"
    return made, line


def hear(made, event):
    made.received(b"record", [brief(event)])


def test_offers_are_declined_by_one_call_or_each_filled():
    made, line = scheduler()
    hear(made, offers("o1", "o2"))
    assert [call["type"] for call in line.calls] == ["DECLINE"]
    assert [each["value"] for each in line.calls[0]["decline"]["offer_ids"]] == ["o1", "o2"]
    made.launching = True
    hear(made, offers("o3", "o4"))
    assert [call["type"] for call in line.calls[1:]] == ["ACCEPT", "ACCEPT"]
    assert (made.launched, made.offers, made.offer_events) == (4, 4, 2)


def test_updates_are_acknowledged_if_they_ask_for_it():
    made, line = scheduler()
    hear(made, update())
    hear(made, update(pb.TASK_FINISHED))
    assert [call["type"] for call in line.calls] == ["ACKNOWLEDGE"] * 2
    assert (made.updates, made.finished, made.complaints) == (2, 1, [])
    hear(made, update(pb.TASK_LOST, b""))
    assert len(line.calls) == 2
    assert made.complaints


def test_once_all_have_been_answered_it_asks_again():
    made, line = scheduler()
    made.reconcile()
    asked = len(line.calls[0]["reconcile"]["tasks"])
    for _ in range(asked):
        hear(made, update(pb.TASK_LOST, b"", "unknown-1"))
    assert [call["type"] for call in line.calls] == ["RECONCILE"] * 2
    made.stop_asking()
    # What was on its way meanwhile is no fault.
    hear(made, update(pb.TASK_LOST, b"", "unknown-1"))
    assert not made.complaints


def test_the_floor_is_told_what_to_say():
    asked = json.loads(ready_made(b"first", b"record", 3))
    assert set(asked) == {"first", "record", "at_once"}
    assert Floor()._streams == {}


async def test_a_poller_reads_whole_pages():
    seen, transport = Seen(), Transport()
    poller = Poller(b"GET", 1000.0, seen, lambda: True)
    poller.connection_made(transport)
    for status in (b"200 OK", b"503 Service Unavailable"):
        poller._ask()
        answer = b"HTTP/1.1 " + status + b"\r\nContent-Length: 5\r\n\r\n12345"
        for byte in answer:
            poller.data_received(bytes([byte]))
    assert transport.written == [b"GET"] * 2
    assert (len(seen.took_ms), seen.refused) == (2, 1)


def window(server, form, phase, events):
    return {
        "server": server,
        "form": form,
        "phase": phase,
        "events": events,
        "seconds": 2.0,
        "cpu_s": 1.0,
        "own_cpu_s": 0.1,
        "record_bytes": 100,
        "record_events": 1.0,
    }


def test_rows_say_rates_costs_and_ratios():
    found = [
        window("master", "HTTP, JSON", "updates", 1000),
        window("floor", "HTTP, JSON", "updates", 4000),
        window("mesos", "HTTP, JSON", "updates", 500),
        window("mesos", "HTTP, JSON", "answers", 4000),
        window("master", "gRPC", "updates", 2000),
        window("master", "gRPC", "offers", 0),
    ]
    assert [(row.what, row.value.median, row.floor) for row in rate_rows(found)] == [
        ("status updates, HTTP, JSON", 500.0, False),
        ("  CPU of each", 1000.0, False),
        ("  bare aiohttp, the same bytes", 250.0, True),
        ("  our CPU by that", 4.0, False),
        ("  our CPU by gRPC's", 2.0, False),
        ("  Apache Mesos", 250.0, False),
        ("  its CPU of each", 2000.0, False),
        ("  our CPU by that", 0.5, False),
        ("status updates, gRPC", 1000.0, False),
        ("  CPU of each", 500.0, False),
    ]


def test_the_floor_of_delays_is_without_dashboards():
    windows = [
        {"on": on, "took_ms": took, "cpu_s": 1.0, "seconds": 4.0}
        for on, took in ((False, [1.0, 2.0]), (True, [3.0, 4.0]))
    ]
    pages = {"answers": 8, "refused": 0, "p50_ms": 1.0, "p99_ms": 2.0}
    rows = polled_rows({"windows": windows, "pages": pages})
    assert [(row.value.median, row.floor) for row in rows[:4]] == [
        (1.0, True),
        (3.0, False),
        (2.0, True),
        (4.0, False),
    ]


def test_without_choices_no_mesos_is_looked_for():
    assert Choices().mesos is None
