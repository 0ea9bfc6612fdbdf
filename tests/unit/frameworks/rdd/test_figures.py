"""Statistics, chance and approximate answers."""

import math
import pickle
import random
import statistics
import threading

import numpy as np
import pytest

from frameworks.rdd import SparkContext, StatCounter, distinct
from frameworks.rdd.approximate import BoundedFloat
from frameworks.rdd.sampling import poisson
from tests.kit.rdd.plain import PlainRunner


class Late(PlainRunner):
    """Does not know a job yet when it is cancelled for the first time."""

    def __init__(self) -> None:
        super().__init__()
        self.known = threading.Event()
        self.over = threading.Event()

    def run(self, job):
        assert self.known.wait(30)
        self.over.clear()
        self.known.clear()
        assert self.over.wait(30)
        yield from ()

    def cancel(self, group, reason):
        self.known.set()
        self.over.set()


class Slow(PlainRunner):
    """Gives the results of `done` partitions; the rest comes when the job is cancelled."""

    def __init__(self, done: int) -> None:
        super().__init__()
        self.done = done
        self.over = threading.Event()

    def run(self, job):
        for index, result in enumerate(super().run(job)):
            if index == self.done:
                assert self.over.wait(30)
                return
            yield result

    def cancel(self, group, reason):
        assert group == self.jobs[-1].group
        self.over.set()


@pytest.fixture
def slow():
    with SparkContext("local", runner=Slow(2)) as sc:
        yield sc


def test_what_is_known_in_time_is_scaled(slow):
    numbers = slow.parallelize(range(1, 101), 10)
    assert numbers.countApprox(200) == 100


def test_sums_and_means_of_a_part_have_bounds(slow):
    # Two partitions of ten: 1 to 20, of 1 to 100.
    total = slow.parallelize(range(1, 101), 10).sumApprox(200, 0.9)
    assert float(total) == 100 * 10.5
    assert total.low < total < total.high
    assert total.confidence == 0.9


def test_means_of_a_part_have_bounds(slow):
    mean = slow.parallelize(range(1, 101), 10).meanApprox(200)
    assert float(mean) == 10.5
    assert 0 < mean.low < 10.5 < mean.high < 21


def test_a_job_that_has_not_begun_when_its_time_is_over_is_cancelled_too():
    with SparkContext("local", runner=Late()) as sc:
        assert sc.parallelize([1]).countApprox(0) == 0


def test_nothing_known_says_so():
    with SparkContext("local", runner=Slow(0)) as sc:
        total = sc.parallelize(range(10), 2).sumApprox(1)
        assert (total.low, total.high, total.confidence) == (-math.inf, math.inf, 0.0)


def test_bounded_floats():
    bounded = BoundedFloat(100.0, 0.95, 95.0, 105.0)
    assert repr(bounded) == "100.0"
    again = pickle.loads(pickle.dumps(bounded))
    assert (again, again.low, again.high, again.confidence) == (100.0, 95.0, 105.0, 0.95)


def test_stat_counters():
    numbers = [random.Random(1).gauss(1e9, 1) for _ in range(1000)]
    whole = StatCounter(numbers)
    parts = (
        StatCounter(numbers[:300]).mergeStats(StatCounter()).mergeStats(StatCounter(numbers[300:]))
    )
    for each in (whole, parts, StatCounter().mergeStats(whole)):
        assert each.count() == 1000
        assert each.mean() == pytest.approx(statistics.fmean(numbers), rel=1e-12)
        assert each.variance() == pytest.approx(statistics.pvariance(numbers), rel=1e-6)
    doubled = StatCounter([1, 2, 3])
    doubled.mergeStats(doubled)
    assert (doubled.count(), doubled.sum(), doubled.variance()) == (6, 12, pytest.approx(2 / 3))
    assert whole.copy().merge(0.0).min() == 0.0
    assert whole.min() == min(numbers)
    with pytest.raises(TypeError, match="Can only merge StatCounter"):
        whole.mergeStats(3)  # type: ignore[arg-type]


def test_stat_counters_of_arrays():
    found = StatCounter([np.array([1.0, 5.0]), np.array([3.0, 1.0])])
    assert found.mean().tolist() == [2.0, 3.0]
    assert found.min().tolist() == [1.0, 1.0]
    assert found.max().tolist() == [3.0, 5.0]
    assert found.stdev().tolist() == [1.0, 2.0]
    assert found.mergeStats(StatCounter([np.array([5.0, 0.0])])).sum().tolist() == [9.0, 6.0]


@pytest.mark.parametrize("mean", [0.0, 0.3, 4.0, 250.0])
def test_poisson(mean):
    chance = random.Random(3)
    drawn = [poisson(chance, mean) for _ in range(2000)]
    tolerance = 5 * math.sqrt(mean / 2000) + 1e-9
    assert statistics.fmean(drawn) == pytest.approx(mean, abs=tolerance)
    assert statistics.pvariance(drawn) == pytest.approx(mean, rel=0.2, abs=1e-9)


@pytest.mark.parametrize("count", [1, 10, 1000, 60_000])
@pytest.mark.parametrize("error", [0.02, 0.1])
def test_distinct_elements_are_within_three_standard_errors(count, error):
    bits = distinct.precision(error)
    halves = [
        distinct.registers(bits, range(0, count * 7, 14)),
        distinct.registers(bits, range(7, count * 7, 14)),
    ]
    found = distinct.estimate(bits, distinct.merged(halves))
    assert found == pytest.approx(count, rel=3 * error)
