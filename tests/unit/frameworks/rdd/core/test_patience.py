"""When people are told that jobs wait."""

from __future__ import annotations

import itertools

import pytest

from frameworks.rdd.core.patience import AGAIN_S, FIRST_S, MOST_S, Patience


@pytest.fixture
def patience() -> Patience:
    return Patience()


def test_short_waits_are_not_worth_a_word(patience):
    assert (patience.due(0), patience.wake_s) == ("", None)
    patience.waits_for("executors start", 100)
    assert patience.wake_s == 100 + FIRST_S
    assert patience.due(100 + FIRST_S - 1) == ""
    patience.waits_for("", 100 + FIRST_S - 1)
    assert (patience.due(1000), patience.wake_s) == ("", None)


def test_long_ones_are_told_with_what_is_waited_for_then_and_ever_more_rarely(patience):
    patience.waits_for("executors start", 0)
    patience.waits_for("no offer", 3)
    now_s, told_s = FIRST_S, []
    while now_s < 20 * MOST_S:
        assert patience.due(now_s) == "no offer"
        assert patience.due(now_s) == ""
        told_s.append(now_s)
        now_s = patience.wake_s
    pauses_s = [after - before for before, after in itertools.pairwise(told_s)]
    assert pauses_s[:3] == [AGAIN_S, 2 * AGAIN_S, 4 * AGAIN_S]
    assert pauses_s[-1] == pauses_s[-2] == MOST_S


def test_waits_that_come_and_go_are_one(patience):
    patience.waits_for("x", 0)
    assert patience.due(FIRST_S) == "x"
    patience.waits_for("", 10)
    patience.waits_for("y", 11)
    assert patience.wake_s == FIRST_S + AGAIN_S
    assert patience.due(FIRST_S + AGAIN_S) == "y"
    # And one long after is another.
    patience.waits_for("", 100)
    patience.waits_for("z", 10_000)
    assert patience.due(10_000 + FIRST_S) == "z"
    assert patience.wake_s == 10_000 + FIRST_S + AGAIN_S
