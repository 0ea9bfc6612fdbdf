"""The order of more lines than property tests have, and of lines that are alike."""

import random

import numpy as np
import pytest

from frameworks.mapreduce.data.blocks import Lines
from frameworks.mapreduce.data.ordering import gathered, grouped, order

BYTES = (0, 1, 9, 32, 97, 98, 255)


def made(count: int, seed: int) -> list[bytes]:
    """Often the same, or one the beginning of the other; some only after 100 bytes not so."""
    dice = random.Random(seed)
    sizes = (0, 0, 6, 7, 8, 14, 15, 41, 42, 99)
    beginnings = [bytes(dice.choices(BYTES, k=size)) for size in sizes]
    return [
        dice.choice(beginnings) + bytes(dice.choices(BYTES, k=dice.randrange(4))) + b"\n"
        for _ in range(count)
    ]


def in_order(lines: list[bytes]) -> bytes:
    ordered: list[bytes] = sorted(lines, key=lambda line: line[:-1])
    return b"".join(ordered)


@pytest.mark.parametrize("seed", range(3))
def test_many_lines_are_in_the_order_that_python_has(seed):
    lines = made(5000, seed)
    found = Lines.of(b"".join(lines))
    assert b"".join(gathered(found, order(found))) == in_order(lines)


@pytest.mark.parametrize("most", [1, 2, 300, 2**32 - 1])
def test_groups_come_first(most):
    lines = made(3000, 7)
    groups = np.random.default_rng(7).integers(0, most, len(lines), np.uint32, endpoint=True)
    found = Lines.of(b"".join(lines))
    wanted = order(found, groups)
    due: dict[int, list[bytes]] = {}
    for number, line in zip(groups.tolist(), lines, strict=True):
        due.setdefault(number, []).append(line)
    pieces = list(grouped(found, wanted, groups[wanted]))
    assert pieces == [(number, in_order(due[number])) for number in sorted(due)]


@pytest.mark.parametrize("lines", [[], [b"\n"], [b"a\n"], [b"\n"] * 3, [b"x" * 500 + b"\n"] * 2])
def test_few_lines(lines):
    found = Lines.of(b"".join(lines))
    assert b"".join(gathered(found, order(found))) == b"".join(lines)
