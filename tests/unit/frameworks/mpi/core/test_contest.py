"""When a job competes, and when it leaves the field to others."""

import pytest

from frameworks.common.gang import Ask
from frameworks.mpi.core.contest import CONTEND_S, MOST_DOUBLINGS, Contest, Turn
from mesos_py import Resources

ASK = Ask(4, Resources.of(cpus=1))
ENOUGH = Resources.of(cpus=4)
HALF = Resources.of(cpus=2)


def test_with_a_share_that_suffices_it_competes_on():
    contest = Contest(ASK, beyond=False)
    assert [contest.look(ENOUGH, float(now_s), 0.5) for now_s in range(100)] == [None] * 100
    assert (contest.contending, contest.short(ENOUGH)) == (True, "")


def test_with_half_of_it_it_withdraws_for_a_while_again_and_again():
    contest = Contest(ASK, beyond=False)
    assert "needs 4 cpus in all" in contest.short(HALF)
    assert "guaranteed nothing" in contest.short(Resources())
    turns = []
    for tick in range(200):
        turn = contest.look(HALF, tick / 10, 0.5)
        if turn is not None:
            turns.append((tick / 10, turn))
        assert contest.contending == (not turns or turns[-1][1] is Turn.CONTEND)
    assert turns[0][0] == pytest.approx(CONTEND_S * 1.5, abs=0.2)
    assert {turn for _, turn in turns[::2]} == {Turn.REST}
    assert {turn for _, turn in turns[1::2]} == {Turn.CONTEND}


def test_beyond_the_guarantee_no_share_is_too_small():
    contest = Contest(ASK, beyond=True)
    assert contest.look(Resources(), 1000.0, 0.5) is None
    assert contest.short(Resources()) == ""


def test_what_was_not_enough_keeps_it_away_for_twice_as_long_each_time():
    contest = Contest(ASK, beyond=True)
    pauses, now_s = [], 0.0
    for _ in range(MOST_DOUBLINGS + 2):
        contest.collided(now_s, 1.0, 0.5)
        assert not contest.contending
        began_s = now_s
        while contest.look(ENOUGH, now_s, 0.0) is not Turn.CONTEND:
            now_s += 0.125
        pauses.append(now_s - began_s)
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 32.0]
