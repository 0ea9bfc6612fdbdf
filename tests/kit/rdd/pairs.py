"""What is documented of operations that bring keys together."""

import datetime
import enum
import math
from dataclasses import dataclass
from operator import add

import pytest

from frameworks.rdd.errors import JobFailed, Unstable


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True)
class Point:
    x: int
    y: str


def lists(grouped):
    return sorted((key, sorted(values)) for key, values in grouped.collect())


class PairsContract:
    # ---- Placing ---------------------------------------------------------------------------

    def test_partition_by(self, sc):
        pairs = sc.parallelize([1, 2, 3, 4, 2, 4, 1]).map(lambda x: (x, x))
        first, second = pairs.partitionBy(2).glom().collect()
        assert {key for key, _ in first} == {2, 4}
        assert {key for key, _ in second} == {1, 3}
        placed = pairs.partitionBy(3, lambda key: key - 5)
        assert [sorted({k for k, _ in part}) for part in placed.glom().collect()] == [
            [2], [3], [1, 4],
        ]  # fmt: skip

    def test_what_is_placed_is_not_placed_again(self, sc):
        placed = sc.parallelize([(1, 2)]).partitionBy(3)
        assert placed.partitionBy(3) is placed
        assert placed.partitionBy(4) is not placed
        assert placed.mapValues(str).partitioner == placed.partitioner
        assert placed.filter(bool).flatMapValues(str).partitioner == placed.partitioner
        assert placed.map(lambda p: p).partitioner is None
        assert placed.map(lambda p: p, preservesPartitioning=True).partitioner is not None
        assert placed.reduceByKey(add, 3).toDebugString().count(b"+-") == 1

    def test_partitions_are_as_many_as_before_if_nothing_is_said(self, sc):
        pairs = sc.parallelize([(1, 2)], 5)
        assert pairs.reduceByKey(add).getNumPartitions() == 5
        assert pairs.join(pairs).getNumPartitions() == 10
        assert pairs.join(pairs, 3).getNumPartitions() == 3

    # ---- Every kind of key -----------------------------------------------------------------

    @pytest.mark.parametrize(
        "keys",
        [
            ["a", "b", "", "é", "a" * 1000],
            [b"a", b"b", b""],
            [None, 0, ""],
            [1, 2.5, -1, 10**30, -(2**61)],
            [(1, "a"), (1, None), (), ((1, 2), 3)],
            [frozenset({"a", "b"}), frozenset()],
            [Color.RED, Color.BLUE],
            [Point(1, "a"), Point(1, "b")],
            [datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1)],  # noqa: DTZ001
            [datetime.timedelta(1), datetime.time(1, 2)],
            [int, str, Point],
        ],
        ids=lambda keys: type(keys[0]).__name__,
    )
    def test_each_key_comes_out_once(self, sc, keys):
        pairs = sc.parallelize([(key, 1) for key in keys] * 4, 4)
        counted = pairs.reduceByKey(add, 3).collect()
        assert len(counted) == len(keys)
        assert dict(counted) == dict.fromkeys(keys, 4)

    def test_equal_keys_of_different_types_are_one(self, sc):
        pairs = sc.parallelize([(key, 1) for key in (1, 1.0, True, 0, False, -0.0)], 6)
        assert sorted(pairs.reduceByKey(add, 4).collect()) == [(0, 3), (1, 3)]
        texts = sc.parallelize([("1", 1), (b"1", 1), (1, 1)], 3)
        assert texts.reduceByKey(add, 4).count() == 3

    def test_every_nan_is_one_key(self, sc):
        nans = [(float("nan"), 1), (math.nan, 1), (0.0, 1), (float("nan"), 1)]
        pairs = sc.parallelize(nans, 4)
        assert sorted(value for _, value in pairs.reduceByKey(add, 3).collect()) == [1, 3]
        assert sorted(map(len, pairs.groupByKey(2).values().collect())) == [1, 3]
        assert pairs.join(pairs).count() == 10
        assert pairs.keys().distinct().count() == 2
        within = sc.parallelize([((float("nan"), "a"), 1)] * 2, 2)
        assert within.reduceByKey(add).values().collect() == [2]

    @pytest.mark.parametrize("key", [[1], {"a": 1}, {1}, ([1], 2)], ids=repr)
    def test_an_unhashable_key_is_named(self, sc, key):
        for made in (
            sc.parallelize([(key, 1)]).reduceByKey(add),
            sc.parallelize([(key, 1)]).groupByKey(),
            sc.parallelize([(key, 1)]).partitionBy(2),
            sc.parallelize([key]).distinct(),
        ):
            with pytest.raises(JobFailed) as failed:
                made.collect()
            assert isinstance(failed.value.__cause__, Unstable)
            assert "of type builtins." in str(failed.value)
            assert "cannot be hashed" in str(failed.value)

    def test_a_key_that_is_hashed_by_its_address_is_named(self, sc):
        class Thing:
            pass

        thing = Thing()
        with pytest.raises(JobFailed, match="Thing") as failed:
            sc.parallelize([(thing, 1)]).reduceByKey(add).collect()
        assert isinstance(failed.value.__cause__, Unstable)

    def test_one_huge_key(self, sc):
        pairs = sc.parallelize(range(20_000), 4).map(lambda x: ("same", x))
        assert pairs.reduceByKey(add).collect() == [("same", sum(range(20_000)))]
        ((key, values),) = pairs.groupByKey(3).collect()
        assert (key, len(values), sorted(values)) == ("same", 20_000, list(range(20_000)))

    # ---- Combining -------------------------------------------------------------------------

    def test_reduce_and_fold_by_key(self, sc):
        pairs = sc.parallelize([("a", 1), ("b", 1), ("a", 1)])
        assert sorted(pairs.reduceByKey(add).collect()) == [("a", 2), ("b", 1)]
        assert sorted(pairs.foldByKey(0, add).collect()) == [("a", 2), ("b", 1)]
        assert sc.parallelize([], 2).reduceByKey(add).collect() == []

    def test_combine_by_key(self, sc):
        pairs = sc.parallelize([("a", 1), ("b", 1), ("a", 2)], 3)
        made = pairs.combineByKey(lambda v: [v], lambda c, v: [*c, v], add)
        assert lists(made) == [("a", [1, 2]), ("b", [1])]

    def test_a_zero_that_is_changed_is_each_keys_own(self, sc):
        def into(values, value):
            values.append(value)
            return values

        pairs = sc.parallelize([("a", 1), ("b", 2), ("a", 3), ("b", 4)], 2)
        made = pairs.aggregateByKey([], into, lambda a, b: a + b)
        assert lists(made) == [("a", [1, 3]), ("b", [2, 4])]

    def test_groups(self, sc):
        pairs = sc.parallelize([("a", 1), ("b", 1), ("a", 1)])
        grouped = pairs.groupByKey()
        assert sorted(grouped.mapValues(len).collect()) == [("a", 2), ("b", 1)]
        assert sorted(grouped.mapValues(list).collect()) == [("a", [1, 1]), ("b", [1])]
        values = dict(grouped.collect())["a"]
        assert (list(values), list(values), len(values)) == ([1, 1], [1, 1], 2)
        even = sc.parallelize([1, 1, 2, 3, 5, 8]).groupBy(lambda x: x % 2)
        assert lists(even) == [(0, [2, 8]), (1, [1, 1, 3, 5])]

    def test_lookup(self, sc):
        pairs = sc.parallelize(zip(range(100), range(100), strict=True), 10)
        assert pairs.lookup(42) == [42]
        placed = pairs.sortByKey()
        assert placed.lookup(42) == [42]
        assert placed.lookup(1024) == []
        tuples = sc.parallelize([(("a", "b"), "c")]).groupByKey()
        assert list(tuples.lookup(("a", "b"))[0]) == ["c"]
        assert sc.parallelize([(None, 1), (float("nan"), 2)]).lookup(float("nan")) == [2]

    # ---- Joins -----------------------------------------------------------------------------

    def test_joins(self, sc):
        left = sc.parallelize([("a", 1), ("b", 4)])
        right = sc.parallelize([("a", 2), ("a", 3), ("c", 8)])
        both = [("a", (1, 2)), ("a", (1, 3))]
        assert sorted(left.join(right).collect()) == both
        assert sorted(left.leftOuterJoin(right).collect()) == [*both, ("b", (4, None))]
        assert sorted(left.rightOuterJoin(right).collect()) == [*both, ("c", (None, 8))]
        assert sorted(left.fullOuterJoin(right).collect()) == [
            *both, ("b", (4, None)), ("c", (None, 8)),
        ]  # fmt: skip
        assert left.join(sc.emptyRDD()).collect() == []
        assert sorted(left.leftOuterJoin(sc.emptyRDD()).collect()) == [
            ("a", (1, None)), ("b", (4, None)),
        ]  # fmt: skip

    def test_values_that_are_nothing_are_values(self, sc):
        left = sc.parallelize([(None, None), (None, 0)])
        assert sorted(left.join(left).values().collect(), key=str) == [
            (0, 0), (0, None), (None, 0), (None, None),
        ]  # fmt: skip

    def test_cogroup(self, sc):
        left = sc.parallelize([("a", 1), ("b", 4)])
        right = sc.parallelize([("a", 2)])
        found = [(k, tuple(map(list, v))) for k, v in sorted(left.cogroup(right).collect())]
        assert found == [("a", ([1], [2])), ("b", ([4], []))]

    def test_group_with_many(self, sc):
        w, x = sc.parallelize([("a", 5), ("b", 6)]), sc.parallelize([("a", 1), ("b", 4)])
        y, z = sc.parallelize([("a", 2)]), sc.parallelize([("b", 42)])
        found = [(k, tuple(map(list, v))) for k, v in sorted(w.groupWith(x, y, z).collect())]
        assert found == [("a", ([5], [1], [2], [])), ("b", ([6], [4], [], [42]))]

    def test_what_is_placed_alike_is_joined_without_a_shuffle(self, sc):
        left = sc.parallelize([(i, "l") for i in range(20)], 3).partitionBy(4)
        right = sc.parallelize([(i, "r") for i in range(10)], 2).partitionBy(4)
        shuffles = left.join(right).toDebugString().count(b"+-")
        assert shuffles == 2
        assert left.join(right).getNumPartitions() == 4
        assert left.join(right).count() == 10
        # Of one that is placed and one that is not only the latter moves.
        loose = sc.parallelize([(i, "r") for i in range(10)], 2)
        assert left.join(loose, 4).toDebugString().count(b"+-") == 2
        assert sorted(left.join(loose, 4).collect()) == [(i, ("l", "r")) for i in range(10)]
        assert left.union(right).getNumPartitions() == 4
        assert left.union(right).partitioner == left.partitioner

    def test_with_itself(self, sc):
        pairs = sc.parallelize([("a", 1), ("b", 2)]).partitionBy(2)
        assert sorted(pairs.join(pairs).collect()) == [("a", (1, 1)), ("b", (2, 2))]

    # ---- As sets ---------------------------------------------------------------------------

    def test_sets(self, sc):
        assert sorted(sc.parallelize([1, 1, 2, 3]).distinct().collect()) == [1, 2, 3]
        left = sc.parallelize([1, 10, 2, 3, 4, 5])
        right = sc.parallelize([1, 6, 2, 3, 7, 8, 1])
        assert left.intersection(right).collect() == [1, 2, 3]
        assert sorted(left.subtract(right).collect()) == [4, 5, 10]
        assert sc.parallelize([1, 1, 2]).subtract(sc.parallelize([2])).collect() == [1, 1]

    def test_sets_of_keys(self, sc):
        left = sc.parallelize([("a", 1), ("b", 4), ("b", 5), ("a", 2)])
        right = sc.parallelize([("a", 3), ("c", None)])
        assert sorted(left.subtractByKey(right).collect()) == [("b", 4), ("b", 5)]
        assert sorted(left.intersectByKey(right).collect()) == [("a", 1), ("a", 2)]
