"""Jobs of Python functions, run by real attempts, without a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from frameworks.mapreduce import functions
from frameworks.mapreduce.functions import packed
from tests.kit.mapreduce_local import Jobs, counter

ONCE = {"mapreduce.map.maxattempts": "1", "mapreduce.reduce.maxattempts": "1"}
TEXT = "".join(f"w{n % 37} c:\\new\\t{n % 5} é{n % 3}\n" for n in range(3000))


@pytest.fixture
def jobs(tmp_path):
    return Jobs(tmp_path)


def here(function):
    """Packed by value, as a function of somebody's script is: a worker cannot import this."""
    function.__module__ = "__main__"
    return packed(function)


def words():
    def mapper(line):
        for word in line.split():
            yield word, 1

    return here(mapper)


def total():
    def reducer(key, values):
        yield key, sum(values)

    return here(reducer)


def expected_counts():
    counts = Counter(TEXT.split())
    return [f"{word}\t{counts[word]}" for word in sorted(counts, key=str.encode)]


def test_word_count_of_functions(jobs):
    split = {"mapreduce.input.fileinputformat.split.maxsize": "20000"}
    outcome = jobs.run(TEXT, words(), total(), combiner=total(), conf=split)
    assert outcome.failure is None
    assert jobs.text.splitlines() == expected_counts()
    assert counter(outcome, "COMBINE_INPUT_RECORDS") == len(TEXT.split())
    assert counter(outcome, "REDUCE_INPUT_RECORDS") < 1000


def test_functions_and_commands_go_together(jobs):
    awk = "awk -F'\\t' '$1 != k {if (NR > 1) print k \"\\t\" n; k = $1; n = 0} {n += $2} "
    awk += 'END {if (NR) print k "\\t" n}\''
    outcome = jobs.run(TEXT, words(), awk)
    assert outcome.failure is None
    assert jobs.text.splitlines() == expected_counts()

    def reducer(key, values):
        yield key, sum(int(value) for value in values)

    mapper = "awk '{for (i = 1; i <= NF; i++) print $i \"\\t1\"}'"
    outcome = jobs.run(TEXT, mapper, here(reducer))
    assert outcome.failure is None
    assert jobs.text.splitlines() == expected_counts()


def test_separators_for_programs_do_not_change_what_functions_say_to_each_other(jobs):
    conf = {
        "stream.map.output.field.separator": "w",
        "stream.num.map.output.key.fields": "2",
        "stream.reduce.input.field.separator": "|",
    }
    assert jobs.run(TEXT, words(), total(), conf=conf).failure is None
    assert jobs.text.splitlines() == expected_counts()


def test_keys_and_values_of_all_kinds_meet_whatever_the_seed_of_hashes(tmp_path):
    """Each map has another one, as it would on machines of a cluster."""
    program = """
import sys
from pathlib import Path
from frameworks.mapreduce.functions import packed
from tests.kit.mapreduce_local import Jobs

def mapper(line):
    tuples = ("a", 1), ("a", True), (b"x", ("y", None))
    for key in ("a", b"a", None, 1, 1.0, True, 0.5, *tuples, "\\\\=1"):
        yield key, {"list": [1, "two"], "tuple": (b"3", None)}

def reducer(key, values):
    for n, value in enumerate(values, 1):
        assert value == {"list": [1, "two"], "tuple": (b"3", None)}, value
        assert type(value["tuple"]) is tuple
    yield repr(key), n

jobs = Jobs(Path(sys.argv[1]))
outcome = jobs.run("x\\n" * 4, packed(mapper), packed(reducer), reduces=3,
    conf={"mapreduce.input.fileinputformat.split.maxsize": "2"})
assert outcome.failure is None, outcome.failure
assert outcome.maps == 4
print("".join(sorted(jobs.text.splitlines(keepends=True))), end="")
"""
    said = [
        subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / seed)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            timeout=300,
        )
        for seed in ("1", "random")
    ]
    assert said[0].stderr == ""
    assert said[0].stdout == said[1].stdout
    counts = dict(line.rsplit("\t", 1) for line in said[0].stdout.splitlines())
    assert counts == {
        "'a'": "4",
        "b'a'": "4",
        "None": "4",
        "1": "12",
        "0.5": "4",
        "('a', 1)": "8",
        "(b'x', ('y', None))": "4",
        "'\\\\=1'": "4",
    }


def test_lines_of_any_bytes_come_through(jobs):
    lines = [b"\xff\xfe\t\x00\\n", b"", b"\r", "é".encode(), b"a\tb\\"]

    def mapper(line):
        yield line, line

    def reducer(key, values):
        for value in values:
            yield None, value

    data = b"".join(line + b"\n" for line in lines)
    assert jobs.run(data, here(mapper), here(reducer)).failure is None
    assert sorted(b"".join(jobs.parts).split(b"\n")[:-1]) == sorted(lines)


def test_a_reducer_need_not_take_all_values(jobs):
    def mapper(line):
        return [(line[:1], line)]

    def first(key, values):
        yield key, next(values)

    def nothing(key, values):
        return None

    data = "".join(f"{letter}{n}\n" for letter in "ab" for n in range(5))
    assert jobs.run(data, here(mapper), here(first)).failure is None
    assert jobs.text == "a\ta0\nb\tb0\n"
    assert jobs.run(data, here(mapper), here(nothing)).failure is None
    assert jobs.text == ""


