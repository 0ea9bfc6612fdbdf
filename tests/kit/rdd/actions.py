"""What is documented of actions."""

from collections import defaultdict
from operator import add

import pytest

from frameworks.rdd.errors import JobFailed
from mesos_py.errors import InvalidValue


class ActionsContract:
    def test_collect_is_in_order(self, sc):
        assert sc.parallelize(range(100), 7).collect() == list(range(100))
        assert sc.parallelize(range(3), 3).collectWithJobGroup("g", "why") == [0, 1, 2]

    def test_to_local_iterator(self, sc):
        for ahead in (False, True):
            elements = sc.parallelize(range(10), 3).toLocalIterator(prefetchPartitions=ahead)
            assert next(elements) == 0
            assert list(elements) == list(range(1, 10))
            assert list(sc.emptyRDD().toLocalIterator(ahead)) == []
        half_used = sc.parallelize(range(10), 3).toLocalIterator(prefetchPartitions=True)
        assert next(half_used) == 0
        half_used.close()

    # ---- Some ------------------------------------------------------------------------------

    def test_take(self, sc):
        numbers = sc.parallelize([2, 3, 4, 5, 6])
        assert numbers.take(2) == [2, 3]
        assert numbers.take(10) == [2, 3, 4, 5, 6]
        assert numbers.take(0) == numbers.take(-1) == []
        assert sc.parallelize(range(100), 20).filter(lambda x: x > 90).take(3) == [91, 92, 93]

    def test_take_computes_what_it_needs(self, sc):
        computed = sc.accumulator(0)

        def seen(x):
            computed.add(1)
            return x

        assert sc.parallelize(range(1000), 10).map(seen).take(5) == [0, 1, 2, 3, 4]
        assert computed.value == 5

    def test_first(self, sc):
        assert sc.parallelize([2, 3, 4]).first() == 2
        assert sc.parallelize([None, 3]).first() is None
        for empty in (sc.parallelize([]), sc.emptyRDD()):
            with pytest.raises(ValueError, match="RDD is empty"):
                empty.first()

    def test_is_empty(self, sc):
        assert sc.parallelize([]).isEmpty()
        assert not sc.parallelize([None]).isEmpty()
        assert sc.parallelize([1, 2], 2).filter(lambda x: x > 2).isEmpty()

    def test_top_and_take_ordered(self, sc):
        numbers = sc.parallelize([10, 4, 2, 12, 3], 2)
        assert numbers.top(1) == [12]
        assert numbers.top(3, key=str) == [4, 3, 2]
        assert numbers.takeOrdered(3) == [2, 3, 4]
        assert numbers.takeOrdered(6, key=lambda x: -x) == [12, 10, 4, 3, 2]
        with pytest.raises(ValueError, match="top N cannot be negative"):
            numbers.takeOrdered(-1)
        assert numbers.top(0) == sc.parallelize([]).top(2) == sc.emptyRDD().takeOrdered(2) == []
        with pytest.raises(JobFailed, match="TypeError"):
            sc.parallelize([1, None], 1).top(1)

    # ---- All -------------------------------------------------------------------------------

    def test_reduce(self, sc):
        assert sc.parallelize([1, 2, 3, 4, 5]).reduce(add) == 15
        assert sc.parallelize([5], 4).reduce(add) == 5
        assert sc.parallelize("abcd", 3).reduce(add) == "abcd"
        for empty in (sc.parallelize([], 2), sc.emptyRDD()):
            with pytest.raises(ValueError, match=r"Can not reduce\(\) empty RDD"):
                empty.reduce(add)

    @pytest.mark.parametrize("depth", [1, 2, 5, 10])
    def test_trees(self, sc, depth):
        numbers = sc.parallelize([-5, -4, -3, -2, -1, 1, 2, 3, 4], 10)
        assert numbers.treeReduce(add, depth) == -5
        assert numbers.treeAggregate(0, add, add, depth) == -5

    def test_trees_of_many_leaves_and_of_none(self, sc):
        assert sc.parallelize(range(30), 30).treeReduce(add, 3) == sum(range(30))
        assert sc.parallelize([None], 3).treeReduce(lambda a, b: a) is None
        assert sc.emptyRDD().treeAggregate("zero", add, add) == "zero"
        with pytest.raises(ValueError, match="Cannot reduce empty RDD"):
            sc.parallelize([], 3).treeReduce(add)
        for depth in (0, -1):
            with pytest.raises(ValueError, match="Depth cannot be smaller than 1"):
                sc.parallelize([1]).treeReduce(add, depth)
            with pytest.raises(ValueError, match="Depth cannot be smaller than 1"):
                sc.parallelize([1]).treeAggregate(0, add, add, depth)

    def test_fold_starts_each_partition_and_the_whole(self, sc):
        assert sc.parallelize([1, 2, 3, 4, 5]).fold(0, add) == 15
        assert sc.parallelize([1, 2], 4).fold(10, add) == 3 + 5 * 10
        assert sc.emptyRDD().fold(7, add) == 7

    def test_aggregate(self, sc):
        def seq(acc, x):
            return acc[0] + x, acc[1] + 1

        def comb(a, b):
            return a[0] + b[0], a[1] + b[1]

        assert sc.parallelize([1, 2, 3, 4]).aggregate((0, 0), seq, comb) == (10, 4)
        assert sc.parallelize([]).aggregate((0, 0), seq, comb) == (0, 0)

    def test_operations_may_change_their_first_argument(self, sc):
        def seq(acc, x):
            acc.append(x)
            return acc

        def comb(a, b):
            a.extend(b)
            return a

        zero: list[int] = []
        numbers = sc.parallelize(range(6), 3)
        assert numbers.aggregate(zero, seq, comb) == list(range(6))
        assert sorted(numbers.treeAggregate(zero, seq, comb)) == list(range(6))
        assert numbers.fold([], lambda a, b: seq(a, b) if isinstance(b, int) else comb(a, b)) == [
            0, 1, 2, 3, 4, 5,
        ]  # fmt: skip
        assert zero == []

    def test_for_each(self, sc):
        total = sc.accumulator(0)
        parts = sc.accumulator(0)

        def as_generator(elements):
            for each in elements:
                total.add(each)
                yield each

        numbers = sc.parallelize([1, 2, 3], 2)
        assert numbers.foreach(total.add) is None
        assert numbers.foreachPartition(lambda elements: parts.add(1)) is None
        numbers.foreachPartition(as_generator)
        assert (total.value, parts.value) == (12, 2)

    # ---- Counts ----------------------------------------------------------------------------

    def test_counts(self, sc):
        numbers = sc.parallelize([1, 2, 1, 2, 2], 2)
        assert numbers.count() == 5
        by_value = numbers.countByValue()
        assert by_value == {1: 2, 2: 3}
        assert isinstance(by_value, defaultdict)
        assert by_value[9] == 0
        by_key = sc.parallelize([("a", 1), ("b", 1), ("a", 1)]).countByKey()
        assert by_key == {"a": 2, "b": 1}
        assert isinstance(by_key, defaultdict)
        assert sc.parallelize([float("nan"), float("nan"), None], 2).countByValue()[None] == 1

    def test_every_nan_counts_as_the_same(self, sc):
        counts = sc.parallelize([float("nan"), 1.0, float("nan")], 2).countByValue()
        assert sorted(counts.values()) == [1, 2]

    def test_maps(self, sc):
        assert sc.parallelize([(1, 2), (3, 4)]).collectAsMap() == {1: 2, 3: 4}
        assert sc.parallelize([(1, "a"), (1, "b")], 2).collectAsMap() == {1: "b"}
        pairs = sc.parallelize([("a", 1), ("b", 1), ("a", 1)])
        assert pairs.reduceByKeyLocally(add) == {"a": 2, "b": 1}

    # ---- Jobs ------------------------------------------------------------------------------

    def test_run_job(self, sc):
        numbers = sc.parallelize(range(6), 3)

        def squares(part):
            return [x * x for x in part]

        assert sc.runJob(numbers, squares) == [0, 1, 4, 9, 16, 25]
        assert sc.runJob(numbers, squares, [0, 2], True) == [0, 1, 16, 25]
        assert sc.runJob(numbers, squares, [2, 0, 2]) == [16, 25, 0, 1, 16, 25]
        assert sc.runJob(numbers, squares, []) == []
        with pytest.raises(InvalidValue, match="partitions: 3"):
            sc.runJob(numbers, squares, [3])
