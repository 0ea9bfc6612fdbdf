"""Wait statuses in words, and the bounded history."""

import pytest

from agent.core.records import Exit, History, Place


@pytest.mark.parametrize(
    ("status", "code", "number"),
    [(0, 0, None), (3 << 8, 3, None), (137 << 8, 137, None), (9, None, 9), (6 | 0x80, None, 6)],
)
def test_a_wait_status_is_a_code_or_a_signal(status, code, number):
    ended = Exit(status)
    assert (ended.code, ended.signal) == (code, number)


def test_a_status_that_nobody_saw_is_neither():
    ended = Exit(None, "gone")
    assert (ended.code, ended.signal) == (None, None)
    assert ended.text("Command") == "Command ended, exit status unknown: gone"


def test_the_history_keeps_the_newest():
    history = History(2)
    for name in ("a", "b", "a", "c"):
        history.add(("F", name), Place((name,), started=True, ended=True))
    assert history.get(("F", "b")) is None
    assert history.get(("F", "a")) is not None
    assert len(history) == 2
