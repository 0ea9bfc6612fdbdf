"""The terminal that a person sits at: its size, and its keys passed on one by one."""

from __future__ import annotations

import contextlib
import os
import signal
import termios
import tty
from collections.abc import Iterator
from types import FrameType
from typing import Final

# By which a process that does not know better ends; Ctrl-C is typed to the other side.
_ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def size(*fds: int) -> os.terminal_size | None:
    """That of the first of these that is a terminal."""
    for fd in fds:
        with contextlib.suppress(OSError):
            return os.get_terminal_size(fd)
    return None


@contextlib.contextmanager
def raw(fd: int) -> Iterator[None]:
    """While every key is passed on as it is typed.  Afterwards the terminal is as it was, also
    when a signal ends the process.  For the main thread."""
    before = termios.tcgetattr(fd)

    def restore() -> None:
        # It may have gone meanwhile.
        with contextlib.suppress(termios.error):
            termios.tcsetattr(fd, termios.TCSANOW, before)

    def end(number: int, _: FrameType | None) -> None:
        restore()
        # Whoever waits for the process is to see what has ended it.
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    # What our parent has had us ignore stays ignored.
    ours = [each for each in _ENDING if signal.getsignal(each) is signal.SIG_DFL]
    try:
        for each in ours:
            signal.signal(each, end)
        tty.setraw(fd, termios.TCSANOW)
        yield
    finally:
        restore()
        for each in ours:
            signal.signal(each, signal.SIG_DFL)


__all__ = ["raw", "size"]
