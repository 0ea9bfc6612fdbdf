"""Samples.  Each partition has its own source of chance, made of the seed and its number: what
is computed again comes out the same."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeVar

from frameworks.rdd.sorting import Sorting

if TYPE_CHECKING:
    from frameworks.rdd.rdd import RDD

T = TypeVar("T")

# What the size of a sample may be, so that its square root can still be added ten times.
_MOST: Final = sys.maxsize - int(10 * math.sqrt(sys.maxsize))

# Above this exp(-mean) is too small a number to count down from.
_MEAN: Final = 100.0


class Sampling(Sorting[T]):
    def sample(self, withReplacement: bool, fraction: float, seed: int | None = None) -> RDD[T]:
        """Each element with the probability `fraction`; with replacement each so often on
        average.  Raises ValueError if that is negative."""
        if not fraction >= 0:
            raise ValueError("Fraction must be nonnegative.")
        return self._mapped(partial(_sample, withReplacement, fraction, _seed(seed)), True)

    def randomSplit(self, weights: Sequence[float], seed: int | None = None) -> list[RDD[T]]:
        """Each element is in one of the parts, with a probability in proportion to its
        weight.  Raises ValueError if one is negative, or none positive."""
        if not all(weight >= 0 for weight in weights):
            raise ValueError("Weights must be nonnegative")
        total = float(sum(weights))
        if not total > 0:
            raise ValueError("Sum of weights must be positive")
        bounds = [sum(weights[:i]) / total for i in range(len(weights))]
        seed = _seed(seed)
        return [
            self._mapped(partial(_between, low, high, seed), True)
            for low, high in pairwise([*bounds, 1.0])
        ]

    def takeSample(self, withReplacement: bool, num: int, seed: int | None = None) -> list[T]:
        """`num` elements, or all if there are fewer and none is to be taken twice.

        Raises ValueError if `num` is negative, or larger than any sample can be.
        """
        if num < 0:
            raise ValueError("Sample size cannot be negative.")
        if num > _MOST:
            raise ValueError(f"Sample size cannot be greater than {_MOST}.")
        count = self.count() if num else 0
        if not count:
            return []
        chance = random.Random(seed)
        if not withReplacement and num >= count:
            found = self.collect()
        else:
            fraction = _fraction(num, count, withReplacement)
            found = []
            while len(found) < num:
                again = chance.randrange(sys.maxsize)
                found = self.sample(withReplacement, fraction, again).collect()
        chance.shuffle(found)
        return found[:num]

    def sampleByKey(
        self, withReplacement: bool, fractions: Mapping[Any, float], seed: int | None = None
    ) -> RDD[Any]:
        """As `sample`, with a fraction for each key: all keys must have one."""
        for fraction in fractions.values():
            assert fraction >= 0.0, f"Negative fraction value: {fraction}"
        function = partial(_sample_by_key, withReplacement, dict(fractions), _seed(seed))
        return self._mapped(function, True)


def _seed(given: int | None) -> int:
    return random.randrange(2**32) if given is None else given


def _fraction(num: int, total: int, replacement: bool) -> float:
    """With which `sample` finds at least `num` of `total` in all but one of 10,000 times.

    Without replacement the size is binomial, and Chernoff's bound for its lower tail says
    how much more to ask for; with replacement it is Poisson's, and standard deviations do.
    """
    fraction = num / total
    if replacement:
        deviations = 9 if num < 12 else 5
        return fraction + deviations * math.sqrt(fraction / total)
    gamma = -math.log(0.00005) / total
    return min(1.0, fraction + gamma + math.sqrt(gamma * gamma + 2 * gamma * fraction))


# ---- What runs in tasks ----------------------------------------------------------------------


def _chance(seed: int, split: int) -> random.Random:
    """Seeds that are near to one another give sources that have nothing in common."""
    return random.Random(f"{seed}/{split}")


def _sample(
    replacement: bool, fraction: float, seed: int, split: int, elements: Iterator[Any]
) -> Iterator[Any]:
    chance = _chance(seed, split)
    for each in elements:
        if replacement:
            for _ in range(poisson(chance, fraction)):
                yield each
        elif chance.random() < fraction:
            yield each


def _between(
    low: float, high: float, seed: int, split: int, elements: Iterator[Any]
) -> Iterator[Any]:
    chance = _chance(seed, split)
    for each in elements:
        if low <= chance.random() < high:
            yield each


def _sample_by_key(
    replacement: bool,
    fractions: Mapping[Any, float],
    seed: int,
    split: int,
    pairs: Iterator[Any],
) -> Iterator[Any]:
    chance = _chance(seed, split)
    for pair in pairs:
        fraction = fractions[pair[0]]
        if replacement:
            for _ in range(poisson(chance, fraction)):
                yield pair
        elif chance.random() < fraction:
            yield pair


def poisson(chance: random.Random, mean: float) -> int:
    """Distributed so; Knuth's method, in steps of a mean that it can bear."""
    count = 0
    while mean > _MEAN:
        count += poisson(chance, _MEAN)
        mean -= _MEAN
    floor, product = math.exp(-mean), chance.random()
    while product > floor:
        count += 1
        product *= chance.random()
    return count
