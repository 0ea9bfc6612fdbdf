"""The kernel's figures."""

from __future__ import annotations

import pytest

from agent.isolation.cgroups.numbers import blkio, cpu_list, cpu_text, io_stat, keyed, number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("123\n", 123),
        ("max\n", None),
        ("9223372036854771712\n", None),
        ("18446744073709551615", None),
        ("-1\n", None),
        ("", None),
        (None, None),
        ("1_000", None),
        ("٣", None),
        ("9" * 30, None),
    ],
)
def test_one_number(text, value):
    assert number(text) == value


def test_lines_that_are_odd_are_left_out():
    assert keyed("a 1\nb\n\nc x\n d  2 \n") == {"a": 1, "d": 2}
    assert keyed(None) == {}
    assert io_stat("8:0 rbytes=1 odd wbytes=x\n8:1 rbytes=2\nalone\n") == {"rbytes": 3}
    assert blkio("8:0 Read 1\n8:1 Read 2\nTotal 3\nx y z\n") == {"Read": 3}


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0-3,7\n", {0, 1, 2, 3, 7}),
        ("\n", set()),
        ("5", {5}),
        ("3-1,x,2-", set()),
        ("0-99999", set()),
    ],
)
def test_lists_of_processors(text, cpus):
    assert cpu_list(text) == cpus


def test_text_of_processors():
    assert cpu_text([7, 0, 1, 2, 4]) == "0-2,4,7"
    assert cpu_text([]) == ""
