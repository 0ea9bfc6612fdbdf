"""The link's bytes: records in pieces, who may call, and blocks from a block service.

A link is one gRPC stream of bytes each way.  What is sent is a pickled list of records, cut
into pieces: a byte that says whether more follow, then some of it.  Every call bears the
driver's secret; what comes is unpickled only then.
"""

from __future__ import annotations

import hmac
import pickle
import struct
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final

import grpc
import grpc.aio

from frameworks.rdd.messages import BlockId
from mesos_py import rpc
from mesos_py.errors import InvalidValue, NotFound, Unavailable

SECRET_VARIABLE: Final = "MESOS_PY_RDD_SECRET"
SERVICE: Final = "mesos_py.rdd.Executors"
CONNECT: Final = "Connect"
FETCH: Final = "Fetch"
PIECE_BYTES: Final = 1 << 20
_LAST: Final = b"\x00"
_MORE: Final = b"\x01"
_SIZE: Final = struct.Struct("<Q")
_KEY: Final = "authorization"

Handlers = dict[str, Any]


def pieces(records: Sequence[Any]) -> Iterator[bytes]:
    data = pickle.dumps(records, protocol=5)
    if len(data) <= PIECE_BYTES:
        yield _LAST + data
        return
    view = memoryview(data)
    for start in range(0, len(data), PIECE_BYTES):
        last = start + PIECE_BYTES >= len(data)
        yield (_LAST if last else _MORE) + view[start : start + PIECE_BYTES]


class Joiner:
    """The other end of `pieces`."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def add(self, piece: bytes) -> list[Any]:
        """The records that are whole with this piece."""
        self._parts.append(piece[1:])
        if piece[:1] == _MORE:
            return []
        data = b"".join(self._parts)
        self._parts.clear()
        records: list[Any] = pickle.loads(data)
        return records


def credentials(secret: str) -> tuple[tuple[str, str], ...]:
    """The metadata of a call."""
    return ((_KEY, f"Bearer {secret}"),)


def is_allowed(context: grpc.aio.ServicerContext[Any, Any], secret: str) -> bool:
    given = dict(context.invocation_metadata() or ()).get(_KEY, "")
    given = given if isinstance(given, str) else given.decode("latin-1")
    return hmac.compare_digest(given.encode(), f"Bearer {secret}".encode())


def address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def refuse(context: grpc.aio.ServicerContext[Any, Any]) -> None:
    await context.abort(grpc.StatusCode.UNAUTHENTICATED, "another driver's, or nobody's")


async def fetch(
    channel: grpc.aio.Channel, secret: str, block: BlockId, peer: str
) -> AsyncIterator[bytes]:
    """The content of a block, in pieces.

    Raises NotFound if the peer does not have it, Unavailable if it cannot be reached or the
    block is not whole.
    """
    method: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(
        f"/{SERVICE}/{FETCH}", request_serializer=None, response_deserializer=None
    )
    call = method(pickle.dumps(block), metadata=credentials(secret))
    left = -1
    try:
        async for piece in call:
            if left < 0:
                (left,) = _SIZE.unpack(piece)
                continue
            left -= len(piece)
            yield piece
    except grpc.aio.AioRpcError as error:
        raise rpc.from_rpc_error(error, peer) from None
    if left:
        raise Unavailable(f"{peer}: block {block} broke off", address=peer)


class Blocks:
    """Answers `fetch`; a subclass says what there is."""

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def find(self, block: BlockId) -> tuple[int, Iterator[bytes | memoryview]] | None:
        """Its size and its content in pieces of at most PIECE_BYTES.  The iterator is closed."""
        raise NotImplementedError

    async def serve(
        self, request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]
    ) -> AsyncIterator[bytes]:
        if not is_allowed(context, self._secret):
            await refuse(context)
        block: BlockId = pickle.loads(request)
        found = self.find(block)
        if found is None:
            await rpc.abort(context, NotFound("block", str(block)))
        size, content = found
        try:
            yield _SIZE.pack(size)
            for piece in content:
                yield bytes(piece)
        finally:
            if (close := getattr(content, "close", None)) is not None:
                close()

    def handlers(self) -> Handlers:
        return {FETCH: grpc.unary_stream_rpc_method_handler(self.serve)}


def in_pieces(content: bytes | memoryview) -> Iterator[bytes | memoryview]:
    view = memoryview(content)
    for start in range(0, len(view), PIECE_BYTES):
        yield view[start : start + PIECE_BYTES]


def checked_secret(secret: str) -> str:
    if len(secret) < 16 or not secret.isascii() or not secret.isprintable():
        raise InvalidValue(SECRET_VARIABLE, "***", "must be 16 printable characters or more")
    return secret
