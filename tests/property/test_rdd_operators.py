"""Every operator does what a few lines of plain Python on lists do."""

import itertools
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from operator import add

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frameworks.rdd import SparkContext
from frameworks.rdd.hashing import NAN
from tests.kit.rdd.plain import PlainRunner

pytestmark = pytest.mark.long

KEYS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.0, -0.0, 1.0, 2.5, NAN, "", "a", "b", b"a", (1, "a"), (1.0, "a"), (None,)]),
    st.frozensets(st.integers(0, 2), max_size=2),
)
PAIRS = st.lists(st.tuples(KEYS, st.integers(-5, 5)), max_size=25)
NUMBERS = st.lists(st.integers(-20, 20), max_size=30)
PARTS = st.integers(1, 5)


@contextmanager
def contexts() -> Iterator[SparkContext]:
    with SparkContext("local[2]", "model", runner=PlainRunner()) as sc:
        yield sc


def canonical(key):
    """As a dict keeps it; every NaN is the same."""
    return NAN if isinstance(key, float) and math.isnan(key) else key


def grouped(pairs):
    groups = defaultdict(list)
    for key, value in pairs:
        groups[canonical(key)].append(value)
    return groups


def bag(elements):
    """What is there, whatever the order; NaN by its name."""
    return Counter(repr_of(each) for each in elements)


def repr_of(each):
    if isinstance(each, bool | int | float) and not (isinstance(each, float) and math.isnan(each)):
        return repr(float(each) or 0.0)  # 1 == 1.0 == True, 0.0 == -0.0
    if isinstance(each, tuple | list):
        return f"({', '.join(map(repr_of, each))})"
    if isinstance(each, frozenset):
        return f"{{{', '.join(sorted(map(repr_of, each)))}}}"
    return repr(each)


# ---- By key ------------------------------------------------------------------------------------


@given(pairs=PAIRS, parts=PARTS, out=PARTS)
def test_values_of_a_key(pairs, parts, out):
    groups = grouped(pairs)
    with contexts() as sc:
        made = sc.parallelize(pairs, parts)
        assert bag(made.groupByKey(out).mapValues(sorted).collect()) == bag(
            (key, sorted(values)) for key, values in groups.items()
        )
        sums = [(key, sum(values)) for key, values in groups.items()]
        assert bag(made.reduceByKey(add, out).collect()) == bag(sums)
        assert bag(made.foldByKey(0, add, out).collect()) == bag(sums)
        assert bag(made.aggregateByKey(0, add, add, out).collect()) == bag(sums)
        assert bag(made.reduceByKeyLocally(add).items()) == bag(sums)
        assert bag(made.countByKey().items()) == bag((k, len(v)) for k, v in groups.items())
        assert bag(made.keys().distinct(out).collect()) == bag(groups)
        for key in list(groups)[:2]:
            assert made.lookup(key) == groups[key]
            assert sorted(made.partitionBy(out).lookup(key)) == sorted(groups[key])


@given(pairs=PAIRS, parts=PARTS, out=PARTS)
def test_a_key_is_in_one_partition(pairs, parts, out):
    with contexts() as sc:
        placed = sc.parallelize(pairs, parts).partitionBy(out).glom().collect()
    assert len(placed) == out
    assert bag(itertools.chain(*placed)) == bag(pairs)
    homes = defaultdict(set)
    for split, part in enumerate(placed):
        for key, _ in part:
            homes[repr_of(canonical(key))].add(split)
    assert all(len(splits) == 1 for splits in homes.values())


