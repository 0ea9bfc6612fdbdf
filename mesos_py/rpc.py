"""What the daemons and their clients share about grpc.aio.

Channel and server options, binding a port, protocol versions, the one table from
our errors to gRPC codes and back.  (The queue of a stream's sender is `outbox.py`.)
"""

from __future__ import annotations

import asyncio
import errno
import json
import socket
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, NoReturn, TypeVar, cast

import grpc
import grpc.aio

from mesos_py import errors
from mesos_py.address import Address, parse_address
from mesos_py.outbox import Outbox
from mesos_py.version import VERSION

M = TypeVar("M")
Options = list[tuple[str, Any]]

# --- versions ---------------------------------------------------------------

PROTOCOL_VERSION: Final = 1
OLDEST_PROTOCOL_VERSION: Final = 1


def negotiate(peer_version: int) -> int:
    """The protocol version to speak with a peer whose newest is `peer_version`.

    0 is a peer that said nothing, which is version 1.  Raises UnsupportedProtocol,
    naming both sides' versions, for one that is too old or newer than ours.
    """
    version = peer_version or 1
    if OLDEST_PROTOCOL_VERSION <= version <= PROTOCOL_VERSION:
        return version
    ours = (
        str(PROTOCOL_VERSION)
        if OLDEST_PROTOCOL_VERSION == PROTOCOL_VERSION
        else f"{OLDEST_PROTOCOL_VERSION} to {PROTOCOL_VERSION}"
    )
    older = "the peer" if version < OLDEST_PROTOCOL_VERSION else "this side"
    raise errors.UnsupportedProtocol(
        f"the peer speaks protocol version {version}, mesos-py {VERSION} here speaks {ours}: "
        f"update {older}",
        peer_version=version,
        oldest=OLDEST_PROTOCOL_VERSION,
        newest=PROTOCOL_VERSION,
    )


# --- links ------------------------------------------------------------------


@dataclass(frozen=True)
class LinkTimeouts:
    """The defaults of what keeps a link alive, and of when it is given up."""

    # One attempt to connect and be answered.
    connect_s: float = 10.0
    # Mesos: DEFAULT_HEARTBEAT_INTERVAL; told to schedulers in SUBSCRIBED.
    heartbeat_s: float = 15.0
    # A scheduler that missed this many heartbeats in a row reconnects.
    missed_heartbeats: int = 3
    # Mesos: --agent_ping_timeout and --max_agent_ping_timeouts.
    agent_ping_s: float = 15.0
    max_agent_ping_timeouts: int = 5
    # Backoff between attempts.
    backoff_first_s: float = 0.1
    backoff_cap_s: float = 5.0
    # Between "this server ends" and its streams being cut.
    grace_s: float = 1.0

    @property
    def agent_silence_s(self) -> float:
        """After this long without an answer an agent is unreachable."""
        return self.agent_ping_s * self.max_agent_ping_timeouts


LINK_TIMEOUTS: Final = LinkTimeouts()

KEEPALIVE_S: Final = 10
MAX_MESSAGE_BYTES: Final = 32 * 1024 * 1024
MAX_PENDING_STREAMS: Final = 100_000

_BOTH_SIDES: Final[Options] = [
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    # A peer whose machine died says nothing; TCP alone would notice in minutes.
    ("grpc.keepalive_time_ms", KEEPALIVE_S * 1000),
    ("grpc.keepalive_timeout_ms", KEEPALIVE_S * 1000),
    # Of the two the later one counts, and this one is a minute unless said otherwise.
    ("grpc.http2.ping_timeout_ms", KEEPALIVE_S * 1000),
    ("grpc.http2.max_pings_without_data", 0),
    # The flow-control window follows the measured bandwidth-delay product.
    ("grpc.http2.bdp_probe", 1),
]


def channel_options() -> Options:
    """Options of every channel that we open."""
    return [
        *_BOTH_SIDES,
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.primary_user_agent", f"mesos-py/{VERSION}"),
        # Links of a cluster do not go through the proxy that http_proxy names.
        ("grpc.enable_http_proxy", 0),
        # Repeating a call is the caller's decision: it knows what is idempotent.
        ("grpc.enable_retries", 0),
        # gRPC's own back-off grows to 120 s and would be shared by all channels
        # of the process to one address; ours (election.Backoff) is the only one.
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 1000),
    ]


