"""Where what is persisted is kept; the names and what they stand for are PySpark's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, repr=False)
class StorageLevel:
    """useDisk, useMemory: where a partition may be.  deserialized: as objects, not pickled.
    useOffHeap is taken and means nothing here.  replication: on so many executors."""

    useDisk: bool
    useMemory: bool
    useOffHeap: bool = False
    deserialized: bool = False
    replication: int = 1

    NONE: ClassVar[StorageLevel]
    DISK_ONLY: ClassVar[StorageLevel]
    DISK_ONLY_2: ClassVar[StorageLevel]
    DISK_ONLY_3: ClassVar[StorageLevel]
    MEMORY_ONLY: ClassVar[StorageLevel]
    MEMORY_ONLY_2: ClassVar[StorageLevel]
    MEMORY_AND_DISK: ClassVar[StorageLevel]
    MEMORY_AND_DISK_2: ClassVar[StorageLevel]
    OFF_HEAP: ClassVar[StorageLevel]
    MEMORY_AND_DISK_DESER: ClassVar[StorageLevel]

    def __repr__(self) -> str:
        parts = (self.useDisk, self.useMemory, self.useOffHeap, self.deserialized, self.replication)
        return f"StorageLevel({', '.join(map(str, parts))})"

    def __str__(self) -> str:
        words = [
            "Disk " if self.useDisk else "",
            "Memory " if self.useMemory else "",
            "OffHeap " if self.useOffHeap else "",
            "Deserialized " if self.deserialized else "Serialized ",
        ]
        return f"{''.join(words)}{self.replication}x Replicated"

    def __bool__(self) -> bool:
        return self.useDisk or self.useMemory


StorageLevel.NONE = StorageLevel(False, False)
StorageLevel.DISK_ONLY = StorageLevel(True, False)
StorageLevel.DISK_ONLY_2 = StorageLevel(True, False, replication=2)
StorageLevel.DISK_ONLY_3 = StorageLevel(True, False, replication=3)
StorageLevel.MEMORY_ONLY = StorageLevel(False, True)
StorageLevel.MEMORY_ONLY_2 = StorageLevel(False, True, replication=2)
StorageLevel.MEMORY_AND_DISK = StorageLevel(True, True)
StorageLevel.MEMORY_AND_DISK_2 = StorageLevel(True, True, replication=2)
StorageLevel.OFF_HEAP = StorageLevel(True, True, True)
StorageLevel.MEMORY_AND_DISK_DESER = StorageLevel(True, True, deserialized=True)

NONE = StorageLevel.NONE
