"""Blocks: bytes that are whole lines, each with its newline; and where things lie in them.

Work on lines is done a block at a time with numpy, since a step of Python per line costs more
than all else.  Positions are offsets into the block.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from mesos_py.errors import InvalidValue

Positions = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

NEWLINE: Final = 10
WORD: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """The lines of a block: `ends` are the positions of their newlines.

    padded: the block and 8 more bytes, so that a word can be read at each position.
    """

    padded: bytes | bytearray
    starts: Positions
    ends: Positions

    @classmethod
    def of(cls, *blocks: bytes) -> Lines:
        """Of blocks in a row.  Raises InvalidValue when the last line of one has no newline."""
        for block in blocks:
            whole(block)
        padded = b"".join([*blocks, bytes(WORD)])
        ends = positions(memoryview(padded)[:-WORD], b"\n")
        starts = np.empty_like(ends)
        starts[:1] = 0
        starts[1:] = ends[:-1] + 1
        return cls(padded, starts, ends)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def data(self) -> memoryview:
        """The block, not copied."""
        return memoryview(self.padded)[:-WORD]


def cost(size: int, lines: int) -> int:
    """Bytes of memory that sorting or merging a block takes, with the block itself."""
    return 2 * size + 72 * lines


def whole(block: bytes) -> bytes:
    """The block.  Raises InvalidValue when its last line has no newline."""
    if block and block[-1] != NEWLINE:
        raise InvalidValue("block", block[-80:], "its last line has no newline")
    return block


def lines_in(block: bytes) -> int:
    """How many newlines.  Faster than bytes.count, which stops at each."""
    return int(np.count_nonzero(np.frombuffer(block, np.uint8) == NEWLINE))


def positions(data: bytes | memoryview, found: bytes) -> Positions:
    """Where `found` begins in the data, from left to right without overlap."""
    if len(found) == 1:
        flags = np.frombuffer(data, np.uint8) == found[0]
        return np.flatnonzero(flags).astype(np.int64, copy=False)
    matches = re.finditer(re.escape(found), data)
    return np.fromiter((match.start() for match in matches), np.int64)


def nth(found: Positions, width: int, starts: Positions, limits: Positions, n: int) -> Positions:
    """For each range from starts to limits, where the n-th (from 1) of `found` in it begins;
    its limit if it has fewer.  `found` are `width` bytes each."""
    one_each = n == 1 and len(found) == len(starts)
    if one_each and bool(((found >= starts) & (found + width <= limits)).all()):
        return found
    index = np.searchsorted(found, starts) + (n - 1)
    place = np.concatenate((found, [np.iinfo(np.int64).max - width]))[np.minimum(index, len(found))]
    return np.where(place + width <= limits, place, limits)


def words_at(padded: bytes | bytearray, at: Positions) -> Words:
    """The 8 bytes from each position on, as little-endian numbers."""
    view: Words = np.ndarray((len(padded) - WORD + 1,), np.dtype("<u8"), padded, 0, (1,))
    return view[at]
