"""Workers that were told to end, until it is known that they have."""

from __future__ import annotations

import pytest

from frameworks.mapreduce.tracker.departures import AGAIN_S, CUT_OFF_S, FORGET_S, Departures

HERE = ("a", "w1")
THERE = ("b", "w2")


@pytest.fixture
def departures() -> Departures:
    return Departures()


def test_one_that_does_not_end_is_told_again(departures):
    departures.asked(HERE, 0.0, told=True)
    assert departures.next_s() == AGAIN_S
    assert departures.due(AGAIN_S - 1) == []
    assert departures.due(AGAIN_S) == [HERE]
    assert departures.due(AGAIN_S) == []
    departures.ended(HERE)
    departures.ended(HERE)
    assert departures.due(10 * AGAIN_S) == []
    assert departures.next_s() is None


def test_one_of_a_predecessor_is_told_at_once(departures):
    departures.asked(HERE, 0.0, told=False)
    assert departures.due(0.0) == [HERE]


def test_one_that_is_heard_of_again_is_told_once_in_a_while(departures):
    departures.heard(HERE, 0.0)
    assert departures.due(0.0) == [HERE]
    departures.heard(HERE, 1.0)
    assert departures.due(1.0) == []
    assert departures.due(AGAIN_S) == [HERE]


def test_after_a_lost_link_all_are_told_again(departures):
    departures.asked(HERE, 0.0, told=True)
    departures.cut_off([THERE], 0.0)
    departures.linked(1.0)
    assert departures.due(1.0) == [HERE, THERE]


def test_one_that_was_gone_before_is_not_told_for_ever(departures):
    departures.asked(HERE, 0.0, told=True)
    assert departures.due(FORGET_S) == []
    assert departures.next_s() is None


def test_one_that_is_cut_off_is_told_for_as_long_as_its_agent_may_come_back(departures):
    departures.cut_off([HERE], 0.0)
    assert departures.due(0.0) == []
    assert departures.due(AGAIN_S) == [HERE]
    assert departures.due(CUT_OFF_S - 1) == [HERE]
    assert departures.due(CUT_OFF_S) == []
    assert departures.next_s() is None
