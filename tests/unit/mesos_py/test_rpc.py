from __future__ import annotations

import asyncio
import json
import socket
import tomllib
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import grpc
import grpc.aio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesos_py import errors, rpc
from mesos_py.address import Address
from mesos_py.version import VERSION

LOOPBACK = "127.0.0.1"


def test_the_version_is_that_of_the_distribution() -> None:
    text = Path("pyproject.toml").read_text(encoding="utf-8")
    assert tomllib.loads(text)["project"]["version"] == VERSION


# --- versions ---------------------------------------------------------------


def test_a_version_that_both_speak_is_chosen() -> None:
    assert rpc.negotiate(1) == 1
    # A peer that says nothing speaks the first version.
    assert rpc.negotiate(0) == 1


def test_a_newer_peer_is_refused_with_both_versions() -> None:
    with pytest.raises(
        errors.UnsupportedProtocol, match=r"version 7, .* here speaks 1: "
    ) as caught:
        rpc.negotiate(7)
    assert caught.value.fields == {"peer_version": 7, "oldest": 1, "newest": 1}


def test_an_older_peer_is_told_to_update(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc, "PROTOCOL_VERSION", 5)
    monkeypatch.setattr(rpc, "OLDEST_PROTOCOL_VERSION", 3)
    assert rpc.negotiate(4) == 4
    with pytest.raises(errors.UnsupportedProtocol, match="speaks 3 to 5: update the peer"):
        rpc.negotiate(2)


def test_an_agent_is_silent_after_all_its_pings() -> None:
    assert rpc.LINK_TIMEOUTS.heartbeat_s == 15
    assert rpc.LINK_TIMEOUTS.agent_silence_s == 75


# --- errors to status and back ----------------------------------------------


def tree(cls: type[errors.MesosPyError] = errors.MesosPyError) -> list[type[errors.MesosPyError]]:
    below = [one for sub in cls.__subclasses__() for one in tree(sub)]
    return [one for one in [cls, *below] if one.__module__ == errors.__name__]


SPECIAL = [
    errors.InvalidValue("task.cpus", -1, "must not be negative"),
    errors.InvalidResources("resources", "cpus:x", "is not a number"),
    errors.NotFound("task", "t1"),
    errors.NotLeader("a:1"),
    errors.NotLeader(None),
    errors.Superseded(1, 2),
]
PLAIN = [cls("m", address="a:1") for cls in tree() if cls.__init__ is errors.MesosPyError.__init__]


def ended(code: grpc.StatusCode, details: str | None = None, *metadata: tuple[str, str | bytes]):
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*metadata), details)


def returned(error: BaseException) -> errors.MesosPyError:
    status = rpc.to_status(error)
    return rpc.from_rpc_error(ended(status.code, status.details, *status.metadata), "peer:1")


@pytest.mark.parametrize("error", [*SPECIAL, *PLAIN], ids=repr)
def test_each_error_comes_back_as_it_was(error: errors.MesosPyError) -> None:
    back = returned(error)
    assert type(back) is type(error)
    assert str(back) == str(error)


def test_each_class_of_the_tree_was_tried() -> None:
    assert {type(error) for error in [*SPECIAL, *PLAIN]} == set(tree())


def test_the_nearest_class_in_the_table_counts() -> None:
    class Special(errors.NotFound): ...

    assert rpc.status_code(Special("task", "t1")) is grpc.StatusCode.NOT_FOUND
    assert rpc.status_code(errors.InsufficientResources("m")) is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_the_leader_stands_where_the_protocol_says() -> None:
    status = rpc.to_status(errors.NotLeader("a:1"))
    assert status.code is grpc.StatusCode.FAILED_PRECONDITION
    assert ("leader", "a:1") in status.metadata


@pytest.mark.parametrize("leader", ["", "nonsense", b"\xff"])
def test_a_leader_that_makes_no_sense_is_none(leader: str | bytes) -> None:
    error = ended(grpc.StatusCode.FAILED_PRECONDITION, "no", ("leader", leader))
    back = rpc.from_rpc_error(error, "peer:1")
    assert isinstance(back, errors.NotLeader)
    assert back.leader is None


def test_an_error_that_is_not_ours_tells_its_type_only() -> None:
    back = returned(KeyError("hunter2"))
    assert isinstance(back, errors.InternalError)
    assert "KeyError" in str(back)
    assert "hunter2" not in str(back)