def server_options() -> Options:
    """Options of every server that we start."""
    return [
        *_BOTH_SIDES,
        # Otherwise a second daemon on a used port starts and gets half the calls.
        ("grpc.so_reuseport", 0),
        # Never punish a client for its keepalive: "too many pings" cuts the link.
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", 1000),
        # Streams that wait to be accepted.  By default gRPC refuses some of them from
        # 1000 on: just when a new leader has all agents of a large cluster before it.
        ("grpc.server.max_pending_requests", MAX_PENDING_STREAMS),
        ("grpc.server.max_pending_requests_hard_limit", MAX_PENDING_STREAMS),
    ]


def open_channel(target: Address | str) -> grpc.aio.Channel:
    """A channel to `target`: an address, or a gRPC target such as "unix:/path"."""
    return grpc.aio.insecure_channel(str(target), options=channel_options())


def is_up(channel: grpc.aio.Channel) -> bool:
    """Whether its peer is there: connected, and speaking HTTP/2."""
    return channel.get_state() is grpc.ChannelConnectivity.READY


def new_server() -> grpc.aio.Server:
    """A server with our options, not bound and not started."""
    return grpc.aio.server(options=server_options())


def bind(server: grpc.aio.Server, ip: str, port: int) -> int:
    """Bind `server` and return the port (0 picks one).

    Raises PortInUse naming ip and port, or InvalidValue when the ip is not one of
    this machine or the port needs rights that we do not have.
    """
    where = f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"
    try:
        bound = server.add_insecure_port(where)
    except RuntimeError as error:
        raise bind_error(ip, port) from error
    if bound == 0:  # how grpcio before 1.60 said that it failed
        raise bind_error(ip, port)
    return bound


def bind_error(ip: str, port: int) -> errors.MesosPyError:
    """Why the port could not be bound."""
    # gRPC says only that it failed; a plain socket tells why.
    try:
        family = socket.AF_INET6 if ":" in ip else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((ip, port))
            probe.listen()
    except OSError as error:
        if error.errno == errno.EACCES:
            return errors.InvalidValue("port", port, f"no permission to bind it on {ip}")
        if error.errno != errno.EADDRINUSE:
            return errors.InvalidValue("ip", ip, f"cannot be bound: {error.strerror or error}")
    return errors.PortInUse(f"port {port} on {ip} is in use by another process", ip=ip, port=port)


# --- errors on the wire -----------------------------------------------------

# The one table.  The most specific class wins; the exact class travels beside
# the status in `ERROR_KEY`, so that several may share a gRPC code.
STATUS_OF: Final[dict[type[errors.MesosPyError], grpc.StatusCode]] = {
    errors.InvalidValue: grpc.StatusCode.INVALID_ARGUMENT,
    errors.NotFound: grpc.StatusCode.NOT_FOUND,
    errors.Conflict: grpc.StatusCode.ABORTED,
    errors.AlreadyExists: grpc.StatusCode.ALREADY_EXISTS,
    errors.InsufficientResources: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.Refused: grpc.StatusCode.FAILED_PRECONDITION,
    errors.UnsupportedProtocol: grpc.StatusCode.UNIMPLEMENTED,
    errors.Superseded: grpc.StatusCode.FAILED_PRECONDITION,
    errors.NotLeader: grpc.StatusCode.FAILED_PRECONDITION,
    errors.Unavailable: grpc.StatusCode.UNAVAILABLE,
    errors.TooLarge: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.PortInUse: grpc.StatusCode.ALREADY_EXISTS,
    errors.InternalError: grpc.StatusCode.INTERNAL,
    errors.MesosPyError: grpc.StatusCode.UNKNOWN,
}

ERROR_KEY: Final = "mesos-py-error-bin"
LEADER_KEY: Final = "leader"

# Trailing metadata over 8 KiB makes gRPC replace the status by one of its own.  In
# bytes of UTF-8; percent signs, escapes and base64 make up to six times of them.
_MAX_DETAILS: Final = 1000
_MAX_FIELD: Final = 150

_WRITE_FAILED: Final = "Internal error from Core"
_LOOK_S: Final = 0.005
_LOOKS: Final = 40

# Classes whose constructors take parts instead of a message: the parts, in order.
_PARTS: Final[dict[type[errors.MesosPyError], tuple[str, ...]]] = {
    errors.InvalidValue: ("field", "value", "reason"),
    errors.InvalidResources: ("field", "value", "reason"),
    errors.NotFound: ("kind", "name", "reason"),
    errors.NotLeader: ("leader",),
    errors.Superseded: ("epoch", "newer"),
}


