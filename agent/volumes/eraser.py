"""Erases destroyed volumes in a thread of its own, for as long as that takes."""

from __future__ import annotations

import threading
from typing import Final

from agent.volumes.store import VolumeStore
from mesos_py import logs
from mesos_py.metrics import Metrics

log = logs.get("agent.volumes")

_MAX_PROBLEMS_LOGGED: Final = 5


class Eraser:
    """Of one store.  Nobody waits for it: what the process does not come to, the next does."""

    def __init__(self, store: VolumeStore, metrics: Metrics) -> None:
        self._store = store
        self._metrics = metrics
        self._lock = threading.Lock()
        # The generations that are to be erased; None: nothing is asked for.
        self._asked: set[int] | None = None
        self._thread: threading.Thread | None = None

    def erase(self, *generations: int) -> None:
        """What these have put aside, which are in the checkpoint; and what is left over."""
        with self._lock:
            self._asked = {*(self._asked or ()), *generations}
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="volumes", daemon=True)
                self._thread.start()

    def join(self) -> None:
        """Wait until nothing is asked for any more: for tests."""
        while (thread := self._thread) is not None:
            thread.join()

    def _run(self) -> None:
        while (generations := self._next()) is not None:
            try:
                problems = self._store.erase(generations)
            except OSError as error:
                problems = [error]
            for problem in problems[:_MAX_PROBLEMS_LOGGED]:
                log.warning("volume cannot be erased; the next start tries again", error=problem)
            for _ in problems:
                self._metrics.drop("volume not erased")

    def _next(self) -> set[int] | None:
        with self._lock:
            generations, self._asked = self._asked, None
            if generations is None:
                self._thread = None
            return generations
