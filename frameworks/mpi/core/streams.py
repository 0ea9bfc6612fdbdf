"""The launcher's output, taken apart: which rank said what, and what its keeper reports.

A launcher writes what ranks say into one stream, and marks each piece with its rank; a
`Marks` says how.  In the stream of stderr stand, besides, the lines of the ranks' keepers
(`frameworks.mpi.ranks`): a secret word, the rank, what has happened.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

# A line longer than this is passed on in pieces.
MAX_LINE: Final = 64 * 1024
# No report is longer.
MAX_REPORT: Final = 200
# No job has more ranks.
_DIGITS: Final = 9


@dataclass(frozen=True)
class Report:
    """A keeper's word: its rank has started; has ended, with a `code` as shells have it; and
    then, where that can be told, whether it had left MPI in peace (`finished`)."""

    rank: int
    code: int | None = None
    finished: bool | None = None


@dataclass(frozen=True)
class Text:
    """Bytes of a rank, as they came; None: of the launcher itself."""

    rank: int | None
    data: bytes


class Marks:
    """Finds out whose the pieces of a stream are.

    A rank's piece begins with `before`, its number and `after`, and goes on to the next such
    mark or to the end of the line; a line without one is the launcher's own.
    """

    def __init__(self, before: bytes, after: bytes) -> None:
        self._before, self._after = before, after
        self._pattern = re.compile(re.escape(before) + rb"(\d{1,%d})" % _DIGITS + re.escape(after))
        self._longest = len(before) + _DIGITS + len(after)
        self._rest = b""
        self._rank: int | None = None

    def feed(self, data: bytes, *, last: bool = False) -> Iterator[Text]:
        """The pieces that are certain by now; `last`: nothing follows.  The launcher's own are
        whole lines."""
        data = self._rest + data
        start = 0
        for found in self._pattern.finditer(data):
            yield from self._pieces(data[start : found.start()])
            self._rank, start = int(found[1]), found.end()
        certain = len(data) if last else len(data) - self._unsure(data[start:])
        line_at = data.rfind(b"\n", start, certain) + 1
        if not last and (self._rank is None or line_at):
            # The beginning of a line, so far nobody's.
            certain = max(line_at, start) if self._longest_own(data, line_at) else certain
        yield from self._pieces(data[start:certain])
        self._rest = data[certain:]

    def _longest_own(self, data: bytes, line_at: int) -> bool:
        return len(data) - line_at <= MAX_LINE

    def _pieces(self, data: bytes) -> Iterator[Text]:
        """Up to the end of the line the last mark's, after that the launcher's."""
        if self._rank is not None:
            line, newline, data = data.partition(b"\n")
            if line or newline:
                yield Text(self._rank, line + newline)
            if newline:
                self._rank = None
        if data:
            yield Text(None, data)

    def _unsure(self, tail: bytes) -> int:
        """How many bytes of the end may be the beginning of a mark."""
        for size in range(min(self._longest - 1, len(tail)), 0, -1):
            if self._may_begin(tail[-size:]):
                return size
        return 0

    def _may_begin(self, piece: bytes) -> bool:
        if len(piece) <= len(self._before):
            return self._before.startswith(piece)
        if not piece.startswith(self._before):
            return False
        rest = piece[len(self._before) :]
        return self._after.startswith(rest.lstrip(b"0123456789"))


@dataclass
class Reports:
    """Takes the keepers' lines out of what ranks say on stderr."""

    word: bytes

    def __post_init__(self) -> None:
        self._rests: dict[int | None, bytes] = {}

    def feed(self, text: Text) -> tuple[bytes, list[Report]]:
        """What the rank itself has said, and what was reported."""
        data = self._rests.pop(text.rank, b"") + text.data
        own = b""
        reports: list[Report] = []
        while True:
            at = data.find(self.word)
            if at < 0:
                break
            end = data.find(b"\n", at)
            if end < 0 and len(data) - at <= MAX_REPORT:
                self._rests[text.rank] = data[at:]
                return own + data[:at], reports
            own += data[:at]
            report = parse_report(data[at + len(self.word) : end])
            if report is not None:
                reports.append(report)
            data = data[end + 1 :]
        keep = held_back(data, self.word)
        if keep:
            self._rests[text.rank] = data[len(data) - keep :]
        return own + data[: len(data) - keep], reports

    def rests(self) -> list[Text]:
        """What was held back and is no report, once the stream has ended."""
        rests, self._rests = self._rests, {}
        return [Text(rank, data) for rank, data in rests.items()]


def held_back(data: bytes, word: bytes) -> int:
    """How many bytes of the end may be the beginning of the word."""
    for size in range(min(len(word) - 1, len(data)), 0, -1):
        if data.endswith(word[:size]):
            return size
    return 0


def parse_report(line: bytes) -> Report | None:
    """`RANK start`, `RANK end CODE` or `RANK left yes|no`; None for anything else."""
    words = line.decode("ascii", "replace").split()
    if len(words) < 2 or not words[0].isdigit():
        return None
    rank = int(words[0])
    match words[1:]:
        case ["start"]:
            return Report(rank)
        case ["end", code] if code.isdigit():
            return Report(rank, int(code))
        case ["left", "yes" | "no" as finished]:
            return Report(rank, finished=finished == "yes")
    return None
