"""What maps write and what is read of it, in one process."""

from __future__ import annotations

import os
import struct
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from frameworks.rdd.errors import FetchFailed, Unstable
from frameworks.rdd.nodes import Aggregator, Ordering
from tests.kit.rdd_drivers import dependency, slices
from tests.kit.rdd_tasks import Place

GROUPS = Aggregator(lambda x: [x], lambda xs, x: [*xs, x], lambda xs, ys: xs + ys)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.fixture
def parts():
    return [[(f"key {n % 37}", (part, n)) for n in range(100)] for part in range(3)]


@pytest.mark.parametrize("limit", ["512m", "4k", "1b"])
@pytest.mark.parametrize("map_side", [True, False, None])
@pytest.mark.parametrize("ordering", [None, Ordering(), Ordering(ascending=False)])
def test_every_pair_arrives_once_whatever_the_limit(place, parts, limit, map_side, ordering):
    how = {"ordering": ordering}
    if map_side is not None:
        how |= {"aggregator": GROUPS, "map_side": map_side}
    needs = dependency(slices(parts), **how)
    outputs = place.write(needs, parts, limit)
    assert (place.page.spilled_bytes > 0) == (limit != "512m")
    assert place.files() == {f"published/shuffle/1/{split}-{split + 1}" for split in range(3)}
    found = place.read(needs, outputs, limit)
    expected: dict = defaultdict(list)
    for pair in parts[0] + parts[1] + parts[2]:
        expected[pair[0]].append(pair[1])
    for split, pairs in enumerate(found):
        assert all(needs.partitioner(key) == split for key, _ in pairs)
        if ordering is not None:
            keys = [key for key, _ in pairs]
            assert keys == sorted(keys, reverse=not ordering.ascending)
        grouped: dict = defaultdict(list)
        for key, value in pairs:
            grouped[key] += value if map_side is not None else [value]
            if map_side is not None:
                assert grouped[key] == value
        # In the order of the maps, and of each map's own elements.
        assert all(values == expected.pop(key) for key, values in grouped.items())
    assert not expected


def test_maps_without_elements_leave_nothing_to_read(place):
    needs = dependency(slices([[], [("a", 1)]]))
    outputs = place.write(needs, [[], [("a", 1)]])
    assert struct.unpack("<4Q", outputs[0].offsets) == (0, 0, 0, 0)
    assert sorted(place.read(needs, outputs)) == [[], [], [("a", 1)]]


@pytest.mark.parametrize("how", [{}, {"aggregator": GROUPS}])
@pytest.mark.parametrize("key", [[1], {}])
def test_keys_that_cannot_be_placed(place, how, key):
    with pytest.raises((TypeError, Unstable), match="hash"):
        place.write(dependency(slices([[]]), **how), [[(key, 1)]])
    assert place.files() == set()


@pytest.mark.parametrize("how", [{}, {"aggregator": GROUPS}])
def test_a_map_that_raises_leaves_no_file(place, how):
    def elements():
        yield from ((number, "x" * 100) for number in range(1000))
        raise RuntimeError("in the midst")

    needs = dependency(slices([[]]), **how)
    with pytest.raises(RuntimeError, match="midst"):
        place.write(needs, [elements()], "1k")
    assert place.files() == set()


def lost(place, needs, outputs) -> FetchFailed:
    env = place.task(0, "512m", outputs)
    with pytest.raises(FetchFailed) as caught:
        list(env.read_shuffle(needs, 0))
    assert env.lost == [caught.value]
    return caught.value


@pytest.fixture
def written(place, parts):
    needs = dependency(slices(parts))
    return needs, place.write(needs, parts)


def test_a_file_that_is_gone_is_lost(place, written):
    needs, outputs = written
    Path(outputs[1].path).unlink()
    fields = lost(place, needs, outputs).fields
    assert (fields["shuffle_id"], fields["map_index"]) == (1, 1)
    assert fields["executor_id"] == "executor-1"


def test_a_file_that_was_cut_off_is_lost(place, written):
    needs, outputs = written
    os.truncate(outputs[2].path, 100)
    assert "cut off" in lost(place, needs, outputs).message


def test_a_file_with_other_bytes_is_lost(place, written):
    needs, outputs = written
    data = bytearray(Path(outputs[0].path).read_bytes())
    data[200] ^= 1
    Path(outputs[0].path).write_bytes(data)
    assert "checksum" in lost(place, needs, outputs).message


def test_a_map_of_which_nothing_is_known_is_lost(place, written):
    needs, outputs = written
    assert lost(place, needs, outputs[1:]).fields["map_index"] == 0


def test_a_partition_that_is_not_read_may_be_damaged(place, written):
    needs, outputs = written
    end = struct.unpack_from("<Q", outputs[0].offsets, 8)[0]
    os.truncate(outputs[0].path, end)
    env = place.task(0, "512m", outputs)
    assert list(env.read_shuffle(needs, 0))


def test_an_output_of_another_attempt_is_another_file(place, parts):
    needs = dependency(slices(parts))
    first, second = place.write(needs, parts), place.write(needs, parts)
    assert not {each.path for each in first} & {each.path for each in second}
    assert place.read(needs, [replace(first[0]), second[1], first[2]]) == place.read(needs, first)
