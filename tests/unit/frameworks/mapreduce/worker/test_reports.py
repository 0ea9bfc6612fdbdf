from __future__ import annotations

import pytest

from frameworks.mapreduce.worker import reports
from frameworks.mapreduce.worker.reports import Reports, Tally


@pytest.fixture
def tally():
    return Tally()


@pytest.fixture
def log():
    return []


@pytest.fixture
def heard(tally, log):
    return Reports(tally, log.append)


@pytest.fixture
def taken(heard):
    return heard.program()


def test_counters_add_up(taken, tally, log):
    taken.feed(b"reporter:counter:g,n,2\nreporter:counter:g,n,3\nreporter:counter:g,m,-1\n")
    assert tally.all() == {"g": {"n": 5, "m": -1}}
    assert log == []


def test_a_counter_s_name_may_have_commas_and_spaces(taken, tally):
    taken.feed("reporter:counter:my group,words, of é,7\n".encode())
    assert tally.all() == {"my group": {"words, of é": 7}}


def test_lines_may_come_in_any_pieces(taken, tally, log, heard):
    text = b"one\nreporter:counter:g,n,2\ntwo\nreporter:status:so far\nthree"
    for byte in text:
        taken.feed(bytes([byte]))
    taken.end()
    assert tally.all() == {"g": {"n": 2}}
    assert heard.status == "so far"
    assert b"".join(log) == b"one\ntwo\nthree\n"


@pytest.mark.parametrize(
    "line",
    [
        b"reporter:counter:g,n,x\n",
        b"reporter:counter:g,n\n",
        b"reporter:counter:g,n,99999999999999999999\n",
        b"reporter:other:g\n",
        b" reporter:counter:g,n,1\n",
        b"\xff\xfe\n",
    ],
)
def test_what_is_no_report_is_for_the_log(taken, tally, log, line):
    taken.feed(line)
    assert b"".join(log) == line
    assert tally.all() == {}


def test_a_long_status_is_cut(taken, heard):
    taken.feed(b"reporter:status:" + b"x" * 10_000 + b"\n")
    assert heard.status == "x" * reports.MAX_STATUS


def test_the_tail_is_whole_lines_of_the_end(taken, heard):
    for number in range(10_000):
        taken.feed(b"line %d\n" % number)
    assert heard.tail.startswith("line ")
    assert heard.tail.endswith("line 9999\n")
    assert reports.TAIL - 20 < len(heard.tail) <= reports.TAIL


def test_the_tail_of_one_endless_line_is_its_end(taken, heard):
    for _ in range(100):
        taken.feed(b"y" * 10_000)
    taken.end()
    assert heard.tail == "y" * (reports.TAIL - 1) + "\n"


def test_a_log_has_a_limit_which_is_said_once_and_the_tail_goes_on(taken, log, monkeypatch, heard):
    monkeypatch.setattr(reports, "MAX_LOG", 25)
    for number in range(10):
        taken.feed(b"line %d\n" % number)
    assert b"".join(log) == (
        b"line 0\nline 1\nline 2\n[mapreduce] more than 25 bytes: the rest is not kept\n"
    )
    assert heard.tail.endswith("line 9\n")


def test_there_is_no_end_of_counters_for_a_program_that_makes_up_names(taken, tally, log):
    for number in range(reports.MAX_COUNTERS + 10):
        taken.feed(b"reporter:counter:g,n%d,1\n" % number)
    assert len(tally.all()["g"]) == reports.MAX_COUNTERS
    assert len(log) == 1
    taken.feed(b"reporter:counter:g,n0,1\n")
    assert tally.all()["g"]["n0"] == 2


def test_long_names_are_cut(tally):
    tally.add("g" * 1000, "n" * 1000)
    assert tally.all() == {"g" * reports.MAX_NAME: {"n" * reports.MAX_NAME: 1}}


def test_a_counter_can_be_put(tally):
    tally.put_task("MAP_INPUT_RECORDS", 5)
    tally.put_task("MAP_INPUT_RECORDS", 3)
    assert tally.all() == {reports.TASKS: {"MAP_INPUT_RECORDS": 3}}


def test_programs_may_be_heard_in_turn_in_the_middle_of_lines(heard, tally, log):
    mapper, combiner = heard.program(), heard.program()
    mapper.feed(b"reporter:counter:g,")
    combiner.feed(b"said\nreporter:counter:g,m,1")
    mapper.feed(b"n,5\n")
    combiner.end()
    mapper.end()
    assert tally.all() == {"g": {"n": 5, "m": 1}}
    assert b"".join(log) == b"said\n"
