"""Where the tasks' output goes: bytes as they are, or lines with a prefix.

Writing happens on a thread, so that a reader that is slow, such as a pager, holds back
what is read from the tasks and not the link to the master.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import BinaryIO, Final

# A line longer than this is written in pieces.
MAX_LINE: Final = 64 * 1024


class Sink:
    """Our stdout and stderr."""

    def __init__(self, show: Callable[[bytes], None] | None = None) -> None:
        """With `show` (a terminal with a progress bar), that gets all of it."""
        self._show = show
        self._locks = {"stdout": asyncio.Lock(), "stderr": asyncio.Lock()}

    async def write(self, name: str, data: bytes) -> None:
        """Write to "stdout" or "stderr" and flush.  Raises BrokenPipeError."""
        async with self._locks[name]:
            if self._show is not None:
                self._show(data)
                return
            await asyncio.to_thread(_write, _stream(name), data)


def _stream(name: str) -> BinaryIO:
    return sys.stdout.buffer if name == "stdout" else sys.stderr.buffer


def _write(stream: BinaryIO, data: bytes) -> None:
    stream.write(data)
    stream.flush()


class Prefixed:
    """Whole lines of one task's file, each after a prefix."""

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix
        self._rest = b""

    def lines(self, data: bytes) -> bytes:
        """The lines that are complete now, ready to be written."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_LINE:
            whole.append(self._rest)
            self._rest = b""
        return b"".join(self._prefix + line + b"\n" for line in whole)

    def end(self) -> bytes:
        """What remains: a last line that has no end gets one, for the next to begin anew."""
        rest, self._rest = self._rest, b""
        return self._prefix + rest + b"\n" if rest else b""
