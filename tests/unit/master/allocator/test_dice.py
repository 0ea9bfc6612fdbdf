from itertools import pairwise

from master.allocator.dice import Dice


def test_the_numbers_are_those_of_splitmix64():
    # The first ones of the published generator from the state 0.
    dice = Dice()
    throws = [dice.below(2**64) for _ in range(3)]
    assert throws == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_the_same_seeds_give_the_same_numbers_and_others_do_not():
    def some(*seeds: int) -> list[int]:
        dice = Dice(*seeds)
        return [dice.below(1000) for _ in range(8)]

    assert some(1, 2) == some(1, 2)
    different = [some(*seeds) for seeds in ((1, 2), (2, 1), (1, 2, 0), (1,), (0, 2), (-1, 2))]
    assert len({tuple(each) for each in different}) == len(different)


def test_all_numbers_below_the_end_are_as_likely():
    dice = Dice(7)
    counts = [0] * 6
    for _ in range(60_000):
        counts[dice.below(6)] += 1
    assert sum((count - 10_000) ** 2 / 10_000 for count in counts) < 25  # chi-square, 5 degrees


def test_fractions_fill_the_open_interval():
    dice = Dice(7)
    found = [dice.fraction() for _ in range(10_000)]
    assert 0 < min(found) < 0.001
    assert 0.999 < max(found) < 1
    assert abs(sum(found) / len(found) - 0.5) < 0.01


def test_seeds_that_differ_by_one_are_not_alike():
    # The lottery counts its draws: their first throws must not run in step.
    first = [Dice(1, number).below(100) for number in range(20_000)]
    counts = [first.count(value) for value in range(100)]
    assert sum((count - 200) ** 2 / 200 for count in counts) < 160
    repeated = sum(one == other for one, other in pairwise(first))
    assert 120 < repeated < 290
