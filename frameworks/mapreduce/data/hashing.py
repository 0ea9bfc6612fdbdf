"""The hash of a key, which says what partition it is in: the same on all machines, always.

Over bytes, in words of 8 (little-endian, the last one filled up with zeros), all modulo 2**64::

    h = 0x9E3779B97F4A7C15 * (number of bytes + 1)
    for each word:  h = (h ^ word) * 0xFF51AFD7ED558CCD;  h ^= h >> 32
    h = (h ^ h >> 29) * 0xC4CEB9FE1A85EC53;  h ^= h >> 32

Of several parts of a key, each hashed so::

    h = (hash of the first)
    for each other:  h = h * 0xFF51AFD7ED558CCD ^ (its hash);  h ^= h >> 32

The constants are those of splitmix64 and MurmurHash3.  It is made for spreading words of text, a
block of them at a time, and is no guard against keys that somebody has chosen to clash.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from frameworks.mapreduce.data.blocks import WORD, Positions, Words, words_at

_SEED: Final = 0x9E3779B97F4A7C15
_STEP: Final = 0xFF51AFD7ED558CCD
_LAST: Final = 0xC4CEB9FE1A85EC53
_ALL: Final = 2**64 - 1


def of_bytes(key: bytes) -> int:
    value = _SEED * (len(key) + 1) & _ALL
    for at in range(0, len(key), WORD):
        word = int.from_bytes(key[at : at + WORD], "little")
        value = (value ^ word) * _STEP & _ALL
        value ^= value >> 32
    value = (value ^ value >> 29) * _LAST & _ALL
    return value ^ value >> 32


def of_spans(padded: bytes | bytearray, spans: list[tuple[Positions, Positions]]) -> Words:
    """For each line the hash of its bytes from start to end; of several spans, as of_parts."""
    total = _of_span(padded, *spans[0])
    for starts, ends in spans[1:]:
        total = total * np.uint64(_STEP) ^ _of_span(padded, starts, ends)
        total ^= total >> np.uint64(32)
    return total


def of_parts(parts: list[bytes]) -> int:
    """For a key that has these parts, at least one."""
    total = of_bytes(parts[0])
    for part in parts[1:]:
        total = total * _STEP & _ALL ^ of_bytes(part)
        total ^= total >> 32
    return total


def _of_span(padded: bytes | bytearray, starts: Positions, ends: Positions) -> Words:
    sizes = ends - starts
    value = (sizes + 1).astype(np.uint64) * np.uint64(_SEED)
    longer = np.flatnonzero(sizes > 0)
    done = 0
    while len(longer):
        left = sizes[longer] - done
        word = words_at(padded, starts[longer] + done)
        # A shift by 64 is not defined: only what is cut is shifted.
        shift = (np.maximum(WORD - left, 0) * 8).astype(np.uint64)
        word = word << shift >> shift
        step = (value[longer] ^ word) * np.uint64(_STEP)
        value[longer] = step ^ step >> np.uint64(32)
        longer = longer[left > WORD]
        done += WORD
    value = (value ^ value >> np.uint64(29)) * np.uint64(_LAST)
    mixed: Words = value ^ value >> np.uint64(32)
    return mixed
