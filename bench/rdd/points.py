"""Points for a logistic regression as text, the same on every machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from bench.rdd.programs.gradient import FEATURES

# Millionths, as they are written: sign, "0.", six digits, and what follows.
_SCALE: Final = 1_000_000
_DIGITS: Final = 6
_FIELD: Final = 2 + 1 + _DIGITS + 1
_LABEL: Final = 3
LINE: Final = _LABEL + FEATURES * _FIELD
_AT_ONCE: Final = 1 << 16
# Of 100 labels so many are what the features do not say.
_NOISE_PERCENT: Final = 10

Numbers = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Text:
    """files: with the same number of points each, but for the last ones."""

    directory: Path
    files: int
    points: int
    size: int


def write(directory: Path, size: int, files: int) -> Text:
    """About `size` bytes in a new directory: `points` lines."""
    directory.mkdir()
    count = max(files, size // LINE)
    bounds = [count * at // files for at in range(files + 1)]
    for at in range(files):
        with (directory / f"points-{at:03}").open("wb") as file:
            for begin, end in _pieces(bounds[at], bounds[at + 1]):
                file.write(lines(begin, end))
    return Text(directory, files, count, count * LINE)


def _pieces(begin: int, end: int) -> Iterator[tuple[int, int]]:
    for at in range(begin, end, _AT_ONCE):
        yield at, min(at + _AT_ONCE, end)


def lines(begin: int, end: int) -> bytes:
    """The points of these numbers, each in LINE bytes."""
    per_line = FEATURES + 1
    numbers = mixed(np.arange(begin * per_line, end * per_line, dtype=np.uint64))
    numbers = numbers.reshape(-1, per_line)
    values = (numbers[:, 1:] % np.uint64(2 * _SCALE - 1)).astype(np.int64) - (_SCALE - 1)
    noise = numbers[:, 0] % np.uint64(100) < _NOISE_PERCENT
    positive = ((values @ _weights()) > 0) ^ noise
    text = np.full((end - begin, LINE), ord(" "), np.uint8)
    text[:, 0] = np.where(positive, ord(" "), ord("-"))
    text[:, 1] = ord("1")
    fields = text[:, _LABEL:].reshape(end - begin, FEATURES, _FIELD)
    fields[:, :, 0] = np.where(values < 0, ord("-"), ord(" "))
    fields[:, :, 1] = ord("0")
    fields[:, :, 2] = ord(".")
    rest = np.abs(values)
    for digit in range(_DIGITS):
        fields[:, :, 2 + _DIGITS - digit] = ord("0") + rest % 10
        rest //= 10
    text[:, -1] = ord("\n")
    return text.tobytes()


def _weights() -> npt.NDArray[np.int64]:
    """What the labels follow; whole numbers, so that no machine rounds differently."""
    return np.arange(FEATURES, dtype=np.int64) - FEATURES // 3


def mixed(numbers: Numbers) -> Numbers:
    """Each number's own: the finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    state = numbers + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))
