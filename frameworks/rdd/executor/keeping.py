"""The blocks of an executor: kept, moved to disk, given to workers and to other executors."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

from frameworks.rdd.executor import orders, packets, store
from frameworks.rdd.executor.settings import Settings
from frameworks.rdd.executor.uplink import Peers, Uplink
from frameworks.rdd.files import Content
from frameworks.rdd.messages import BlockId, Forget, Kept
from mesos_py import logs
from mesos_py.errors import MesosPyError

_log = logs.get("rdd.executor")


class Keeper:
    def __init__(self, settings: Settings, uplink: Uplink, peers: Peers) -> None:
        self._directory = settings.place / "blocks"
        self._uplink = uplink
        self._peers = peers
        self._own_address = ""
        self.store = store.Store(settings.storage_bytes)
        # One makes room at a time: what it has chosen is not to be chosen by another.
        self._making_room = asyncio.Lock()

    def find(self, block: BlockId) -> tuple[int, Iterator[bytes | memoryview]] | None:
        """As wire.Blocks."""
        found = self.store.get(block)
        if found is None:
            return None
        return found.size_bytes, Content(found.fd, found.size_bytes)

    async def get(self, block: BlockId) -> int:
        """A block's file, of this or another executor, the caller's to close; -1 if there is
        none."""
        if (fd := self._own(block)) >= 0:
            return fd
        addresses = (await self._uplink.where((block,))).get(block, ())
        if not addresses:
            return -1
        fd = packets.memory_file("fetched")
        try:
            size = await self._peers.fetch_from_any(
                addresses, block, lambda piece, position: packets.write_all(fd, piece, position)
            )
            # One that broke off may have given more.
            os.ftruncate(fd, size)
        except MesosPyError as error:
            # Gone meanwhile: computed again.
            _log.info("a block cannot be fetched", block=str(block), reason=error.message)
            os.close(fd)
            return -1
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _own(self, block: BlockId) -> int:
        found = self.store.get(block)
        return -1 if found is None else os.dup(found.fd)

    async def reserve(self, worker: int, record: orders.Reserve) -> bool:
        """Whether there is room, now that others have gone for it."""
        async with self._making_room:
            have = self.store.reserved(worker, record.block)
            victims = self.store.victims(record.block, record.size_bytes - have)
            if victims is None:
                return False
            for victim in victims:
                await self._let_go(victim)
            self.store.reserve(worker, record.block, record.size_bytes)
            return True

    def keep(self, worker: int, record: orders.Keep, fds: list[int]) -> None:
        """What a worker has made.  Takes the file out of `fds`."""
        self.store.reserve(worker, record.block, 0)
        fd = fds.pop() if fds else os.open(record.path, os.O_RDONLY | os.O_CLOEXEC)
        block = store.Block(record.block, record.size_bytes, fd, record.path, record.spill)
        if self.store.put(block):
            self._uplink.send(Kept({record.block: (record.size_bytes, block.in_memory)}))
        else:
            # Two tasks have made it at once.
            store.discard(block)

    def remove_unfinished(self, task_id: int) -> None:
        """What a worker was writing to disk as it died."""
        for path in self._directory.glob(f"*-{task_id}"):
            if not any(block.path == str(path) for block in self.store):
                path.unlink(missing_ok=True)

    def keep_result(self, task_id: int, fds: list[int]) -> None:
        """Until the driver says Forget."""
        fd = fds.pop()
        block = store.Block(("result", task_id, 0), os.fstat(fd).st_size, fd, pinned=True)
        if not self.store.put(block):
            store.discard(block)

    def forget(self, message: Forget) -> None:
        for block in self.store:
            kind, number, _ = block.id
            if (kind == "rdd" and number in message.rdds) or (
                kind == "result" and number in message.results
            ):
                self.store.remove(block.id)

    def close(self) -> None:
        self.store.close()

    async def _let_go(self, block: store.Block) -> None:
        if not block.spill:
            self.store.remove(block.id)
            self._uplink.send(Kept({block.id: None}))
            return
        block.moving = True
        _, number, split = block.id
        path = self._directory / f"rdd_{number}_{split}"
        source = os.dup(block.fd)
        try:
            fd = await asyncio.to_thread(_to_disk, source, block.size_bytes, str(path))
        except OSError as error:
            _log.warning("a block cannot go to disk", block=str(block.id), reason=str(error))
            if self.store.holds(block):
                self.store.remove(block.id)
                self._uplink.send(Kept({block.id: None}))
            return
        finally:
            os.close(source)
            block.moving = False
        if not self.store.holds(block):
            # Forgotten meanwhile; and maybe made again.
            os.close(fd)
            path.unlink(missing_ok=True)
            return
        self.store.to_disk(block, fd, str(path))
        self._uplink.send(Kept({block.id: (block.size_bytes, False)}))


def _to_disk(source: int, size: int, path: str) -> int:
    os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        packets.copy(source, fd, size)
    except BaseException:
        os.close(fd)
        os.unlink(path)  # noqa: PTH108
        raise
    return fd
