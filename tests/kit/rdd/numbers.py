"""What is documented of sorting, samples and figures."""

import math

import pytest

from frameworks.rdd import StatCounter
from frameworks.rdd.approximate import BoundedFloat
from frameworks.rdd.errors import JobFailed
from mesos_py.errors import InvalidValue


class SortingContract:
    def test_sort_by_key(self, sc):
        pairs = [("a", 1), ("b", 2), ("1", 3), ("d", 4), ("2", 5)]
        ordered = [("1", 3), ("2", 5), ("a", 1), ("b", 2), ("d", 4)]
        made = sc.parallelize(pairs)
        assert made.sortByKey().first() == ("1", 3)
        for parts in (1, 2, 4, 9):
            assert made.sortByKey(True, parts).collect() == ordered
            assert made.sortByKey(False, parts).collect() == ordered[::-1]
        words = ["Mary", "had", "a", "little", "lamb", "whose", "fleece", "was", "white"]
        by_text = sc.parallelize([(word, i) for i, word in enumerate(words)])
        found = by_text.sortByKey(True, 3, keyfunc=lambda k: k.lower()).keys().collect()
        assert found == sorted(words, key=str.lower)

    def test_ranges_are_about_equally_full(self, sc):
        pairs = sc.parallelize(range(1000), 5).map(lambda x: (x * 7919 % 1000, x))
        sizes = pairs.sortByKey(numPartitions=4).glom().map(len).collect()
        assert sum(sizes) == 1000
        assert max(sizes) < 2 * min(sizes)
        few = sc.parallelize([(x, x) for x in (4, 3, 2, 1)], 2)
        assert few.sortByKey(numPartitions=2).keys().glom().collect() == [[1, 2, 3], [4]]

    def test_sort_by(self, sc):
        pairs = sc.parallelize([("a", 1), ("b", 2), ("1", 3), ("d", 4), ("2", 5)])
        assert pairs.sortBy(lambda x: x[1]).values().collect() == [1, 2, 3, 4, 5]
        assert pairs.sortBy(lambda x: x[1], ascending=False).first() == ("2", 5)

    def test_equal_keys_keep_their_order(self, sc):
        pairs = sc.parallelize([(i % 2, i) for i in range(40)], 1)
        for ascending in (True, False):
            values = pairs.sortByKey(ascending, 2).filter(lambda p: p[0]).values().collect()
            assert values == list(range(1, 40, 2))

    def test_little_to_sort(self, sc):
        assert sc.parallelize([], 3).sortByKey(numPartitions=4).collect() == []
        assert sc.parallelize([(1, 1)] * 10, 3).sortByKey(numPartitions=4).count() == 10
        with pytest.raises(JobFailed, match="TypeError"):
            sc.parallelize([(1, 1), ("a", 1)], 1).sortByKey(numPartitions=1).collect()

    def test_sorted_within_partitions(self, sc):
        pairs = sc.parallelize([(0, 5), (3, 8), (2, 6), (0, 8), (3, 8), (1, 3)])
        made = pairs.repartitionAndSortWithinPartitions(2, lambda x: x % 2, True)
        assert made.glom().collect() == [[(0, 5), (0, 8), (2, 6)], [(1, 3), (3, 8), (3, 8)]]
        down = pairs.repartitionAndSortWithinPartitions(1, ascending=False, keyfunc=lambda k: -k)
        assert down.keys().collect() == [0, 0, 1, 2, 3, 3]


