"""The lean front with gRPC's own clients."""

import asyncio

import grpc
import pytest

from master.app import MasterDaemon
from master.flags import MasterFlags
from mesos_py import rpc
from mesos_py.address import parse_address
from mesos_py.errors import InvalidValue, NotLeader, PortInUse
from mesos_py.v1 import (
    agent_pb2,
    agent_pb2_grpc,
    operator_pb2_grpc,
    scheduler_pb2,
    scheduler_pb2_grpc,
)
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1 import types_pb2 as pb

AGENT = pb.AgentInfo(
    hostname="a",
    resources=[pb.Resource(name="cpus", type=pb.Value.SCALAR, scalar=pb.Value.Scalar(value=2))],
)


@pytest.fixture
async def master():
    flags = MasterFlags(front="lean", port=0, http_port=0, max_peer_queue_bytes=1024 * 1024)
    daemon = MasterDaemon(flags)
    await daemon.start()
    yield daemon
    await daemon.stop()


class Client:
    """The channel of a test.  pytest keeps a fixture's value until after the look for
    leaks, and with a channel all that gRPC has open."""

    def __init__(self, port):
        self.channel = rpc.open_channel(f"127.0.0.1:{port}")

    async def close(self):
        await self.channel.close()
        del self.channel


@pytest.fixture
async def client(master):
    client = Client(master.port)
    yield client
    await client.close()


def registration(**more):
    register = agent_pb2.Call.Register(agent_info=AGENT, protocol_version=1, **more)
    call = agent_pb2.Call(type=agent_pb2.Call.REGISTER, register=register)
    return agent_pb2.Calls(calls=[call])


def subscription(**more):
    info = pb.FrameworkInfo(user="nobody", name="f", role="r", **more)
    subscribe = scheduler_pb2.Call.Subscribe(framework_info=info)
    call = scheduler_pb2.Call(type=scheduler_pb2.Call.SUBSCRIBE, subscribe=subscribe)
    return scheduler_pb2.Calls(calls=[call])


async def read_to_the_end(call):
    while await call.read() is not grpc.aio.EOF:
        pass


async def read_on(call):
    while True:
        await call.read()


async def register(channel, **more):
    call = agent_pb2_grpc.AgentServiceStub(channel).Connect()
    await call.write(registration(**more))
    events = await call.read()
    assert events.events[0].type == agent_pb2.Event.REGISTERED
    assert events.epoch > 0
    return call


async def test_streams_and_plain_calls_share_a_connection(client):
    agent = await register(client.channel)
    framework = scheduler_pb2_grpc.SchedulerServiceStub(client.channel).Subscribe()
    await framework.write(subscription())
    first = await framework.read()
    assert first.events[0].type == scheduler_pb2.Event.SUBSCRIBED
    while not any(e.type == scheduler_pb2.Event.OFFERS for e in (await framework.read()).events):
        pass
    stub = operator_pb2_grpc.OperatorServiceStub(client.channel)
    answer = await stub.Execute(op.Call(type=op.Call.GET_AGENTS))
    assert [each.agent_info.hostname for each in answer.get_agents.agents] == ["a"]
    agent.cancel()
    framework.cancel()


async def test_a_message_of_megabytes_passes_both_ways(client):
    agent = await register(client.channel)
    framework = scheduler_pb2_grpc.SchedulerServiceStub(client.channel).Subscribe()
    await framework.write(subscription())
    while not any(e.type == scheduler_pb2.Event.OFFERS for e in (await framework.read()).events):
        pass
    stub = operator_pb2_grpc.OperatorServiceStub(client.channel)
    answer = await stub.Execute(op.Call(type=op.Call.GET_AGENTS))
    agent_id = answer.get_agents.agents[0].agent_info.id
    body = bytes(700_000)
    call = scheduler_pb2.Call(
        type=scheduler_pb2.Call.MESSAGE,
        message=scheduler_pb2.Call.Message(
            agent_id=agent_id, executor_id=pb.ExecutorID(value="e"), data=body
        ),
    )
    await framework.write(scheduler_pb2.Calls(calls=[call]))
    passed = await agent.read()
    assert passed.events[0].executor_message.data == body
    agent.cancel()
    framework.cancel()


async def test_an_error_is_the_one_that_was_raised(client):
    stub = operator_pb2_grpc.OperatorServiceStub(client.channel)
    weights = op.Call.UpdateWeights(weight_infos=[pb.WeightInfo(role="ä b%", weight=1.0)])
    call = op.Call(type=op.Call.UPDATE_WEIGHTS, update_weights=weights)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.Execute(call)
    error = rpc.from_rpc_error(caught.value, "m")
    assert isinstance(error, InvalidValue)
    assert "ä b%" in str(error)


