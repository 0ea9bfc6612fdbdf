"""Lines that come again: once each, and given back as often as they were there."""

from collections import Counter

import numpy as np
import pytest

from frameworks.mapreduce.data import repeats
from frameworks.mapreduce.data.repeats import Repeats, repeated

LINES = [b"", b"a", b"a\x00", b"\x00\x01\t", b"b" * 50]


def block(lines) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def test_each_line_is_there_once_with_its_count():
    found = Repeats()
    for part in (LINES * 3, LINES[1:3], [], [b"a"]):
        found.add(block(part))
    lines, times = found.taken()
    assert bytes(lines.data) == block(LINES)
    assert times.tolist() == [3, 5, 4, 3, 3]


def test_only_what_is_new_takes_memory():
    found = Repeats()
    found.add(block(LINES))
    cost = found.cost
    found.add(block(LINES * 9))
    assert found.cost == cost > sum(map(len, LINES))
    found.add(block([b"new"]))
    assert found.cost > cost


def test_lines_that_seldom_come_again_are_not_for_it():
    numbers = [b"%d" % number for number in range(100)]
    assert Repeats.of([block(numbers), block(numbers * 2)]) is None
    assert Repeats.of([block(numbers), block(numbers * 3)]) is not None


@pytest.mark.parametrize("size", [1, 7, 100, 1 << 20])
def test_they_come_back_as_often_as_they_were_there(monkeypatch, size):
    monkeypatch.setattr(repeats, "_BLOCK", size)
    found = Repeats()
    found.add(block(line for number, line in enumerate(LINES, 1) for _ in range(number * number)))
    lines, times = found.taken()
    groups = np.array([0, 0, 2, 2, 7], np.uint32)
    pieces = list(repeated(lines, np.arange(5), groups, times))
    whole = b"".join(piece for _, piece in pieces)
    assert Counter(whole.split(b"\n")[:-1]) == {
        line: number * number for number, line in enumerate(LINES, 1)
    }
    assert all(piece for _, piece in pieces)
    assert [number for number, _ in pieces] == sorted(number for number, _ in pieces)
    for number, piece in pieces:
        assert {LINES.index(line) for line in piece.split(b"\n")[:-1]} <= set(
            np.flatnonzero(groups == number).tolist()
        )


def test_no_lines():
    found = Repeats.of([b""])
    assert found is not None
    lines, times = found.taken()
    assert (len(lines), len(times)) == (0, 0)
    assert list(repeated(lines, times, times.astype(np.uint32), times)) == []
