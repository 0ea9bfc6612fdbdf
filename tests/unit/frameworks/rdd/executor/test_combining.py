from __future__ import annotations

import math
import operator
from collections import defaultdict

import pytest

from frameworks.rdd.errors import Unstable
from frameworks.rdd.executor import combining
from frameworks.rdd.nodes import Aggregator, Ordering

LISTS = Aggregator(lambda x: [x], lambda xs, x: [*xs, x], operator.add)
GROUPS = Aggregator(lambda x: [x], lambda xs, x: xs.append(x) or xs, lambda a, b: a.extend(b) or a)
SUMS = Aggregator(lambda x: x, operator.add, operator.add)


class Spills:
    def __init__(self):
        self.count = 0
        self.bytes = 0

    def __call__(self, size_bytes: int) -> None:
        self.count += 1
        self.bytes += size_bytes


@pytest.fixture
def spills():
    return Spills()


def combined(pairs, how, limit, tmp_path, spills, *, of_combiners=False, batch=100) -> dict:
    batches = (pairs[start : start + batch] for start in range(0, len(pairs), batch))
    found = list(
        combining.combined(batches, how, limit, tmp_path, spills, of_combiners=of_combiners)
    )
    assert len(dict(found)) == len(found)
    assert not list(tmp_path.iterdir())
    return dict(found)


@pytest.mark.parametrize("limit", [1 << 30, 20_000, 1])
def test_many_keys(tmp_path, spills, limit):
    pairs = [(f"key {number % 300}", number) for number in range(1500)]
    expected: dict = defaultdict(list)
    for key, value in pairs:
        expected[key].append(value)
    found = combined(pairs, GROUPS, limit, tmp_path, spills)
    # The order of values is that in which they came, spilled or not.
    assert found == expected
    assert (spills.count > 0) == (limit < 1 << 30)


def test_keys_come_in_the_order_in_which_they_were_first_seen_if_they_fit(tmp_path, spills):
    pairs = [("b", 1), ("a", 2), ("b", 3)]
    assert list(combined(pairs, SUMS, 1 << 20, tmp_path, spills)) == ["b", "a"]


def test_sums_of_few_keys_never_spill_however_many_values_come(tmp_path, spills):
    pairs = [(number % 10, 1) for number in range(100_000)]
    found = combined(pairs, SUMS, 100_000, tmp_path, spills)
    assert found == dict.fromkeys(range(10), 10_000)
    assert spills.count == 0


def test_one_huge_key_among_others(tmp_path, spills):
    pairs = [("huge" if number % 10 else number, number) for number in range(20_000)]
    found = combined(pairs, GROUPS, 100_000, tmp_path, spills)
    assert len(found["huge"]) == 18_000
    assert len(found) == 2001
    assert spills.count > 0


def test_one_huge_key_alone_is_not_spilled(tmp_path, spills):
    pairs = [("huge", number) for number in range(20_000)]
    assert combined(pairs, GROUPS, 1000, tmp_path, spills) == {"huge": list(range(20_000))}
    assert spills.count == 0


def test_what_maps_have_combined_is_combined_on(tmp_path, spills):
    pairs = [(number % 50, [number]) for number in range(1000)]
    found = combined(pairs, LISTS, 2000, tmp_path, spills, of_combiners=True)
    assert found[7] == list(range(7, 1000, 50))
    assert spills.count > 0


@pytest.mark.parametrize("limit", [1 << 30, 1])
def test_every_nan_is_one_key_and_equal_numbers_are_one(tmp_path, spills, limit):
    keys = [math.nan, float("nan"), (1, float("nan")), (1, float("nan")), 1, 1.0, True, None, None]
    found = combined([(key, 1) for key in keys], SUMS, limit, tmp_path, spills)
    assert sorted(map(repr, found.items())) == sorted(
        ["(nan, 2)", "((1, nan), 2)", "(1, 3)", "(None, 2)"]
    )


@pytest.mark.parametrize("key", [[1], {}, {1}])
def test_keys_that_cannot_be_hashed(tmp_path, spills, key):
    with pytest.raises(Unstable, match="cannot be hashed"):
        combined([(key, 1)], SUMS, 1000, tmp_path, spills)


@pytest.mark.parametrize("element", [1, (1,), (1, 2, 3)])
def test_what_is_no_pair(tmp_path, spills, element):
    with pytest.raises((TypeError, ValueError), match="unpack"):
        combined([element], SUMS, 1000, tmp_path, spills)


def test_keys_whose_hashes_are_all_the_same(tmp_path, spills):
    pairs = [(Same(number % 20), 1) for number in range(200)]
    found = combined(pairs, SUMS, 500, tmp_path, spills)
    assert sorted((key.number, count) for key, count in found.items()) == [
        (number, 10) for number in range(20)
    ]


class Same:
    def __init__(self, number):
        self.number = number

    def __hash__(self):
        return 5

    def __eq__(self, other):
        return self.number == other.number


def ordered(pairs, ordering, limit, tmp_path, spills, batch=100) -> list:
    batches = (pairs[start : start + batch] for start in range(0, len(pairs), batch))
    found = list(combining.ordered(batches, ordering, limit, tmp_path, spills))
    assert not list(tmp_path.iterdir())
    return found


@pytest.mark.parametrize("limit", [1 << 30, 20_000, 1])
@pytest.mark.parametrize("ascending", [True, False])
def test_sorted_and_stable(tmp_path, spills, limit, ascending):
    pairs = [(number * 7919 % 101, number) for number in range(2000)]
    found = ordered(pairs, Ordering(ascending=ascending), limit, tmp_path, spills)
    assert found == sorted(pairs, key=lambda pair: pair[0], reverse=not ascending)
    assert (spills.count > 0) == (limit < 1 << 30)


def test_sorted_by_a_function_of_the_key(tmp_path, spills):
    pairs = [(word, 1) for word in ("b", "A", "c", "B")]
    found = ordered(pairs, Ordering(key=str.lower), 1, tmp_path, spills)
    assert [word for word, _ in found] == ["A", "b", "B", "c"]


def test_keys_that_cannot_be_compared(tmp_path, spills):
    with pytest.raises(TypeError, match="not supported"):
        ordered([(1, 1), ("a", 1)], Ordering(), 1 << 20, tmp_path, spills)


def test_nothing_is_sorted(tmp_path, spills):
    assert ordered([], Ordering(), 1, tmp_path, spills) == []
