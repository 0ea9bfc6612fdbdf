"""What a program has been given and not read yet: it may be all of a small input, and says more
of how far the program is than what was handed over."""

from __future__ import annotations

import fcntl
import os
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Final

_INT: Final = 4


class Unread:
    """Of one pipe, that becomes the stdin of a program.

    moved: is called when some of it has been read since the last time.
    """

    def __init__(self, pipe: int, moved: Callable[[], None]) -> None:
        """pipe: either end of it; may be closed afterwards."""
        self._pipe = _identity(os.fstat(pipe))
        self._moved = moved
        self._last = 0

    def bytes_at(self, pid: int) -> int:
        """How many bytes are in it, if it is the stdin of that process; else, and when it has
        ended, 0."""
        found = self._look(Path("/proc", str(pid), "fd", "0"))
        if found < self._last:
            self._moved()
        self._last = found
        return found

    def _look(self, path: Path) -> int:
        # Its own end is opened for a moment: one that is kept here would hide from whoever
        # writes that nobody reads any more, or from who reads that there is no more.
        try:
            if _identity(path.stat()) != self._pipe:
                return 0
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return 0
        try:
            return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(_INT)), sys.byteorder)
        except OSError:
            return 0  # between the look and the opening it became something else
        finally:
            os.close(fd)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


__all__ = ["Unread"]
