"""Executors of the RDD engine, with a driver that has no engine: tests/kit/rdd_executors.py."""

from __future__ import annotations

import itertools
import os

import pytest

from frameworks.rdd.messages import Raised, StageWork
from frameworks.rdd.nodes import Aggregator, Ordering, Shuffled
from tests.kit.rdd_drivers import Driver, dependency, mapped, payloads, slices


@pytest.fixture(scope="module")
def driver():
    with Driver() as made:
        # Opens the connection for blocks, which is kept.
        made.call(lambda: bytes(3 << 20))
        yield made


def test_the_partitions_of_a_stage_are_computed(driver):
    node = mapped(slices([[1, 2, 3], [4], []]), 2, lambda split, xs: ((split, x) for x in xs))
    assert driver.collect(node) == [[(0, 1), (0, 2), (0, 3)], [(1, 4)], []]


def test_a_big_result_is_left_as_a_block_until_it_is_forgotten(driver):
    assert driver.call(lambda: bytes(3 << 20)) == bytes(3 << 20)


def test_what_a_task_raises_is_told_with_the_frames_of_the_user_only(driver):
    def divides(_split, elements):
        return [1 // x for x in elements]

    node = slices([[0]])
    key = driver.define(StageWork(mapped(node, 2, divides), function=lambda _, xs: list(xs)))
    outcome = driver.outcome(driver.run(key, 0, payloads(node, 0)))
    assert isinstance(outcome, Raised)
    assert (outcome.kind, outcome.fatal) == ("ZeroDivisionError", False)
    assert "in divides" in outcome.traceback
    assert "frameworks/rdd" not in outcome.traceback


def test_pairs_are_combined_on_both_sides_of_a_shuffle_and_sorted(driver):
    pairs = slices([[("b", 1), ("a", 2), ("b", 3)], [("c", 4), ("a", 5)]])
    adding = Aggregator(lambda x: x, lambda x, y: x + y, lambda x, y: x + y)
    needs = dependency(pairs, aggregator=adding, ordering=Ordering())
    outputs = driver.shuffle(needs)
    found = driver.collect(Shuffled(2, 3, shuffle=needs), {1: outputs})
    assert all(part == sorted(part) for part in found)
    assert sorted(itertools.chain(*found)) == [("a", 7), ("b", 4), ("c", 4)]


def test_workers_are_not_the_driver(driver):
    assert driver.call(os.getpid) != os.getpid()