class Status(NamedTuple):
    """What a call ends with."""

    code: grpc.StatusCode
    details: str
    metadata: tuple[tuple[str, str | bytes], ...]


def status_code(error: BaseException) -> grpc.StatusCode:
    """The gRPC code for `error`; INTERNAL for what is not an error of ours."""
    for cls in type(error).__mro__:
        if cls in STATUS_OF:
            return STATUS_OF[cls]
    return grpc.StatusCode.INTERNAL


def to_status(error: BaseException) -> Status:
    """How `error` is told to a peer.

    Of an error that is not ours only the type is told: its text may hold anything.
    """
    if not isinstance(error, errors.MesosPyError):
        return Status(
            status_code(error), f"internal error: {type(error).__name__}; see the log", ()
        )
    parts = {name: _part(getattr(error, name)) for name in _parts_of(type(error))}
    packed = json.dumps({"code": error.code, "parts": parts}, ensure_ascii=False).encode()
    metadata: list[tuple[str, str | bytes]] = [(ERROR_KEY, packed)]
    if isinstance(error, errors.NotLeader):
        metadata.append((LEADER_KEY, error.leader or ""))
    return Status(status_code(error), _clipped(error.message, _MAX_DETAILS), tuple(metadata))


async def abort(context: grpc.aio.ServicerContext[Any, Any], error: BaseException) -> NoReturn:
    """End the call of `context` with `error`.  Does not return."""
    code, details, metadata = to_status(error)
    await context.abort(code, details, metadata)
    raise AssertionError("abort() of gRPC returned")


def from_rpc_error(error: grpc.aio.AioRpcError, peer: str | Address) -> errors.MesosPyError:
    """The error of ours for how a call to `peer` ended.

    Exactly what the peer raised when it is one of us; otherwise (the network, gRPC
    itself, a stranger) by code.  The caller chains: `raise from_rpc_error(e, p) from e`.
    """
    metadata = dict(error.trailing_metadata() or ())
    code, details = error.code(), error.details() or ""
    if code is grpc.StatusCode.FAILED_PRECONDITION and LEADER_KEY in metadata:
        return errors.NotLeader(_leader(metadata[LEADER_KEY]))
    packed = metadata.get(ERROR_KEY)
    if isinstance(packed, bytes):
        remade = _remade(packed, details)
        if remade is not None:
            return remade
    return _by_code(code, details, str(peer))


def messages(call: grpc.aio.StreamStreamCall[Any, M], peer: str | Address) -> AsyncIterator[M]:
    """Yield what `call` receives until the peer ends it; raise our errors for the rest.

    Call this before anything is written: then the peer's reason cannot be missed.
    """
    return _messages(call, peer, _End(call))


async def _messages(
    call: grpc.aio.StreamStreamCall[Any, M], peer: str | Address, end: _End
) -> AsyncIterator[M]:
    try:
        # Not call.read(): once the status is there it no longer gives what was sent
        # before it, such as the ERROR event that explains the end.
        async for message in call:
            yield message
    except grpc.aio.AioRpcError as error:
        told = await end.told() if error.details() == _WRITE_FAILED else None
        if told is not None and told.code() is grpc.StatusCode.OK:
            return
        raise from_rpc_error(told or error, peer) from error
    except asyncio.CancelledError as error:
        # grpc.aio also raises it, in a task that nobody cancelled, when it gave
        # the call up by itself; passed on, it would end the task in silence.
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise errors.Unavailable(f"the link to {peer} was cut", address=str(peer)) from error


class _End:
    """How a call ended by the peer's word.

    When a peer ends a call while we write to it, grpc.aio has two statuses for the
    call: that the write failed, and the peer's own (it may be a redirect).  They come
    in any order and each replaces the other; this finds the peer's.
    """

    def __init__(self, call: grpc.aio.StreamStreamCall[Any, Any]) -> None:
        self._call = call
        self._told: grpc.aio.AioRpcError | None = None
        # Called with the first status only: the second has to be looked for.
        call.add_done_callback(self._look)

    async def told(self) -> grpc.aio.AioRpcError | None:
        """What the peer said; None if it does not come within the moment that it takes."""
        for _ in range(_LOOKS):
            self._look()
            if self._told is not None:
                break
            await asyncio.sleep(_LOOK_S)
        return self._told

    def _look(self, _call: object = None) -> None:
        call = self._call
        details = _now(call.details())
        if self._told is None and details != _WRITE_FAILED:
            self._told = grpc.aio.AioRpcError(
                _now(call.code()),
                _now(call.initial_metadata()),
                _now(call.trailing_metadata()),
                details,
            )


