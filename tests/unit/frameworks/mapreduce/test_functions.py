from __future__ import annotations

import os
import subprocess
import sys
import threading
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frameworks.mapreduce import functions
from mesos_py.errors import InvalidValue

TEXT = st.text(st.characters(exclude_categories=["Cs"])) | st.text(alphabet="\\\t\n tn=:*")
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | TEXT
    | st.binary(max_size=8)
)
KEYS = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(TEXT | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(KEYS, KEYS)
def test_keys_are_written_alike_exactly_if_they_are_equal(one, other):
    assert (functions.encoded_key(one) == functions.encoded_key(other)) == (one == other)


@given(KEYS)
def test_a_key_comes_back_equal_from_one_field_of_a_line(key):
    data = functions.encoded_key(key)
    assert b"\t" not in data
    assert b"\n" not in data
    assert functions.decoded_key(data) == key


@given(VALUES)
def test_a_value_comes_back_as_it_was_with_its_types(value):
    data = functions.encoded_value(value)
    assert b"\n" not in data
    assert b"\t" not in data
    back = functions.decoded_value(data)
    assert repr(back) == repr(value)


@given(st.binary())
def test_a_line_of_any_bytes_can_be_a_key(data):
    text = data.decode("utf-8", "surrogateescape")
    assert functions.decoded_key(functions.encoded_key(text)) == text


def test_plain_text_is_written_as_it_is_so_that_keys_are_in_the_order_of_their_text():
    assert functions.encoded_key("Zoë") == "Zoë".encode()
    assert functions.encoded_value("3") == b"3"
    assert functions.encoded_value(3) == b"\\=3"


@pytest.mark.parametrize("same", [(1, 1.0, True), (0, -0.0, False), ((1, "a"), (True, "a"))])
def test_numbers_that_are_equal_are_one_key(same):
    assert len({functions.encoded_key(key) for key in same}) == 1


@pytest.mark.parametrize(
    ("key", "named"),
    [
        (frozenset({"a"}), "frozenset"),
        (("a", ["b"]), "list"),
        (Fraction(1, 2), "Fraction"),
        (float("nan"), "NaN"),
        ((1, float("nan")), "NaN"),
        (object(), "object"),
    ],
)
def test_a_key_that_is_not_the_same_everywhere_is_refused_with_its_class(key, named):
    for write in (functions.encoded_key, lambda key: functions.text_line(key, 1)):
        with pytest.raises(InvalidValue, match=named):
            write(key)


def test_text_that_has_no_bytes_is_refused():
    with pytest.raises(InvalidValue, match="UTF-8"):
        functions.encoded_key("\ud800")


def test_other_values_are_pickled():
    value = Fraction(1, 3)
    assert functions.decoded_value(functions.encoded_value(value)) == value
    with pytest.raises(InvalidValue, match="generator"):
        functions.encoded_value(x for x in "ab")


@pytest.mark.parametrize("data", [b"\\=", b"\\={", b"\\*!", b"\\*YQ"])
def test_what_no_function_wrote_is_said(data):
    with pytest.raises(InvalidValue, match="was not written by a function"):
        functions.decoded_value(data)


@pytest.mark.parametrize(
    ("record", "line"),
    [
        (("word", 3), b"word\t3\n"),
        (("C:\\tmp\\n", "a\tb"), b"C:\\tmp\\n\ta\tb\n"),
        ((b"\xff\x00", b"\xfe"), b"\xff\x00\t\xfe\n"),
        (("a\tb", "c\nd"), b"a\\tb\tc\\nd\n"),
        ((None, "whole line"), b"whole line\n"),
        (("whole line", None), b"whole line\n"),
        ((None, None), b"\n"),
        ((("a", 1.0), {"b": [b"x", None]}), b'["a", 1]\t{"b": ["x", null]}\n'),
        ((True, True), b"1\ttrue\n"),
    ],
)
def test_lines_for_commands_and_the_output(record, line):
    assert functions.text_line(*record) == line


def test_a_value_without_a_text_is_refused():
    with pytest.raises(InvalidValue, match="Fraction"):
        functions.text_line("a", Fraction(1, 2))


def test_keys_are_written_alike_whatever_the_hash_seed():
    program = (
        "from frameworks.mapreduce import functions as f\n"
        "keys = ['a', b'a', None, 1, 1.0, True, ('x', b'y', (2.0, None)), 'é', 2.5]\n"
        "print([f.encoded_key(key) for key in keys])"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("0", "1", "random")
    }
    assert len(said) == 1


def test_a_function_of_the_main_program_goes_along_by_value():
    limit = 3

    def mapper(line):
        yield line[:limit], 1

    assert list(functions.unpacked(functions.packed(mapper))("abcdef")) == [("abc", 1)]


def test_what_cannot_be_sent_is_said():
    with pytest.raises(InvalidValue, match="cannot be called"):
        functions.packed("no function")  # type: ignore[arg-type]
    lock = threading.Lock()
    with pytest.raises(InvalidValue, match="cannot be pickled"):
        functions.packed(lock.locked)


def test_reports_are_lines_on_stderr(capsys):
    functions.count("words", "seen")
    functions.count("words", "seen", 5)
    functions.set_status("two\nlines")
    assert capsys.readouterr().err == (
        "reporter:counter:words,seen,1\nreporter:counter:words,seen,5\nreporter:status:two lines\n"
    )
