"""The terminal is as it was afterwards, whatever happens."""

import os
import signal
import struct
import termios
from collections.abc import Iterator
from fcntl import ioctl

import pytest

from mesos_py.cli import terminal


@pytest.fixture
def tty() -> Iterator[int]:
    ours, theirs = os.openpty()
    yield theirs
    os.close(ours)
    os.close(theirs)


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    """What a process has that was started by a shell."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


def is_raw(fd: int) -> bool:
    return not termios.tcgetattr(fd)[3] & (termios.ICANON | termios.ISIG | termios.ECHO)


def test_keys_are_passed_on_while_it_lasts(tty):
    before = termios.tcgetattr(tty)
    with terminal.raw(tty):
        assert is_raw(tty)
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    assert termios.tcgetattr(tty) == before
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_it_is_restored_after_an_error(tty):
    before = termios.tcgetattr(tty)
    with pytest.raises(KeyboardInterrupt), terminal.raw(tty):
        raise KeyboardInterrupt
    assert termios.tcgetattr(tty) == before


def test_it_is_restored_before_a_signal_ends_the_process(tty, monkeypatch):
    before = termios.tcgetattr(tty)
    raised = []
    monkeypatch.setattr(signal, "raise_signal", lambda n: raised.append((n, is_raw(tty))))
    with terminal.raw(tty):
        handler = signal.getsignal(signal.SIGTERM)
        assert callable(handler)
        handler(signal.SIGTERM, None)
        assert raised == [(signal.SIGTERM, False)]
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert termios.tcgetattr(tty) == before


def test_a_signal_that_is_ignored_stays_so(tty):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with terminal.raw(tty):
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


def test_a_terminal_has_a_size_and_nothing_else_has(tty, tmp_path):
    ioctl(tty, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))
    with (tmp_path / "file").open("w") as file:
        assert terminal.size(file.fileno(), tty) == os.terminal_size((99, 33))
        assert terminal.size(file.fileno()) is None
