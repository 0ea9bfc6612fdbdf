"""Reading a partition behind a shuffle: of each map's output its part, in the maps' order."""

from __future__ import annotations

import itertools
import struct
import time
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from frameworks.rdd.errors import FetchFailed
from frameworks.rdd.executor import chunks, combining
from frameworks.rdd.messages import MapOutput
from frameworks.rdd.nodes import ShuffleDependency
from frameworks.runtime.fetching import Blame, FetchError

if TYPE_CHECKING:
    from frameworks.rdd.executor.environment import TaskEnvironment

_BUFFER: Final = 1 << 20
# After a connection could not be made or broke.
_WAITS_S: Final = (0.5, 2.0)


def read(
    env: TaskEnvironment,
    dependency: ShuffleDependency,
    outputs: Sequence[MapOutput],
    split: int,
) -> Iterator[Any]:
    """The pairs, combined and sorted as the dependency says.  Raises FetchFailed."""
    limit = env.memory_bytes
    scratch = env.state.scratch
    spilled = env.state.page.spilled
    batches = _batches(env, dependency, outputs, split)
    if dependency.aggregator is not None:
        pairs = combining.combined(
            batches,
            dependency.aggregator,
            limit,
            scratch,
            spilled,
            of_combiners=dependency.map_side,
        )
        if dependency.ordering is None:
            return pairs
        batches = chunks.cut(pairs, chunks.CHUNK_BYTES // 1024)
    if dependency.ordering is not None:
        return combining.ordered(batches, dependency.ordering, limit, scratch, spilled)
    return itertools.chain.from_iterable(batches)


def _batches(
    env: TaskEnvironment,
    dependency: ShuffleDependency,
    outputs: Sequence[MapOutput],
    split: int,
) -> Iterator[list[Any]]:
    page = env.state.page
    have = {output.map_index: output for output in outputs}
    for index in range(dependency.maps):
        output = have.get(index)
        try:
            if output is None:
                raise FetchFailed(dependency.shuffle_id, index, "", "its place is not known")
            start, end = struct.unpack_from("<2Q", output.offsets, 8 * split)
            if start == end:
                continue
            for records, size in _of_map(env, output, start, end):
                page.read(len(records), size)
                yield records
        except FetchFailed as error:
            env.lost.append(error)
            raise


def _of_map(
    env: TaskEnvironment, output: MapOutput, start: int, end: int
) -> Iterator[tuple[list[Any], int]]:
    try:
        file = open(output.path, "rb", buffering=_BUFFER)  # noqa: PTH123, SIM115
    except OSError as error:
        if not output.url:
            raise _failed(output, str(error)) from error
        yield from _fetched(env, output, start, end)
        return
    with file:
        try:
            file.seek(start)
            yield from chunks.unpacked(file.read, end - start)
        except (OSError, chunks.Damaged) as error:
            raise _failed(output, str(error)) from error


def _fetched(
    env: TaskEnvironment, output: MapOutput, start: int, end: int
) -> Iterator[tuple[list[Any], int]]:
    """From the file server of its agent; again from where it broke off, if it is that."""
    for wait_s in (*_WAITS_S, None):
        stream = _Stream(env.state.fetcher.fetch(output.url, start, end - start))
        try:
            for records, size in chunks.unpacked(stream.read, end - start):
                yield records, size
                start += size
            stream.finish()
            return
        except chunks.Damaged as error:
            raise _failed(output, str(error)) from error
        except FetchError as error:
            if error.blame is not Blame.HOST:
                raise _failed(output, str(error)) from error
            if wait_s is None:
                raise _failed(output, str(error), of_host=True) from error
            time.sleep(wait_s)
        finally:
            stream.close()


def _failed(output: MapOutput, reason: str, *, of_host: bool = False) -> FetchFailed:
    """of_host: the others that are there cannot be had either."""
    index = -1 if of_host else output.map_index
    return FetchFailed(output.shuffle_id, index, output.executor_id, reason)


class _Stream:
    """Blocks of bytes, read in other portions."""

    def __init__(self, blocks: Generator[bytes, None, None]) -> None:
        self._blocks = blocks
        self._left = b""

    def read(self, size: int) -> bytes:
        """Fewer only at the end."""
        parts = [self._left]
        missing = size - len(self._left)
        while missing > 0 and (block := next(self._blocks, b"")):
            parts.append(block)
            missing -= len(block)
        data = b"".join(parts)
        self._left = data[size:]
        return data[:size]

    def finish(self) -> None:
        """All of it was read: its end too, so that the connection is kept."""
        for _ in self._blocks:
            pass

    def close(self) -> None:
        self._blocks.close()
