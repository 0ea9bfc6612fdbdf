"""What is documented of partitions and of transformations that need no shuffle."""

import os
from collections import deque

import pytest

from frameworks.rdd.errors import JobFailed
from mesos_py.errors import InvalidValue


class ElementsContract:
    # ---- Partitions ------------------------------------------------------------------------

    @pytest.mark.parametrize(
        ("elements", "count", "slices"),
        [
            ([0, 2, 3, 4, 6], 5, [[0], [2], [3], [4], [6]]),
            (range(0, 6, 2), 5, [[], [0], [], [2], [4]]),
            ([1, 2, 3, 4, 5], 3, [[1], [2, 3], [4, 5]]),
            ([1, 2], 4, [[], [1], [], [2]]),
            ([], 2, [[], []]),
            (range(0), 2, [[], []]),
            (range(5, 0, -1), 2, [[5, 4], [3, 2, 1]]),
            (list(range(11)), 4, [[0, 1], [2, 3, 4, 5], [6, 7], [8, 9, 10]]),
            (range(11), 4, [[0, 1], [2, 3, 4], [5, 6, 7], [8, 9, 10]]),
            (deque("abc"), 2, [["a"], ["b", "c"]]),
            ([None, [], {}], 1, [[None, [], {}]]),
        ],
    )
    def test_slices_are_cut_where_pyspark_cuts_them(self, sc, elements, count, slices):
        made = sc.parallelize(elements, count)
        assert made.getNumPartitions() == count
        assert made.glom().collect() == slices

    def test_a_generator_is_taken_once(self, sc):
        letters = sc.parallelize((x for x in "abc"), 2)
        assert letters.glom().collect() == letters.glom().collect() == [["a"], ["b", "c"]]

    def test_partitions_without_a_number_are_as_many_as_slots(self, sc):
        assert sc.defaultParallelism == sc.parallelize([]).getNumPartitions() == 2
        assert sc.defaultMinPartitions == 2

    @pytest.mark.parametrize("count", [0, -1])
    def test_no_partitions_are_refused(self, sc, count):
        with pytest.raises(InvalidValue, match="numSlices"):
            sc.parallelize([1], count)
        with pytest.raises(ValueError, match="must be positive"):
            sc.parallelize([1]).coalesce(count)

    def test_ranges(self, sc):
        assert sc.range(5).collect() == [0, 1, 2, 3, 4]
        assert sc.range(2, 4).collect() == [2, 3]
        assert sc.range(1, 7, 2, numSlices=2).glom().collect() == [[1], [3, 5]]

    def test_a_data_set_without_partitions(self, sc):
        empty = sc.emptyRDD()
        assert empty.getNumPartitions() == 0
        assert empty.isEmpty()
        assert empty.collect() == empty.map(str).collect() == empty.take(3) == []
        assert empty.count() == empty.sum() == 0
        assert empty.union(sc.parallelize([1])).collect() == [1]
        assert empty.groupByKey().collect() == empty.sortByKey().collect() == []

    def test_coalesce_joins_neighbours(self, sc):
        numbers = sc.parallelize([1, 2, 3, 4, 5], 3)
        assert numbers.coalesce(1).glom().collect() == [[1, 2, 3, 4, 5]]
        assert numbers.coalesce(2).glom().collect() == [[1], [2, 3, 4, 5]]
        assert numbers.coalesce(9).getNumPartitions() == 3
        assert numbers.coalesce(9, shuffle=True).getNumPartitions() == 9

    def test_repartition_spreads_evenly(self, sc):
        numbers = sc.parallelize(range(100), 1).repartition(4)
        sizes = numbers.glom().map(len).collect()
        assert sizes == [25] * 4
        assert sorted(numbers.collect()) == list(range(100))

    # ---- Elements --------------------------------------------------------------------------

    def test_map_filter_flat_map(self, sc):
        words = sc.parallelize(["b", "a", "c"])
        assert words.map(lambda x: (x, 1)).collect() == [("b", 1), ("a", 1), ("c", 1)]
        assert sc.parallelize([1, 2, 3, 4, 5]).filter(lambda x: x % 2 == 0).collect() == [2, 4]
        numbers = sc.parallelize([2, 3, 4])
        assert numbers.flatMap(lambda x: range(1, x)).collect() == [1, 1, 2, 1, 2, 3]
        assert numbers.flatMap(lambda x: [(x, x)] * 2).count() == 6

    def test_a_filter_takes_any_truth(self, sc):
        assert sc.parallelize([0, "", None, [], "x", 2]).filter(lambda x: x).collect() == ["x", 2]

    def test_functions_of_partitions_may_be_generators(self, sc):
        def total(elements):
            yield sum(elements)

        def numbered(index, elements):
            for each in elements:
                yield index, each

        numbers = sc.parallelize([1, 2, 3, 4], 2)
        assert numbers.mapPartitions(total).collect() == [3, 7]
        assert numbers.mapPartitions(lambda it: [len(list(it))]).collect() == [2, 2]
        assert numbers.mapPartitionsWithIndex(numbered).collect() == [
            (0, 1), (0, 2), (1, 3), (1, 4),
        ]  # fmt: skip
        with pytest.warns(FutureWarning, match="mapPartitionsWithIndex"):
            numbers.mapPartitionsWithSplit(numbered)

    def test_elements_are_computed_as_they_are_taken(self, sc):
        def endless(_):
            n = 0
            while True:
                yield n
                n += 1

        assert sc.parallelize([0], 1).flatMap(endless).map(lambda x: x * x).take(3) == [0, 1, 4]

    def test_keys_and_values(self, sc):
        pairs = sc.parallelize([(1, 2), (3, 4)])
        assert pairs.keys().collect() == [1, 3]
        assert pairs.values().collect() == [2, 4]
        assert pairs.mapValues(lambda v: v * 10).collect() == [(1, 20), (3, 40)]
        lists = sc.parallelize([("a", ["x", "y"]), ("b", []), ("c", "zz")])
        assert lists.mapValues(len).collect() == [("a", 2), ("b", 0), ("c", 2)]
        assert lists.flatMapValues(list).collect() == [
            ("a", "x"), ("a", "y"), ("c", "z"), ("c", "z"),
        ]  # fmt: skip
        assert sc.parallelize(range(3)).keyBy(lambda x: x * x).collect() == [
            (0, 0), (1, 1), (4, 2),
        ]  # fmt: skip

    # ---- Several ---------------------------------------------------------------------------

    def test_union_keeps_duplicates_and_order(self, sc):
        numbers = sc.parallelize([1, 1, 2, 3])
        assert numbers.union(numbers).collect() == [1, 1, 2, 3, 1, 1, 2, 3]
        assert (numbers + sc.parallelize(["x"])).collect() == [1, 1, 2, 3, "x"]
        with pytest.raises(TypeError):
            numbers.__add__([1])
        three = sc.union([sc.parallelize([each], 2) for each in "abc"])
        assert (three.getNumPartitions(), three.collect()) == (6, ["a", "b", "c"])

    def test_cartesian(self, sc):
        numbers = sc.parallelize([1, 2])
        assert numbers.cartesian(numbers).collect() == [(1, 1), (1, 2), (2, 1), (2, 2)]
        many, few = sc.range(1010, numSlices=1), sc.range(3, numSlices=1)
        assert sorted(many.cartesian(few).collect()) == [
            (x, y) for x in range(1010) for y in range(3)
        ]
        assert few.cartesian(many).count() == 3030
        assert numbers.cartesian(sc.parallelize([], 3)).getNumPartitions() == 6
        assert numbers.cartesian(sc.parallelize([], 3)).collect() == []

    def test_zip(self, sc):
        left, right = sc.parallelize(range(5)), sc.parallelize(range(1000, 1005))
        assert left.zip(right).collect() == [(i, 1000 + i) for i in range(5)]
        assert left.zip(left.map(str)).count() == 5
        with pytest.raises(ValueError, match="same number of partitions"):
            left.zip(sc.parallelize(range(5), 3))
        for fewer in (range(4), range(6)):
            with pytest.raises(JobFailed, match="same number of elements"):
                sc.parallelize(range(5), 1).zip(sc.parallelize(fewer, 1)).collect()

    def test_numbers_for_elements(self, sc):
        letters = sc.parallelize("abcde", 3)
        assert letters.zipWithUniqueId().collect() == [
            ("a", 0), ("b", 1), ("c", 4), ("d", 2), ("e", 5),
        ]  # fmt: skip
        assert letters.zipWithIndex().collect() == [(c, i) for i, c in enumerate("abcde")]
        assert sc.parallelize("ab", 1).zipWithIndex().collect() == [("a", 0), ("b", 1)]
        assert sc.parallelize([], 3).zipWithIndex().collect() == []

    # ---- Other programs --------------------------------------------------------------------

    def test_pipe(self, sc):
        assert sc.parallelize(["1", "2", "", "3"]).pipe("cat").collect() == ["1", "2", "", "3"]
        assert sc.parallelize([1, None], 1).pipe("cat").collect() == ["1", "None"]
        assert sc.parallelize([], 2).pipe("wc -l").map(int).collect() == [0, 0]
        assert sc.parallelize([0], 1).pipe("sh -c 'echo $WHO'", {"WHO": "me"}).collect() == ["me"]

    def test_pipe_needs_no_one_who_reads_all(self, sc):
        lines = sc.parallelize(["x" * 100] * 20_000, 1)
        assert lines.pipe("head -n 2").count() == 2
        assert lines.pipe("cat").count() == 20_000
        assert lines.pipe("cat").take(1) == ["x" * 100]

    def test_pipe_looks_at_the_exit_code_if_it_is_told_to(self, sc):
        failing = sc.parallelize([1], 1)
        assert failing.pipe("false").collect() == []
        with pytest.raises(JobFailed, match="exited with error code 1"):
            failing.pipe("false", checkCode=True).collect()
        with pytest.raises(JobFailed, match="no-such-program"):
            failing.pipe("no-such-program").collect()

    def test_an_error_among_the_elements_for_a_program_is_the_users(self, sc):
        with pytest.raises(JobFailed, match="ZeroDivisionError"):
            sc.parallelize([1, 0], 1).map(lambda x: 1 // x).pipe("cat").collect()

    # ---- Names -----------------------------------------------------------------------------

    def test_names_and_lineages(self, sc):
        numbers = sc.range(5)
        assert numbers.name() is None
        assert numbers.setName("numbers") is numbers
        assert numbers.name() == "numbers"
        assert numbers.context is numbers.ctx is sc
        assert numbers.id() < sc.range(5).id()
        lines = sc.union([numbers, numbers]).toDebugString().decode().splitlines()
        assert lines[0].startswith("(4) UnionRDD[")
        assert lines[1].startswith(" |  numbers PythonRDD[")
        assert lines[2].startswith(" |  ParallelCollectionRDD[")
        assert lines[3].endswith("(as above)")
        assert "range at elements.py:" in lines[1]
        assert repr(numbers).startswith("numbers PythonRDD[")
        long = sc.range(1)
        for _ in range(3000):
            long = long.map(abs)
        assert long.toDebugString().count(b"\n") == 3001

    # ---- Errors ----------------------------------------------------------------------------

    def test_an_error_names_what_the_user_has_raised(self, sc):
        def fails(x):
            raise LookupError(f"no {x}")

        with pytest.raises(JobFailed, match="LookupError: no 7") as failed:
            sc.parallelize([7]).map(fails).collect()
        assert isinstance(failed.value.__cause__, LookupError)

    def test_an_error_in_the_midst_of_a_generator_fails_the_job(self, sc):
        def breaks(elements):
            yield from elements
            raise OSError("torn")

        with pytest.raises(JobFailed, match="torn"):
            sc.parallelize([1, 2]).mapPartitions(breaks).collect()

    @pytest.mark.parametrize("operator", ["map", "filter", "flatMap", "mapValues", "keyBy"])
    def test_a_stop_iteration_of_the_users_ends_no_partition_in_silence(self, sc, operator):
        def stops(x):
            raise StopIteration

        made = getattr(sc.parallelize([(1, 1), (2, 2)]), operator)(stops)
        with pytest.raises(JobFailed, match="StopIteration"):
            made.collect()

    def test_what_a_function_uses_comes_along(self, sc):
        class Local:
            factor = 3

        factor = 2
        here = os.sep
        made = sc.parallelize([1, 2]).map(lambda x: (x * factor * Local.factor, here))
        assert made.collect() == [(6, "/"), (12, "/")]

    def test_what_is_absent_says_why(self, sc):
        with pytest.raises(AttributeError, match="JVM"):
            sc.parallelize([1]).saveAsSequenceFile("x")
        with pytest.raises(AttributeError, match="no 'nonsense'"):
            sc.parallelize([1]).nonsense()
        assert not hasattr(sc, "hadoopFile")
