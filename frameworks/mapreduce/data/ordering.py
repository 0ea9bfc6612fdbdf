"""The order of lines by their bytes, and lines put into an order.

Lines are compared seven bytes at a time, all at once: the next seven bytes of each and how many
there are make one number, and only lines that are equal in it and go on are looked at again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from frameworks.mapreduce.data.blocks import WORD, Lines, Positions, Words, words_at

# Bytes that one step compares; four more bits say how many there are.
STEP: Final = 7
_MORE: Final = 8
_BITS: Final = 60
_UNUSED: Final = 64 - _BITS
# By how many bytes of a word are the line's.
_MASKS: Final = np.array([(1 << 64) - (1 << 64 - 8 * min(size, STEP)) for size in range(9)], "u8")
# Lines that are the same for so many steps are left to Python, which has one step for each.
_STEPS: Final = 6
# Words are read for all lines, from left to right, where at least one of so many needs its own.
_MOST: Final = 4

# Lines up to so many bytes, on average and at most, are moved as words, longer ones as slices.
_SHORT: Final = 80
_LONGEST: Final = 512
# Lines moved at once.
_BATCH: Final = 32_768

Groups = npt.NDArray[np.uint32]


def order(lines: Lines, groups: Groups | None = None) -> Positions:
    """The numbers of the lines, ordered by their group first, and then by their bytes."""
    count = len(lines)
    found = np.arange(count)
    # What is not told apart yet: where in `found` it is, and what it is equal to.
    ties = np.arange(count)
    group = np.zeros(count, np.uint64) if groups is None else groups.astype(np.uint64)
    for step in range(_STEPS):
        tied = found[ties]
        if len(ties) * _MOST < count:
            words = _words(lines, tied, step)
        else:
            words = _words(lines, None, step)[tied]
        ties, group = _apart(found, ties, group, words)
        if not len(ties):
            return found
    _finish(lines, found, ties, group)
    return found


def _words(lines: Lines, which: Positions | None, step: int) -> Words:
    """A number of _BITS bits, the upper ones of 64, for each of these lines (None: all), that is
    ordered as its next seven bytes are, and what is shorter before what is longer."""
    starts, ends = lines.starts, lines.ends
    if which is not None:
        starts, ends = starts[which], ends[which]
    if step:
        starts = np.minimum(starts + step * STEP, ends)
    sizes = np.minimum(ends - starts, _MORE)
    words = words_at(lines.padded, starts).byteswap(inplace=True)
    # Bytes behind the line's end are cut off.
    words &= _MASKS[sizes]
    words |= sizes.view(np.uint64) << np.uint64(_UNUSED)
    return words


def _apart(
    found: Positions, ties: Positions, group: Words, words: Words
) -> tuple[Positions, Words]:
    """Order ties of one group by their words; what is equal then and goes on, with new groups.

    Numbers alone are sorted ten times as fast as with a permutation.  So each has group, the next
    bits of its word, and its index at the end, as far as there is room for these."""
    tied = found[ties]
    more = words & np.uint64(_MORE << _UNUSED) != 0
    bits = _BITS
    while len(ties):
        index_bits = len(ties).bit_length()
        group_bits = int(group.max()).bit_length()
        taken = 64 - index_bits - group_bits
        bits -= taken
        packed = words >> np.uint64(64 - taken)
        packed <<= np.uint64(index_bits)
        packed |= np.arange(len(ties), dtype=np.uint64)
        if group_bits:
            packed |= group << np.uint64(64 - group_bits)
        packed.sort()
        index = (packed & np.uint64((1 << index_bits) - 1)).view(np.int64)
        tied = tied[index]
        found[ties] = tied
        packed >>= np.uint64(index_bits)
        first = np.ones(len(ties), bool)
        np.not_equal(packed[1:], packed[:-1], out=first[1:])
        among = ~first
        among[:-1] |= among[1:]
        if bits <= 0:
            among &= more[index]
        still = np.flatnonzero(among)
        ties, group = ties[still], np.cumsum(first[still]).view(np.uint64)
        if bits <= 0:
            break
        index = index[still]
        tied, more, words = tied[still], more[index], words[index] << np.uint64(taken)
    return ties, group


def _finish(lines: Lines, found: Positions, ties: Positions, group: Words) -> None:
    """Order ties of one group by the bytes that were not looked at."""
    tied = found[ties]
    data = lines.padded
    bounds = ((lines.starts[tied] + _STEPS * STEP).tolist(), lines.ends[tied].tolist())
    texts = [data[start:end] for start, end in zip(*bounds, strict=True)]
    edges = (np.flatnonzero(group[1:] != group[:-1]) + 1).tolist()
    better: list[int] = []
    for first, end in itertools.pairwise((0, *edges, len(ties))):
        better += sorted(range(first, end), key=texts.__getitem__)
    found[ties] = tied[better]


def gathered(lines: Lines, wanted: Positions) -> Iterator[bytes]:
    """These lines, in this order, as blocks."""
    for first in range(0, len(wanted), _BATCH):
        yield _moved(lines, wanted[first : first + _BATCH])


def grouped(lines: Lines, wanted: Positions, groups: Groups) -> Iterator[tuple[int, bytes]]:
    """These lines, in this order, as blocks that are of one group each.  groups: of each line
    wanted, ascending."""
    for first in range(0, len(wanted), _BATCH):
        batch = wanted[first : first + _BATCH]
        block = _moved(lines, batch)
        group = groups[first : first + _BATCH]
        last = np.append(np.flatnonzero(np.diff(group)), len(batch) - 1)
        sizes = np.cumsum(lines.ends[batch] + 1 - lines.starts[batch])
        begin = 0
        for number, end in zip(group[last].tolist(), sizes[last].tolist(), strict=True):
            yield number, block[begin:end]
            begin = end


def _moved(lines: Lines, batch: Positions) -> bytes:
    starts = lines.starts[batch]
    ends = lines.ends[batch] + 1
    sizes = ends - starts
    if int(sizes.max()) <= _LONGEST and int(sizes.sum()) <= _SHORT * len(sizes):
        return _as_words(lines.padded, starts, sizes)
    data = lines.padded
    return b"".join([data[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)])


def _as_words(padded: bytes | bytearray, starts: Positions, sizes: Positions) -> bytes:
    """A word at a time, the last ones of the lines first.  The last word of a line is written
    whole and spoils first words of lines behind it, which are written after it."""
    places = np.cumsum(sizes)
    size = int(places[-1])
    places -= sizes
    moved = np.empty(size + WORD, np.uint8)
    words: Words = np.ndarray((size + 1,), np.dtype("<u8"), moved, 0, (1,))
    for at in range((int(sizes.max()) - 1) // WORD * WORD, 0, -WORD):
        which = np.flatnonzero(sizes > at)
        words[places[which] + at] = words_at(padded, starts[which] + at)
    words[places] = words_at(padded, starts)
    return moved[:size].tobytes()