def _now(answer: Coroutine[Any, Any, M]) -> M:
    """The result of a coroutine that has it already: later it may be another one."""
    try:
        answer.send(None)
    except StopIteration as stop:
        return cast("M", stop.value)
    answer.close()
    raise RuntimeError("the status of a call that is done is not known")


async def write(call: grpc.aio.StreamStreamCall[M, Any], message: M) -> bool:
    """Write to a stream, waiting for its flow control.  False when the call has ended:
    who reads it (`messages`) learns why.
    """
    try:
        await call.write(message)
    # The last two are how grpc.aio says "has ended before", depending on how.
    except (grpc.aio.AioRpcError, grpc.aio.UsageError, asyncio.InvalidStateError):
        return False
    return True


def _by_code(code: grpc.StatusCode, details: str, peer: str) -> errors.MesosPyError:
    said = _clipped(details, _MAX_DETAILS) or "no reason given"
    match code:
        case grpc.StatusCode.UNAVAILABLE:
            # gRPC's text nests; the operating system's reason stands last.
            reason = said.rsplit("Failed to connect to remote host: ", 1)[-1]
            return errors.Unavailable(f"cannot reach {peer}: {reason}", address=peer)
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return errors.Unavailable(f"{peer} did not answer in time", address=peer)
        case grpc.StatusCode.CANCELLED:
            return errors.Unavailable(f"the link to {peer} was cut: {said}", address=peer)
        # The second is not the peer's word; see `_End`.
        case grpc.StatusCode.INTERNAL if "RST_STREAM" in said or said == _WRITE_FAILED:
            return errors.Unavailable(f"the link to {peer} was cut: {said}", address=peer)
        case grpc.StatusCode.RESOURCE_EXHAUSTED:
            return errors.TooLarge(f"{peer}: {said}", address=peer, limit=MAX_MESSAGE_BYTES)
        case grpc.StatusCode.UNIMPLEMENTED:
            return errors.UnsupportedProtocol(f"{peer} does not know this call: {said}")
        case grpc.StatusCode.INTERNAL | grpc.StatusCode.UNKNOWN | grpc.StatusCode.DATA_LOSS:
            return errors.InternalError(f"{peer} failed: {said}", address=peer)
        case _:
            return errors.Refused(f"{peer} refused ({code.name}): {said}", address=peer)


def _remade(packed: bytes, details: str) -> errors.MesosPyError | None:
    # From the wire: anything may stand there, and then the code must do.
    try:
        content = json.loads(packed)
        cls, parts = _BY_WORD[content["code"]], content["parts"]
        names = _parts_of(cls)
        if names:
            return cls(*(parts[name] for name in names))
        return cls(details)
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


def _parts_of(cls: type[errors.MesosPyError]) -> tuple[str, ...]:
    return next((_PARTS[base] for base in cls.__mro__ if base in _PARTS), ())


def _part(value: object) -> object:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return _clipped(str(value), _MAX_FIELD)


def _clipped(text: str, limit: int) -> str:
    """`text` as it may travel: valid UTF-8, and at most `limit` bytes of it."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) > limit:
        return encoded[: limit - 3].decode("utf-8", "ignore") + "…"
    return encoded.decode("utf-8")


def _leader(value: str | bytes) -> str | None:
    try:
        return str(parse_address(value if isinstance(value, str) else value.decode(), "leader"))
    except (errors.InvalidValue, UnicodeDecodeError):
        return None


def _words(cls: type[errors.MesosPyError]) -> dict[str, type[errors.MesosPyError]]:
    words = {cls.code: cls}
    for sub in cls.__subclasses__():
        words.update(_words(sub))
    return words


_BY_WORD: Final = _words(errors.MesosPyError)


__all__ = [
    "ERROR_KEY",
    "KEEPALIVE_S",
    "LEADER_KEY",
    "LINK_TIMEOUTS",
    "MAX_MESSAGE_BYTES",
    "OLDEST_PROTOCOL_VERSION",
    "PROTOCOL_VERSION",
    "STATUS_OF",
    "LinkTimeouts",
    "Outbox",
    "Status",
    "abort",
    "bind",
    "bind_error",
    "channel_options",
    "from_rpc_error",
    "is_up",
    "messages",
    "negotiate",
    "new_server",
    "open_channel",
    "server_options",
    "status_code",
    "to_status",
    "write",
]
