"""The map of logistic regression: reads points, and writes the one sum of their gradients."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Final

import numpy as np

from bench.rdd.programs import gradient

WEIGHTS: Final = "BENCH_WEIGHTS"
_BLOCK: Final = 16 << 20


def main() -> None:
    weights = np.array(os.environ[WEIGHTS].split(), dtype=float)
    total = np.zeros(gradient.FEATURES + 1)
    for text in _texts():
        total += gradient.part(gradient.block_of_text(text), weights)
    print(*map(repr, total.tolist()))


def _texts() -> Iterator[bytes]:
    """The input in blocks of whole lines."""
    source = sys.stdin.buffer
    while text := source.read(_BLOCK):
        yield text + source.readline()


if __name__ == "__main__":
    main()
