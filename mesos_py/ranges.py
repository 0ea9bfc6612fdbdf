"""Sets of whole numbers as sorted, merged, inclusive ranges.

A value of type `Ranges` is a tuple of `(begin, end)` pairs, both included, in
rising order, no two of which touch or overlap.  All functions take and return
values in this form; `normalised` makes it from any list of pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

Ranges: TypeAlias = tuple[tuple[int, int], ...]


def normalised(pairs: Iterable[tuple[int, int]]) -> Ranges:
    """The canonical form of `pairs`, which may touch but must not be reversed."""
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(pairs):
        if merged and begin <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return tuple(merged)


def overlap(pairs: Iterable[tuple[int, int]]) -> tuple[int, int] | None:
    """The first pair (in rising order) that shares a number with the one before it."""
    last_end: int | None = None
    for begin, end in sorted(pairs):
        if last_end is not None and begin <= last_end:
            return (begin, end)
        last_end = end
    return None


def union(left: Ranges, right: Ranges) -> Ranges:
    return normalised((*left, *right))


def difference(left: Ranges, right: Ranges) -> Ranges:
    """The numbers of `left` that are not in `right`."""
    result: list[tuple[int, int]] = []
    position = 0
    for begin, end in left:
        at = begin
        while position < len(right) and right[position][0] <= end:
            cut_begin, cut_end = right[position]
            if cut_begin > at:
                result.append((at, cut_begin - 1))
            at = max(at, cut_end + 1)
            if cut_end > end:
                break  # it may reach into the next range as well
            position += 1
        if at <= end:
            result.append((at, end))
    return tuple(result)


def intersection(left: Ranges, right: Ranges) -> Ranges:
    """The numbers that are in both."""
    return difference(left, difference(left, right))


def contains(outer: Ranges, inner: Ranges) -> bool:
    """Whether every number of `inner` is in `outer`."""
    position = 0
    for begin, end in inner:
        while position < len(outer) and outer[position][1] < begin:
            position += 1
        if position == len(outer) or outer[position][0] > begin or outer[position][1] < end:
            return False
    return True


def intersects(left: Ranges, right: Ranges) -> bool:
    return overlap((*left, *right)) is not None


def count(ranges: Ranges) -> int:
    return sum(end - begin + 1 for begin, end in ranges)


def numbers(ranges: Ranges) -> Iterator[int]:
    """All numbers in rising order."""
    for begin, end in ranges:
        yield from range(begin, end + 1)


def text(ranges: Ranges) -> str:
    """`[1-9, 20-30]`, as resources texts write it."""
    return "[" + ", ".join(f"{begin}-{end}" for begin, end in ranges) + "]"
