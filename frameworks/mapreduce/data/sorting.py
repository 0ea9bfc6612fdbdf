"""Sorting lines, as many as the disk holds, in a given amount of memory."""

from __future__ import annotations

import itertools
from collections.abc import Generator
from pathlib import Path

from frameworks.mapreduce.data import runs
from frameworks.mapreduce.data.blocks import Lines, cost, lines_in, whole
from frameworks.mapreduce.data.keys import Keys
from frameworks.mapreduce.data.ordering import gathered, order


class Sorter:
    """Takes blocks of lines, gives them sorted.  What memory does not hold goes as sorted runs
    to files in `directory` (which is there), and is merged from them by GNU sort.

    Not for several threads at once.  `close` removes the files, whatever has happened.
    """

    def __init__(self, keys: Keys, memory_bytes: int, directory: Path) -> None:
        self._keys = keys
        self._memory = memory_bytes
        self._directory = directory
        self._blocks: list[bytes] = []
        self._cost = 0
        self._runs: list[Path] = []
        self._own = itertools.count()
        self.spilled_records = 0
        self.spilled_bytes = 0

    @property
    def held(self) -> int:
        """Bytes of memory that sorting what is held now would take."""
        return self._cost

    def add(self, block: bytes) -> None:
        """Whole lines.  Raises InvalidValue, OSError (ENOSPC when the disk is full)."""
        self.add_form(self._keys.sortable(block))

    def add_form(self, block: bytes) -> None:
        """The same with lines in sortable form."""
        self._blocks.append(whole(block))
        self._cost += cost(len(block), lines_in(block))
        if self._cost > self._memory:
            self.spill()

    def add_run(self, path: Path) -> None:
        """A file of lines in sortable form, sorted; it is ours from now on."""
        self._runs.append(path)

    def spill(self) -> None:
        """Write what is in memory to disk."""
        if not self._blocks:
            return
        path = self._directory / f"run-{id(self):x}-{next(self._own)}"
        self._runs.append(path)
        with path.open("wb") as file:
            for block in self._sorted():
                file.write(block)
                self.spilled_bytes += len(block)
                self.spilled_records += lines_in(block)

    def _sorted(self) -> Generator[bytes, None, None]:
        blocks, self._blocks = self._blocks, []
        lines = Lines.of(*blocks)
        blocks.clear()
        yield from gathered(lines, order(lines))
        self._cost = 0

    def result(self) -> Generator[bytes, None, None]:
        """All lines, sorted, as blocks.  Once, after all was added; to be closed when it is not
        read to its end.  Raises OSError."""
        if self._runs:
            self.spill()
            forms = runs.merged(self._runs, self._directory, self._memory)
        else:
            forms = self._sorted()
        try:
            for block in forms:
                yield self._keys.plain(block)
        finally:
            forms.close()

    def close(self) -> None:
        runs.remove(self._runs)
        self._runs.clear()
        self._blocks.clear()
        self._cost = 0
