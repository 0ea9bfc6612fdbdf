"""Emulated agents of an Apache Mesos master: what they read and what they say."""

import asyncio
import re

import pytest

from bench.http.libprocess import Incoming, MesosAgents, Messages, field, fields
from bench.scale.peers import Load, World
from mesos_py.address import Address
from mesos_py.v1 import types_pb2 as pb

PORT = 31000


class Wire(asyncio.WriteTransport):
    def __init__(self):
        super().__init__()
        self.written = []

    def write(self, data):
        self.written.append(data)


def said(written):
    """Sender, receiver, name and body of what the agents have written, all of it once."""
    found = []
    for data in written:
        head, _, body = data.partition(b"\r\n\r\n")
        names = re.match(rb"POST /(\S+)/mesos\.internal\.(\w+) HTTP/1\.1\r\n", head)
        sender = re.search(rb"\r\nLibprocess-From: (\S+)\r\n", head)
        length = re.search(rb"\r\nContent-Length: (\d+)", head)
        assert names is not None
        assert sender is not None
        assert length is not None
        assert int(length[1]) == len(body)
        found.append((sender[1].decode(), names[1].decode(), names[2].decode(), body))
    written.clear()
    return found


def message(process, name, body, sender="master"):
    """What libprocess makes of it."""
    head = f"POST /{process}/mesos.internal.{name} HTTP/1.1\r\n"
    head += f"User-Agent: libprocess/{sender}@127.0.0.1:5050\r\n"
    head += f"Libprocess-From: {sender}@127.0.0.1:5050\r\nConnection: Keep-Alive\r\nHost: \r\n"
    if not body:
        return head.encode() + b"\r\n"
    head += f"Transfer-Encoding: chunked\r\n\r\n{len(body):x}\r\n"
    return head.encode() + body + b"\r\n0\r\n\r\n"


def an_id(number, value):
    return field(number, field(1, value.encode()))


@pytest.mark.parametrize("size", [0, 1, 127, 128, 20_000])
def test_a_field_is_what_protobuf_makes_of_it(size):
    text = "x" * size
    assert pb.TaskID.FromString(field(1, text.encode())).value == text


def test_fields_with_lengths_are_found_among_others():
    status = pb.TaskStatus(state=pb.TASK_LOST, timestamp=3.5, message="why", uuid=b"u" * 300)
    assert fields(status.SerializeToString()) == {4: b"why", 11: b"u" * 300}


@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_messages_are_found_wherever_they_are_cut(step):
    sent = message("slave(3)", "RunTaskMessage", b"body\r\n\r\n") + message(
        "slave%284%29", "PingSlaveMessage", b"", sender="slave-observer(9)"
    )
    messages = Messages()
    found = [
        each for at in range(0, len(sent), step) for each in messages.feed(sent[at : at + step])
    ]
    assert found == [
        (b"slave(3)", b"RunTaskMessage", b"master", b"body\r\n\r\n"),
        (b"slave%284%29", b"PingSlaveMessage", b"slave-observer(9)", b""),
    ]


@pytest.fixture
def cluster():
    """Two registered agents, whether they tell of their tasks, and what they have written."""
    world, telling, wire = World(Load(agents=2, slots=4)), [True], Wire()
    agents = MesosAgents(world, Address("127.0.0.1", 5050), lambda: telling[0])
    agents.begin(wire, PORT)
    first = said(wire.written)
    incoming = Incoming(agents)
    for number in (1, 2):
        incoming.data_received(
            message(f"slave({number})", "SlaveRegisteredMessage", an_id(1, f"S{number}"))
        )
    assert world.registered == 2
    return first, incoming, telling, wire


def test_agents_register_under_names_of_their_own(cluster):
    first, *_ = cluster
    assert [(sender, to, name) for sender, to, name, _ in first] == [
        (f"slave({number})@127.0.0.1:{PORT}", "master", "RegisterSlaveMessage") for number in (1, 2)
    ]
    info = pb.AgentInfo.FromString(fields(first[0][3])[1])
    assert info.port == PORT
    amounts = {each.name: each.scalar.value for each in info.resources}
    assert amounts == {"cpus": 4.0, "mem": 512.0}


def test_a_ping_is_answered_where_it_came_from(cluster):
    _, incoming, _, wire = cluster
    ping = message("slave(2)", "PingSlaveMessage", b"", sender="slave-observer(5)")
    incoming.data_received(ping)
    (pong,) = said(wire.written)
    assert pong == (f"slave(2)@127.0.0.1:{PORT}", "slave-observer(5)", "PongSlaveMessage", b"")


def test_a_task_is_told_of_until_it_shall_end(cluster):
    _, incoming, telling, wire = cluster
    framework = field(2, an_id(3, "F"))
    run = framework + field(4, field(1, b"name") + an_id(2, "T"))
    incoming.data_received(message("slave(2)", "RunTaskMessage", run))
    acknowledged = message("slave(2)", "StatusUpdateAcknowledgementMessage", an_id(3, "T"))
    incoming.data_received(acknowledged)
    telling[0] = False
    incoming.data_received(acknowledged)
    # That of the end is the last.
    incoming.data_received(acknowledged)
    updates = said(wire.written)
    assert {(to, name) for _, to, name, _ in updates} == {("master", "StatusUpdateMessage")}
    statuses = []
    for sender, _, _, body in updates:
        update = fields(fields(body)[1])
        status = pb.TaskStatus.FromString(update[4])
        assert fields(body)[2].decode() == sender
        assert (update[1], update[3]) == (field(1, b"F"), field(1, b"S2"))
        assert (status.task_id.value, status.agent_id.value) == ("T", "S2")
        assert status.uuid == update[6]
        statuses.append(status)
    assert [each.state for each in statuses] == [pb.TASK_RUNNING, pb.TASK_RUNNING, pb.TASK_FINISHED]
    assert len({each.uuid for each in statuses}) == 3
