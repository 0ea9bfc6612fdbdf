"""Lines that come again and again, as words in a text do: each is kept once, with how often it
was there, so that memory holds many more, and only what differs is hashed and sorted.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np

from frameworks.mapreduce.data.blocks import Lines, Positions
from frameworks.mapreduce.data.ordering import Groups

# From so many lines for each that differs on it is faster.
_OFTEN: Final = 4
# Memory for a line, beside its bytes: as an entry of the table, and to be sorted.
_COST: Final = 272
_BLOCK: Final = 1 << 20


class Repeats:
    """Lines with their counts; not their order."""

    def __init__(self) -> None:
        self._counts: Counter[bytes] = Counter()
        self._lines = 0
        self.cost = 0

    @classmethod
    def of(cls, blocks: list[bytes]) -> Repeats | None:
        """None if lines seldom come again."""
        found = cls()
        for block in blocks:
            found.add(block)
        return found if found._lines >= _OFTEN * len(found._counts) else None

    def add(self, block: bytes) -> None:
        """Whole lines."""
        if not block:
            return
        counts = self._counts
        before = len(counts)
        lines = block[:-1].split(b"\n")
        counts.update(lines)
        self._lines += len(lines)
        added = len(counts) - before
        # A table keeps its order: the new ones are the last.
        size = sum(map(len, itertools.islice(reversed(counts), added)))
        self.cost += 3 * size + _COST * added

    def taken(self) -> tuple[Lines, Positions]:
        """Each line once, and how often it was there; nothing is left."""
        times = np.fromiter(self._counts.values(), np.int64, len(self._counts))
        block = b"\n".join((*self._counts, b""))
        self._counts.clear()
        return Lines.of(block), times


def repeated(
    lines: Lines, wanted: Positions, groups: Groups, times: Positions
) -> Iterator[tuple[int, bytes]]:
    """These lines, in this order, each so many times, as blocks that are of one group each.
    groups, times: of each line wanted; groups ascend."""
    data = lines.padded
    held: list[bytes] = []
    size = group = 0
    each = (lines.starts[wanted], lines.ends[wanted] + 1, groups, times)
    for start, end, number, count in zip(*(one.tolist() for one in each), strict=True):
        if held and (number != group or size >= _BLOCK):
            yield group, b"".join(held)
            held, size = [], 0
        group = number
        line = bytes(data[start:end])
        most = max(_BLOCK // len(line), 1)
        for _ in range((count - 1) // most):
            yield from ((group, part) for part in (b"".join(held), line * most) if part)
            held, size = [], 0
        rest = (count - 1) % most + 1
        held.append(line * rest)
        size += len(line) * rest
    if held:
        yield group, b"".join(held)


__all__ = ["Repeats", "repeated"]
