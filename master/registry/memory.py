"""A registry that ends with its process: for a master without a work directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from master.registry.base import Claimed, Operation, Storage, check, fold, next_epoch
from mesos_py.errors import InternalError, Superseded


@dataclass
class Shelf:
    """What is stored; several storages may be given the same."""

    epoch: int = 0
    records: dict[str, bytes] = field(default_factory=dict)


class MemoryStorage(Storage):
    def __init__(self, shelf: Shelf | None = None) -> None:
        self._shelf = Shelf() if shelf is None else shelf
        self._epoch = 0

    async def claim(self, at_least: int = 0) -> Claimed:
        self._epoch = self._shelf.epoch = next_epoch(self._shelf.epoch, at_least)
        return Claimed(self._epoch, dict(self._shelf.records))

    async def write(self, operations: Sequence[Operation]) -> None:
        self._fence()
        check(operations)
        for key, value in fold(operations).items():
            if value is None:
                self._shelf.records.pop(key, None)
            else:
                self._shelf.records[key] = value

    async def raise_epoch(self, at_least: int) -> int:
        self._fence()
        self._epoch = self._shelf.epoch = next_epoch(self._shelf.epoch, at_least)
        return self._epoch

    async def close(self) -> None:
        pass

    def _fence(self) -> None:
        if not self._epoch:
            raise InternalError("the registry was not claimed")
        if self._epoch != self._shelf.epoch:
            raise Superseded(self._epoch, self._shelf.epoch)