def test_functions_count_and_report_and_may_print(jobs):
    def mapper(line):
        functions.count("my", "lines")
        functions.set_status(f"at {line}")
        sys.stdout.write("printed")
        yield line, None

    outcome = jobs.run("a\nb\n", here(mapper))
    assert outcome.failure is None
    assert counter(outcome, "lines", "my") == 2
    assert jobs.text == "a\nb\n"


def test_a_function_keeps_its_state_within_an_attempt(jobs):
    seen = []

    def mapper(line):
        seen.append(line)
        yield line, len(seen)

    assert jobs.run("a\nb\n", here(mapper)).failure is None
    assert jobs.text == "a\t1\nb\t2\n"
    assert seen == []


# ---- How they fail ---------------------------------------------------------------------------


def test_the_user_s_own_frames_come_first_with_the_record(jobs):
    def parse(text):
        return int(text)

    def mapper(line):
        yield parse(line), 1

    text = "".join(f"{n if n != 37 else 'thirty-seven'}\n" for n in range(1, 60))
    failure = jobs.run(text, here(mapper), total(), conf=ONCE).failure
    lines = failure.details.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert "test_mapreduce_functions.py" in lines[1]
    assert "in mapper" in lines[1]
    assert lines[2] == "    yield parse(line), 1"
    assert "frameworks/mapreduce" not in failure.details
    assert "[mapreduce] in line 37 that was read: b'thirty-seven\\n'" in lines
    assert failure.message == (
        "mapper: function ended with exit code 1: ValueError: invalid literal for int() "
        "with base 10: 'thirty-seven'"
    )
    assert failure.where.endswith("in-1.txt bytes 0 to 178")
    assert failure.blame == "program"


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ((frozenset("a"), 1), "is or has a frozenset"),
        ((("a", {}), 1), "is or has a dict"),
        ((float("nan"), 1), "NaN"),
        (("a", 1, 2), "must be a pair (tuple) of key and value"),
        ("ab", "must be a pair (tuple) of key and value"),
    ],
)
def test_records_that_are_none_are_said(jobs, record, said):
    def mapper(line):
        yield record

    failure = jobs.run("x\n", here(mapper), total(), conf=ONCE).failure
    assert said in failure.message


def test_a_reducer_s_error_is_that_of_the_job(jobs):
    def reducer(key, values):
        yield key, 1 / 0

    failure = jobs.run("x\n", words(), here(reducer), conf=ONCE).failure
    assert failure.message.endswith("ZeroDivisionError: division by zero")
    assert failure.details.startswith("Traceback")
    assert failure.message.startswith("reducer: function")


def test_a_function_that_ends_the_process_is_said(jobs):
    def leave(line):
        sys.exit(7)

    def crash(line):
        os.abort()

    assert "exit code 7" in jobs.run("x\n", here(leave), conf=ONCE).failure.message
    assert "SIGABRT" in jobs.run("x\n", here(crash), conf=ONCE).failure.message


def test_a_function_of_a_module_that_workers_do_not_have_is_said(jobs):
    def mapper(line):
        import no_such_module  # type: ignore[import-not-found]

        yield no_such_module, 1

    failure = jobs.run("x\n", here(mapper), conf=ONCE).failure
    assert "ModuleNotFoundError: No module named 'no_such_module'" in failure.message


@pytest.mark.parametrize("role", ["mapper", "combiner", "reducer"])
def test_a_function_that_leaves_by_os_exit_has_not_done_its_work(jobs, role):
    """With exit code 0, which says that all is well, and what it had yielded not yet written."""

    def leave(key, values):
        yield key, 1
        os._exit(0)

    def mapper(line):
        yield line, 1
        os._exit(0)

    given = {
        "mapper": (here(mapper), total(), None),
        "combiner": (words(), total(), here(leave)),
        "reducer": (words(), here(leave), None),
    }
    first, second, third = given[role]
    outcome = jobs.run("x\ny\n", first, second, combiner=third, conf=ONCE)
    assert outcome.failure is not None
    assert outcome.failure.blame == "program"
    assert outcome.failure.message.startswith(
        f"{role}: function ended with exit code 0 in the middle of its work"
    )


def test_a_function_that_leaves_by_sys_exit_has_written_what_it_has_yielded(jobs):
    def mapper(line):
        yield line, 1
        if line == "y":
            sys.exit(0)

    outcome = jobs.run("x\ny\nz\n", here(mapper))
    assert outcome.failure is None
    assert jobs.text == "x\t1\ny\t1\n"


def test_keys_are_counted_where_functions_reduce(jobs):
    conf = {"mapreduce.input.fileinputformat.split.maxsize": "20000"}
    outcome = jobs.run(TEXT, words(), total(), combiner=total(), conf=conf, reduces=3)
    assert outcome.failure is None
    assert counter(outcome, "REDUCE_INPUT_GROUPS") == len(set(TEXT.split()))
