"""What a task cannot hold in memory: chunks in a file that has no name."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from frameworks.rdd.executor import chunks, packets


class SpillFile:
    """Appended to, and read in any order.  Gone with this object, or the process."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._file = tempfile.TemporaryFile(dir=directory, buffering=0)  # noqa: SIM115
        self.size = 0

    def add(self, data: bytes) -> tuple[int, int]:
        """Where it is: the beginning and the length."""
        packets.write_all(self._file.fileno(), data, self.size)
        self.size += len(data)
        return self.size - len(data), len(data)

    def bytes_at(self, start: int, length: int) -> bytes:
        return packets.read_all(self._file.fileno(), length, start)

    def records(self, places: Iterable[tuple[int, int]]) -> Iterator[list[Any]]:
        for start, length in places:
            yield pickle_of(self.bytes_at(start, length))

    def close(self) -> None:
        self._file.close()

    def copy_to(self, target: int, start: int, length: int, position: int) -> None:
        """Some of it to another file, without a copy in this process."""
        source = self._file.fileno()
        while length:
            done = os.copy_file_range(source, target, length, start, position)
            if not done:
                raise EOFError(f"{length} bytes of a spill are missing")
            start, position, length = start + done, position + done, length - done


def pickle_of(chunk: bytes) -> list[Any]:
    """The records of one chunk."""
    view = memoryview(chunk)
    position = 0

    def read(size: int) -> bytes:
        nonlocal position
        position += size
        return bytes(view[position - size : position])

    ((records, _),) = chunks.unpacked(read, len(chunk))
    return records
