"""Histograms: how many elements are in each of some ranges."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any


def checked(buckets: Sequence[Any]) -> None:
    """Raises ValueError if they are not two or more different values in order."""
    if len(buckets) < 2:
        raise ValueError("buckets should have more than one value")
    if any(not comparable(each) for each in buckets):
        raise ValueError("can not have None or NaN in buckets")
    if sorted(buckets) != list(buckets):
        raise ValueError("buckets should be sorted")
    if len(set(buckets)) != len(buckets):
        raise ValueError("buckets should not contain duplicated values")


def evenly(low: Any, high: Any, count: int) -> list[Any]:
    """Bounds of `count` ranges of one width, whole numbers where that comes out even.

    Raises TypeError for what are no numbers, ValueError for infinite ones.
    """
    try:
        width = (high - low) / count
    except TypeError:
        raise TypeError("Can not generate buckets with non-number in RDD") from None
    if math.isinf(width) or math.isnan(width):
        raise ValueError("Can not generate buckets with infinite value")
    if int(width) * count == high - low:
        width = int(width)
    return [*(low + i * width for i in range(count)), high]


def comparable(element: Any) -> bool:
    """Neither None nor NaN."""
    return element is not None and not (isinstance(element, float) and math.isnan(element))


def span(split: int, elements: Iterator[Any]) -> list[Any]:
    """The least and the largest of a partition; nothing, if it has none that compare."""
    low = high = None
    for each in filter(comparable, elements):
        if low is None:
            low = high = each
        else:
            low, high = min(low, each), max(high, each)
    return [] if low is None else [low, high]


def counts(buckets: Sequence[Any], split: int, elements: Iterator[Any]) -> list[int]:
    """How many of a partition are in each range; its upper bound belongs to the last only."""
    found = [0] * len(buckets)
    low, high = buckets[0], buckets[-1]
    for each in elements:
        if comparable(each) and low <= each <= high:
            found[bisect_right(buckets, each) - 1] += 1
    at_the_end = found.pop()
    found[-1] += at_the_end
    return found
