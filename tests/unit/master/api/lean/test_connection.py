"""The lean front's HTTP/2, byte by byte."""

import asyncio
import struct

import pytest

from bench.failover.wire import request
from master.api.lean import http2
from master.api.lean.connection import CONNECTION_WINDOW, Connection
from master.api.lean.flusher import Flusher
from master.api.lean.http2 import Code, frame
from master.api.lean.stream import STREAM_WINDOW
from master.api.turns import Turns
from mesos_py import rpc

METHOD = "/service/Method"


class Transport(asyncio.Transport):
    def __init__(self):
        super().__init__()
        self.written = b""
        self.closed = self.aborted = False
        self.reading = True

    def write(self, data):
        self.written += bytes(data)

    def set_write_buffer_limits(self, high=None, low=None):
        pass

    def close(self):
        self.closed = True

    def abort(self):
        self.aborted = True

    def is_closing(self):
        return self.closed or self.aborted

    def is_reading(self):
        return self.reading

    def pause_reading(self):
        self.reading = False

    def resume_reading(self):
        self.reading = True


class Receiver:
    def __init__(self, stream):
        self.stream = stream
        self.messages = []
        self.told = []
        self.takes = True

    def received(self, message):
        self.messages.append(message)
        return self.takes

    def half_closed(self):
        self.told.append("half closed")

    def gone(self):
        self.told.append("gone")

    def writable(self):
        self.told.append("writable")


class Peer:
    """A connection as its client sees it, and who was told of its streams."""

    def __init__(self, budget_s=60):
        self.turns = Turns(budget_s)
        self.receivers = {}
        self.paths = []
        self.lost_ones = []
        self.transport = Transport()
        self.connection = Connection(self, Flusher(), self.turns)
        self.connection.connection_made(self.transport)

    def opened(self, stream, path, headers):
        self.paths.append(path)
        receiver = self.receivers[stream.number] = Receiver(stream)
        return receiver

    def ended(self):
        pass

    def lost(self, connection):
        self.lost_ones.append(connection)

    def say(self, *parts):
        self.connection.data_received(b"".join(parts))

    def open(self, number=1):
        self.say(headers(number))
        return self.receivers[number]

    def heard(self):
        """The frames written since the last time, each kind, flags, stream and payload."""
        self.connection.flush()
        data, self.transport.written, found = self.transport.written, b"", []
        while data:
            word, flags, number = struct.unpack_from(">IBI", data)
            size = word >> 8
            found.append((word & 0xFF, flags, number, data[9 : 9 + size]))
            data = data[9 + size :]
        return found


def beginning():
    return http2.PREFACE + frame(http2.SETTINGS, 0, 0, b"")


def headers(number, flags=http2.END_HEADERS, block=None):
    block = request("host:1", METHOD) if block is None else block
    return frame(http2.HEADERS, flags, number, block)


def message(body):
    return struct.pack(">BI", 0, len(body)) + body


def data(number, body, flags=0):
    return frame(http2.DATA, flags, number, body)


@pytest.fixture
async def peer():
    found = Peer()
    found.say(beginning())
    found.heard()
    return found


async def test_frames_may_be_cut_anywhere():
    peer = Peer()
    said = beginning() + headers(1) + data(1, message(b"one") + message(b"")[:3])
    said += data(1, message(b"")[3:] + message(b"three"), http2.END_STREAM)
    for byte in said:
        peer.say(bytes([byte]))
    assert peer.paths == [METHOD]
    assert peer.receivers[1].messages == [b"one", b"", b"three"]
    assert peer.receivers[1].told == ["half closed"]


async def test_padding_priorities_and_continuations_are_understood(peer):
    block = request("host:1", METHOD)
    first = bytes([2]) + bytes(5) + block[:4] + bytes(2)
    flags = http2.PADDED | http2.PRIORITIZED
    peer.say(headers(1, flags, first), frame(http2.CONTINUATION, 4, 1, block[4:]))
    peer.say(data(1, bytes([3]) + message(b"x") + bytes(3), http2.PADDED))
    assert peer.paths == [METHOD]
    assert peer.receivers[1].messages == [b"x"]


