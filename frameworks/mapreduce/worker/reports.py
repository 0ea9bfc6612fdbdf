"""What an attempt counts, and what programs report by lines on stderr.

    reporter:counter:<group>,<counter>,<amount>
    reporter:status:<text>

All other lines go to the log, byte for byte.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from typing import Final

from frameworks.mapreduce.work import Counters

TASKS: Final = "org.apache.hadoop.mapreduce.TaskCounter"
FILES: Final = "org.apache.hadoop.mapreduce.FileSystemCounter"

MAX_COUNTERS: Final = 1000
MAX_NAME: Final = 200
MAX_STATUS: Final = 500
# A line that is longer is passed on in parts: it is no report.
MAX_LINE: Final = 64 * 1024
MAX_LOG: Final = 64 * 1024 * 1024
TAIL: Final = 8 * 1024

_REPORT: Final = b"reporter:"
_COUNTER: Final = re.compile(r"reporter:counter:([^,]+),(.+),\s*(-?\d{1,18})\s*")


class Tally:
    """Counters as they grow."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, int]] = {}
        self._names = 0

    def add(self, group: str, name: str, amount: int = 1) -> bool:
        """False if there are too many counters for another one."""
        group, name = group[:MAX_NAME], name[:MAX_NAME]
        counters = self._groups.get(group, {})
        if name not in counters:
            if self._names >= MAX_COUNTERS:
                return False
            self._names += 1
            counters = self._groups.setdefault(group, counters)
        counters[name] = counters.get(name, 0) + amount
        return True

    def task(self, name: str, amount: int) -> None:
        self.add(TASKS, name, amount)

    def put_task(self, name: str, amount: int) -> None:
        self.put(TASKS, name, amount)

    def put(self, group: str, name: str, amount: int) -> None:
        """Set it, whatever it was."""
        self.add(group, name, amount - self._groups.get(group, {}).get(name, 0))

    def all(self) -> Counters:
        return {group: dict(counters) for group, counters in self._groups.items()}


class Reports:
    """Takes in what the programs of an attempt write to stderr (`program`).

    log: is given what belongs there.  Of more than MAX_LOG only the tail is kept, for the
    failure; that something is missing is said in the log.
    """

    def __init__(self, tally: Tally, log: Callable[[bytes], object]) -> None:
        self.status = ""
        self._tally = tally
        self._log = log
        self._logged = 0
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._full = False

    def program(self) -> Stderr:
        """For one program: several may be heard in turn, each in the middle of a line."""
        return Stderr(self)

    @property
    def tail(self) -> str:
        """The last lines that were no reports."""
        data = b"".join(self._tail)
        if len(data) > TAIL:
            data = data[-TAIL:].partition(b"\n")[2] or data[-TAIL:]
        return data.decode("utf-8", "replace")

    def say(self, text: str) -> None:
        """A line of ours in the log."""
        self._log(f"[mapreduce] {text}\n".encode())

    def take(self, line: bytes) -> None:
        """A whole line."""
        if not line.startswith(_REPORT):
            self.keep(line)
            return
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if text.startswith("reporter:status:"):
            self.status = text.partition(":status:")[2][:MAX_STATUS]
            return
        found = _COUNTER.fullmatch(text)
        if found is None:
            self.keep(line)
        elif not self._tally.add(found[1], found[2], int(found[3])) and not self._full:
            self._full = True
            self.say(f"more than {MAX_COUNTERS} counters: others are not counted")

    def keep(self, data: bytes) -> None:
        """Not reports: for the log."""
        self._tail.append(data[-TAIL:])
        self._tail_bytes += min(len(data), TAIL)
        while self._tail_bytes - len(self._tail[0]) >= TAIL:
            self._tail_bytes -= len(self._tail.popleft())
        if self._logged <= MAX_LOG < self._logged + len(data):
            self.say(f"more than {MAX_LOG} bytes: the rest is not kept")
        self._logged += len(data)
        if self._logged <= MAX_LOG:
            self._log(data)


class Stderr:
    """What one program writes, made whole lines."""

    def __init__(self, reports: Reports) -> None:
        self._reports = reports
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Some bytes, not always whole lines."""
        data = self._rest + data
        cut = data.rfind(b"\n") + 1
        self._rest = data[cut:]
        if _REPORT in data[:cut]:
            for line in data[:cut].splitlines(keepends=True):
                self._reports.take(line)
        elif cut:
            self._reports.keep(data[:cut])
        if len(self._rest) > MAX_LINE:
            self._reports.keep(self._rest)
            self._rest = b""

    def end(self) -> None:
        """There is no more: what is left is a line, too."""
        if self._rest:
            self._reports.take(self._rest + b"\n")
            self._rest = b""


__all__ = ["FILES", "TASKS", "Reports", "Stderr", "Tally"]
