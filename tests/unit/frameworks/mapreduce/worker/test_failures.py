from __future__ import annotations

import errno

import pytest

from frameworks.mapreduce.job import Piece, Split
from frameworks.mapreduce.worker import failures
from frameworks.mapreduce.worker.failures import AttemptFailed, doing
from mesos_py.errors import InvalidValue

PLAIN = """Traceback (most recent call last):
  File "/x/words.py", line 3, in <module>
    int(line)
ValueError: invalid literal for int() with base 10: 'x'
"""
CHAINED = f"""{PLAIN}
During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/x/words.py", line 5, in <module>
    raise KeyError(1)
KeyError: 1
"""
SYNTAX = """  File "/x/words.py", line 1
    def f(:
          ^
SyntaxError: invalid syntax
"""
IMPORTED = f"""Traceback (most recent call last):
  File "/x/main.py", line 1, in <module>
    import words
{SYNTAX}"""


def test_a_traceback_is_first_and_its_error_says_most():
    details, last = failures.told(f"before\n{PLAIN}after\n")
    assert details == f"{PLAIN}\nafter\n\nbefore"
    assert last == "ValueError: invalid literal for int() with base 10: 'x'"


def test_of_two_tracebacks_the_last_is_first():
    details, last = failures.told(f"{PLAIN}and then\n{CHAINED.replace('KeyError: 1', 'E: 2')}")
    assert last == "E: 2"
    assert details.startswith(CHAINED.replace("KeyError: 1", "E: 2").rstrip("\n"))


def test_exceptions_that_were_chained_stay_together():
    assert failures.told(CHAINED) == (CHAINED.rstrip("\n"), "KeyError: 1")


@pytest.mark.parametrize("tail", ["", "\n\n"])
def test_nothing_was_said(tail):
    assert failures.told(tail) == ("", "")


def test_a_traceback_that_was_cut_is_no_fault():
    cut = "Traceback (most recent call last):\n  File"
    assert failures.told(cut) == (cut, "File")


@pytest.mark.parametrize(
    ("code", "tail", "blame"),
    [
        (1, SYNTAX, "job"),
        (1, SYNTAX.replace("SyntaxError", "IndentationError"), "job"),
        (1, f"a warning\n{SYNTAX}", "job"),
        (1, IMPORTED, "job"),
        (1, IMPORTED.replace("words.py", "other.py"), "program"),
        (1, IMPORTED.replace("/x/words.py", "<unknown>"), "program"),
        (1, PLAIN, "program"),
        (1, "SyntaxError: said by somebody\n", "program"),
        (-9, SYNTAX, "program"),
        (2, "", "program"),
    ],
)
def test_who_is_to_blame_for_a_program(code, tail, blame):
    assert failures.program_failed("mapper: x", code, tail, {"words.py"}).blame == blame


def test_a_message_is_one_line_and_not_too_long():
    failed = failures.program_failed("mapper: a\nb", 1, "x" * 10_000, set())
    assert "\n" not in failed.message
    assert len(failed.message) == failures.MAX_MESSAGE


@pytest.mark.parametrize(
    ("error", "blame", "message"),
    [
        (OSError(errno.ENOSPC, "No space left", "/a"), "place", "doing it: No space left: /a"),
        (OSError(errno.ENOENT, "No such file"), "data", "doing it: No such file"),
        (MemoryError(), "place", "doing it: MemoryError"),
        (InvalidValue("f", 1, "is wrong"), "data", "doing it: f: 1: is wrong"),
        (ValueError("bad"), "data", "doing it: ValueError: bad"),
    ],
)
def test_errors_become_failures(error, blame, message):
    found = failures.of(error, "data", "doing it")
    assert (found.blame, found.message) == (blame, message)


def test_a_wrong_property_is_as_wrong_elsewhere():
    error = InvalidValue("mapreduce.job.maps", "x", "must be a number")
    assert failures.of(error, "place", "sorting").blame == "job"


def test_what_the_place_lacks_is_seen_behind_other_errors():
    def fail():
        try:
            raise OSError(errno.EDQUOT, "quota")
        except OSError as error:
            raise RuntimeError("wrapped") from error

    with pytest.raises(AttemptFailed) as caught, doing("data", "writing"):
        fail()
    assert caught.value.blame == "place"
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_failure_stays_what_it_is():
    failed = AttemptFailed("job", "so it is")
    with pytest.raises(AttemptFailed) as caught, doing("data", "writing"):
        raise failed
    assert caught.value is failed


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ((), ""),
        ((Piece("/a", 10, 20),), "/a bytes 10 to 30"),
        ((Piece("/a.gz", 0, -1), Piece("/b", 0, 5)), "/a.gz and 1 others"),
    ],
)
def test_a_split_in_words(pieces, words):
    assert failures.split_worded(Split(pieces, 10)) == words
    assert failures.split_worded(None) == ""