async def test_an_answer_begins_with_headers_and_ends_with_a_status(peer):
    stream = peer.open().stream
    stream.send(b"answer")
    stream.finish(http2.trailer(5, "not 100 %"))
    first, body, last, reset = peer.heard()
    assert first == (http2.HEADERS, http2.END_HEADERS, 1, http2.ANSWER)
    assert body == (http2.DATA, 0, 1, message(b"answer"))
    assert last[:3] == (http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, 1)
    assert b"grpc-status\x015" in last[3]
    assert b"not 100 %25" in last[3]
    # The peer has not ended its side: it need not say more.
    assert reset == (http2.RST_STREAM, 0, 1, bytes(4))
    assert not peer.connection.streams


async def test_nothing_is_sent_beyond_the_windows(peer):
    stream = peer.open().stream
    body = bytes(100_000)
    stream.send(body)
    stream.finish(http2.trailer(0))
    sent = [f for f in peer.heard() if f[0] == http2.DATA]
    assert sum(len(f[3]) for f in sent) == http2.FIRST_WINDOW
    assert max(len(f[3]) for f in sent) <= http2.FRAME_BYTES
    assert not stream.ready
    peer.say(frame(http2.WINDOW_UPDATE, 0, 1, struct.pack(">I", 1_000_000)))
    assert peer.heard() == []  # the connection's is still closed
    peer.say(frame(http2.WINDOW_UPDATE, 0, 0, struct.pack(">I", 1_000_000)))
    rest = peer.heard()
    whole = b"".join(f[3] for f in [*sent, *rest] if f[0] == http2.DATA)
    assert whole == message(body)
    assert [f[0] for f in rest[-2:]] == [http2.HEADERS, http2.RST_STREAM]


async def test_who_waits_for_a_window_is_told(peer):
    receiver = peer.open()
    peer.say(
        frame(http2.SETTINGS, 0, 0, struct.pack(">HI", http2.INITIAL_WINDOW, 0)),
    )
    assert not receiver.stream.ready
    peer.connection.wait(receiver.stream)
    peer.say(frame(http2.WINDOW_UPDATE, 0, 1, struct.pack(">I", 10)))
    assert receiver.told == ["writable"]
    peer.connection.pause_writing()
    assert not receiver.stream.ready
    peer.connection.wait(receiver.stream)
    peer.connection.resume_writing()
    assert receiver.told == ["writable", "writable"]


async def test_the_peer_may_send_as_much_again_as_was_taken(peer):
    receiver = peer.open()
    receiver.takes = False
    size = STREAM_WINDOW // 2
    parts = [message(bytes(size))[at : at + 10_000] for at in range(0, size + 5, 10_000)]
    peer.say(*(data(1, part) for part in parts))
    opened = [f for f in peer.heard() if f[0] == http2.WINDOW_UPDATE]
    assert opened == []
    receiver.stream.grant(size + 5)
    (window,) = peer.heard()
    assert window[:3] == (http2.WINDOW_UPDATE, 0, 1)
    assert int.from_bytes(window[3], "big") >= size


async def test_the_connections_window_is_opened_for_what_was_read(peer):
    receiver = peer.open()
    part = data(1, message(bytes(16_000)))
    count = CONNECTION_WINDOW // 2 // 16_005 + 1
    for _ in range(count):
        peer.say(part)
    assert len(receiver.messages) == count
    opened = [f for f in peer.heard() if f[0] == http2.WINDOW_UPDATE and f[2] == 0]
    assert len(opened) == 1


async def test_a_message_larger_than_the_window_comes_whole(peer):
    receiver = peer.open()
    whole = message(bytes(3 * STREAM_WINDOW))
    sent = 0
    allowed = STREAM_WINDOW
    while sent < len(whole):
        part = whole[sent : min(sent + 16_000, allowed)]
        assert part, "the window was not opened again"
        peer.say(data(1, part))
        sent += len(part)
        for kind, _, number, payload in peer.heard():
            if kind == http2.WINDOW_UPDATE and number == 1:
                allowed += int.from_bytes(payload, "big")
    assert receiver.messages == [whole[5:]]


