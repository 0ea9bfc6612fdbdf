"""Emulated agents of an Apache Mesos master, which do what those of ours do.

Mesos' daemons send each other messages as libprocess does: each is a POST to
/PROCESS/mesos.internal.NAME with a protobuf body, which is not answered but by other messages.
All agents share one connection to the master, and it has one to them.
"""

from __future__ import annotations

import asyncio
import re
import struct
import time
from collections.abc import Callable, Iterator
from typing import Final

from bench.processes import LOOPBACK
from bench.scale.peers import World
from mesos_py.address import Address
from mesos_py.http import binary
from mesos_py.resources import Resources
from mesos_py.states import TASK_FINISHED, TASK_RUNNING, TaskState
from mesos_py.v1 import types_pb2 as pb

_END: Final = b"\r\n\r\n"
_HEAD: Final = re.compile(
    rb"POST /([^/ ]+)/mesos\.internal\.(\w+) .*?Libprocess-From: ([^@]+)@", re.DOTALL
)
_NUMBER: Final = re.compile(rb"slave(?:\(|%28)([0-9]+)")
_VERSION: Final = b"1.11.0"
# MULTI_ROLE, HIERARCHICAL_ROLE, RESERVATION_REFINEMENT.
_CAPABILITIES: Final = (1, 2, 3)
_VARINT, _FIXED64, _BYTES = 0, 1, 2


# ---- Messages that only Mesos' daemons send each other -------------------------------------


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def field(number: int, data: bytes) -> bytes:
    """A field of a message: text, bytes, or a message within."""
    return _varint(number << 3 | _BYTES) + _varint(len(data)) + data


def fields(data: bytes) -> dict[int, bytes]:
    """The fields of that kind which a message has, by number; of several the last."""
    return dict(_fields(data))


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        key, at = _number(data, at)
        if key & 7 == _BYTES:
            size, at = _number(data, at)
            yield key >> 3, data[at : at + size]
            at += size
        elif key & 7 == _VARINT:
            _, at = _number(data, at)
        else:
            at += 8 if key & 7 == _FIXED64 else 4


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A varint, and where it ends."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7


def _id_in(data: bytes, number: int) -> str:
    """The id in a field of a message."""
    return fields(fields(data)[number])[1].decode()


class Messages:
    """Takes what comes in by a connection; gives (process, name, sender's process, body)."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes, bytes, bytes]]:
        self._rest += data
        at = 0
        while (end := self._rest.find(_END, at)) >= 0:
            head, after = self._rest[at : end + 2], end + len(_END)
            body = b""
            if b"chunked" in head:
                line = self._rest.find(b"\r\n", after)
                if line < 0:
                    break
                size = int(self._rest[after:line], 16)
                after = line + 2 + size + len(b"\r\n0\r\n\r\n")
                if len(self._rest) < after:
                    break
                body = self._rest[line + 2 : line + 2 + size]
            at = after
            if (found := _HEAD.match(head)) is not None:
                yield found[1], found[2], found[3], body
        self._rest = self._rest[at:]


# ---- Agents --------------------------------------------------------------------------------


class MesosAgents:
    """All agents of one master, whose tasks do what those of a Teller do."""

    def __init__(self, world: World, master: Address, telling: Callable[[], bool]) -> None:
        self._world = world
        self._master = master
        self._telling = telling
        self._to_master: asyncio.WriteTransport | None = None
        self._port = 0
        self._ids: dict[int, str] = {}
        # By agent and task: its framework.
        self._tasks: dict[tuple[int, str], str] = {}

    async def register(self) -> None:
        """Listen, connect, and begin to register all of them."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Incoming(self), LOOPBACK, 0)
        host, port = self._master.host, self._master.port
        transport, _ = await loop.create_connection(asyncio.Protocol, host, port)
        self.begin(transport, server.sockets[0].getsockname()[1])

    def begin(self, to_master: asyncio.WriteTransport, port: int) -> None:
        """Begin to register; `port` is where the master's messages are taken."""
        self._to_master, self._port = to_master, port
        for number in range(1, self._world.load.agents + 1):
            self._send(number, b"master", "RegisterSlaveMessage", self._registration())

    def _registration(self) -> bytes:
        slots = self._world.load.slots
        info = pb.AgentInfo(
            hostname=LOOPBACK,
            port=self._port,
            resources=Resources.of(cpus=slots, mem=128 * slots).to_proto(),
            attributes=[
                pb.Attribute(name="rack", type=pb.Value.TEXT, text=pb.Value.Text(value="r1"))
            ],
        )
        made = field(1, binary.dumps(info)) + field(2, _VERSION)
        return made + b"".join(field(4, bytes([1 << 3, each])) for each in _CAPABILITIES)

    def received(self, process: bytes, name: bytes, sender: bytes, body: bytes) -> None:
        """A message to the process of an agent, or to another one of theirs."""
        named = _NUMBER.match(process)
        if named is None:
            return
        number = int(named[1])
        match name:
            case b"PingSlaveMessage":
                self._send(number, sender, "PongSlaveMessage", b"")
            case b"SlaveRegisteredMessage":
                self._ids[number] = _id_in(body, 1)
                self._world.registered += 1
            case b"RunTaskMessage":
                parts = fields(body)
                task_id = _id_in(parts[4], 2)
                self._tasks[number, task_id] = _id_in(parts[2], 3)
                self._update(number, task_id, TASK_RUNNING)
            case b"StatusUpdateAcknowledgementMessage":
                task_id = _id_in(body, 3)
                if (number, task_id) in self._tasks:
                    self._update(
                        number, task_id, TASK_RUNNING if self._telling() else TASK_FINISHED
                    )

    def _update(self, number: int, task_id: str, state: TaskState.ValueType) -> None:
        at = number, task_id
        framework_id = self._tasks.pop(at) if state == TASK_FINISHED else self._tasks[at]
        agent_id, uuid, now_s = pb.AgentID(value=self._ids[number]), self._world.uuid(), time.time()
        status = pb.TaskStatus(
            task_id=pb.TaskID(value=task_id),
            agent_id=agent_id,
            state=state,
            source=pb.TaskStatus.SOURCE_EXECUTOR,
            timestamp=now_s,
            uuid=uuid,
        )
        update = field(1, pb.FrameworkID(value=framework_id).SerializeToString())
        update += field(3, agent_id.SerializeToString()) + field(4, binary.dumps(status))
        update += bytes([5 << 3 | _FIXED64]) + struct.pack("<d", now_s) + field(6, uuid)
        told = field(1, update) + field(2, self._name(number))
        self._send(number, b"master", "StatusUpdateMessage", told)

    def _send(self, number: int, to: bytes, name: str, body: bytes) -> None:
        """From one agent to a process of the master."""
        assert self._to_master is not None
        own = self._name(number)
        head = b"POST /%b/mesos.internal.%b HTTP/1.1\r\n" % (to, name.encode())
        head += b"User-Agent: libprocess/%b\r\nLibprocess-From: %b\r\n" % (own, own)
        head += b"Connection: Keep-Alive\r\nContent-Length: %d\r\n\r\n" % len(body)
        self._to_master.write(head + body)

    def _name(self, number: int) -> bytes:
        return f"slave({number})@{LOOPBACK}:{self._port}".encode()


class Incoming(asyncio.Protocol):
    """The master's connection to all of them."""

    def __init__(self, agents: MesosAgents) -> None:
        self._agents = agents
        self._messages = Messages()

    def data_received(self, data: bytes) -> None:
        for message in self._messages.feed(data):
            self._agents.received(*message)


__all__ = ["Incoming", "MesosAgents", "Messages", "field", "fields"]
