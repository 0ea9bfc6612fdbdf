"""What a map task leaves for a shuffle: one file, with its partitions in order.

Each partition is a row of chunks (chunks.py).  A key that was combined here may still come
several times, if there was more than memory holds: the reading side combines in any case.
"""

from __future__ import annotations

import itertools
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from frameworks.rdd.executor import chunks, packets
from frameworks.rdd.executor.combining import Combiner, Pair
from frameworks.rdd.executor.environment import TaskEnvironment
from frameworks.rdd.executor.sizes import ListMeter
from frameworks.rdd.executor.spills import SpillFile
from frameworks.rdd.messages import MapOutput
from frameworks.rdd.nodes import Partitioner, ShuffleDependency

# Pairs are pickled when they have become so many: pickles take less than objects.
_LIVE_BYTES: Final = 16 << 20
_PLACED: Final = 4096


def write(
    env: TaskEnvironment, dependency: ShuffleDependency, elements: Iterator[Any]
) -> MapOutput:
    """Raises what the elements, the user's functions and the partitioner raise; TypeError or
    ValueError for what is no pair."""
    limit = env.memory_bytes
    writer = _Writer(dependency.partitioner, limit, env)
    try:
        aggregator = dependency.aggregator
        if aggregator is not None and dependency.map_side:
            combiner = Combiner(
                aggregator.create, aggregator.merge_value, limit, env.state.page.read
            )
            for _ in combiner.add(elements):
                writer.take_all(combiner)
                writer.spill()
            writer.take_all(combiner)
        else:
            writer.take(elements)
        return writer.finish(dependency.shuffle_id)
    finally:
        writer.close()


class _Writer:
    def __init__(self, partitioner: Partitioner, limit: int, env: TaskEnvironment) -> None:
        self._places = partitioner.places
        self._count = partitioner.partitions
        self._limit = limit
        self._env = env
        self._chunks: list[list[bytes]] = [[] for _ in range(self._count)]
        self._bytes = 0
        self._file: SpillFile | None = None
        # Of each spill, where each partition begins in the file, and the end of the last.
        self._spills: list[list[int]] = []

    def take_all(self, combiner: Combiner) -> None:
        """What was combined, which is then cleared."""
        buckets: list[list[Pair]] = [[] for _ in range(self._count)]
        pairs = iter(combiner.held.items())
        while some := list(itertools.islice(pairs, _PLACED)):
            for pair, place in zip(some, self._places([key for key, _ in some]), strict=True):
                buckets[place].append(pair)
        each = combiner.each_bytes
        combiner.clear()
        self._pack(buckets, each)

    def take(self, pairs: Iterator[Pair]) -> None:
        """Pairs as they come."""
        count = self._count
        meter = ListMeter(min(_LIVE_BYTES, self._limit // 2))
        buckets: list[list[Pair]] = [[] for _ in range(count)]
        while some := list(itertools.islice(pairs, meter.step)):
            places = self._places([key for key, _ in some])
            if set(map(type, some)) != {tuple}:
                some = [(key, value) for key, value in some]
            for pair, place in zip(some, places, strict=True):
                buckets[place].append(pair)
            self._env.state.page.read(len(some))
            if meter.is_over(some[-1], len(some)):
                self._pack(buckets, meter.each_bytes)
                buckets = [[] for _ in range(count)]
                meter.reset()
                if self._bytes > self._limit // 2:
                    self.spill()
        self._pack(buckets, meter.each_bytes)

    def _pack(self, buckets: list[list[Pair]], each_bytes: int) -> None:
        for bucket, packed in zip(buckets, self._chunks, strict=True):
            for some in chunks.cut(bucket, each_bytes):
                data = chunks.packed(some)
                packed.append(data)
                self._bytes += len(data)
            bucket.clear()

    def spill(self) -> None:
        file = self._file = self._file or SpillFile(self._env.state.scratch)
        starts = [file.size]
        for packed in self._chunks:
            for data in packed:
                file.add(data)
            packed.clear()
            starts.append(file.size)
        self._spills.append(starts)
        self._bytes = 0
        self._env.state.page.spilled(starts[-1] - starts[0])

    def finish(self, shuffle_id: int) -> MapOutput:
        task, settings = self._env.task, self._env.state.settings
        name = f"shuffle/{shuffle_id}/{task.split}-{task.task_id}"
        path = settings.outputs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f".{path.name}")
        try:
            offsets = self._write(unfinished)
            unfinished.rename(path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        self._env.state.page.wrote(offsets[-1])
        return MapOutput(
            shuffle_id=shuffle_id,
            map_index=task.split,
            executor_id=settings.executor_id,
            host=settings.host,
            path=str(path),
            url=settings.url(name),
            offsets=struct.pack(f"<{len(offsets)}Q", *offsets),
        )

    def _write(self, path: Path) -> list[int]:
        position = 0
        offsets = [0]
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            for number in range(self._count):
                for start, end in (starts[number : number + 2] for starts in self._spills):
                    assert self._file is not None
                    self._file.copy_to(fd, start, end - start, position)
                    position += end - start
                data = b"".join(self._chunks[number])
                packets.write_all(fd, data, position)
                position += len(data)
                offsets.append(position)
        finally:
            os.close(fd)
        return offsets

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
