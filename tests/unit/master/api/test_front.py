"""What a master answers that does not lead, and how it passes on what it does."""

import asyncio

import grpc
import pytest

from master.api.front import Leading, OperatorFront
from mesos_py import rpc
from mesos_py.address import Address, MasterAddress
from mesos_py.errors import NotLeader
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1 import types_pb2 as pb
from mesos_py.version import VERSION

Call = op.Call


class Aborted(Exception):
    def __init__(self, code, metadata):
        super().__init__(code.name)
        self.code = code
        self.metadata = dict(metadata)


class Context:
    async def abort(self, code, details="", trailing_metadata=()):
        raise Aborted(code, trailing_metadata)


class Operator:
    """That of a leadership."""

    async def Execute(self, request, context):
        return op.Response(type=op.Response.DONE)

    async def ReadLog(self, request, context):
        yield agent_pb2.LogChunk(data=b"x")


@pytest.fixture
def leading():
    return Leading()


@pytest.fixture
def front(leading):
    metrics = [pb.Metric(name="master/leading", value=0)]
    return OperatorFront(leading, {"port": "5050"}, lambda: metrics)


async def ask(front, kind):
    return await front.Execute(Call(type=kind), Context())


async def test_without_leading_it_says_what_is_about_itself(front, leading):
    assert (await ask(front, Call.GET_HEALTH)).get_health.healthy
    assert (await ask(front, Call.GET_VERSION)).get_version.version_info.version == VERSION
    assert [f.name for f in (await ask(front, Call.GET_FLAGS)).get_flags.flags] == ["port"]
    (metric,) = (await ask(front, Call.GET_METRICS)).get_metrics.metrics
    assert metric.name == "master/leading"
    master = (await ask(front, Call.GET_MASTER)).get_master
    assert (master.leading, master.HasField("master_info")) == (False, False)
    leading.detected = Address("10.0.0.1", 5050)
    address = (await ask(front, Call.GET_MASTER)).get_master.master_info.address
    assert (address.hostname, address.port) == ("10.0.0.1", 5050)
    leading.detected = MasterAddress("10.0.0.1", 5060)
    leading.detected.http = Address("one", 5050)
    told = (await ask(front, Call.GET_MASTER)).get_master.master_info
    assert (told.address.hostname, told.address.port, told.grpc_port) == ("one", 5050, 5060)


@pytest.mark.parametrize("known", [True, False])
async def test_all_else_is_sent_to_the_leader_as_far_as_it_is_known(front, leading, known):
    leading.detected = Address("10.0.0.1", 5050) if known else None
    with pytest.raises(Aborted) as asked:
        await ask(front, Call.GET_TASKS)
    with pytest.raises(Aborted) as read:
        async for _ in front.ReadLog(agent_pb2.ReadLogRequest(), Context()):
            pass
    for caught in (asked, read):
        assert caught.value.code == grpc.StatusCode.FAILED_PRECONDITION
        assert caught.value.metadata[rpc.LEADER_KEY] == ("10.0.0.1:5050" if known else "")
    with pytest.raises(NotLeader):
        leading.streams_now()


async def test_a_leadership_answers_itself_until_it_ends(front, leading):
    streams = object()
    leading.begin(streams, Operator())
    assert leading.streams_now() is streams
    assert (await ask(front, Call.GET_TASKS)).type == op.Response.DONE
    chunks = [c.data async for c in front.ReadLog(agent_pb2.ReadLogRequest(), Context())]
    assert chunks == [b"x"]
    leading.end()
    leading.end()
    with pytest.raises(Aborted):
        await ask(front, Call.GET_TASKS)


OWN, OTHER = Address("10.0.0.1", 5050), Address("10.0.0.2", 5050)


@pytest.mark.parametrize("detected", [None, OWN])
async def test_newcomers_wait_while_this_master_may_be_about_to_lead(leading, detected):
    leading.own, leading.detected = OWN, detected
    waiting = asyncio.create_task(leading.streams_soon())
    await asyncio.sleep(0)
    assert not waiting.done()
    streams = object()
    leading.begin(streams, Operator())
    assert await waiting is streams
    assert await leading.streams_soon() is streams


async def test_newcomers_are_sent_on_as_soon_as_another_one_leads(leading):
    leading.own = OWN
    waiting = asyncio.create_task(leading.streams_soon())
    await asyncio.sleep(0)
    leading.detected = OTHER
    with pytest.raises(NotLeader) as caught:
        await waiting
    assert caught.value.leader == str(OTHER)


async def test_newcomers_do_not_wait_for_ever(leading, monkeypatch):
    monkeypatch.setattr("master.api.front.SOON_S", 0.01)
    with pytest.raises(NotLeader):
        await leading.streams_soon()
