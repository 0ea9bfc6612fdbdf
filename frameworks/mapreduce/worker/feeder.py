"""The process that reads a map's input into its program: so that reading and the work on what
the program writes go on at once, and no thread is needed."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Mapping
from typing import Final

import msgspec

from frameworks.mapreduce.data.lines import Reader
from frameworks.mapreduce.job import Split
from frameworks.mapreduce.worker import failures
from frameworks.mapreduce.worker.failures import Blame
from frameworks.mapreduce.worker.programs import pipe
from frameworks.runtime import exits
from frameworks.runtime.processes import Child, forked

_EVERY_S: Final = 0.25
_LAST_WORD_S: Final = 10.0


class Fed(msgspec.Struct, frozen=True):
    """How much was read: bytes (unpacked), lines, and `position` of the split's size.  The last
    has `done`, or who is to blame and why."""

    bytes: int = 0
    lines: int = 0
    position: int = 0
    done: bool = False
    blame: Blame | None = None
    message: str = ""


class Feeder:
    """Reads a split into `stdin`, the end of a pipe from which a program is to read.  offsets: as
    `lines.Reader` has it."""

    def __init__(
        self, split: Split, conf: Mapping[str, str], log: int, *, offsets: bool = False
    ) -> None:
        self.stdin, sink = pipe()
        self._reports, reports = os.pipe()
        try:
            self.child: Child = forked(
                lambda: _feed(split, Reader(split.pieces, conf, offsets=offsets), sink, reports),
                fds=(sink, reports),
                std=(log, log, log),
            )
        finally:
            os.close(sink)
            os.close(reports)
        self._rest = b""
        self.fed = Fed()

    def fileno(self) -> int:
        return self._reports

    def take(self) -> bool:
        """Read what it says; False when it has said its last.  Raises AttemptFailed if it
        could not read its input."""
        data = os.read(self._reports, 1 << 16)
        *lines, self._rest = (self._rest + data).split(b"\n")
        if lines:
            self.fed = msgspec.json.decode(lines[-1], type=Fed)
        if self.fed.blame is not None:
            raise failures.AttemptFailed(self.fed.blame, self.fed.message)
        if not data and not self.fed.done:
            code = self.child.ended(wait=True) or 0
            raise failures.AttemptFailed("place", f"reading the input {exits.exit_worded(code)}")
        return bool(data)

    def finish(self) -> Fed:
        """When the program has ended: what was read in all.  Raises AttemptFailed if that was not
        what should have been."""
        until = time.monotonic() + _LAST_WORD_S
        with selectors.DefaultSelector() as selector:
            selector.register(self, selectors.EVENT_READ)
            # Nobody reads from it any more: it ends with its next write, or has ended.  Where
            # reading itself hangs, what the program wanted of it was enough.
            while not self.fed.done and selector.select(max(0.0, until - time.monotonic())):
                self.take()
        return self.fed

    def close(self) -> None:
        self.child.kill()
        if self._reports >= 0:
            os.close(self._reports)
            self._reports = -1


def _feed(split: Split, reader: Reader, sink: int, reports: int) -> int:
    size = 0
    said_at = 0.0

    def fed() -> Fed:
        return Fed(bytes=size, lines=reader.records, position=reader.position)

    def say(report: Fed) -> None:
        os.write(reports, msgspec.json.encode(report) + b"\n")

    def moved(count: int) -> None:
        nonlocal size, said_at
        size += count
        now = time.monotonic()
        if now - said_at >= _EVERY_S:
            said_at = now
            say(fed())

    try:
        reader.copy_to(sink, moved)
    except Exception as error:
        failed = failures.of(error, "data", f"reading {failures.split_worded(split)}")
        say(msgspec.structs.replace(fed(), blame=failed.blame, message=failed.message))
        return 1
    os.close(sink)
    say(msgspec.structs.replace(fed(), done=True))
    return 0


__all__ = ["Fed", "Feeder"]
