"""What a worker knows beyond one task."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from frameworks.rdd import broadcasts
from frameworks.rdd.executor import frames, orders
from frameworks.rdd.executor.page import Page
from frameworks.rdd.executor.settings import Settings
from frameworks.rdd.sparkfiles import SparkFiles
from frameworks.runtime.fetching import Fetcher

Ask = Callable[[orders.FromWorker], tuple[Any, list[int]]]
Tell = Callable[..., None]

_MAX_BROADCASTS: Final = 256
# For connecting to a file server, and for each wait for more bytes.
_FETCH_S: Final = 20.0


class WorkerState:
    """ask: sends a record to the parent and gives the value and the files of its answer.
    tell: sends a record, with files."""

    def __init__(self, settings: Settings, ask: Ask, tell: Tell, page: Page) -> None:
        self.settings = settings
        self.ask = ask
        self.tell = tell
        self.page = page
        self.fetcher = Fetcher(_FETCH_S)
        self._broadcasts: dict[int, Any] = {}
        broadcasts.source = self.broadcast

    def broadcast(self, number: int) -> Any:
        """The value.  Big arrays in it are views of memory that all workers share."""
        if number not in self._broadcasts:
            _, (fd,) = self.ask(orders.WantBroadcast(number))
            try:
                value = frames.read_one(frames.mapped(fd))
            finally:
                os.close(fd)
            while len(self._broadcasts) >= _MAX_BROADCASTS:
                # Mapped again if it is wanted after all.
                del self._broadcasts[next(iter(self._broadcasts))]
            self._broadcasts[number] = value
        return self._broadcasts[number]

    def block(self, block: tuple[str, int, int]) -> memoryview | None:
        """A block of a data set, of this or another executor."""
        found, fds = self.ask(orders.WantBlock(block))
        if not found:
            return None
        try:
            return frames.mapped(fds[0])
        finally:
            os.close(fds[0])

    def forget(self, order: orders.Drop) -> None:
        for number in order.broadcasts:
            self._broadcasts.pop(number, None)

    def add_paths(self, order: orders.Paths) -> None:
        SparkFiles.root = order.files
        for path in (order.files, *order.paths):
            if path not in sys.path:
                sys.path.insert(1, path)
        # Modules of a file that was added again are not loaded again, as everywhere in Python.
        sys.path_importer_cache.clear()

    @property
    def scratch(self) -> Path:
        """For what tasks spill, in files without names."""
        return self.settings.place / "scratch"
