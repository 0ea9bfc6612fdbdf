"""The peers of `bench/failover`: their HTTP/2, and when all of them count as back."""

import asyncio
import struct

from bench.failover.peers import Count, World
from bench.failover.told import ToldDetector
from bench.failover.wire import Wire, preface

PREFACE = preface("127.0.0.1:5050", "/service/Method")
SETTINGS, PING, WINDOW_UPDATE, HEADERS, DATA = 4, 6, 8, 1, 0


def frame(kind: int, payload: bytes, flags: int = 0, stream: int = 0) -> bytes:
    return struct.pack(">I", len(payload) << 8 | kind) + struct.pack(">BI", flags, stream) + payload


def message(body: bytes) -> bytes:
    return struct.pack(">BI", 0, len(body)) + body


class Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def abort(self) -> None:
        self.aborted = True


class Receiver:
    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.ends = 0

    def received(self, message: bytes) -> None:
        self.messages.append(message)

    def ended(self) -> None:
        self.ends += 1


def connected() -> tuple[Wire, Transport, Receiver]:
    transport, receiver = Transport(), Receiver()
    wire = Wire(receiver, PREFACE)
    wire.connection_made(transport)
    assert transport.written == PREFACE
    transport.written = b""
    return wire, transport, receiver


def test_messages_arrive_whole_however_they_are_cut():
    wire, _, receiver = connected()
    data = message(b"one") + message(b"") + message(b"three")
    stream = frame(HEADERS, b"\x88", stream=1) + frame(DATA, data[:7], stream=1)
    for byte in stream + frame(DATA, data[7:], stream=1):
        wire.data_received(bytes([byte]))
    assert receiver.messages == [b"one", b"", b"three"]
    assert receiver.ends == 0


def test_what_the_window_has_no_room_for_waits_until_it_has():
    wire, transport, _ = connected()
    body = b"x" * 70_000
    wire.send(body)
    sent = transport.written
    assert len(sent) - 9 * 4 == 65_535
    wire.data_received(frame(WINDOW_UPDATE, struct.pack(">I", 100_000), stream=1))
    assert transport.written == sent
    wire.data_received(frame(WINDOW_UPDATE, struct.pack(">I", 100_000)))
    assert len(transport.written) - 9 * 5 == 70_005


def test_the_peers_settings_change_the_window_and_are_acknowledged():
    wire, transport, _ = connected()
    wire.data_received(frame(SETTINGS, struct.pack(">HI", 4, 10)))
    assert transport.written == frame(SETTINGS, b"", flags=1)
    transport.written = b""
    wire.send(b"longer than the window")
    assert transport.written == frame(DATA, message(b"longer than the window")[:10], stream=1)


def test_pings_are_answered():
    wire, transport, _ = connected()
    wire.data_received(frame(PING, b"12345678") + frame(PING, b"87654321", flags=1))
    assert transport.written == frame(PING, b"12345678", flags=1)


def test_trailers_end_the_stream_once():
    wire, transport, receiver = connected()
    wire.data_received(frame(HEADERS, b"", flags=5, stream=1))
    wire.connection_lost(None)
    assert (receiver.ends, transport.aborted) == (1, True)
    wire.send(b"late")
    assert transport.written == b""


async def test_offers_flow_when_one_comes_after_the_last_peer_is_back(tmp_path):
    told = tmp_path / "leader"
    told.write_text("127.0.0.1:1")
    world = World(ToldDetector(told), Count(2), Count(1))
    world.begin()
    world.offered()
    assert offers(world) == (False, False)  # the old leader's
    world.linked(world.agents)
    world.linked(world.frameworks)
    world.offered()
    assert offers(world) == (True, False)
    world.linked(world.agents)
    assert world.renewed
    world.offered()
    assert offers(world) == (True, True)


def offers(world: World) -> tuple[bool, bool]:
    """Whether there was one, and one that came when everybody was back."""
    return world.first_offer_s is not None, world.flowing_s is not None


async def test_a_told_detector_follows_its_file(tmp_path):
    told = tmp_path / "leader"
    told.write_text("127.0.0.1:1")
    detector = ToldDetector(told)
    leaders = detector.watch()
    assert str(await anext(leaders)) == "127.0.0.1:1"
    told.write_text("127.0.0.1:2")
    assert str(await anext(leaders)) == "127.0.0.1:2"
    assert str(await detector.leader()) == "127.0.0.1:2"
    await leaders.aclose()
