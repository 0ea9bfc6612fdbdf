"""A container's output from dockerd into the files of its sandbox, nothing lost or twice.

dockerd keeps the output, each entry with its time.  We follow it, and after a break
(dockerd or the agent was away) begin again where we were: entries before the last
time that we have seen are skipped, and of those since then as many bytes as are
written already.  After the container's end it is read once more to its end.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from agent.containers import sandbox

STREAMS: Final = (sandbox.STDOUT, sandbox.STDERR)
# dockerd writes times in UTC, with all digits, so that they compare as texts.
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{9})Z")
_HEADER: Final = 8
# dockerd splits lines at 16 KB.
_MAX_FRAME: Final = 1 << 24
# More than what dockerd has read ahead, in the shortest of entries.
RECENT: Final = 512
# Output of the two streams may be kept in another order than that of its times.
_SKEW_S: Final = 1


class Entry(NamedTuple):
    """`stream` is 0 for stdout, 1 for stderr; `time` compares as text."""

    stream: int
    time: str
    data: bytes


class Frames:
    """Docker's frames out of a stream of bytes.  Raises ValueError for anything else."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[Entry]:
        data = self._rest + chunk
        at = 0
        entries = []
        while len(data) - at >= _HEADER:
            kind = data[at]
            length = int.from_bytes(data[at + 4 : at + 8], "big")
            if kind > 2 or data[at + 1 : at + 4] != b"\0\0\0" or length > _MAX_FRAME:
                raise ValueError("no frame of docker's")
            end = at + _HEADER + length
            if end > len(data):
                break
            time, space, text = data[at + _HEADER : end].partition(b" ")
            if not space:
                raise ValueError("an entry without its time")
            entries.append(Entry(1 if kind == 2 else 0, time.decode("ascii", "replace"), text))
            at = end
        self._rest = data[at:]
        return entries


@dataclass
class Position:
    """How far one stream is written."""

    # Time of the newest entry, and how many bytes of entries with that time are written.
    time: str = ""
    since: int = 0
    # After a break, what will come again and is there already: bytes of entries with
    # that time, and bytes after them.
    again: int = 0
    grown: int = 0
    resuming: bool = False
    # Times of the last entries.  When it rotates its files, dockerd (20.10) sends some of
    # them again; that a time is an earlier one alone may be a clock that was set back.
    recent: OrderedDict[str, None] = field(default_factory=OrderedDict)
    replaying: bool = False

    def resume(self) -> None:
        """Reading begins anew, somewhere before where we are."""
        self.again += self.since
        self.since = 0
        self.resuming = True

    def take(self, time: str, data: bytes) -> bytes:
        """What of an entry is still to be written."""
        if time < self.time:
            if not self.resuming and time in self.recent and not self.replaying:
                self.replaying = True
                self.again, self.since = self.again + self.since, 0
            if self.resuming or time in self.recent:
                return b""
        self.resuming = False
        if time != self.time:
            self.time, self.since, self.again, self.replaying = time, 0, 0, False
            self._remember(time)
        self.since += len(data)
        again = min(self.again, len(data))
        self.again -= again
        grown = min(self.grown, len(data) - again)
        self.grown -= grown
        return data[again + grown :]

    def _remember(self, time: str) -> None:
        self.recent[time] = None
        if len(self.recent) > RECENT:
            self.recent.popitem(last=False)


@dataclass
class Positions:
    """Of both streams of one container."""

    streams: tuple[Position, Position] = field(default_factory=lambda: (Position(), Position()))

    def since(self) -> str:
        """From when on dockerd is asked: seconds and nanoseconds, somewhat early."""
        newest = max(each.time for each in self.streams)
        found = _TIME.match(newest)
        if found is None:
            return "0"
        seconds = int(datetime.fromisoformat(f"{found[1]}+00:00").timestamp())
        return f"{max(0, seconds - _SKEW_S)}.{found[2]}"

    def take(self, entries: list[Entry]) -> list[bytes]:
        """What is to be appended to each stream's file."""
        pieces: tuple[list[bytes], list[bytes]] = ([], [])
        for entry in entries:
            kept = self.streams[entry.stream].take(entry.time, entry.data)
            pieces[entry.stream].append(kept)
        return [b"".join(each) for each in pieces]

    def know(self, entry: Entry) -> bool:
        """Whether it, and so all that dockerd has kept before it, is written for certain."""
        return entry.time < self.streams[entry.stream].time

    def resume(self) -> None:
        for each in self.streams:
            each.resume()

    def to_text(self, sizes: list[int]) -> str:
        """To be kept over a restart; `sizes` are those of the files now."""
        rows = [
            [each.time, each.since + each.again, size - each.grown]
            for each, size in zip(self.streams, sizes, strict=True)
        ]
        return json.dumps(rows)

    @classmethod
    def resumed(cls, text: str, sizes: list[int]) -> Positions:
        """From what `to_text` made, where the files have grown to `sizes` since.

        Without a note that can be read, all that is in the files came from the beginning.
        """
        found = cls()
        rows: list[tuple[str, int, int]] = [("", 0, 0)] * len(sizes)
        with contextlib.suppress(ValueError):
            rows = json.loads(text) or rows
        for position, row, size in zip(found.streams, rows, sizes, strict=True):
            time, since, before = row
            position.time, position.since = str(time), int(since)
            # Smaller than before: it was rotated, and how much came since is not known.
            position.grown = max(0, size - int(before))
        return found


class OutputFiles:
    """The two files of a sandbox.  Opened anew for each piece: they may be rotated."""

    def __init__(self, work_dir: str, parts: tuple[str, ...], note: str) -> None:
        """`note` is the path of the file that keeps the positions."""
        self._work_dir = work_dir
        self._parts = parts
        self._note = note

    def append(self, pieces: list[bytes]) -> list[int]:
        """Returns the files' sizes.  Raises OSError."""
        sizes = []
        with sandbox.opened(self._work_dir) as root:
            with sandbox.closing(sandbox.open_directory(root, self._parts)) as here:
                owner = os.fstat(here)
                for name, data in zip(STREAMS, pieces, strict=True):
                    fd = sandbox.open_output(here, name, owner.st_uid, owner.st_gid)
                    with sandbox.closing(fd):
                        _write(fd, data)
                        sizes.append(os.fstat(fd).st_size)
        return sizes

    def note(self, text: str) -> None:
        temporary = f"{self._note}.new"
        with open(temporary, "w") as file:  # noqa: PTH123
            file.write(text)
        os.replace(temporary, self._note)  # noqa: PTH105

    def noted(self) -> str:
        try:
            with open(self._note) as file:  # noqa: PTH123
                return file.read()
        except OSError:
            return ""

    def forget(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._note)  # noqa: PTH108


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