@given(left=PAIRS, right=PAIRS, parts=PARTS, out=st.none() | PARTS, placed=st.booleans())
def test_joins(left, right, parts, out, placed):
    here, there = grouped(left), grouped(right)
    every = {**here, **there}

    def joined(left_may, right_may):
        for key in every:
            lefts = here.get(key) or [None] * left_may
            rights = there.get(key) or [None] * right_may
            yield from ((key, pair) for pair in itertools.product(lefts, rights))

    with contexts() as sc:
        a, b = sc.parallelize(left, parts), sc.parallelize(right, 2)
        if placed:
            a, b = a.partitionBy(3), b.partitionBy(3)
        assert bag(a.join(b, out).collect()) == bag(joined(False, False))
        assert bag(a.leftOuterJoin(b, out).collect()) == bag(joined(False, True))
        assert bag(a.rightOuterJoin(b, out).collect()) == bag(joined(True, False))
        assert bag(a.fullOuterJoin(b, out).collect()) == bag(joined(True, True))
        both = [(k, sorted(x), sorted(y)) for k, (x, y) in a.cogroup(b, out).collect()]
        assert bag(both) == bag((k, sorted(here[k]), sorted(there[k])) for k in every)
        assert bag(a.subtractByKey(b, out).collect()) == bag(
            (k, v) for k in every if not there[k] for v in here[k]
        )
        assert bag(a.intersectByKey(b, out).collect()) == bag(
            (k, v) for k in every if there[k] for v in here[k]
        )


@given(left=st.lists(KEYS, max_size=20), right=st.lists(KEYS, max_size=20), parts=PARTS)
def test_sets(left, right, parts):
    here, there = grouped((k, 1) for k in left), grouped((k, 1) for k in right)
    with contexts() as sc:
        a, b = sc.parallelize(left, parts), sc.parallelize(right, 2)
        assert bag(a.intersection(b).collect()) == bag(k for k in here if k in there)
        assert bag(a.subtract(b).collect()) == bag(
            canonical(k) for k in left if canonical(k) not in there
        )
        assert bag(a.countByValue().items()) == bag((k, len(v)) for k, v in here.items())
        parts_of_both = [*a.glom().collect(), *b.glom().collect()]
        assert repr(a.union(b).glom().collect()) == repr(parts_of_both)
        assert bag(a.cartesian(b).collect()) == bag(itertools.product(left, right))


# ---- In order ----------------------------------------------------------------------------------


