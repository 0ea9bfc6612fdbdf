from __future__ import annotations

import sys

import numpy
import pytest

from frameworks.rdd.executor.sizes import DictMeter, ListMeter, size_of


def test_a_list_of_equals_takes_what_they_take():
    texts = [f"{number:020}" for number in range(1000)]
    assert size_of(texts) == sys.getsizeof(texts) + 1000 * sys.getsizeof(texts[0])


@pytest.mark.parametrize("value", [numpy.zeros(100_000), numpy.zeros(200_000)[:100_000]])
def test_arrays_take_what_they_show(value):
    assert 800_000 <= size_of(value) <= 801_000
    assert 8_000_000 <= size_of([value] * 10) <= 8_010_000


def test_objects_take_what_is_in_them():
    class Held:
        def __init__(self):
            self.text = "x" * 10_000

    assert 10_000 < size_of({1: Held()}) < 12_000


def test_what_holds_itself_is_measured_all_the_same():
    held: list = []
    held.append(held)
    assert size_of(held) > 0


def grown(meter: DictMeter, pairs) -> dict:
    """As a combiner grows it, of (key, value) that are collected in lists."""
    held: dict = {}
    pairs = list(pairs)
    while pairs:
        some, pairs = pairs[: meter.step], pairs[meter.step :]
        for key, value in some:
            held.setdefault(key, []).append(value)
        meter.is_over(held, some[-1][0])
    return held


@pytest.mark.parametrize(
    "key",
    [
        lambda number: number,  # all different
        lambda number: number % 10,
        lambda number: "hot" if number % 2 else number,
        lambda number: number if number > 19_000 else "hot",
    ],
)
def test_a_dict_is_measured_within_a_third(key):
    meter = DictMeter(1 << 40)
    held = grown(meter, ((key(number), f"value {number:08}") for number in range(20_000)))
    meter._measure(held)
    true = sys.getsizeof(held) + sum(
        sys.getsizeof(key) + sys.getsizeof(values) + sum(sys.getsizeof(value) for value in values)
        for key, values in held.items()
    )
    assert true * 2 / 3 < meter.size_bytes < true * 4 / 3


def test_a_dict_of_big_values_is_over_soon_after_it_is_too_big():
    meter, held = DictMeter(10_000_000), {}
    for number in range(1000):
        held[number] = bytes(1_000_000)
        if len(held) % meter.step == 0 and meter.is_over(held, number):
            break
    assert 10 <= len(held) <= 13


def test_a_list_of_big_values_is_over_as_it_is_too_big():
    meter = ListMeter(10_000_000)
    count = 0
    while not meter.is_over(bytes(1_000_000), meter.step):
        count += meter.step
    assert count <= 10
    assert meter.each_bytes == pytest.approx(1_000_000, rel=0.01)
