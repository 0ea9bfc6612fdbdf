"""Logistic regression by gradient descent: what every contender computes.

A point is a line of text: its label (1 or -1) and its features.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

FEATURES = 10
RATE = 4.0


def block(lines: Iterable[str]) -> Array:
    """A row for each point."""
    return np.loadtxt(lines, ndmin=2)


def blocks(lines: Iterator[str]) -> Iterator[Array]:
    """For partitions: all points of one in one array."""
    yield block(lines)


def block_of_text(text: bytes) -> Array:
    return block(io.StringIO(text.decode()))


def beginning() -> Array:
    return np.zeros(FEATURES)


def part(points: Array, weights: Array) -> Array:
    """The sum of the gradients at these points, and behind it how many they are."""
    labels, features = points[:, 0], points[:, 1:]
    factors = (1 / (1 + np.exp(-labels * (features @ weights))) - 1) * labels
    return np.append(factors @ features, float(len(points)))


def step(weights: Array, total: Array) -> Array:
    """The next weights; `total`: the sum of all parts."""
    moved: Array = weights - RATE * total[:-1] / total[-1]
    return moved
