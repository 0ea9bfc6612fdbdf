"""A log as its readers see it: one text that grows, whatever is rotated away in front.

Positions count from the first byte ever written.  The file that the task writes to loses
what was copied into its rotated parts ("stdout.1" is the newest): `Cuts` says how much,
and what the parts hold.  A reader takes no lock; it looks whether a cut came between and
reads again then.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from agent.containers import sandbox

# More parts than anybody keeps.
MAX_PARTS: Final = 100
# The attribute of a part that says where it begins.
START: Final = "user.mesos_py.start"
_TRIES: Final = 1000
_PAUSE_S: Final = 0.002


class Extent(NamedTuple):
    """What a rotated part holds."""

    start: int
    size: int


@dataclass(slots=True)
class Cuts:
    """What was cut off the front of one file.

    Changed by one thread, between two steps of `version`: while it is odd the parts, the
    file and these numbers do not agree.
    """

    version: int = 0
    # Where the file's first byte stands.
    cut: int = 0
    # Of the parts 1, 2 ...
    parts: list[Extent] = field(default_factory=list)


class LogFile:
    """An open file of a sandbox.  For worker threads; `close` when done."""

    def __init__(self, directory: int, parts: list[str], cuts: Callable[[str, int], Cuts]) -> None:
        """`cuts` knows them by the log's name and its directory.

        Raises OSError as `sandbox.open_file` does.
        """
        self._name = parts[-1]
        self.fd = sandbox.open_file(directory, parts)
        self._directory = -1
        self._cuts = Cuts()
        if len(parts) == 1 and self._name in (sandbox.STDOUT, sandbox.STDERR):
            self._directory = os.dup(directory)
            self._cuts = cuts(self._name, directory)

    def close(self) -> None:
        os.close(self.fd)
        if self._directory >= 0:
            os.close(self._directory)

    def bounds(self) -> tuple[int, int, int]:
        """The first position that is still there, that of the file itself, and the end."""
        for _ in range(_TRIES):
            version = self._settled()
            cut, parts = self._cuts.cut, list(self._cuts.parts)
            end = cut + os.fstat(self.fd).st_size
            if self._cuts.version == version:
                return min([cut, *(part.start for part in parts)]), cut, end
        raise OSError(0, "is rotated all the time", self._name)

    def read(self, at: int, count: int) -> tuple[int, bytes]:
        """At most `count` bytes from `at`, or from the next position that is still there.

        The position of what was read, and the bytes: none at the end.
        """
        for _ in range(_TRIES):
            version = self._settled()
            found = self._read(at, count)
            if self._cuts.version == version:
                return found
        raise OSError(0, "is rotated all the time", self._name)

    def _settled(self) -> int:
        while (version := self._cuts.version) % 2:
            time.sleep(_PAUSE_S)
        return version

    def _read(self, at: int, count: int) -> tuple[int, bytes]:
        cut = self._cuts.cut
        # The oldest one that ends behind `at`.
        for number in range(len(self._cuts.parts), 0, -1):
            part = self._cuts.parts[number - 1]
            start = max(at, part.start)
            if at < cut and start < part.start + part.size:
                length = min(count, part.start + part.size - start)
                with contextlib.suppress(OSError):  # the task may have removed it
                    data = self._read_part(number, start - part.start, length)
                    if data:
                        return start, data
        start = max(at, cut)
        return start, os.pread(self.fd, count, start - cut)

    def _read_part(self, number: int, at: int, count: int) -> bytes:
        fd = sandbox.open_file(self._directory, [part_name(self._name, number)])
        try:
            return os.pread(fd, count, at)
        finally:
            os.close(fd)


def part_name(name: str, number: int) -> str:
    return f"{name}.{number}"


def cuts_on_disk(directory: int, name: str) -> Cuts:
    """What the parts that are there amount to, for a log of which nothing is known.

    Only ours count, which say where they begin: tasks may call their files like that.
    """
    parts: list[Extent] = []
    for number in range(1, MAX_PARTS + 1):
        try:
            fd = sandbox.open_file(directory, [part_name(name, number)])
        except OSError:
            break
        with sandbox.closing(fd):
            try:
                start = int(os.getxattr(fd, START))
            except (OSError, ValueError):
                break
            part = Extent(start, os.fstat(fd).st_size)
        if part.start < 0 or (parts and part.start + part.size > parts[-1].start):
            break  # somebody else's numbers
        parts.append(part)
    return Cuts(cut=parts[0].start + parts[0].size if parts else 0, parts=parts)
