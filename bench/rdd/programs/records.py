"""What is shuffled, and how it is known that nothing was lost: the same for every contender."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

Record = tuple[int, bytes]
Pair = tuple[int, int]
# What is told of a partition: how many records, the sum of their keys modulo 2**64, whether they
# are in order, its first and its last key (0, 0 for an empty one).
Told = tuple[int, int, bool, int, int]

VALUE: Final = 100
# Bytes without a pattern, from which values are cut.
_BYTES: Final = hashlib.shake_128(b"values").digest(1 << 16)
_MASK: Final = (1 << 64) - 1
# An odd number near 2**64 divided by the golden ratio: keys that follow one another are spread.
_STEP: Final = 0x9E3779B97F4A7C15


def of_part(part: int, parts: int, records: int) -> Iterator[Record]:
    """The records of one of `parts` parts; no two keys of all are equal."""
    for at in _numbers(part, parts, records):
        key = at * _STEP & _MASK
        place = key >> 49
        yield key >> 1, _BYTES[place : place + VALUE]


def pairs_of_part(part: int, parts: int, records: int, keys: int) -> Iterator[Pair]:
    """(key, 1), with `keys` different keys in all, each as often as any other."""
    for at in _numbers(part, parts, records):
        yield (at * _STEP & _MASK) % keys, 1


def _numbers(part: int, parts: int, records: int) -> range:
    return range(records * part // parts, records * (part + 1) // parts)


def told(elements: Iterable[tuple[int, object]]) -> Told:
    count = total = first = last = 0
    in_order = True
    for key, _ in elements:
        if not count:
            first = key
        elif key < last:
            in_order = False
        last = key
        total += key
        count += 1
    return count, total & _MASK, in_order, first, last


def told_of_sums(elements: Iterable[Pair]) -> Told:
    """The same for sums: how much they are in all, and not how many."""
    count = total = 0
    for key, value in elements:
        count += value
        total += key
    return count, total & _MASK, True, 0, 0


def summary(parts: Iterable[Told]) -> dict[str, object]:
    """Of all partitions, which follow one another."""
    known = [part for part in parts if part[0]]
    ordered = all(part[2] for part in known) and all(
        before[4] <= after[3] for before, after in pairwise(known)
    )
    return {
        "count": sum(part[0] for part in known),
        "keys": sum(part[1] for part in known) & _MASK,
        "ordered": ordered,
    }
