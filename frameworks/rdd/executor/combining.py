"""Bringing the values of equal keys together, and sorting, with more data than memory."""

from __future__ import annotations

import heapq
import itertools
import operator
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from frameworks.rdd.executor import chunks
from frameworks.rdd.executor.sizes import DictMeter, ListMeter
from frameworks.rdd.executor.spills import SpillFile
from frameworks.rdd.hashing import one_nan
from frameworks.rdd.nodes import Aggregator, Ordering

Pair = tuple[Any, Any]
Merge = Callable[[Any, Any], Any]
# Called with the bytes of each spill.
Spilled = Callable[[int], None]

_FAN_OUT: Final = 16
# What has not come apart by then is (nearly) one key, and is combined whatever it takes.
_MAX_DEPTH: Final = 4
_MERGED: Final = 64
_MIX: Final = 0x9E37_79B9_7F4A_7C15
_WORD: Final = 0xFFFF_FFFF_FFFF_FFFF
# Types of keys among which no NaN hides.
_PLAIN: Final = frozenset({str, int, bool, bytes, type(None)})


class Combiner:
    """A dict of key -> what its values have become so far."""

    def __init__(
        self,
        create: Callable[[Any], Any],
        merge: Merge,
        limit_bytes: int,
        seen: Callable[[int], None] | None = None,
    ) -> None:
        """seen: told how many more pairs came, from time to time."""
        self._seen = seen
        self._create = create
        self._merge = merge
        self._meter = DictMeter(limit_bytes)
        self.held: dict[Any, Any] = {}

    @property
    def each_bytes(self) -> int:
        """About what an entry takes."""
        return self._meter.size_bytes // max(1, len(self.held))

    def add(self, pairs: Iterable[Pair]) -> Iterator[None]:
        """Gives control back whenever the limit is passed; whoever calls may `clear` then."""
        iterator = iter(pairs)
        while some := list(itertools.islice(iterator, self._meter.step)):
            self._take(some)
            if self._seen is not None:
                self._seen(len(some))
            if self._meter.is_over(self.held, _key(some[-1])) and len(self.held) > 1:
                yield

    def clear(self) -> None:
        self.held = {}
        self._meter.reset()

    def _take(self, pairs: list[Pair]) -> None:
        held, create, merge = self.held, self._create, self._merge
        if not _PLAIN.issuperset({type(key) for key, _ in pairs}):
            pairs = [(one_nan(key), value) for key, value in pairs]
        for key, value in pairs:
            if key in held:
                held[key] = merge(held[key], value)
            else:
                held[key] = create(value)


def _key(pair: Pair) -> Any:
    key, _ = pair
    return one_nan(key)


def combined(
    batches: Iterable[list[Pair]],
    aggregator: Aggregator,
    limit_bytes: int,
    scratch: Path,
    spilled: Spilled,
    *,
    of_combiners: bool,
    depth: int = 0,
) -> Iterator[Pair]:
    """Each key once.  of_combiners: what comes is combined already, as by a map.

    More than `limit_bytes` goes to disk, apart by the keys' hashes, and is combined part by
    part, each again in this manner.
    """
    combiner = Combiner(
        _same if of_combiners else aggregator.create,
        aggregator.merge_combiners if of_combiners else aggregator.merge_value,
        limit_bytes if depth < _MAX_DEPTH else sys.maxsize,
    )
    parts: _Parts | None = None
    for batch in batches:
        for _ in combiner.add(batch):
            parts = parts or _Parts(scratch, depth)
            spilled(parts.add(combiner))
    if parts is None:
        yield from combiner.held.items()
        return
    spilled(parts.add(combiner))
    try:
        for part in parts.each():
            yield from combined(
                part,
                aggregator,
                limit_bytes,
                scratch,
                spilled,
                of_combiners=True,
                depth=depth + 1,
            )
    finally:
        parts.close()


def _same(value: Any) -> Any:
    return value


class _Parts:
    """Combiners on disk, those of a key in one part."""

    def __init__(self, scratch: Path, depth: int) -> None:
        self._file = SpillFile(scratch)
        self._depth = depth
        self._places: list[list[tuple[int, int]]] = [[] for _ in range(_FAN_OUT)]

    def add(self, combiner: Combiner) -> int:
        """All of it, and clears it.  How many bytes that were."""
        parts: list[list[Pair]] = [[] for _ in range(_FAN_OUT)]
        shift = 60 - 4 * self._depth
        for pair in combiner.held.items():
            # Hashes within one process: the strings' need not last.
            parts[(hash(pair[0]) * _MIX & _WORD) >> shift & (_FAN_OUT - 1)].append(pair)
        before = self._file.size
        for part, places in zip(parts, self._places, strict=True):
            for some in chunks.cut(part, combiner.each_bytes):
                places.append(self._file.add(chunks.packed(some)))
        combiner.clear()
        return self._file.size - before

    def each(self) -> Iterator[Iterator[list[Pair]]]:
        for places in self._places:
            if places:
                yield self._file.records(places)

    def close(self) -> None:
        self._file.close()


def _key_of_first(of_key: Callable[[Any], Any], pair: Pair) -> Any:
    return of_key(pair[0])


def ordered(
    batches: Iterable[list[Pair]],
    ordering: Ordering,
    limit_bytes: int,
    scratch: Path,
    spilled: Spilled,
) -> Iterator[Pair]:
    """Sorted by key; those with equal keys as they came."""
    key: Callable[[Pair], Any] = operator.itemgetter(0)
    if (of_key := ordering.key) is not None:
        key = partial(_key_of_first, of_key)
    reverse = not ordering.ascending
    held: list[Pair] = []
    file: SpillFile | None = None
    runs: list[list[tuple[int, int]]] = []
    meter = ListMeter(limit_bytes)
    for batch in batches:
        iterator = iter(batch)
        while some := list(itertools.islice(iterator, meter.step)):
            held.extend(some)
            if meter.is_over(some[-1], len(some)) and len(held) > 1:
                held.sort(key=key, reverse=reverse)
                file = file or SpillFile(scratch)
                before = file.size
                # As they are merged, one chunk of each run is in memory.
                cut = chunks.cut(held, meter.each_bytes, limit_bytes // _MERGED)
                runs.append([file.add(chunks.packed(part)) for part in cut])
                spilled(file.size - before)
                held = []
                meter.reset()
    held.sort(key=key, reverse=reverse)
    if file is None:
        yield from held
        return
    try:
        flat = [itertools.chain.from_iterable(file.records(run)) for run in runs]
        yield from heapq.merge(*flat, held, key=key, reverse=reverse)
    finally:
        file.close()
