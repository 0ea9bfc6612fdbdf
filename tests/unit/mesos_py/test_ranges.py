"""Sets of whole numbers as ranges: each function against the sets that they stand for."""

import itertools
import random

import pytest

from mesos_py import ranges as rng


def as_set(ranges):
    return set(rng.numbers(ranges))


def of_set(numbers):
    return rng.normalised((number, number) for number in numbers)


def is_canonical(ranges):
    pairs_rise = all(begin <= end for begin, end in ranges)
    return pairs_rise and all(left[1] + 1 < right[0] for left, right in itertools.pairwise(ranges))


def test_normalised_sorts_and_joins_what_touches_or_overlaps():
    assert rng.normalised([(5, 6), (1, 2), (3, 4), (10, 20), (12, 13)]) == ((1, 6), (10, 20))


def test_normalised_keeps_a_gap_of_one_number():
    assert rng.normalised([(1, 2), (4, 5)]) == ((1, 2), (4, 5))


def test_normalised_of_nothing_is_empty():
    assert rng.normalised([]) == ()


@pytest.mark.parametrize(
    ("pairs", "clash"),
    [
        ([(1, 3), (3, 5)], (3, 5)),
        ([(5, 9), (1, 5)], (5, 9)),
        ([(1, 1), (1, 1)], (1, 1)),
        ([(1, 2), (3, 4)], None),
        ([], None),
    ],
)
def test_overlap_finds_the_first_pair_that_shares_a_number(pairs, clash):
    assert rng.overlap(pairs) == clash


@pytest.mark.parametrize(
    ("left", "right", "rest"),
    [
        (((1, 9),), (), ((1, 9),)),
        (((1, 9),), ((1, 9),), ()),
        (((1, 9),), ((3, 4),), ((1, 2), (5, 9))),
        (((1, 9),), ((1, 2), (8, 20)), ((3, 7),)),
        (((1, 2), (5, 6), (8, 9)), ((2, 8),), ((1, 1), (9, 9))),
        (((5, 9),), ((1, 2), (20, 30)), ((5, 9),)),
        (((5, 9),), ((1, 5), (7, 7), (9, 11)), ((6, 6), (8, 8))),
    ],
)
def test_difference_cuts_out_what_the_right_side_has(left, right, rest):
    assert rng.difference(left, right) == rest


@pytest.mark.parametrize(
    ("left", "right", "both"),
    [
        ((), ((1, 9),), ()),
        (((1, 9),), ((3, 4), (8, 20)), ((3, 4), (8, 9))),
        (((1, 2), (5, 9)), ((2, 5),), ((2, 2), (5, 5))),
    ],
)
def test_intersection_has_what_both_have(left, right, both):
    assert rng.intersection(left, right) == rng.intersection(right, left) == both


def test_contains_needs_every_number_of_the_inner_ranges():
    outer = ((1, 5), (10, 20))
    assert rng.contains(outer, ())
    assert rng.contains(outer, ((2, 3), (10, 10), (19, 20)))
    assert not rng.contains(outer, ((5, 6),))
    assert not rng.contains(outer, ((0, 1),))
    assert not rng.contains(outer, ((6, 7),))
    assert not rng.contains(outer, ((30, 31),))
    assert not rng.contains((), ((1, 1),))


def test_intersects_is_true_for_one_number_in_common():
    assert rng.intersects(((1, 5),), ((5, 9),))
    assert not rng.intersects(((1, 4),), ((5, 9),))
    assert not rng.intersects((), ((5, 9),))


def test_count_and_numbers_agree():
    ranges = ((1, 3), (7, 7))
    assert rng.count(ranges) == 4
    assert list(rng.numbers(ranges)) == [1, 2, 3, 7]


def test_text_is_what_resources_texts_write():
    assert rng.text(((1, 9), (20, 30))) == "[1-9, 20-30]"
    assert rng.text(()) == "[]"


def test_all_functions_agree_with_sets_of_numbers():
    dice = random.Random(7)
    for _ in range(500):
        one = {dice.randrange(20) for _ in range(dice.randrange(12))}
        other = {dice.randrange(20) for _ in range(dice.randrange(12))}
        left, right = of_set(one), of_set(other)
        assert as_set(left) == one
        assert as_set(rng.union(left, right)) == one | other
        assert as_set(rng.difference(left, right)) == one - other
        assert rng.contains(left, right) == (other <= one)
        assert rng.intersects(left, right) == bool(one & other)
        assert rng.count(left) == len(one)
        for made in (left, rng.union(left, right), rng.difference(left, right)):
            assert is_canonical(made)


def test_thousands_of_ranges_do_not_take_the_square_of_their_number():
    even = tuple((4 * n, 4 * n + 1) for n in range(20_000))
    odd = tuple((4 * n + 3, 4 * n + 3) for n in range(20_000))
    assert rng.difference(even, odd) == even
    assert not rng.intersects(even, odd)
    assert rng.contains(rng.union(even, odd), odd)
