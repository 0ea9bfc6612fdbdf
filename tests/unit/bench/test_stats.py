"""Medians, spreads and percentiles."""

import pytest

from bench.stats import Spread, margin, percentile


def test_a_spread_is_the_middle_the_lowest_and_the_highest_run():
    spread = Spread.of([3.0, 1.0, 10.0])
    assert (spread.median, spread.low, spread.high, spread.runs) == (3.0, 1.0, 10.0, 3)
    assert spread.text(0) == "3 (1-10)"


@pytest.mark.parametrize(
    ("percent", "expected"), [(50, 50), (95, 95), (99, 99), (100, 100), (1, 1)]
)
def test_a_percentile_is_a_value_that_was_measured(percent, expected):
    assert percentile(list(range(100, 0, -1)), percent) == expected


def test_of_few_values_the_high_percentiles_are_the_highest():
    assert percentile([1.0, 2.0], 99) == 2.0
    assert percentile([7.0], 50) == 7.0


def test_the_margin_of_a_mean_is_half_its_interval_of_95_percent():
    # t for four degrees of freedom, 2.78, times 1.581 over the root of five.
    assert margin([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(1.966, abs=0.005)
    assert margin([2.0]) == float("inf")
