"""The hash of keys: documented values, and blocks as single keys."""

import random

import numpy as np
import pytest

from frameworks.mapreduce.data import hashing
from frameworks.mapreduce.data.blocks import WORD


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", 0x8632F0229A99A2D8),
        (b"a", 0x80D97590C9D2DC54),
        (b"the", 0x3550602DF342328A),
        (b"12345678", 0x1675F399CC0AAD5F),
        (b"123456789", 0xE935F1D2B86B201C),
        (b"\0", 0x720DEFC5FCF026DF),
        (b"caf\xc3\xa9", 0x1ACC64FE1CD776BE),
        (bytes(range(256)), 0x48CC0128013ADDD4),
    ],
)
def test_the_hash_is_what_the_documentation_says(key, value):
    assert hashing.of_bytes(key) == value


def test_a_block_of_keys_has_the_hashes_of_each():
    dice = random.Random(1)
    keys = [dice.randbytes(size) for size in range(40) for _ in range(3)]
    edges = np.cumsum([0] + [len(key) for key in keys])
    hashes = hashing.of_spans(b"".join(keys) + bytes(WORD), [(edges[:-1], edges[1:])])
    assert hashes.tolist() == [hashing.of_bytes(key) for key in keys]


def test_zeros_at_the_end_count():
    assert len({hashing.of_bytes(bytes(size)) for size in range(20)}) == 20


def test_several_parts_have_a_hash_of_their_own():
    assert hashing.of_parts([b"a", b"b"]) == 15655062854795018814
    assert hashing.of_parts([b"ab"]) == hashing.of_bytes(b"ab")
    assert len({hashing.of_parts(parts) for parts in ([b"a", b"b"], [b"b", b"a"], [b"ab"])}) == 3
