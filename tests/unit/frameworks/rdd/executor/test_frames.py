from __future__ import annotations

import os

import numpy
import pytest

from frameworks.rdd.executor import frames, packets


class File:
    """In memory, written by a sink."""

    def __init__(self):
        self.fd = packets.memory_file("test")
        self.sink = frames.Sink(lambda data, position: packets.write_all(self.fd, data, position))

    def mapped(self) -> memoryview:
        return frames.mapped(self.fd)


@pytest.fixture
def file():
    made = File()
    yield made
    os.close(made.fd)


def written(file, *batches) -> list:
    for batch in batches:
        file.sink.add(batch)
    return list(frames.read(file.mapped()))


def test_batches_come_back_as_they_were(file):
    batches = [[1, "a", None], [], [(1.5, {"k": [b"x"]})]]
    assert written(file, *batches) == batches
    assert file.sink.elements == 4


def test_arrays_are_views_of_the_file_that_nobody_can_change(file):
    file.sink.add([numpy.arange(10_000)])
    first, second = (next(iter(frames.read(file.mapped())))[0] for _ in range(2))
    assert not first.flags.writeable
    assert not first.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 7
    assert first.ctypes.data % frames.ALIGNMENT == 0
    # Written to the file, it is seen in what was read from it before: no copy was made.
    place = bytes(file.mapped()).index(numpy.arange(10_000).tobytes())
    packets.write_all(file.fd, numpy.int64(42).tobytes(), place)
    assert first[0] == second[0] == 42


def test_views_outlive_the_file_and_its_mapping():
    file = File()
    file.sink.add([numpy.arange(10_000)])
    ((array,),) = frames.read(file.mapped())
    os.close(file.fd)
    assert array.sum() == 49_995_000


@pytest.mark.parametrize(
    "array",
    [
        numpy.zeros((100, 100))[:, ::2],
        numpy.asfortranarray(numpy.ones((100, 100))),
        numpy.zeros(0),
        numpy.array([{"an": "object"}] * 1000, dtype=object),
        numpy.zeros(3),
    ],
)
def test_arrays_of_any_kind(file, array):
    ((found,),) = written(file, [array])
    numpy.testing.assert_array_equal(found, array)


def test_what_pickle_cannot_do_cloudpickle_does(file):
    ((array, function),) = written(file, [numpy.ones(9000), lambda x: x + 1])
    assert (array.sum(), function(1)) == (9000, 2)


def test_of_a_file_that_was_not_finished_the_first_batches_can_be_read(file):
    file.sink.add([1])
    end = file.sink.size
    file.sink.add([2])
    assert list(frames.read(file.mapped(), end)) == [[1]]


def test_a_batch_that_was_not_written_whole_is_written_again(file):
    def full(_data, _position):
        raise OSError("full")

    sink = frames.Sink(full)
    with pytest.raises(OSError, match="full"):
        sink.add([1])
    assert (sink.size, sink.elements) == (0, 0)


@pytest.mark.parametrize("cut", [1, 8, 20, 70_000])
def test_a_file_that_was_cut_off_is_no_data(file, cut):
    file.sink.add([numpy.arange(10_000)])
    os.ftruncate(file.fd, file.sink.size - cut)
    with pytest.raises(EOFError):
        list(frames.read(file.mapped()))


def test_one_value():
    value = {"a": numpy.arange(2000)}
    found = frames.read_one(memoryview(frames.one(value)))
    assert found["a"].sum() == value["a"].sum()


def lengths(count: int, each_bytes: int) -> list[int]:
    """Of the batches of so many elements whose pickles take so much."""
    found: list[int] = []
    for batch in frames.batches(range(count), lambda: each_bytes * sum(found)):
        found.append(len(batch))
    return found


def test_batches_grow_with_what_their_pickles_take():
    found = lengths(10_000, 100)
    assert found[:6] == [1, 2, 4, 8, 16, 32]
    # Of some 256 kB.
    assert max(found) == 2621
    assert sum(found) == 10_000


def test_big_elements_are_batched_alone():
    assert lengths(20, 10_000_000) == [1] * 20
