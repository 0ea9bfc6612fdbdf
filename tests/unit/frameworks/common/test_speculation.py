import math

from frameworks.common.speculation import Pace, most_twins, quantile, slow_agents, stragglers


def test_the_one_that_will_end_last_is_first():
    paces = [Pace(0, 0.5, 10.0), Pace(1, 0.1, 10.0), Pace(2, 0.05, 10.0)]
    assert stragglers(paces, [8.0] * 9, after_s=5.0) == [2, 1, 0]


def test_one_that_ends_soon_has_no_need():
    # 9 of 10 done after 30 s: 3.3 s are left, and another one would take 10.
    assert stragglers([Pace(0, 0.9, 30.0)], [10.0] * 9, after_s=5.0) == []


def test_one_that_is_as_fast_as_others_is_left_alone():
    paces = [Pace(n, 0.2, 5.0) for n in range(3)] + [Pace(3, 0.01, 5.0)]
    assert stragglers(paces, [4.0], after_s=5.0) == [3, 0, 1, 2]
    assert stragglers(paces[:3], [25.0] * 9, after_s=5.0) == []


def test_one_that_shows_nothing_is_judged_by_time_only():
    assert stragglers([Pace(0, 0.0, 15.0, 15.0)], [10.0] * 3, after_s=5.0) == []
    assert stragglers([Pace(0, 0.0, 20.0, 20.0)], [10.0] * 3, after_s=5.0) == [0]


def test_one_that_stops_anywhere_gets_a_twin_after_twice_the_usual_time_at_the_latest():
    """Read all at once and then nothing; nothing at its last line; nothing from the middle on."""
    for stopped_s, progress, at_s in ((1, 0.9, 20), (9.9, 0.99, 20), (9.9, 1, 20), (5, 0.5, 11)):
        found = [
            now_s
            for now_s in range(1, 100)
            if stragglers([Pace(0, progress, now_s, now_s - stopped_s)], [10.0] * 3, after_s=5.0)
        ]
        assert min(found) == at_s, (stopped_s, progress)


def test_one_that_has_much_to_do_and_goes_on_is_not_stuck():
    # It would end in 4.4 s at this rate, and another one takes 10.
    assert stragglers([Pace(0, 0.9, 40.0, 9.0)], [10.0] * 3, after_s=5.0) == []
    # It stops after all: as long as others take in all is patience enough.
    assert stragglers([Pace(0, 0.9, 41.0, 10.0)], [10.0] * 3, after_s=5.0) == [0]


def test_of_short_ones_none_is_stuck_before_all_are_left_alone_no_more():
    assert stragglers([Pace(0, 0.9, 4.9, 4.8)], [1.0] * 3, after_s=5.0) == []
    assert stragglers([Pace(0, 0.9, 5.1, 4.9)], [1.0] * 3, after_s=5.0) == []
    assert stragglers([Pace(0, 0.9, 5.2, 5.0)], [1.0] * 3, after_s=5.0) == [0]


def test_those_that_are_stuck_come_first_who_stands_longest_before_the_others():
    paces = [Pace(0, 0.01, 30.0), Pace(1, 0.5, 30.0, 15.0), Pace(2, 0.9, 30.0, 20.0)]
    assert stragglers(paces, [10.0] * 9, after_s=5.0) == [2, 1, 0]


def test_nothing_can_be_said_without_any_that_has_finished():
    assert stragglers([Pace(0, 0.0, 1000.0)], [], after_s=5.0) == []


def test_at_first_everybody_is_left_alone():
    assert stragglers([Pace(0, 0.01, 4.9)], [1.0] * 3, after_s=5.0) == []


def test_paces():
    assert Pace(0, 0.25, 10.0).left_s == 30.0
    assert Pace(0, 0.0, 10.0).left_s == math.inf


def test_twins_are_few_but_one_is_always_allowed():
    assert [most_twins(n, 0.1) for n in (0, 1, 19, 20, 100)] == [1, 1, 1, 2, 10]


def test_agents_on_which_things_take_long():
    finished = [("a", 10.0), ("b", 11.0), ("c", 50.0), ("c", 40.0)]
    assert slow_agents(finished) == {"c"}
    assert slow_agents([("c", 50.0)]) == set()


def test_quantiles():
    assert [quantile([3.0, 1.0, 2.0, 4.0], share) for share in (0, 0.25, 0.5, 1)] == [1, 2, 3, 4]