class SamplingContract:
    def test_sample(self, sc):
        numbers = sc.parallelize(range(100), 4)
        assert 6 <= numbers.sample(False, 0.1, 81).count() <= 14
        assert numbers.sample(False, 1.0).collect() == list(range(100))
        assert numbers.sample(False, 0.0).collect() == []
        assert numbers.sample(True, 0.0).collect() == []
        assert 250 < numbers.sample(True, 3.0, 5).count() < 350
        with pytest.raises(ValueError, match="nonnegative"):
            numbers.sample(False, -0.1)

    def test_a_sample_is_the_same_when_it_is_computed_again(self, sc):
        sample = sc.parallelize(range(1000), 4).sample(False, 0.1)
        assert sample.collect() == sample.collect()
        numbers = sc.parallelize(range(1000), 4)
        assert numbers.sample(False, 0.1, 3).collect() == numbers.sample(False, 0.1, 3).collect()

    def test_random_split(self, sc):
        numbers = sc.parallelize(range(500), 1)
        first, second = numbers.randomSplit([2, 3], 17)
        assert sorted(first.collect() + second.collect()) == list(range(500))
        assert 150 < first.count() < 250
        assert 250 < second.count() < 350
        assert [each.count() for each in numbers.randomSplit([0, 1], 1)] == [0, 500]
        with pytest.raises(ValueError, match="Weights must be nonnegative"):
            numbers.randomSplit([1, -1])
        with pytest.raises(ValueError, match="Sum of weights must be positive"):
            numbers.randomSplit([0, 0])

    def test_take_sample(self, sc):
        numbers = sc.parallelize(range(10))
        assert len(numbers.takeSample(True, 20, 1)) == 20
        found = numbers.takeSample(False, 5, 2)
        assert len(set(found)) == 5
        assert sorted(numbers.takeSample(False, 15, 3)) == list(range(10))
        assert numbers.takeSample(False, 0) == sc.parallelize([]).takeSample(True, 3) == []
        assert sc.emptyRDD().takeSample(True, 3) == []
        with pytest.raises(ValueError, match="cannot be negative"):
            numbers.takeSample(False, -1)
        with pytest.raises(ValueError, match="Sample size cannot be greater than"):
            numbers.takeSample(False, 2**63 - 1)

    def test_sample_by_key(self, sc):
        fractions = {"a": 0.2, "b": 0.1}
        pairs = sc.parallelize(fractions.keys()).cartesian(sc.parallelize(range(1000)))
        counts = pairs.sampleByKey(False, fractions, 2).countByKey()
        assert 100 < counts["a"] < 300
        assert 50 < counts["b"] < 150
        assert 1700 < pairs.sampleByKey(True, {"a": 2.0, "b": 0.0}, 1).count() < 2300
        with pytest.raises(AssertionError, match="Negative fraction value"):
            pairs.sampleByKey(False, {"a": -1})
        with pytest.raises(JobFailed, match="KeyError"):
            pairs.sampleByKey(False, {"a": 1.0}).count()