@pytest.mark.parametrize(
    ("code", "details", "cls", "text"),
    [
        (
            grpc.StatusCode.UNAVAILABLE,
            "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: "
            "Failed to connect to remote host: connect: Connection refused (111)",
            errors.Unavailable,
            "cannot reach peer:1: connect: Connection refused (111)",
        ),
        (grpc.StatusCode.UNAVAILABLE, "Socket closed", errors.Unavailable, "peer:1"),
        (grpc.StatusCode.UNAVAILABLE, None, errors.Unavailable, "peer:1: no reason given"),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "", errors.Unavailable, "peer:1 did not answer"),
        (grpc.StatusCode.CANCELLED, "x", errors.Unavailable, "link to peer:1 was cut"),
        (grpc.StatusCode.INTERNAL, "Received RST_STREAM 2", errors.Unavailable, "was cut"),
        (grpc.StatusCode.INTERNAL, "Internal error from Core", errors.Unavailable, "was cut"),
        (grpc.StatusCode.INTERNAL, "oops", errors.InternalError, "peer:1 failed: oops"),
        (grpc.StatusCode.UNKNOWN, "oops", errors.InternalError, "peer:1 failed: oops"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "larger than max", errors.TooLarge, "larger"),
        (grpc.StatusCode.UNIMPLEMENTED, "Method not found!", errors.UnsupportedProtocol, "peer:1"),
        (grpc.StatusCode.PERMISSION_DENIED, "no", errors.Refused, "PERMISSION_DENIED"),
        (grpc.StatusCode.INVALID_ARGUMENT, "no", errors.Refused, "INVALID_ARGUMENT"),
        (grpc.StatusCode.FAILED_PRECONDITION, "no", errors.Refused, "FAILED_PRECONDITION"),
    ],
)
def test_what_strangers_and_the_network_say(
    code: grpc.StatusCode, details: str | None, cls: type[Exception], text: str
) -> None:
    back = rpc.from_rpc_error(ended(code, details), Address("peer", 1))
    assert type(back) is cls
    assert text in str(back)


@given(
    st.binary()
    | st.sampled_from(
        [
            b"{}",
            b"[]",
            b"7",
            b'{"code": "not-found"}',
            b'{"code": "not-found", "parts": []}',
            b'{"code": "not-found", "parts": {"kind": 1}}',
            b'{"code": ["x"], "parts": {}}',
            b'{"code": "nonsense", "parts": {}}',
            b"[" * 100_000,
        ]
    )
)
def test_nonsense_in_the_metadata_is_ignored(packed: bytes) -> None:
    error = ended(grpc.StatusCode.NOT_FOUND, "gone", (rpc.ERROR_KEY, packed))
    assert type(rpc.from_rpc_error(error, "peer:1")) is errors.Refused


@given(st.text(), st.text(), st.text())
def test_any_text_in_an_error_can_travel(field: str, value: str, reason: str) -> None:
    status = rpc.to_status(errors.InvalidValue(field * 500, value * 500, reason * 500))
    # Together below the 8 KiB that gRPC allows, however they are encoded on the wire.
    ((_, packed),) = status.metadata
    assert isinstance(packed, bytes)
    assert len(quote(status.details)) + len(b64encode(packed)) < 7500


@pytest.mark.parametrize("value", [float("nan"), None, True, object, 10**30])
def test_values_of_any_type_can_travel(value: object) -> None:
    status = rpc.to_status(errors.InvalidValue("cpus", value, "no"))
    assert json.loads(dict(status.metadata)[rpc.ERROR_KEY])["code"] == "invalid-value"


# --- a real server ----------------------------------------------------------

METHOD = "/test.Echo/Call"


class Echo(grpc.GenericRpcHandler):
    """Answers each message with itself, or ends the call with the error it is given."""

    def __init__(self, error: BaseException | None = None) -> None:
        self._error = error

    def service(self, details):
        if details.method != METHOD:
            return None
        return grpc.stream_stream_rpc_method_handler(self._call)

    async def _call(self, requests: AsyncIterator[bytes], context) -> AsyncIterator[bytes]:
        async for request in requests:
            if self._error is not None:
                yield b"last words"
                await rpc.abort(context, self._error)
            yield request