@given(numbers=NUMBERS, parts=PARTS, out=PARTS, ascending=st.booleans())
def test_sorting(numbers, parts, out, ascending):
    pairs = [(number // 3, i) for i, number in enumerate(numbers)]
    with contexts() as sc:
        made = sc.parallelize(numbers, parts)
        assert made.sortBy(lambda x: x, ascending, out).collect() == sorted(
            numbers, reverse=not ascending
        )
        assert sc.parallelize(pairs, 1).sortByKey(ascending, out).collect() == sorted(
            pairs, key=lambda pair: pair[0], reverse=not ascending
        )
        within = sc.parallelize(pairs, parts).repartitionAndSortWithinPartitions(
            out, lambda key: key, ascending
        )
        for split, part in enumerate(within.keys().glom().collect()):
            assert part == sorted(
                (key for key, _ in pairs if key % out == split), reverse=not ascending
            )


@given(numbers=NUMBERS, parts=PARTS, some=st.integers(0, 35))
def test_order_is_kept(numbers, parts, some):
    with contexts() as sc:
        made = sc.parallelize(numbers, parts)
        assert made.collect() == list(made.toLocalIterator()) == numbers
        assert made.take(some) == numbers[:some]
        assert made.top(some) == sorted(numbers, reverse=True)[:some]
        assert made.takeOrdered(some) == sorted(numbers)[:some]
        assert made.zipWithIndex().collect() == [(x, i) for i, x in enumerate(numbers)]
        ids = made.zipWithUniqueId().values().collect()
        assert len(set(ids)) == len(numbers)
        assert made.zip(made.map(str)).collect() == [(x, str(x)) for x in numbers]
        assert made.coalesce(max(1, some // 6)).collect() == numbers
        assert sorted(made.repartition(max(1, some // 6)).collect()) == sorted(numbers)
        assert made.filter(lambda x: x % 2).flatMap(lambda x: [x, -x]).collect() == [
            each for x in numbers if x % 2 for each in (x, -x)
        ]


@given(elements=st.lists(st.integers(), max_size=40), count=st.integers(1, 12))
def test_slices(elements, count):
    with contexts() as sc:
        for given_elements in (elements, range(len(elements))):
            slices = sc.parallelize(given_elements, count).glom().collect()
            assert len(slices) == count
            assert list(itertools.chain(*slices)) == list(given_elements)


# ---- As a whole --------------------------------------------------------------------------------


@given(numbers=NUMBERS, parts=PARTS, depth=st.integers(1, 4))
def test_reducing(numbers, parts, depth):
    with contexts() as sc:
        made = sc.parallelize(numbers, parts)
        assert made.fold(0, add) == made.aggregate(0, add, add) == made.sum() == sum(numbers)
        assert made.treeAggregate(0, add, add, depth) == sum(numbers)
        assert made.count() == len(numbers)
        assert made.isEmpty() is not bool(numbers)
        if numbers:
            assert made.reduce(add) == made.treeReduce(add, depth) == sum(numbers)
            assert (made.max(), made.min()) == (max(numbers), min(numbers))
        else:
            with pytest.raises(ValueError, match="empty"):
                made.reduce(add)


@given(numbers=NUMBERS, parts=PARTS)
def test_moments(numbers, parts):
    with contexts() as sc:
        stats = sc.parallelize(numbers, parts).stats()
    assert stats.count() == len(numbers)
    if numbers:
        assert stats.mean() == pytest.approx(statistics.mean(numbers), abs=1e-9)
        assert stats.variance() == pytest.approx(statistics.pvariance(numbers), abs=1e-9)
    if len(numbers) > 1:
        assert stats.sampleVariance() == pytest.approx(statistics.variance(numbers), abs=1e-9)


@given(
    numbers=st.lists(st.none() | st.integers(-20, 20), max_size=30),
    parts=PARTS,
    bounds=st.lists(st.integers(-25, 25), min_size=2, max_size=6, unique=True).map(sorted),
    even=st.integers(2, 7),
)
def test_histograms(numbers, parts, bounds, even):
    plain = [number for number in numbers if number is not None]

    def model(edges):
        last = len(edges) - 2
        return [
            sum(
                edges[i] <= number < edges[i + 1] or (i == last and number == edges[-1])
                for number in plain
            )
            for i in range(last + 1)
        ]

    with contexts() as sc:
        made = sc.parallelize(numbers, parts)
        assert made.histogram(bounds) == (bounds, model(bounds))
        if len(set(plain)) > 1:
            edges, counts = made.histogram(even)
            assert counts == model(edges)
            assert sum(counts) == len(plain)
            assert (edges[0], edges[-1], len(edges)) == (min(plain), max(plain), even + 1)


# ---- By chance ---------------------------------------------------------------------------------


@given(
    numbers=NUMBERS,
    parts=PARTS,
    seed=st.integers(0, 2**40),
    weights=st.lists(st.floats(0.1, 9), min_size=1, max_size=4),
    some=st.integers(0, 40),
)
def test_samples(numbers, parts, seed, weights, some):
    with contexts() as sc:
        made = sc.parallelize(numbers, parts)
        split = [each.collect() for each in made.randomSplit(weights, seed)]
        assert Counter(itertools.chain(*split)) == Counter(numbers)
        sample = made.sample(False, 0.5, seed).collect()
        assert Counter(sample) <= Counter(numbers)
        assert sample == made.sample(False, 0.5, seed).collect()
        taken = made.takeSample(False, some, seed)
        assert len(taken) == min(some, len(numbers))
        assert Counter(taken) <= Counter(numbers)
        again = made.takeSample(True, some, seed)
        assert len(again) == (some if numbers else 0)
        assert set(again) <= set(numbers)


# ---- Text --------------------------------------------------------------------------------------


@given(
    content=st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\r\n", b"bc"]), max_size=30),
    parts=PARTS,
)
def test_lines_of_text_however_it_is_cut(tmp_path_factory, content, parts):
    file = tmp_path_factory.getbasetemp() / "lines"
    file.write_bytes(b"".join(content))
    with contexts() as sc:
        found = sc.textFile(str(file), parts * 3, use_unicode=False).collect()
    assert found == b"".join(content).splitlines()
