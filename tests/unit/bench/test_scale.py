"""The peers of `bench/scale`: many streams over one connection, and the wheel."""

import asyncio
import struct

import pytest

from bench.failover import wire
from bench.failover.wire import frame
from bench.scale.connection import Connection
from bench.scale.peers import TICK_S, Wheel
from tests.unit.bench.test_failover import Receiver, Transport, message


@pytest.fixture
async def connection():
    made = Connection("127.0.0.1:5050")
    transport = Transport()
    made.connection_made(transport)
    transport.written = b""
    return made


def frames(connection):
    connection._flush()
    data, found = connection._transport.written, []
    connection._transport.written = b""
    while data:
        word, _, stream = struct.unpack_from(">IBI", data)
        found.append((word & 0xFF, stream, data[9 : 9 + (word >> 8)]))
        data = data[9 + (word >> 8) :]
    return found


async def test_each_stream_gets_its_own_messages(connection):
    receivers = {
        connection.open("/s/M", receiver): receiver for receiver in (Receiver(), Receiver())
    }
    first, second = receivers
    assert [f[:2] for f in frames(connection)] == [(wire.HEADERS, 1), (wire.HEADERS, 3)]
    whole = message(b"two") + message(b"three")
    said = frame(wire.DATA, 0, second, whole[:9]) + frame(wire.DATA, 0, first, message(b"one"))
    said += frame(wire.DATA, 0, second, whole[9:])
    for byte in said:
        connection.data_received(bytes([byte]))
    assert receivers[first].messages == [b"one"]
    assert receivers[second].messages == [b"two", b"three"]
    connection.data_received(frame(wire.HEADERS, wire.END_STREAM, first, b""))
    assert (receivers[first].ends, receivers[second].ends) == (1, 0)


async def test_what_a_window_has_no_room_for_waits_and_nothing_overtakes_it(connection):
    stream = connection.open("/s/M", Receiver())
    frames(connection)
    large = bytes(100_000)
    connection.send(stream, large)
    connection.send(stream, b"last")
    sent = b"".join(f[2] for f in frames(connection))
    assert len(sent) <= wire.FIRST_WINDOW
    for opened in (stream, 0):
        update = struct.pack(">I", 1_000_000)
        connection.data_received(frame(wire.WINDOW_UPDATE, 0, opened, update))
    sent += b"".join(f[2] for f in frames(connection))
    assert sent == message(large) + message(b"last")


async def test_the_wheel_calls_together_and_never_early(monkeypatch):
    loop = asyncio.get_running_loop()
    wheel, called = Wheel(), []
    begun_s = loop.time()
    ended = asyncio.Event()
    wheel.call_in(0.0, lambda what: called.append((what, loop.time())), "a")
    wheel.call_in(TICK_S, lambda _: ended.set(), "b")
    await ended.wait()
    assert [what for what, _ in called] == ["a"]
    assert loop.time() - begun_s >= TICK_S
