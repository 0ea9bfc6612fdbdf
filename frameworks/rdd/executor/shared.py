"""Broadcasts: they come to an executor in blocks, from others that have got them already and in
the end from the driver."""

from __future__ import annotations

import asyncio
import os
import pickle
import random
from collections.abc import Iterator
from typing import Final

from frameworks.rdd.backend import CHUNK_BYTES, Head
from frameworks.rdd.executor import packets
from frameworks.rdd.executor.uplink import Peers, Uplink
from frameworks.rdd.files import Content
from frameworks.rdd.messages import BlockId
from mesos_py import logs
from mesos_py.errors import Unavailable

# Chunks that are fetched before the driver is asked again who has others.
_AT_ONCE: Final = 4
_log = logs.get("rdd.executor")


class Broadcasts:
    """Each is in one file in memory; chunks are served from there as soon as they are whole."""

    def __init__(self, driver: str, uplink: Uplink, peers: Peers) -> None:
        self._driver = driver
        self._uplink = uplink
        self._peers = peers
        self._tasks: dict[int, asyncio.Task[int]] = {}
        self._files: dict[int, int] = {}
        self._heads: dict[int, bytes] = {}
        self._whole: dict[BlockId, int] = {}  # -> length
        self.memory_bytes = 0

    async def get(self, number: int) -> int:
        """Its file, which stays ours.  Raises Unavailable."""
        task = self._tasks.get(number)
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            self._drop_file(number)
            task = self._tasks[number] = asyncio.create_task(self._fetch(number))
        fd = await asyncio.shield(task)
        if self._files.get(number) != fd:
            # Between its coming and here: the descriptor may be another file's by now.
            raise Unavailable("it was destroyed")
        return fd

    def find(self, block: BlockId) -> tuple[int, Iterator[bytes | memoryview]] | None:
        """As wire.Blocks."""
        _, number, chunk = block
        if chunk == 0:
            head = self._heads.get(number)
            return None if head is None else (len(head), iter((head,)))
        length = self._whole.get(block)
        if length is None:
            return None
        return length, Content(self._files[number], length, (chunk - 1) * CHUNK_BYTES)

    def forget(self, number: int) -> None:
        if (task := self._tasks.pop(number, None)) is not None:
            task.cancel()
        self._drop_file(number)

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for number in list(self._tasks):
            self.forget(number)
        if tasks:
            await asyncio.wait(tasks)

    def _drop_file(self, number: int) -> None:
        self._heads.pop(number, None)
        for block in [block for block in self._whole if block[1] == number]:
            self.memory_bytes -= self._whole.pop(block)
        if (fd := self._files.pop(number, None)) is not None:
            os.close(fd)

    async def _fetch(self, number: int) -> int:
        block: BlockId = ("broadcast", number, 0)
        head_bytes = bytearray()

        def take(piece: bytes, position: int) -> None:
            del head_bytes[position:]
            head_bytes.extend(piece)

        await self._peers.fetch_from_any((self._driver,), block, take)
        head: Head = pickle.loads(head_bytes)
        fd = self._files[number] = packets.memory_file("broadcast")
        self._heads[number] = bytes(head_bytes)
        os.ftruncate(fd, head.size_bytes)
        missing = [("broadcast", number, chunk) for chunk in range(1, head.chunks + 1)]
        # Not all in one order: those who fetch at once are to have something to give.
        random.shuffle(missing)
        got: list[BlockId] = [block]
        while missing:
            addresses = await self._uplink.where(missing, got)
            got.clear()
            # What others have first, and the driver relieved.
            missing.sort(key=lambda each: not addresses.get(each))
            for each in missing[:_AT_ONCE]:
                await self._chunk(each, addresses.get(each, ()), fd)
                got.append(each)
            del missing[:_AT_ONCE]
        if got:
            await self._uplink.where((), got)
        return fd

    async def _chunk(self, block: BlockId, addresses: tuple[str, ...], fd: int) -> None:
        start = (block[2] - 1) * CHUNK_BYTES
        order = random.sample(addresses, len(addresses))
        if self._driver not in order:
            order.append(self._driver)

        def take(piece: bytes, position: int) -> None:
            packets.write_all(fd, piece, start + position)

        length = await self._peers.fetch_from_any(order, block, take)
        self._whole[block] = length
        self.memory_bytes += length
