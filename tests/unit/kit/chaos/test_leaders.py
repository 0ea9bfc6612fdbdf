"""Two masters that led at the same moment are found, however they ended."""

from __future__ import annotations

import math

import pytest

from tests.kit.chaos.leaders import Term, Write, epochs_obeyed, findings, terms

LOG = """\
2026-01-01T00:00:00.000Z INFO master.leadership leading id=a epoch=1 monotonic_s=10.5
2026-01-01T00:00:01.000Z INFO master.api agent registered agent=A1 epoch=9
2026-01-01T00:00:02.000Z INFO master.leadership not leading any more id=a epoch=1 monotonic_s=12.0
2026-01-01T00:00:03.000Z INFO master.leadership leading id=b epoch=3 monotonic_s=15.0
2026-01-01T00:00:09.000Z INFO master.leadership leading id=c epoch=5 monotonic_s=20.0
"""
ONE, TWO = Term("m1", 1, 10.0, 20.0), Term("m2", 2, 19.0, 30.0)


def write(number: int, master: str, sent_s: float, accepted: bool | None = True) -> Write:
    return Write(number, master, sent_s, sent_s + 0.1, accepted)


def test_leaderships_are_read_from_a_log_also_one_that_was_killed():
    assert terms("m", LOG) == [
        Term("m", 1, 10.5, 12.0),
        Term("m", 3, 15.0, 20.0),
        Term("m", 5, 20.0, math.inf),
    ]


def test_one_after_the_other_is_well():
    writes = [write(1, "m1", 11.0), write(2, "m2", 15.0, False), write(3, "m2", 21.0)]
    assert findings([ONE, TWO], writes, 3, {"a": [1, 1, 2]}) == []


def test_a_write_that_the_earlier_one_takes_after_the_later_one_is_found():
    writes = [write(1, "m2", 19.1), write(2, "m1", 19.5), write(3, "m2", 21.0)]
    [found] = findings([ONE, TWO], writes, 3, {})
    assert found.startswith("two masters led: epoch 1 took Write(number=2")


def test_so_is_a_decision_that_is_stored_nowhere():
    writes = [write(1, "m2", 19.1), Write(None, "m1", 19.5, 19.6, True)]
    [found] = findings([ONE, TWO], writes, 1, {})
    assert found.startswith("two masters led: epoch 1 took Write(number=None")


def test_two_writes_under_way_at_the_same_time_may_have_come_in_either_order():
    writes = [write(1, "m2", 19.1), write(2, "m1", 19.15), write(3, "m2", 21.0)]
    assert findings([ONE, TWO], writes, 3, {}) == []


def test_a_write_that_is_taken_without_leading_is_found():
    [found] = findings([ONE], [write(1, "m1", 5.0)], None, {})
    assert found.startswith("m1 did not lead, and took a write")


@pytest.mark.parametrize("stored", [None, 1])
def test_what_was_taken_and_is_not_there_is_found(stored):
    writes = [write(1, "m1", 11.0), write(2, "m1", 12.0)]
    [found] = findings([ONE], writes, stored, {})
    assert found.startswith(f"{stored} is stored, and 2 was taken last")


def test_a_write_of_which_nothing_was_heard_may_be_stored():
    writes = [write(1, "m1", 11.0), write(2, "m1", 12.0, None)]
    assert findings([ONE], writes, 1, {}) == findings([ONE], writes, 2, {}) == []


def test_one_number_for_two_leaderships_and_numbers_that_go_back_are_found():
    [found] = findings([ONE, Term("m2", 1, 25.0)], [], None, {})
    assert found.startswith("two leaderships with one number")
    [found] = findings([ONE, Term("m2", 2, 5.0)], [], None, {})
    assert found.startswith("a leadership began after a later one")


def test_an_agent_that_obeys_an_earlier_leadership_is_found():
    log = "T INFO agent.link registered master=h:1 agent=A epoch=3\nT INFO agent up epoch=9\n"
    assert epochs_obeyed(log) == [3]
    [found] = findings([ONE], [], None, {"a": [1, 2, 1]})
    assert found.startswith("a obeyed an earlier leadership")
