"""Spills: files of lines by partition, sorted in each, that a map writes when memory is full."""

from __future__ import annotations

import itertools
import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from frameworks.mapreduce.data import runs
from frameworks.mapreduce.data.blocks import Lines, Positions, cost, lines_in
from frameworks.mapreduce.data.ordering import grouped, order

Piece = tuple[int, bytes]

# GNU sort merges three times as fast as we sort, but takes some milliseconds to start: it is given
# partitions of so many bytes on.
LARGE: Final = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Spill:
    """sizes, lines: bytes and lines of each partition; they lie in the file one after the
    other, without gaps."""

    path: Path
    sizes: Positions
    lines: Positions


def write(path: Path, count: int, pieces: Iterable[Piece]) -> Spill:
    """pieces: sorted lines with their partition, in its order.  Raises OSError."""
    sizes = np.zeros(count, np.int64)
    lines = np.zeros(count, np.int64)
    with path.open("wb") as file:
        for partition, block in pieces:
            file.write(block)
            sizes[partition] += len(block)
            lines[partition] += lines_in(block)
    return Spill(path, sizes, lines)


@dataclass(frozen=True, slots=True)
class Range:
    """Partitions first to end - 1, of so many bytes.  small: they are merged in memory at once."""

    first: int
    end: int
    small: bool
    size: int


class Merge:
    """Spills read together.  Neighbouring partitions that are small are merged in memory at once
    as long as it holds them, so that ten thousand take no longer than a few; a larger one by
    GNU sort.  To be closed."""

    def __init__(self, spills: Sequence[Spill], memory_bytes: int, directory: Path) -> None:
        self._memory = memory_bytes
        self._directory = directory
        self._sizes = np.array([spill.sizes for spill in spills])
        self._lines = np.array([spill.lines for spill in spills])
        self._begins = np.cumsum(self._sizes, axis=1) - self._sizes
        self._files: list[BinaryIO] = []
        for spill in spills:
            self._files.append(spill.path.open("rb"))

    def close(self) -> None:
        for file in self._files:
            file.close()

    def ranges(self) -> Iterator[Range]:
        """All partitions."""
        sizes = self._sizes.sum(axis=0).tolist()
        costs = [cost(*pair) for pair in zip(sizes, self._lines.sum(axis=0).tolist(), strict=True)]
        small = [
            size < LARGE and each <= self._memory for size, each in zip(sizes, costs, strict=True)
        ]
        first = 0
        while first < len(sizes):
            end, total = first + 1, costs[first]
            while small[first] and end < len(sizes) and small[end]:
                total += costs[end]
                if total > self._memory:
                    break
                end += 1
            yield Range(first, end, small[first], sum(sizes[first:end]))
            first = end

    def pieces(self, of: Range) -> Iterator[Piece]:
        """The lines of a range, sorted, by partition.  Raises OSError."""
        if not of.small:
            blocks = self._large(of.first)
            try:
                yield from ((of.first, block) for block in blocks)
            finally:
                blocks.close()
        elif of.size:
            yield from self._small(of)

    def _small(self, of: Range) -> Iterator[Piece]:
        blocks = []
        numbers = []
        which = np.arange(of.first, of.end, dtype=np.uint32)
        for file, begins, sizes, lines in zip(
            self._files, self._begins, self._sizes, self._lines, strict=True
        ):
            size = int(sizes[of.first : of.end].sum())
            blocks.append(_read(file, int(begins[of.first]), size))
            numbers.append(np.repeat(which, lines[of.first : of.end]))
        merged = Lines.of(*blocks)
        blocks.clear()
        groups = np.concatenate(numbers)
        wanted = order(merged, groups)
        yield from grouped(merged, wanted, groups[wanted])

    def _large(self, partition: int) -> Generator[bytes, None, None]:
        paths: list[Path] = []
        try:
            for number, file in enumerate(self._files):
                if left := int(self._sizes[number, partition]):
                    path = self._directory / f"part-{id(self):x}-{number}"
                    paths.append(path)
                    with path.open("wb") as part:
                        _copy(file, int(self._begins[number, partition]), left, part)
            yield from runs.merged(paths, self._directory, self._memory)
        finally:
            runs.remove(paths)


def _read(file: BinaryIO, begin: int, size: int) -> bytes:
    data = os.pread(file.fileno(), size, begin)
    while len(data) < size:
        more = os.pread(file.fileno(), size - len(data), begin + len(data))
        if not more:
            raise OSError(f"{file.name}: ends at byte {begin + len(data)}")
        data += more
    return data


def _copy(source: BinaryIO, begin: int, size: int, target: BinaryIO) -> None:
    while size:
        copied = os.sendfile(target.fileno(), source.fileno(), begin, min(size, 1 << 30))
        if not copied:
            raise OSError(f"{source.name}: ends at byte {begin}")
        begin += copied
        size -= copied


class Spills:
    """The spills of one map.  When there are 64 of a kind they become one of the next, so that
    a map of any size has few files open at its end."""

    AT_ONCE: Final = 64

    def __init__(self, directory: Path, count: int, memory_bytes: int) -> None:
        self._directory = directory
        self._count = count
        self._memory = memory_bytes
        self._names = itertools.count()
        self._levels: list[list[Spill]] = [[]]
        self.records = 0
        self.bytes = 0

    def __len__(self) -> int:
        return sum(map(len, self._levels))

    def add(self, pieces: Iterable[Piece]) -> None:
        """Sorted lines with their partition, in its order.  Raises OSError."""
        self._put(0, pieces)
        level = 0
        while len(self._levels[level]) >= self.AT_ONCE:
            full = self._levels[level]
            merge = Merge(full, self._memory, self._directory)
            try:
                self._put(level + 1, (p for of in merge.ranges() for p in merge.pieces(of)))
            finally:
                merge.close()
            runs.remove(spill.path for spill in full)
            full.clear()
            level += 1

    def _put(self, level: int, pieces: Iterable[Piece]) -> None:
        if level == len(self._levels):
            self._levels.append([])
        path = self._directory / f"spill-{id(self):x}-{next(self._names)}"
        try:
            spill = write(path, self._count, pieces)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        self._levels[level].append(spill)
        self.records += int(spill.lines.sum())
        self.bytes += int(spill.sizes.sum())

    def merge(self) -> Merge:
        spills = [spill for level in self._levels for spill in level]
        return Merge(spills, self._memory, self._directory)

    def remove(self) -> None:
        for level in self._levels:
            runs.remove(spill.path for spill in level)
            level.clear()
