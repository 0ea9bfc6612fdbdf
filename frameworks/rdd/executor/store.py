"""What blocks an executor has, what they take, and which go when there is no room.

It decides and holds the files; moving bytes is for its caller.  Not thread-safe.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from frameworks.rdd.messages import BlockId


@dataclass(slots=True)
class Block:
    """fd: its file, in memory unless `path` says where it is on disk.  spill: whether it may
    go to disk when there is no room.  pinned: it stays until it is removed by name."""

    id: BlockId
    size_bytes: int
    fd: int
    path: str = ""
    spill: bool = False
    pinned: bool = False
    moving: bool = False

    @property
    def in_memory(self) -> bool:
        return not self.path


class Store:
    """Least recently used blocks go first, but for those of the data set that is being made:
    its own partitions would push out one another, and none would be there the next time."""

    def __init__(self, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self._blocks: OrderedDict[BlockId, Block] = OrderedDict()
        # Of blocks that are being made: (worker, block) -> bytes.
        self._reserved: dict[tuple[int, BlockId], int] = {}
        self.memory_bytes = 0
        self.disk_bytes = 0
        self.peak_bytes = 0

    def __contains__(self, block: BlockId) -> bool:
        return block in self._blocks

    def holds(self, block: Block) -> bool:
        """This very one, not another of its name that was made since."""
        return self._blocks.get(block.id) is block

    def __iter__(self) -> Iterator[Block]:
        return iter(list(self._blocks.values()))

    @property
    def used_bytes(self) -> int:
        """In memory, with what is reserved."""
        return self.memory_bytes + sum(self._reserved.values())

    def get(self, block: BlockId) -> Block | None:
        """It counts as used now."""
        found = self._blocks.get(block)
        if found is not None:
            self._blocks.move_to_end(block)
        return found

    def victims(self, block: BlockId, more_bytes: int) -> list[Block] | None:
        """What is to go before `more_bytes` more are taken for `block`; None if that cannot be."""
        missing = self.used_bytes + more_bytes - self.budget_bytes
        chosen: list[Block] = []
        for each in self._blocks.values():
            if missing <= 0:
                break
            same = each.id[:2] == block[:2] and block[0] == "rdd"
            if each.in_memory and not (each.pinned or each.moving or same):
                chosen.append(each)
                missing -= each.size_bytes
        return chosen if missing <= 0 else None

    def reserved(self, worker: int, block: BlockId) -> int:
        return self._reserved.get((worker, block), 0)

    def reserve(self, worker: int, block: BlockId, size_bytes: int) -> None:
        """In all, for a block that a worker is making; 0: not any more."""
        self._reserved.pop((worker, block), None)
        if size_bytes:
            self._reserved[worker, block] = size_bytes
        self._peak()

    def release(self, worker: int) -> None:
        """Whatever it had reserved: its task has ended."""
        for key in [key for key in self._reserved if key[0] == worker]:
            del self._reserved[key]

    def put(self, block: Block) -> bool:
        """False if there is one of this name, which stays; its file is the caller's then."""
        if block.id in self._blocks:
            return False
        self._blocks[block.id] = block
        self._count(block, 1)
        self._peak()
        return True

    def to_disk(self, block: Block, fd: int, path: str) -> None:
        """Its content is in this file now; the one in memory is closed."""
        self._count(block, -1)
        os.close(block.fd)
        block.fd, block.path = fd, path
        self._count(block, 1)

    def remove(self, block: BlockId) -> Block | None:
        """Its file is closed, and removed from disk."""
        found = self._blocks.pop(block, None)
        if found is not None:
            self._count(found, -1)
            discard(found)
        return found

    def close(self) -> None:
        for block in self:
            self.remove(block.id)

    def _count(self, block: Block, sign: int) -> None:
        if block.in_memory:
            self.memory_bytes += sign * block.size_bytes
        else:
            self.disk_bytes += sign * block.size_bytes

    def _peak(self) -> None:
        self.peak_bytes = max(self.peak_bytes, self.used_bytes)


def discard(block: Block) -> None:
    """Close a block's file, and remove it."""
    os.close(block.fd)
    if block.path:
        try:
            os.unlink(block.path)  # noqa: PTH108
        except FileNotFoundError:
            pass
