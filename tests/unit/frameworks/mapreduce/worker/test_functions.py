"""What runs in the process of a function, without the process."""

from __future__ import annotations

import io
import itertools

import pytest

from frameworks.mapreduce.functions import encoded_key, encoded_value, text_line
from frameworks.mapreduce.job import JobSpec, Program
from frameworks.mapreduce.worker import functions
from frameworks.mapreduce.worker.functions import Form, Records, write_all
from mesos_py.errors import InvalidValue

FUNCTION = Program(function=b"f")
COMMAND = Program(command="cat")


def spec(mapper, reducer, combiner=None, reduces=1):
    return JobSpec(
        job_id="job_1_0001",
        name="",
        user="",
        inputs=(),
        output="",
        mapper=mapper,
        reducer=reducer,
        combiner=combiner,
        reduces=reduces,
    )


@pytest.mark.parametrize(
    ("job", "coded"),
    [
        (spec(FUNCTION, FUNCTION), True),
        (spec(FUNCTION, FUNCTION, FUNCTION), True),
        (spec(FUNCTION, FUNCTION, COMMAND), False),
        (spec(FUNCTION, COMMAND), False),
        (spec(COMMAND, FUNCTION), False),
        (spec(FUNCTION, None, reduces=0), False),
    ],
)
def test_records_are_coded_where_only_functions_see_them(job, coded):
    assert Form.of(job).coded == coded


def lines(*pairs):
    return io.BytesIO(
        b"".join(encoded_key(key) + b"\t" + encoded_value(value) + b"\n" for key, value in pairs)
    )


def test_values_of_a_key_come_together():
    records = Records(lines(("a", 1), ("a", 2), (3, "x")), True)
    made = list(records.reduced(lambda key, values: [(key, list(values))]))
    assert made == [("a", [1, 2]), (3, ["x"])]


def test_a_key_that_begins_like_another_is_another():
    data = io.BytesIO(b"a\t1\na\nab\t2\nab\nb\n")
    made = list(Records(data, False).reduced(lambda key, values: [(key, list(values))]))
    assert made == [("a", ["1", ""]), ("ab", ["2", ""]), ("b", [""])]


def test_values_that_nobody_takes_are_passed_over():
    records = Records(lines(("a", 1), ("a", 2), ("b", 3)), True)
    assert list(records.reduced(lambda key, values: [(key, next(values))])) == [("a", 1), ("b", 3)]
    records = Records(lines(("a", 1), ("a", 2), ("b", 3)), True)
    assert list(records.reduced(lambda key, values: None)) == []


def test_old_values_do_not_become_those_of_the_next_key():
    kept = []

    def reducer(key, values):
        kept.append(values)
        return [(key, 0)]

    list(Records(lines(("a", 1), ("a", 2), ("b", 3)), True).reduced(reducer))
    assert [list(values) for values in kept] == [[], []]


def test_the_last_record_is_known():
    records = Records(io.BytesIO(b"x\ny\n"), False)
    assert records.where == ""
    made = records.mapped(lambda line: [(line, 1)])
    next(made)
    assert records.where == "in line 1 that was read: b'x\\n'"


@pytest.mark.parametrize("made", ["ab", ("a",), 3, None])
def test_only_pairs_are_records(made):
    with pytest.raises(InvalidValue, match="pair"):
        write_all(iter([("a", 1), made]), io.BytesIO(), text_line)


def test_records_are_written_one_a_line():
    out = io.BytesIO()
    write_all(iter([("a", 1), ["b", "x"]]), out, text_line)
    assert out.getvalue() == b"a\t1\nb\tx\n"


KEYS = ["a", "a\tb", "\\", "", "\udcff", b"a", 1, 1.0, True, None, ("a", 1), "x" * 100]
VALUES = ["a", b"a", 1, True, 1.0, 0, False, -7, 10**100, None, [1], {"a": (1,)}]


def test_what_is_kept_is_written_as_if_it_were_not(monkeypatch):
    monkeypatch.setattr(functions, "_KEPT", 2)
    line = functions.coded_lines()
    for _ in range(2):
        for key, value in itertools.product(KEYS, VALUES):
            assert line(key, value) == encoded_key(key) + b"\t" + encoded_value(value) + b"\n"


def test_what_is_kept_is_read_as_if_it_were_not(monkeypatch):
    monkeypatch.setattr(functions, "_KEPT", 2)
    coded = [(value, b"a\t" + encoded_value(value) + b"\n") for value in VALUES * 2]
    stdin = io.BytesIO(b"".join(line for _, line in coded))

    def reducer(key, values):
        yield key, [(type(value), value) for value in values]

    ((key, found),) = functions.Records(stdin, coded=True).reduced(reducer)
    assert (key, found) == ("a", [(type(value), value) for value, _ in coded])
