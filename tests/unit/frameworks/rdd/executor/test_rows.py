from __future__ import annotations

import pickle
from collections import namedtuple

import numpy
import pytest

from frameworks.rdd.executor import rows
from frameworks.rdd.executor.rows import Columns, Rows

Pair = namedtuple("Pair", "a b")


def back(values: list) -> list:
    found = pickle.loads(pickle.dumps(rows.packed(values), 5))
    assert type(found) is list
    return found


def same(one, other) -> bool:
    if isinstance(one, tuple):
        return type(one) is type(other) and all(map(same, one, other))
    if isinstance(one, numpy.ndarray):
        return (
            type(one) is type(other)
            and one.dtype == other.dtype
            and one.shape == other.shape
            and numpy.array_equal(one, other)
            and other.flags.writeable
        )
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "?", "c16", "u1"])
@pytest.mark.parametrize("shape", [(3,), (2, 2), (1,)])
def test_arrays_of_one_kind_are_one(dtype, shape):
    values = [numpy.full(shape, n).astype(dtype) for n in range(10)]
    assert type(rows.packed(values)) is Rows
    assert all(map(same, values, back(values)))


def test_arrays_in_tuples_are_one_in_each_column():
    values = [(n, numpy.full(3, n), "x", numpy.full(2, float(n))) for n in range(10)]
    assert type(rows.packed(values)) is Columns
    assert all(map(same, values, back(values)))


def test_each_reader_has_its_own():
    values = [numpy.full(3, n) for n in range(10)]
    data = pickle.dumps(rows.packed(values), 5)
    first, second = pickle.loads(data), pickle.loads(data)
    first[0][0] = 7
    assert second[0][0] == 0
    assert values[0][0] == 0
    assert first[1][0] == 1


@pytest.mark.parametrize(
    "values",
    [
        [],
        [numpy.zeros(3)],
        [1, 2, 3, 4, 5],
        [numpy.zeros(3)] * 5 + [None],
        [numpy.zeros(3)] * 5 + [numpy.zeros(4)],
        [numpy.zeros(3)] * 5 + [numpy.zeros(3, "f4")],
        [numpy.zeros(0)] * 5,
        [numpy.array(1.0)] * 5,
        [numpy.array([{}])] * 5,
        [numpy.array(["a"])] * 5,
        [numpy.zeros(3, ">i4")] * 5,
        [numpy.zeros(3, "M8[s]")] * 5,
        [numpy.zeros((4, 4))[:, ::2]] * 5,
        [numpy.zeros((2, 2))] * 5 + [numpy.zeros((2, 2), order="F")],
        [numpy.zeros(3).view(numpy.recarray)] * 5,
        [numpy.ma.masked_array([1, 2])] * 5,
        [(1, numpy.zeros(3))] * 5 + [(1, numpy.zeros(3), 2)],
        [(1, numpy.zeros(3))] * 5 + [(1, numpy.zeros(4))],
        [Pair(1, numpy.zeros(3))] * 5,
        [(1, 2)] * 5,
        [()] * 5,
    ],
)
def test_all_others_are_left_as_they_are(values):
    assert rows.packed(values) is values


def test_big_arrays_are_left_for_their_own_buffers():
    values = [numpy.zeros(rows.MAX_BYTES // 8) for _ in range(5)]
    assert rows.packed(values) is values