async def test_a_message_in_many_frames_opens_the_window_no_more_than_it_has_taken(peer):
    """Or the window would grow with each, beyond all bounds in the end."""
    receiver = peer.open()
    whole = message(bytes(STREAM_WINDOW)) + message(b"small")
    sent, opened = 0, 0
    for _ in range(4):
        for at in range(0, len(whole), 16_000):
            part = whole[at : at + 16_000]
            peer.say(data(1, part))
            sent += len(part)
            opened += sum(
                int.from_bytes(payload, "big")
                for kind, _, number, payload in peer.heard()
                if kind == http2.WINDOW_UPDATE and number == 1
            )
            assert opened <= sent
    assert len(receiver.messages) == 8
    assert sent - opened < STREAM_WINDOW // 2


async def test_messages_that_are_not_taken_yet_hold_the_peer_back_whatever_their_size(peer):
    receiver = peer.open()
    receiver.takes = False
    whole, sent, allowed = message(bytes(2 * STREAM_WINDOW)) * 3, 0, STREAM_WINDOW
    taken = 0
    while sent < len(whole):
        part = whole[sent : min(sent + 16_000, allowed)]
        if not part:
            assert len(receiver.messages) > taken, "the window was not opened again"
            receiver.stream.grant(len(receiver.messages[taken]) + 5)
            taken += 1
        else:
            peer.say(data(1, part))
            sent += len(part)
        for kind, _, number, payload in peer.heard():
            if kind == http2.WINDOW_UPDATE and number == 1:
                allowed += int.from_bytes(payload, "big")
        # No more than one beyond those that were taken is ever asked for in full.
        assert len(receiver.messages) <= taken + 1


async def test_what_comes_while_the_end_waits_for_the_window_is_dropped(peer):
    receiver = peer.open()
    receiver.stream.send(bytes(100_000))
    peer.say(data(1, struct.pack(">BI", 1, 3)))
    assert receiver.told == ["gone"]
    peer.heard()
    for _ in range(20):
        peer.say(data(1, bytes([1]) * 16_000))
    opened = [f for f in peer.heard() if f[0] == http2.WINDOW_UPDATE and f[2] == 1]
    assert sum(int.from_bytes(f[3], "big") for f in opened) >= STREAM_WINDOW // 2
    assert receiver.messages == []


async def test_who_asks_on_and_reads_no_answer_is_cut_off(peer, monkeypatch):
    monkeypatch.setattr("master.api.lean.connection.MAX_UNREAD", 10)
    ping = frame(http2.PING, 0, 0, bytes(8))
    peer.say(ping * 20)
    peer.connection.pause_writing()
    peer.say(ping * 10)
    peer.connection.resume_writing()
    peer.connection.pause_writing()
    peer.say(ping * 10)
    assert not peer.transport.closed
    peer.say(ping)
    kind, _, _, payload = peer.heard()[-1]
    assert (kind, payload[7]) == (http2.GOAWAY, Code.ENHANCE_YOUR_CALM)
    assert peer.transport.closed


async def test_who_opens_a_stream_after_our_farewell_may_ask_another(peer):
    first = peer.open(1)
    peer.connection.leave()
    peer.say(headers(3), data(1, message(b"x")))
    assert list(peer.receivers) == [1]
    assert first.messages == [b"x"]
    refused = (http2.RST_STREAM, 0, 3, bytes([0, 0, 0, Code.REFUSED_STREAM]))
    assert peer.heard()[-1] == refused


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (struct.pack(">BI", 1, 3) + b"abc", 12),
        (struct.pack(">BI", 0, rpc.MAX_MESSAGE_BYTES + 1), 8),
    ],
    ids=["compressed", "too large"],
)
async def test_a_message_that_is_not_taken_ends_its_call(peer, said, code):
    receiver = peer.open()
    peer.say(data(1, said))
    assert receiver.told == ["gone"]
    assert b"grpc-status" + bytes([len(str(code))]) + str(code).encode() in peer.heard()[0][3]


async def test_a_reset_ends_one_stream_and_no_other(peer):
    first, second = peer.open(1), peer.open(3)
    peer.say(frame(http2.RST_STREAM, 0, 1, bytes(4)), data(1, message(b"late")))
    peer.say(data(3, message(b"x")))
    assert first.told == ["gone"]
    assert second.messages == [b"x"]
    first.stream.finish(http2.trailer(0))
    assert peer.heard() == []


