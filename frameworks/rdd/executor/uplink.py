"""The executor's end of its link to the driver."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Sequence

import grpc.aio

from frameworks.rdd import wire
from frameworks.rdd.channels import Channels
from frameworks.rdd.messages import (
    BlockId,
    FromDriver,
    FromExecutor,
    Hello,
    Locations,
    WhereIs,
)
from mesos_py import rpc
from mesos_py.errors import Unavailable


class Uplink:
    """One stream; when it has ended the executor has no purpose any more."""

    def __init__(self, channel: grpc.aio.Channel, driver: str, secret: str) -> None:
        self._channel = channel
        self._driver = driver
        self._secret = secret
        self._queue: list[FromExecutor] = []
        self._some = asyncio.Event()
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Locations]] = {}

    def send(self, message: FromExecutor) -> None:
        self._queue.append(message)
        self._some.set()

    async def where(
        self, wanted: Sequence[BlockId], has: Sequence[BlockId] = ()
    ) -> dict[BlockId, tuple[str, ...]]:
        """Who has the blocks, as the driver knows."""
        number = next(self._numbers)
        self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            self.send(WhereIs(number, tuple(wanted), tuple(has)))
            return dict((await self._asked[number]).addresses)
        finally:
            del self._asked[number]

    async def run(self, hello: Hello, hear: Callable[[FromDriver], None]) -> None:
        """Until the driver ends the stream.  Raises Unavailable and the like if it breaks."""
        self._queue.insert(0, hello)
        self._some.set()
        method: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = self._channel.stream_stream(
            f"/{wire.SERVICE}/{wire.CONNECT}", request_serializer=None, response_deserializer=None
        )
        call = method(metadata=wire.credentials(self._secret))
        pieces = rpc.messages(call, self._driver)
        writer = asyncio.create_task(self._write(call))
        try:
            await self._read(pieces, hear)
        finally:
            writer.cancel()
            await asyncio.wait({writer})
            call.cancel()

    async def _read(self, pieces: AsyncIterator[bytes], hear: Callable[[FromDriver], None]) -> None:
        joiner = wire.Joiner()
        async for piece in pieces:
            for message in joiner.add(piece):
                if isinstance(message, Locations):
                    future = self._asked.get(message.number)
                    if future is not None and not future.done():
                        future.set_result(message)
                else:
                    hear(message)

    async def _write(self, call: grpc.aio.StreamStreamCall[bytes, bytes]) -> None:
        while True:
            await self._some.wait()
            self._some.clear()
            queue, self._queue = self._queue, []
            if not queue:
                continue
            for piece in wire.pieces(queue):
                if not await rpc.write(call, piece):
                    return


class Peers:
    """Block services of others."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._channels = Channels()

    def channel(self, address: str) -> grpc.aio.Channel:
        """It is there until `close`."""
        return self._channels.held(address)

    async def fetch(self, address: str, block: BlockId, take: Callable[[bytes, int], None]) -> int:
        """take: called with each piece and its place in the block.  The block's size.

        Raises NotFound or Unavailable; then `take` may have been called.
        """
        size = 0
        async with self._channels.used(address) as channel:
            async for piece in wire.fetch(channel, self._secret, block, address):
                take(piece, size)
                size += len(piece)
        return size

    async def fetch_from_any(
        self, addresses: Sequence[str], block: BlockId, take: Callable[[bytes, int], None]
    ) -> int:
        """The first of them that gives it.  Raises Unavailable with what the last one said."""
        reason = "nobody has it"
        for address in addresses:
            try:
                return await self.fetch(address, block, take)
            except Exception as error:
                reason = str(error)
        raise Unavailable(f"block {block}: {reason}")

    async def close(self) -> None:
        await self._channels.close()
