"""Numbers that a task counts, in a page that its parent can read at any time."""

from __future__ import annotations

import struct
from dataclasses import replace
from mmap import mmap
from typing import Final

from frameworks.rdd.messages import Metrics, Outcome, Raised, Succeeded

SIZE: Final = 4096
_NUMBERS: Final = struct.Struct("=4q")


class Page:
    """The worker's side; one task at a time."""

    def __init__(self, shared: mmap) -> None:
        self._shared = shared
        self.clear()

    def clear(self) -> None:
        self.records = 0
        self.read_bytes = 0
        self.written_bytes = 0
        self.spilled_bytes = 0
        self.show()

    def read(self, records: int, size_bytes: int = 0) -> None:
        """So many more elements came in."""
        self.records += records
        self.read_bytes += size_bytes
        self.show()

    def wrote(self, size_bytes: int) -> None:
        """For a shuffle."""
        self.written_bytes += size_bytes
        self.show()

    def spilled(self, size_bytes: int) -> None:
        """More than memory may hold."""
        self.spilled_bytes += size_bytes
        self.show()

    def show(self) -> None:
        _NUMBERS.pack_into(
            self._shared, 0, self.records, self.read_bytes, self.written_bytes, self.spilled_bytes
        )

    def measured(self, outcome: Outcome, run_s: float, cpu_s: float) -> Outcome:
        if not isinstance(outcome, (Succeeded, Raised)):
            return outcome
        metrics = Metrics(
            run_s=run_s,
            cpu_s=cpu_s,
            read_bytes=self.read_bytes,
            written_bytes=self.written_bytes,
            spilled_bytes=self.spilled_bytes,
            records=self.records,
        )
        return replace(outcome, metrics=metrics)


def records(shared: mmap) -> int:
    """The parent's side: how many elements the task has read so far."""
    number: int = _NUMBERS.unpack_from(shared, 0)[0]
    return number