class FiguresContract:
    def test_extremes(self, sc):
        numbers = sc.parallelize([1.0, 5.0, 43.0, 10.0])
        assert (numbers.max(), numbers.max(key=str)) == (43.0, 5.0)
        assert (numbers.min(), numbers.min(key=str)) == (1.0, 1.0)
        for empty in (sc.parallelize([]), sc.emptyRDD()):
            with pytest.raises(ValueError, match="empty RDD"):
                empty.max()

    def test_moments(self, sc):
        numbers = sc.parallelize([1, 2, 3])
        assert (numbers.sum(), numbers.mean(), numbers.count()) == (6, 2.0, 3)
        assert sc.parallelize([1.0, 2.0, 3.0]).sum() == 6.0
        assert numbers.variance() == pytest.approx(2 / 3)
        assert numbers.stdev() == pytest.approx(math.sqrt(2 / 3))
        assert (numbers.sampleVariance(), numbers.sampleStdev()) == (1.0, 1.0)
        assert sc.parallelize([]).sum() == 0
        assert math.isnan(sc.parallelize([]).variance())
        assert math.isnan(sc.parallelize([1]).sampleStdev())

    def test_stats(self, sc):
        stats = sc.parallelize([1, 2, 3, 4], 3).stats()
        assert isinstance(stats, StatCounter)
        assert (stats.count(), stats.sum(), stats.min(), stats.max()) == (4, 10, 1, 4)
        assert stats.asDict()["variance"] == 1.25
        assert stats.asDict(sample=True)["variance"] == pytest.approx(5 / 3)
        assert str(stats).startswith("(count: 4, mean: 2.5, stdev: 1.118")

    @pytest.mark.parametrize(
        ("buckets", "bounds", "counts"),
        [
            (1, [0, 50], [51]),
            (2, [0, 25, 50], [25, 26]),
            (4, [0, 12.5, 25.0, 37.5, 50], [13, 12, 13, 13]),
            ([0, 5, 25, 50], [0, 5, 25, 50], [5, 20, 26]),
            ([0, 15, 30, 45, 60], [0, 15, 30, 45, 60], [15, 15, 15, 6]),
            ([10, 20], [10, 20], [11]),
            ((60, 70, 80), (60, 70, 80), [0, 0]),
        ],
    )
    def test_histograms(self, sc, buckets, bounds, counts):
        found = sc.parallelize(range(51)).histogram(buckets)
        assert found == (bounds, counts)
        assert type(found[0]) is type(bounds)

    def test_histograms_of_what_is_no_number(self, sc):
        words = sc.parallelize(["ab", "ac", "b", "bd", "ef"])
        assert words.histogram(("a", "b", "c")) == (("a", "b", "c"), [2, 2])
        assert words.histogram(1) == (["ab", "ef"], [5])
        gaps = sc.parallelize([1, None, float("nan"), 2, 3])
        assert gaps.histogram([1, 2, 3]) == ([1, 2, 3], [1, 2])
        assert gaps.histogram(2) == ([1, 2, 3], [1, 2])
        assert sc.parallelize([4] * 7).histogram(5) == ([4, 4], [7])
        with pytest.raises(TypeError, match="non-number"):
            words.histogram(2)

    @pytest.mark.parametrize(
        ("buckets", "error", "text"),
        [
            (0, ValueError, "number of buckets must be >= 1"),
            ([1], ValueError, "more than one value"),
            ([1, None], ValueError, "None or NaN"),
            ([1, float("nan")], ValueError, "None or NaN"),
            ([2, 1], ValueError, "sorted"),
            ([1, 1, 2], ValueError, "duplicated"),
            ("ab", TypeError, "list or tuple or number"),
            (2.5, TypeError, "list or tuple or number"),
        ],
    )
    def test_bad_buckets(self, sc, buckets, error, text):
        with pytest.raises(error, match=text):
            sc.parallelize([1, 2, 3]).histogram(buckets)

    def test_no_buckets_can_be_made_of_nothing_or_infinity(self, sc):
        with pytest.raises(ValueError, match="empty RDD"):
            sc.parallelize([]).histogram(2)
        with pytest.raises(ValueError, match="infinite"):
            sc.parallelize([1, math.inf]).histogram(2)

    def test_approximations_of_what_is_done_in_time_are_exact(self, sc):
        numbers = sc.parallelize(range(1000), 5)
        assert numbers.countApprox(60_000, 1.0) == 1000
        total = numbers.sumApprox(60_000)
        assert isinstance(total, BoundedFloat)
        assert [total.low, float(total), total.high] == [pytest.approx(499500)] * 3
        assert numbers.meanApprox(60_000) == pytest.approx(499.5)
        assert sc.emptyRDD().countApprox(1000) == 0

    def test_bad_approximations(self, sc):
        with pytest.raises(InvalidValue, match="timeout"):
            sc.parallelize([1]).countApprox(-1)
        with pytest.raises(InvalidValue, match="confidence"):
            sc.parallelize([1]).sumApprox(1, 1.5)
        with pytest.raises(JobFailed, match="ZeroDivisionError"):
            sc.parallelize([0]).map(lambda x: 1 / x).meanApprox(60_000)

    def test_distinct_elements_are_estimated(self, sc):
        assert 900 < sc.parallelize(range(1000)).map(str).countApproxDistinct() < 1100
        assert 900 < sc.parallelize(range(1000)).countApproxDistinct() < 1100
        few = sc.parallelize([i % 20 for i in range(1000)])
        assert 16 < few.countApproxDistinct() < 24
        assert 19_800 < sc.range(20_000).countApproxDistinct(0.005) < 20_200
        assert sc.parallelize([]).countApproxDistinct() == 0
        with pytest.raises(ValueError, match=r"relativeSD should be greater than 0\.000017"):
            few.countApproxDistinct(0.00000001)
