from __future__ import annotations

import pytest

from frameworks.rdd.partitioners import Partitioner


@pytest.mark.parametrize(
    "keys",
    [
        ["", "a", "b" * 1000, "é", "\ud800"],
        [0, 1, -1, -2, 2**61 - 1, 2**61, -(2**70), True],
        ["a", 1, None, (1, "x"), 2.5, float("nan")],
        [],
    ],
)
def test_keys_are_placed_together_as_each_by_itself(keys):
    for partitions in (1, 2, 3, 7, 64):
        place = Partitioner(partitions)
        assert place.places(keys) == [place(key) for key in keys]


def test_a_function_of_the_user_places_many_as_one():
    place = Partitioner(3, len)
    assert place.places(["", "a", "abcd"]) == [0, 1, 1]
