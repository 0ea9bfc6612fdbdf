"""The API's first steps, on a plain runner of one process."""

import gc
from collections.abc import Iterator
from functools import partial

import pytest

from frameworks.rdd import SparkContext
from frameworks.rdd.errors import JobFailed, NotPicklable, Unstable
from tests.kit.rdd.plain import PlainRunner


@pytest.fixture
def sc() -> Iterator[SparkContext]:
    with SparkContext("local[2]", "tests", runner=PlainRunner()) as context:
        yield context


def test_words_are_counted(sc):
    lines = sc.parallelize(["a b a", "", "b a"], 2)
    words = lines.flatMap(str.split).map(lambda word: (word, 1))
    assert dict(words.reduceByKey(lambda a, b: a + b).collect()) == {"a": 3, "b": 2}


def test_lineage_is_indented_where_a_shuffle_is(sc):
    pairs = sc.parallelize([1, 2], 2).map(lambda x: (x, x)).reduceByKey(min, 3)
    shapes = [line.split("[")[0] for line in pairs.toDebugString().decode().splitlines()]
    assert shapes == [
        "(3) ShuffledRDD",
        " +-(2) PythonRDD",
        "    |  ParallelCollectionRDD",
    ]


def test_a_data_set_in_a_task_is_refused_with_a_lesson(sc):
    other = sc.parallelize([1])
    with pytest.raises(NotPicklable, match="driver only"):
        sc.parallelize([1]).map(lambda x: other.count()).collect()
    with pytest.raises(NotPicklable, match="driver only"):
        sc.parallelize([1]).map(lambda x: sc.appName).collect()


def test_a_key_without_a_hash_that_lasts_is_named(sc):
    class Thing:
        pass

    with pytest.raises(JobFailed) as failed:
        sc.parallelize([(Thing(), 1)]).reduceByKey(min).collect()
    assert isinstance(failed.value.__cause__, Unstable)
    assert "Thing" in str(failed.value)


def _value(shared, _):
    return shared.value


def test_what_nobody_holds_any_more_is_sent_no_more():
    runner = PlainRunner()
    with SparkContext("local[2]", "tests", runner=runner) as sc:
        for step in range(3):
            shared = sc.broadcast(step)
            assert sc.range(2).map(partial(_value, shared)).collect() == [step, step]
        runner.jobs.clear()
        gc.collect()
        assert list(runner.shared) == [2]


def test_there_is_one_context_at_a_time(sc):
    with pytest.raises(ValueError, match="multiple SparkContexts"):
        SparkContext("local", "second", runner=PlainRunner())
    assert SparkContext.getOrCreate() is sc


def test_a_stop_iteration_of_the_users_ends_no_partition_in_silence(sc):
    def stops(x):
        raise StopIteration

    for made in (sc.range(3).map(stops), sc.range(3).filter(stops), sc.range(3).flatMap(stops)):
        with pytest.raises(JobFailed, match="StopIteration"):
            made.collect()
