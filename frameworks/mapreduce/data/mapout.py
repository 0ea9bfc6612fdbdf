"""A map's output: one file, in which each partition has its sorted lines (a segment).

Until they are too many, lines stay in memory; then they are sorted and spilled to disk, and the
spills merged at the end.  The file is complete or not there: it is written beside its name and
renamed.  It is not synced, since it can be made again: segments carry checksums.

A combiner goes over the sorted lines of all partitions before each spill, in one run, since
starting it for each of ten thousand partitions would take minutes; what it gives is partitioned
and sorted as what a map gives, so it may change keys as well.  When three or more spills are
merged it runs again, on partitions that are worth it.

Where the first lines after a spill show that most come again, each is kept once (`repeats.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import ClassVar, Final

import numpy as np

from frameworks.mapreduce.data import runs
from frameworks.mapreduce.data.blocks import Lines, Positions, cost, lines_in, whole
from frameworks.mapreduce.data.keys import Keys
from frameworks.mapreduce.data.ordering import gathered, grouped, order
from frameworks.mapreduce.data.partitions import Partitioner
from frameworks.mapreduce.data.repeats import Repeats, repeated
from frameworks.mapreduce.data.segments import NOTHING, SegmentWriter, codec_of
from frameworks.mapreduce.data.spills import Merge, Piece, Range, Spills
from frameworks.mapreduce.job import JobSpec
from frameworks.mapreduce.work import Segment

# Takes sorted blocks of whole lines, gives blocks of whole lines.  If it is a generator, it is
# closed when its output is not wanted any more.
Combine = Callable[[Iterator[bytes]], Iterator[bytes]]

# Combining spills again: from so many on, and for so many bytes.
COMBINED_SPILLS: Final = 3
COMBINED_BYTES: Final = 1 << 20


class MapOutput:
    """Takes blocks of whole lines; `finish` makes the file at `path`.

    directory: is there, for what does not fit into memory_bytes.  Not for several threads at
    once.  `close` removes all but the finished file, whatever has happened.
    """

    # So many bytes show whether lines come again.
    SHOWN: ClassVar[int] = 1 << 20

    def __init__(
        self,
        path: Path,
        spec: JobSpec,
        memory_bytes: int,
        directory: Path,
        combine: Combine | None = None,
    ) -> None:
        """Raises InvalidValue for properties of the job that are wrong."""
        self._path = path
        self._unfinished = path.with_name(f".{path.name}.unfinished")
        self._keys = Keys.of(spec.conf)
        self._partitioner = Partitioner.of(spec)
        self._codec = codec_of(spec)
        self._memory = memory_bytes
        self._combine = combine
        self._spills = Spills(directory, self._partitioner.count, memory_bytes)
        self._blocks: list[bytes] = []
        self._cost = 0
        # Of `_blocks`, until it is known whether lines come again; then -1.
        self._size = 0
        self._repeats: Repeats | None = None
        self._written = (0, 0)

    @property
    def spilled_records(self) -> int:
        """Lines written to disk, each as often as it was."""
        return self._spills.records + self._written[0]

    @property
    def spilled_bytes(self) -> int:
        """The same in bytes, before packing."""
        return self._spills.bytes + self._written[1]

    def add(self, block: bytes) -> None:
        """Raises InvalidValue when the block does not end with a newline; OSError (ENOSPC when
        the disk is full); what the combiner raises."""
        whole(block)
        if self._repeats is not None:
            self._repeats.add(block)
            if self._repeats.cost > self._memory:
                self._spill()
            return
        self._blocks.append(block)
        self._cost += cost(len(block), lines_in(block))
        if self._cost > self._memory:
            self._spill()
        elif self._size >= 0:
            self._size += len(block)
            if self._size >= self.SHOWN:
                self._size = -1
                self._repeats = Repeats.of(self._blocks)
                if self._repeats is not None:
                    self._blocks.clear()

    def _spill(self) -> None:
        for pieces in self._taken():
            self._spills.add(pieces)

    def _taken(self) -> Iterator[Iterable[Piece]]:
        """What was added, combined, partitioned and sorted: mostly at once, in several portions
        when the combiner makes more of it."""
        blocks, repeats, times = self._blocks, self._repeats, None
        self._blocks, self._repeats = [], None
        self._cost = self._size = 0
        if repeats is not None:
            lines, times = repeats.taken()
        elif blocks:
            lines = Lines.of(*blocks)
            blocks.clear()
        else:
            return
        if self._combine is None:
            yield self._sorted(lines, times)
            return
        form = self._keys.form(lines, self._keys.ends(lines))
        del lines
        for portion in self._portions(self._combine(self._in_order(form, times))):
            yield self._sorted(portion)

    def _in_order(self, form: Lines, times: Positions | None) -> Iterator[bytes]:
        """As a combiner reads them."""
        wanted = order(form)
        if times is None:
            blocks = gathered(form, wanted)
        else:
            none = np.zeros(len(wanted), np.uint32)
            blocks = (block for _, block in repeated(form, wanted, none, times[wanted]))
        return map(self._keys.plain, blocks)

    def _portions(self, blocks: Iterator[bytes]) -> Iterator[Lines]:
        held: list[bytes] = []
        total = 0
        for block in blocks:
            held.append(block)
            total += cost(len(block), lines_in(block))
            if total > self._memory:
                yield Lines.of(*held)
                held.clear()
                total = 0
        if held:
            yield Lines.of(*held)

    def _sorted(self, lines: Lines, times: Positions | None = None) -> Iterator[Piece]:
        """times: how often each line is there; None: once."""
        ends = self._keys.ends(lines)
        numbers = self._partitioner.numbers(lines, ends)
        form = self._keys.form(lines, ends)
        wanted = order(form, numbers)
        if times is None:
            return grouped(form, wanted, numbers[wanted])
        return repeated(form, wanted, numbers[wanted], times[wanted])

    def finish(self) -> tuple[Segment, ...]:
        """Write the file and give its segments, one per partition.  Raises as `add` does."""
        with self._unfinished.open("wb") as file:
            writer = SegmentWriter(file, self._codec)
            segments = self._finish(writer)
        runs.remove([self._path])
        self._unfinished.rename(self._path)
        self._spills.remove()
        return segments

    def _finish(self, writer: SegmentWriter) -> tuple[Segment, ...]:
        segments = [NOTHING] * self._partitioner.count
        if not len(self._spills):
            portions = self._taken()
            first = next(portions, None)
            second = next(portions, None)
            if first is None or second is None:
                self._write(writer, first or (), segments)
                return tuple(segments)
            for pieces in itertools.chain((first, second), portions):
                self._spills.add(pieces)
        self._spill()
        merge = self._spills.merge()
        try:
            for of in merge.ranges():
                again = self._combine is not None and len(self._spills) >= COMBINED_SPILLS
                combined = None
                if again and of.size >= COMBINED_BYTES:
                    combined = self._combined(merge, of)
                self._write(writer, combined or merge.pieces(of), segments)
        finally:
            merge.close()
        return tuple(segments)

    def _combined(self, merge: Merge, of: Range) -> Iterator[Piece] | None:
        """Merged partitions through the combiner; None when it does not pay, since the result
        is still more than memory holds, or when it does not belong there (keys were changed)."""
        assert self._combine is not None
        pieces = merge.pieces(of)
        blocks = self._combine(self._keys.plain(block) for _, block in pieces)
        try:
            lines = next(portions := self._portions(blocks), Lines.of())
            if next(portions, None) is not None:
                return None
        finally:
            for used in (blocks, pieces):
                if isinstance(used, Generator):
                    used.close()
        numbers = self._partitioner.numbers(lines, self._keys.ends(lines))
        if ((numbers < of.first) | (numbers >= of.end)).any():
            return None
        return self._sorted(lines)

    def _write(
        self, writer: SegmentWriter, pieces: Iterable[Piece], segments: list[Segment]
    ) -> None:
        """pieces: in the order of partitions."""
        records = size = 0
        for partition, group in itertools.groupby(pieces, key=lambda piece: piece[0]):
            for _, block in group:
                writer.write(block)
                records += lines_in(block)
                size += len(block)
            segments[partition] = writer.end()
        self._written = (self._written[0] + records, self._written[1] + size)

    def close(self) -> None:
        self._blocks.clear()
        self._repeats = None
        self._cost = self._size = 0
        self._spills.remove()
        runs.remove([self._unfinished])