async def test_a_method_that_is_not_there_is_said_to_be_missing(client):
    call = client.channel.unary_unary("/mesos_py.v1.operator.OperatorService/Nothing")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call(b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_stream_that_the_peer_ends_is_told_to_the_core(master, client):
    agent = await register(client.channel)
    await agent.done_writing()
    assert await agent.read() is grpc.aio.EOF
    assert await agent.code() is grpc.StatusCode.OK
    (known,) = master._leadership.shell.core.cluster.agents.values()
    assert not known.connected


async def test_what_is_no_message_ends_its_stream_only(client):
    other = await register(client.channel)
    call = client.channel.stream_stream("/mesos_py.v1.agent.AgentService/Connect")()
    await call.write(b"\xff\xff")
    assert await call.read() is grpc.aio.EOF
    stub = operator_pb2_grpc.OperatorServiceStub(client.channel)
    answer = await stub.Execute(op.Call(type=op.Call.GET_AGENTS))
    assert answer.get_agents.agents[0].active
    other.cancel()


async def test_a_peer_that_reads_too_slowly_is_cut_off(master, client):
    agent = await register(client.channel)
    cluster = master._leadership.shell.core.cluster
    (known,) = cluster.agents.values()
    links = cluster.outbox
    order = agent_pb2.Event(type=agent_pb2.Event.EXECUTOR_MESSAGE)
    order.executor_message.data = bytes(600_000)
    for _ in range(3):
        links.to_agent(known.link, order)
    with pytest.raises((grpc.aio.AioRpcError, asyncio.CancelledError)):
        await read_on(agent)
    assert links.overflows == 1
    assert not known.connected


async def test_who_comes_to_one_that_does_not_lead_is_sent_on(master, client):
    leading = master._leading
    leading.end()
    leading.detected = parse_address("10.0.0.7:5050", "leader")
    call = agent_pb2_grpc.AgentServiceStub(client.channel).Connect()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        async for _ in call:
            pass
    error = rpc.from_rpc_error(caught.value, "m")
    assert isinstance(error, NotLeader)
    assert error.leader == "10.0.0.7:5050"


async def test_who_comes_a_little_too_early_is_waited_for(master, client):
    leading = master._leading
    streams, operator = leading.streams, leading.operator
    leading.end()
    call = agent_pb2_grpc.AgentServiceStub(client.channel).Connect()
    await call.write(registration())
    reading = asyncio.create_task(call.read())
    done, _ = await asyncio.wait({reading}, timeout=0.05)
    assert not done
    leading.begin(streams, operator)
    assert (await reading).events[0].type == agent_pb2.Event.REGISTERED
    call.cancel()


async def test_while_it_is_not_certain_nothing_is_taken_and_nothing_lost(master, client):
    certainty = master._leadership.shell.certainty
    certainty.doubt()
    call = agent_pb2_grpc.AgentServiceStub(client.channel).Connect()
    await call.write(registration())
    reading = asyncio.create_task(call.read())
    done, _ = await asyncio.wait({reading}, timeout=0.05)
    assert not done
    assert not master._leadership.shell.core.cluster.agents
    certainty.trust()
    assert (await reading).events[0].type == agent_pb2.Event.REGISTERED
    call.cancel()


async def test_last_words_count_although_the_peer_has_ended_its_side_in_a_time_of_doubt(
    master, client
):
    call = scheduler_pb2_grpc.SchedulerServiceStub(client.channel).Subscribe()
    await call.write(subscription(failover_timeout=1000.0))
    first = await call.read()
    shell = master._leadership.shell
    shell.certainty.doubt()
    last = scheduler_pb2.Call(
        type=scheduler_pb2.Call.TEARDOWN,
        framework_id=first.events[0].subscribed.framework_id,
    )
    await call.write(scheduler_pb2.Calls(calls=[last]))
    await call.done_writing()
    reading = asyncio.create_task(read_to_the_end(call))
    done, _ = await asyncio.wait({reading}, timeout=0.05)
    assert not done
    shell.certainty.trust()
    await reading
    assert not shell.core.cluster.frameworks


async def test_who_has_said_all_before_it_is_known_who_leads_is_heard_as_well(master, client):
    leading = master._leading
    streams, operator = leading.streams, leading.operator
    leading.end()
    call = agent_pb2_grpc.AgentServiceStub(client.channel).Connect()
    await call.write(registration())
    await call.done_writing()
    reading = asyncio.create_task(read_to_the_end(call))
    done, _ = await asyncio.wait({reading}, timeout=0.05)
    assert not done
    leading.begin(streams, operator)
    await reading
    (known,) = streams.agents.shell.core.cluster.agents.values()
    assert not known.connected


async def test_at_the_end_peers_are_told_why(master, client):
    agent = await register(client.channel)
    await master.stop()
    with pytest.raises(grpc.aio.AioRpcError, match="the master is stopping") as caught:
        await agent.read()
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_port_that_is_taken_is_named(master):
    other = MasterDaemon(MasterFlags(front="lean", port=master.port, http_port=0))
    with pytest.raises(PortInUse, match=str(master.port)):
        await other.start()
