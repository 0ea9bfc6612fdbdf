from frameworks.common.fairness import Turns


def turns(order, *jobs):
    made = Turns(order)
    for job in jobs:
        made.add(*job)
    return made


JOBS = [(1, "low", 4.0), (2, "normal", 2.0), (3, "high", 6.0), (4, "normal", 1.0)]


def test_fair_is_who_holds_least_for_its_weight():
    assert list(turns("fair", *JOBS)) == [4, 2, 3, 1]


def test_of_equal_shares_who_holds_least_within_them_is_first():
    made = Turns("fair")
    made.add(1, "normal", 2.0, 2)
    made.add(2, "normal", 2.0, 1)
    made.add(3, "normal", 1.0, 9)
    assert list(made) == [3, 2, 1]


def test_fifo_is_who_came_first():
    assert list(turns("fifo", *reversed(JOBS))) == [1, 2, 3, 4]


def test_priority_is_the_highest_then_who_came_first():
    assert list(turns("priority", *JOBS)) == [3, 2, 4, 1]


def test_a_turn_changes_with_what_a_job_holds():
    made = turns("fair", (1, "normal", 0.0), (2, "normal", 0.0))
    assert list(made) == [1, 2]
    made.remove(1)
    assert (1 in made, len(made)) == (False, 1)
    made.add(1, "normal", 1.0)
    assert list(made) == [2, 1]


def test_shares_come_out_by_weight():
    held = {1: 0.0, 2: 0.0}
    made = turns("fair", (1, "high", 0.0), (2, "normal", 0.0))
    for _ in range(30):
        first = next(iter(made))
        made.remove(first)
        held[first] += 1
        made.add(first, "high" if first == 1 else "normal", held[first])
    assert held == {1: 20, 2: 10}