async def test_all_streams_are_told_of_the_connections_end(peer):
    receivers = [peer.open(1), peer.open(3)]
    peer.connection.connection_lost(None)
    assert [r.told for r in receivers] == [["gone"], ["gone"]]
    assert peer.lost_ones == [peer.connection]


async def test_pings_and_settings_are_answered(peer):
    peer.say(frame(http2.PING, 0, 0, b"12345678"), frame(http2.SETTINGS, 0, 0, b""))
    assert peer.heard() == [
        (http2.PING, http2.ACK, 0, b"12345678"),
        (http2.SETTINGS, http2.ACK, 0, b""),
    ]


async def test_who_does_not_speak_grpc_is_told_so(peer):
    peer.say(headers(1, block=b"\x83\x86\x04\x01/"))
    (answer,) = peer.heard()
    assert answer[:3] == (http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, 1)
    assert b"415" in answer[3]


BROKEN = {
    "no http/2": (b"GET / HTTP/1.1\r\n\r\n", None),
    "frame too large": (struct.pack(">IBI", 20_000 << 8, 0, 1), Code.FRAME_SIZE_ERROR),
    "stream of a server": (headers(2), Code.PROTOCOL_ERROR),
    "data on no stream": (data(7, b"x"), Code.PROTOCOL_ERROR),
    "headers cut off": (headers(1, 0) + frame(http2.PING, 0, 0, bytes(8)), Code.PROTOCOL_ERROR),
    "continued nothing": (frame(http2.CONTINUATION, 4, 1, b""), Code.PROTOCOL_ERROR),
    "headers of nothing": (headers(1, block=b"\xff\xff\xff\xff\xff\x7f"), Code.COMPRESSION_ERROR),
    "padded beyond": (headers(1) + data(1, b"\x09x", http2.PADDED), Code.PROTOCOL_ERROR),
    "opened by nothing": (frame(http2.WINDOW_UPDATE, 0, 0, bytes(4)), Code.PROTOCOL_ERROR),
    "promise": (frame(http2.PUSH_PROMISE, 0, 1, bytes(4)), Code.PROTOCOL_ERROR),
    "settings cut": (frame(http2.SETTINGS, 0, 0, b"12345"), Code.FRAME_SIZE_ERROR),
    "window too wide": (
        frame(http2.WINDOW_UPDATE, 0, 0, struct.pack(">I", http2.MOST)),
        Code.FLOW_CONTROL_ERROR,
    ),
    "endless headers": (
        headers(1, 0) + frame(http2.CONTINUATION, 0, 1, bytes(16_000)) * 2,
        Code.ENHANCE_YOUR_CALM,
    ),
}


@pytest.mark.parametrize("name", list(BROKEN))
async def test_what_is_no_http2_ends_the_connection_and_nothing_else(name):
    said, code = BROKEN[name]
    peer = Peer()
    peer.say((beginning() if code is not None else b"") + said)
    kind, _, _, payload = peer.heard()[-1]
    assert kind == http2.GOAWAY
    assert int.from_bytes(payload[4:8], "big") == (code or Code.PROTOCOL_ERROR)
    assert peer.transport.closed


async def test_what_is_too_much_for_one_round_waits_unread(monkeypatch):
    loop, now = asyncio.get_running_loop(), [100.0]
    monkeypatch.setattr(loop, "time", lambda: now[0])
    peer = Peer(budget_s=0.02)
    peer.say(beginning())
    receiver = peer.open()

    def received(message):
        now[0] += 0.015
        receiver.messages.append(message)
        return True

    receiver.received = received
    peer.say(*(data(1, message(bytes([n]))) for n in range(6)))
    assert len(receiver.messages) == 2
    assert peer.turns.behind
    peer.say(data(1, message(b"more")))
    assert not peer.transport.reading
    for _ in range(10):
        await asyncio.sleep(0)
    assert receiver.messages == [*(bytes([n]) for n in range(6)), b"more"]
    assert peer.transport.reading


async def test_a_peer_that_does_not_answer_is_given_up(peer):
    peer.connection.look()  # it has just said something
    peer.connection.look()
    assert [f[0] for f in peer.heard()] == [http2.PING]
    peer.say(frame(http2.PING, http2.ACK, 0, bytes(8)))
    peer.connection.look()
    assert not peer.transport.aborted
    peer.connection.look()
    peer.connection.look()
    assert peer.transport.aborted
