"""Count, mean, variance, least and largest of numbers, in one pass, and of several passes."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from typing import Any


class StatCounter:
    """Numbers, or numpy arrays of one shape, element by element.

    Means and sums of squares are updated as by Welford (1962), and brought together as by
    Chan, Golub and LeVeque (1979): nothing is lost where a sum of squares would cancel out.
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        self.n = 0
        self.mu: Any = 0.0
        self.m2: Any = 0.0  # the sum of squared differences from the mean
        self.maxValue: Any = -math.inf
        self.minValue: Any = math.inf
        for each in values or ():
            self.merge(each)

    def merge(self, value: Any) -> StatCounter:
        """Take in one more."""
        self.n += 1
        delta = value - self.mu
        self.mu = self.mu + delta / self.n
        self.m2 = self.m2 + delta * (value - self.mu)
        self.maxValue = _picked(max, "maximum", self.maxValue, value)
        self.minValue = _picked(min, "minimum", self.minValue, value)
        return self

    def mergeStats(self, other: StatCounter) -> StatCounter:
        """Take in all that another one has.  Raises TypeError for what is none."""
        if not isinstance(other, StatCounter):
            raise TypeError(f"Can only merge StatCounter but got {type(other)}")
        total = self.n + other.n
        if not self.n:
            self.__dict__.update(other.copy().__dict__)
        elif other.n:
            delta = other.mu - self.mu
            self.mu = self.mu + delta * (other.n / total)
            self.m2 = self.m2 + other.m2 + delta * delta * (self.n * other.n / total)
            self.maxValue = _picked(max, "maximum", self.maxValue, other.maxValue)
            self.minValue = _picked(min, "minimum", self.minValue, other.minValue)
            self.n = total
        return self

    def copy(self) -> StatCounter:
        return copy.deepcopy(self)

    def count(self) -> int:
        return self.n

    def mean(self) -> Any:
        return self.mu

    def sum(self) -> Any:
        return self.n * self.mu

    def min(self) -> Any:
        return self.minValue

    def max(self) -> Any:
        return self.maxValue

    def variance(self) -> Any:
        """Of these numbers; NaN if there are none."""
        return self.m2 / self.n if self.n else math.nan

    def sampleVariance(self) -> Any:
        """Of what they are a sample of; NaN if there are less than two."""
        return self.m2 / (self.n - 1) if self.n > 1 else math.nan

    def stdev(self) -> Any:
        return self.variance() ** 0.5

    def sampleStdev(self) -> Any:
        return self.sampleVariance() ** 0.5

    def asDict(self, sample: bool = False) -> dict[str, Any]:
        """sample: variance and stdev as of a sample."""
        return {
            "count": self.count(),
            "mean": self.mean(),
            "sum": self.sum(),
            "min": self.min(),
            "max": self.max(),
            "stdev": self.sampleStdev() if sample else self.stdev(),
            "variance": self.sampleVariance() if sample else self.variance(),
        }

    def __repr__(self) -> str:
        return (
            f"(count: {self.count()}, mean: {self.mean()}, stdev: {self.stdev()}, "
            f"max: {self.max()}, min: {self.min()})"
        )


def _picked(plain: Any, of_numpy: str, one: Any, other: Any) -> Any:
    if hasattr(one, "shape") or hasattr(other, "shape"):
        import numpy as np

        return getattr(np, of_numpy)(one, other)
    return plain(one, other)