@asynccontextmanager
async def serving(error: BaseException | None = None) -> AsyncIterator[int]:
    server = rpc.new_server()
    server.add_generic_rpc_handlers((Echo(error),))
    port = rpc.bind(server, LOOPBACK, 0)
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


def streaming(channel: grpc.aio.Channel, method: str = METHOD) -> grpc.aio.StreamStreamCall:
    opened: grpc.aio.StreamStreamMultiCallable[Any, Any] = channel.stream_stream(method)
    return opened()


async def call(port: int, *sent: bytes, method: str = METHOD) -> list[bytes]:
    peer = Address(LOOPBACK, port)
    async with rpc.open_channel(peer) as channel, asyncio.timeout(20):
        stream = streaming(channel, method)
        received = rpc.messages(stream, peer)
        for message in sent:
            await rpc.write(stream, message)
        await stream.done_writing()
        return [answer async for answer in received]


async def test_messages_may_be_larger_than_the_four_megabytes_of_grpc() -> None:
    large = b"x" * (8 * 1024 * 1024)
    async with serving() as port:
        assert await call(port, b"a", large) == [b"a", large]


async def test_an_oversized_message_is_an_error_that_says_so() -> None:
    async with serving() as port:
        with pytest.raises(errors.TooLarge, match="larger than max"):
            await call(port, b"x" * (rpc.MAX_MESSAGE_BYTES + 1))


@pytest.mark.parametrize(
    "error",
    [
        errors.NotLeader("a:1"),
        errors.NotFound("task", "ü\n"),
        errors.Refused("x" * 9000),
        errors.InvalidValue("💥" * 9000, "\x01" * 9000, "\x01" * 9000),
    ],
    ids=lambda error: error.code,
)
async def test_an_error_crosses_a_real_link(error: errors.MesosPyError) -> None:
    async with serving(error) as port:
        with pytest.raises(type(error)) as caught:
            await call(port, b"a")
    assert str(caught.value)[:30] == str(error)[:30]


async def test_a_redirect_arrives_also_at_a_client_that_goes_on_writing() -> None:
    async with serving(errors.NotLeader("a:1")) as port:
        for _ in range(20):
            with pytest.raises(errors.NotLeader):
                await call(port, *[b"x" * 1000] * 20)


async def test_a_call_that_the_peer_does_not_know_is_a_protocol_error() -> None:
    async with serving() as port:
        with pytest.raises(errors.UnsupportedProtocol, match="does not know this call"):
            await call(port, b"a", method="/test.Echo/Other")


async def test_nobody_there_is_unavailable_and_named() -> None:
    with socket.socket() as unused:
        unused.bind((LOOPBACK, 0))
        port = unused.getsockname()[1]
        with pytest.raises(errors.Unavailable, match=f"cannot reach {LOOPBACK}:{port}: .*refused"):
            await call(port, b"a")


async def test_writing_to_a_call_that_has_ended_is_told_as_such() -> None:
    async with serving(errors.Refused("no")) as port:
        async with rpc.open_channel(Address(LOOPBACK, port)) as channel, asyncio.timeout(20):
            stream = streaming(channel)
            received = rpc.messages(stream, "peer")
            assert await rpc.write(stream, b"a")
            with pytest.raises(errors.Refused, match="no"):
                [answer async for answer in received]
            assert not await rpc.write(stream, b"b")


async def test_what_was_sent_before_the_end_is_read_also_after_it() -> None:
    async with serving(errors.Refused("no")) as port:
        async with rpc.open_channel(Address(LOOPBACK, port)) as channel, asyncio.timeout(20):
            stream = streaming(channel)
            received = rpc.messages(stream, "peer")
            while await rpc.write(stream, b"a"):
                pass
            assert await anext(received) == b"last words"
            with pytest.raises(errors.Refused, match="no"):
                await anext(received)


async def test_a_cancellation_of_our_own_stays_one() -> None:
    async with serving() as port, rpc.open_channel(Address(LOOPBACK, port)) as channel:
        stream = streaming(channel)
        await stream.wait_for_connection()
        reader = asyncio.ensure_future(anext(rpc.messages(stream, "peer")))
        await asyncio.sleep(0)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader


