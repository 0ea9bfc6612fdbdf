"""SUBSCRIBE of the operator API, as it is on the wire."""

import asyncio
import json

import pytest

from master.api.http.writing import event_as_mesos
from master.core.cluster import Options
from mesos_py.http import recordio
from mesos_py.v1 import operator_pb2 as op
from tests.kit.master_http import JSON, http_master
from tests.kit.raw_http import PATIENCE_S, connected, request

PROTOBUF = "application/x-protobuf"
SUBSCRIBE = b'{"type":"SUBSCRIBE"}'


@pytest.fixture
async def master():
    async with http_master() as made:
        yield made


class Watcher:
    """One who has subscribed."""

    def __init__(self, client):
        self.client = client
        self.head = None

    async def subscribe(self, body=SUBSCRIBE, headers=JSON):
        await self.client.send(request("POST", "/api/v1", headers, body))
        self.head = await self.client.head()
        return self.head

    async def record(self):
        """The next record, which is one chunk."""
        chunk = await self.client.chunk()
        [record] = recordio.Reader().feed(chunk)
        return record

    async def event(self):
        return json.loads(await self.record())


async def test_the_state_comes_first_and_then_what_happens(master):
    master.world.agent("host1")
    async with connected(master.server.port) as client:
        watcher = Watcher(client)
        head = await watcher.subscribe()
        assert (head.status, head.headers["content-type"]) == (200, "application/json")
        assert head.headers["transfer-encoding"] == "chunked"
        assert "mesos-stream-id" not in head.headers
        first = await watcher.event()
        assert first["type"] == "SUBSCRIBED"
        assert first["subscribed"]["heartbeat_interval_seconds"] == Options().heartbeat_s == 15.0
        [agent] = first["subscribed"]["get_state"]["get_agents"]["agents"]
        assert agent["agent_info"]["hostname"] == "host1"
        assert await watcher.event() == {"type": "HEARTBEAT"}
        framework = master.world.framework("it")
        added = await watcher.event()
        assert added["type"] == "FRAMEWORK_ADDED"
        assert added["framework_added"]["framework"]["framework_info"]["name"] == "it"
        framework.start("t1")
        task = await watcher.event()
        assert (task["type"], task["task_added"]["task"]["name"]) == ("TASK_ADDED", "t1")
        # Who leads no more ends the stream.
        master.operator.end()
        assert await client.chunk() == b""
    assert master.world.cluster.news is None


def test_an_event_says_all_moments_of_a_framework_and_nothing_that_it_has():
    """As Mesos: lists are the other way round."""
    event = op.Event(type=op.Event.FRAMEWORK_UPDATED)
    told = event.framework_updated.framework
    told.registered_time.nanoseconds = 5
    told.offers.add()
    told.inverse_offers.add()
    told.allocated_resources.add(name="cpus")
    told.offered_resources.add(name="cpus")
    event_as_mesos(event)
    event_as_mesos(event)
    moments = {"registered_time", "reregistered_time", "unregistered_time"}
    assert {field.name for field, _ in told.ListFields()} == moments


async def test_the_same_in_protobuf(master):
    async with connected(master.server.port) as client:
        watcher = Watcher(client)
        call = op.Call(type=op.Call.SUBSCRIBE).SerializeToString()
        head = await watcher.subscribe(call, {"Content-Type": PROTOBUF, "Accept": PROTOBUF})
        assert (head.status, head.headers["content-type"]) == (200, PROTOBUF)
        first = op.Event.FromString(await watcher.record())
        assert first.type == op.Event.SUBSCRIBED
        assert first.subscribed.heartbeat_interval_seconds == 15.0
        assert op.Event.FromString(await watcher.record()).type == op.Event.HEARTBEAT
        master.world.agent("host1")
        added = op.Event.FromString(await watcher.record())
        assert added.agent_added.agent.agent_info.hostname == "host1"


async def test_the_core_tells_nothing_any_more_when_the_last_one_has_gone(master):
    async with connected(master.server.port) as client:
        watcher = Watcher(client)
        await watcher.subscribe()
        await watcher.event()
        assert len(master.operator.events) == 1
    async with asyncio.timeout(PATIENCE_S):
        while len(master.operator.events):
            # Each request gives the server a chance to see who has gone.
            await master.call("GET_HEALTH")
    assert master.world.cluster.news is None


@pytest.mark.parametrize(
    ("headers", "status"),
    [({**JSON, "Accept": "text/html"}, 406), ({"Content-Type": "application/recordio"}, 415)],
)
async def test_refusals(master, headers, status):
    head, _ = await master.ask("/api/v1", SUBSCRIBE, headers)
    assert head.status == status
    assert not len(master.operator.events)
