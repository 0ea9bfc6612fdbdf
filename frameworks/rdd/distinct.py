"""How many different elements there are, about: HyperLogLog (Flajolet and others, 2007)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from frameworks.rdd.hashing import portable_hash

# The standard error with m registers is _ERROR / sqrt(m).
_ERROR: Final = 1.054
_BITS: Final = 64

# Finer than this the registers would be more than 2**32.
LEAST: Final = 0.000017


def precision(relative: float) -> int:
    """Bits of a hash that choose a register, for this standard error.

    Raises ValueError if it is less than can be.
    """
    if relative < LEAST:
        raise ValueError(f"relativeSD should be greater than {LEAST:f}")
    return max(4, math.ceil(2 * math.log2(_ERROR / relative)))


def registers(bits: int, elements: Iterable[Any]) -> dict[int, int]:
    """For each register that was met the highest rank: only those are kept, so that little
    is sent for few elements."""
    found: dict[int, int] = {}
    rest = _BITS - bits
    for each in elements:
        hashed = _spread(portable_hash(each))
        index, low = hashed >> rest, hashed & ((1 << rest) - 1)
        rank = rest - low.bit_length() + 1
        if rank > found.get(index, 0):
            found[index] = rank
    return found


def merged(parts: Iterable[Mapping[int, int]]) -> dict[int, int]:
    found: dict[int, int] = {}
    for part in parts:
        for index, rank in part.items():
            if rank > found.get(index, 0):
                found[index] = rank
    return found


def estimate(bits: int, found: Mapping[int, int]) -> int:
    """Few elements are counted by the registers that are still empty."""
    size = 1 << bits
    empty = size - len(found)
    alpha = {4: 0.673, 5: 0.697, 6: 0.709}.get(bits, 0.7213 / (1 + 1.079 / size))
    raw = alpha * size * size / (empty + sum(2.0**-rank for rank in found.values()))
    if raw <= 2.5 * size and empty:
        return round(size * math.log(size / empty))
    return round(raw)


def count_of(bits: int, split: int, elements: Iterator[Any]) -> dict[int, int]:
    """What a task makes of its partition."""
    return registers(bits, elements)


def _spread(value: int) -> int:
    """The finaliser of splitmix64: numbers are their own hashes, and would fill few registers."""
    value &= 0xFFFF_FFFF_FFFF_FFFF
    value = (value + 0x9E37_79B9_7F4A_7C15) & 0xFFFF_FFFF_FFFF_FFFF
    value = (value ^ value >> 30) * 0xBF58_476D_1CE4_E5B9 & 0xFFFF_FFFF_FFFF_FFFF
    value = (value ^ value >> 27) * 0x94D0_49BB_1331_11EB & 0xFFFF_FFFF_FFFF_FFFF
    return value ^ value >> 31
