"""Actions on numbers: sums, moments, histograms, and approximate answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Any, TypeVar

from frameworks.rdd import approximate, distinct, histograms
from frameworks.rdd.approximate import BoundedFloat
from frameworks.rdd.elements import count_elements
from frameworks.rdd.sampling import Sampling
from frameworks.rdd.statcounter import StatCounter

T = TypeVar("T")


class Figures(Sampling[T]):
    # ---- Exact -----------------------------------------------------------------------------

    def max(self, key: Callable[[T], Any] | None = None) -> T:
        """Raises ValueError if there is nothing."""
        return self.reduce(partial(_most, key))

    def min(self, key: Callable[[T], Any] | None = None) -> T:
        """Raises ValueError if there is nothing."""
        return self.reduce(partial(_least, key))

    def sum(self) -> Any:
        """0 if there is nothing."""
        return sum(self.ctx.run(self.node, _sum))

    def stats(self) -> StatCounter:
        """Count, mean, variance, least and largest in one job."""
        parts = self.ctx.run(self.node, _stats)
        return reduce(StatCounter.mergeStats, parts, StatCounter())

    def mean(self) -> Any:
        return self.stats().mean()

    def variance(self) -> Any:
        return self.stats().variance()

    def stdev(self) -> Any:
        return self.stats().stdev()

    def sampleVariance(self) -> Any:
        """Of what the elements are a sample of: divided by their number less one."""
        return self.stats().sampleVariance()

    def sampleStdev(self) -> Any:
        return self.stats().sampleStdev()

    def histogram(self, buckets: int | Sequence[Any]) -> tuple[Sequence[Any], list[int]]:
        """The bounds of ranges, and how many elements are in each: those from its lower
        bound to before its upper one, and in the last that as well.  None, NaN and what is
        outside are not counted.

        buckets: bounds in ascending order; or how many ranges of one width, from the least
        element to the largest.
        Raises ValueError and TypeError for buckets, or elements, of which none can be made.
        """
        if isinstance(buckets, int):
            if buckets < 1:
                raise ValueError("number of buckets must be >= 1")
            ends = [each for part in self.ctx.run(self.node, histograms.span) for each in part]
            if not ends:
                raise ValueError("can not generate buckets from empty RDD")
            low, high = min(ends), max(ends)
            if low == high or buckets == 1:
                count = self.filter(histograms.comparable).count()
                return [low, high], [count]
            bounds: Sequence[Any] = histograms.evenly(low, high, buckets)
        elif isinstance(buckets, list | tuple):
            histograms.checked(buckets)
            bounds = buckets
        else:
            raise TypeError("buckets should be a list or tuple or number(int or long)")
        parts = self.ctx.run(self.node, partial(histograms.counts, bounds))
        return bounds, [sum(column) for column in zip(*parts, strict=True)] or [0] * (
            len(bounds) - 1
        )

    # ---- Approximate -----------------------------------------------------------------------

    def countApprox(self, timeout: int, confidence: float = 0.95) -> int:
        """About how many there are, by what is known after `timeout` milliseconds."""
        approximate.checked(timeout, confidence)
        counts = approximate.within(self.ctx, self.node, count_elements, timeout)
        if len(counts) == self.node.partitions:
            return sum(counts)
        return round(sum(counts) * self.node.partitions / len(counts)) if counts else 0

    def sumApprox(self, timeout: int, confidence: float = 0.95) -> BoundedFloat:
        """As `sum`, by what is known after `timeout` milliseconds."""
        stats, done = self._stats_within(timeout, confidence)
        return approximate.total(stats, done, self.node.partitions, confidence)

    def meanApprox(self, timeout: int, confidence: float = 0.95) -> BoundedFloat:
        """As `mean`, by what is known after `timeout` milliseconds."""
        stats, done = self._stats_within(timeout, confidence)
        return approximate.mean(stats, done, self.node.partitions, confidence)

    def _stats_within(self, timeout: int, confidence: float) -> tuple[StatCounter, int]:
        approximate.checked(timeout, confidence)
        parts = approximate.within(self.ctx, self.node, _stats, timeout)
        return reduce(StatCounter.mergeStats, parts, StatCounter()), len(parts)

    def countApproxDistinct(self, relativeSD: float = 0.05) -> int:
        """About how many different elements there are; relativeSD: the standard deviation of
        the answer, as a part of it.  Raises ValueError if that is less than can be."""
        bits = distinct.precision(relativeSD)
        parts = self.ctx.run(self.node, partial(distinct.count_of, bits))
        return distinct.estimate(bits, distinct.merged(parts))


def _most(key: Any, left: Any, right: Any) -> Any:
    return max(left, right, key=key)


def _least(key: Any, left: Any, right: Any) -> Any:
    return min(left, right, key=key)


def _sum(split: int, elements: Iterator[Any]) -> Any:
    return sum(elements)


def _stats(split: int, elements: Iterator[Any]) -> StatCounter:
    return StatCounter(elements)
