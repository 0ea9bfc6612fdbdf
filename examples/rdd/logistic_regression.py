"""Logistic regression by gradient descent: the points stay in memory, one job per iteration.

    mesos-py rdd submit --master local[2] examples/rdd/logistic_regression.py 100000 10 30

Points are kept as blocks (arrays of many points), so that an iteration is a few products of
matrices per partition and not a function call per point.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from frameworks.rdd import RDD, SparkContext

Vector = npt.NDArray[np.float64]
# Features, and for each point its label, 1 or -1.
Block = tuple[Vector, Vector]


def block(index: int, points: int, features: int) -> Block:
    """Made-up points, the same for the same arguments: two clouds around -0.7 and 0.7."""
    random = np.random.default_rng([index, points, features])
    labels = np.where(random.random(points) < 0.5, -1.0, 1.0)
    return random.normal(size=(points, features)) + 0.7 * labels[:, None], labels


def gradient(weights: Vector, points: Block) -> Vector:
    """Of the log loss, summed over the block."""
    x, y = points
    slope: Vector = x.T @ ((1 / (1 + np.exp(-y * (x @ weights))) - 1) * y)
    return slope


def train(blocks: RDD[Block], features: int, iterations: int, rate: float) -> Vector:
    """Weights after so many steps of gradient descent from zero."""
    weights = np.zeros(features)
    for _ in range(iterations):
        step = blocks.map(functools.partial(gradient, weights)).reduce(lambda a, b: a + b)
        weights = weights - rate * step
    return weights


def main(argv: Sequence[str]) -> None:
    points, features, iterations = map(int, argv)
    with SparkContext(appName="logistic regression") as sc:
        count = 4 * sc.defaultParallelism
        size = points // count

        def make(index: int, _: Iterator[Any]) -> Iterator[Block]:
            yield block(index, size, features)

        blocks = sc.parallelize(range(count), count).mapPartitionsWithIndex(make).cache()
        weights = train(blocks, features, iterations, rate=1 / points)
        right = blocks.map(lambda each: int((np.sign(each[0] @ weights) == each[1]).sum())).sum()
        print(f"{right / (size * count):.2%} of {size * count} points are told right")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(sys.argv[1:])