async def test_a_call_that_grpc_gave_up_is_a_lost_link_and_no_cancellation() -> None:
    async with serving() as port, rpc.open_channel(Address(LOOPBACK, port)) as channel:
        stream = streaming(channel)
        await stream.wait_for_connection()
        reader = asyncio.ensure_future(anext(rpc.messages(stream, "peer")))
        await asyncio.sleep(0)
        stream.cancel()
        with pytest.raises(errors.Unavailable, match="link to peer was cut"):
            await reader


# --- binding ----------------------------------------------------------------


async def test_a_port_in_use_is_an_error_that_names_it() -> None:
    async with serving() as port:
        second = rpc.new_server()
        with pytest.raises(errors.PortInUse, match=f"port {port} on {LOOPBACK}") as caught:
            rpc.bind(second, LOOPBACK, port)
        assert caught.value.fields == {"ip": LOOPBACK, "port": port}
        await second.stop(None)


async def test_a_port_that_was_given_back_can_be_bound_at_once() -> None:
    async with serving() as port:
        await call(port, b"a")
    server = rpc.new_server()
    assert rpc.bind(server, LOOPBACK, port) == port
    # One that was bound and never started would keep the socket.
    await server.start()
    await server.stop(None)


@pytest.mark.parametrize("ip", ["192.0.2.1", "2001:db8::1", "not an ip"])
async def test_an_ip_of_another_machine_is_refused(ip: str) -> None:
    server = rpc.new_server()
    with pytest.raises(errors.InvalidValue, match="cannot be bound") as caught:
        rpc.bind(server, ip, 0)
    assert caught.value.field == "ip"
    await server.stop(None)


def test_options_say_what_the_links_rely_on() -> None:
    server, channel = dict(rpc.server_options()), dict(rpc.channel_options())
    assert server["grpc.so_reuseport"] == 0
    assert channel["grpc.keepalive_time_ms"] == channel["grpc.keepalive_timeout_ms"] == 10_000
    # Else a peer that stands still is noticed after a minute more.
    assert channel["grpc.http2.ping_timeout_ms"] == 10_000
    for options in (server, channel):
        assert options["grpc.max_send_message_length"] == 32 * 1024 * 1024
        assert options["grpc.max_receive_message_length"] == 32 * 1024 * 1024


# --- two statuses of one call -----------------------------------------------

LOST = grpc.StatusCode.INTERNAL, "Internal error from Core"


class Ending:
    """A call that a write of ours ended, whose status changes as grpc.aio's does."""

    def __init__(self, *statuses: tuple[grpc.StatusCode, str]) -> None:
        self._left = list(statuses)

    def add_done_callback(self, callback) -> None:
        # As with grpc.aio: told of the first status, not of what replaces it.
        callback(self)

    async def details(self) -> str:
        return self._left[0][1]

    async def code(self) -> grpc.StatusCode:
        code, _ = self._left[0]
        return code

    async def initial_metadata(self) -> grpc.aio.Metadata:
        return grpc.aio.Metadata()

    async def trailing_metadata(self) -> grpc.aio.Metadata:
        return grpc.aio.Metadata()

    def __aiter__(self) -> Ending:
        return self

    async def __anext__(self) -> bytes:
        self._left = self._left[1:] or self._left
        raise ended(*LOST)


async def how_it_ended(monkeypatch: pytest.MonkeyPatch, *statuses) -> errors.MesosPyError | None:
    monkeypatch.setattr(rpc, "_LOOK_S", 0)
    call: Any = Ending(*statuses)
    try:
        async for _ in rpc.messages(call, "peer:1"):
            raise AssertionError("nothing was sent")
    except errors.MesosPyError as error:
        return error
    return None


REFUSAL = grpc.StatusCode.PERMISSION_DENIED, "no"


@pytest.mark.parametrize("statuses", [(REFUSAL, LOST), (LOST, REFUSAL)])
async def test_the_peers_word_counts_before_and_after_a_failed_write(
    monkeypatch: pytest.MonkeyPatch, statuses
) -> None:
    assert isinstance(await how_it_ended(monkeypatch, *statuses), errors.Refused)


async def test_a_peer_that_ended_in_order_did_so_also_while_we_wrote(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert await how_it_ended(monkeypatch, LOST, (grpc.StatusCode.OK, "")) is None


async def test_without_the_peers_word_the_link_was_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(await how_it_ended(monkeypatch, LOST), errors.Unavailable)
