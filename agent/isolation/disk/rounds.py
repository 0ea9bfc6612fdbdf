"""Work that comes round again for each of many keys, in a few threads."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mesos_py import logs

log = logs.get("agent.isolation.disk")

# After work that raised, which it should not: the next try.
_AGAIN_S: Final = 60.0


@dataclass(slots=True, eq=False)
class _Turn:
    """When a key is due; of several entries in the heap the newest number holds."""

    number: int = -1
    busy: bool = False


class Rounds:
    """Calls `work(key)` when the key is due, for one key in one thread at a time.

    What `work` returns says when the key is due again: after so many seconds, or never
    (None).  There are threads only while there are keys.
    """

    def __init__(self, work: Callable[[str], float | None], name: str, threads: int) -> None:
        self._work = work
        self._name = name
        self._most = threads
        self._threads = 0
        self._changed = threading.Condition()
        self._numbers = itertools.count()
        self._turns: dict[str, _Turn] = {}
        self._heap: list[tuple[float, int, str]] = []

    def __len__(self) -> int:
        return len(self._turns)

    def add(self, key: str, after_s: float) -> None:
        """The key is due after that time, whatever was said of it before."""
        with self._changed:
            turn = self._turns.setdefault(key, _Turn())
            self._put(key, turn, after_s)
            if self._threads < min(self._most, len(self._turns)):
                self._threads += 1
                threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def remove(self, key: str) -> None:
        """It is never due any more.  Work on it that runs goes on to its end."""
        with self._changed:
            if self._turns.pop(key, None) is not None:
                self._changed.notify_all()

    def _put(self, key: str, turn: _Turn, after_s: float) -> None:
        turn.number = next(self._numbers)
        if not turn.busy:
            heapq.heappush(self._heap, (time.monotonic() + after_s, turn.number, key))
            self._changed.notify()

    def _run(self) -> None:
        while (found := self._next()) is not None:
            key, turn, number = found
            try:
                again_s = self._work(key)
            except Exception as error:
                log.exception("work failed", key=key, error=error)
                again_s = _AGAIN_S
            with self._changed:
                turn.busy = False
                if self._turns.get(key) is not turn:
                    continue
                if turn.number != number:  # asked for meanwhile
                    self._put(key, turn, 0)
                elif again_s is not None:
                    self._put(key, turn, again_s)
                else:
                    del self._turns[key]
                    self._changed.notify_all()

    def _next(self) -> tuple[str, _Turn, int] | None:
        """The next key that is due, once it is; None when there are no keys."""
        with self._changed:
            while self._turns:
                pause_s: float | None = None
                if self._heap:
                    due_s, number, key = self._heap[0]
                    turn = self._turns.get(key)
                    if turn is None or turn.number != number or turn.busy:
                        heapq.heappop(self._heap)
                        continue
                    pause_s = due_s - time.monotonic()
                    if pause_s <= 0:
                        heapq.heappop(self._heap)
                        turn.busy = True
                        return key, turn, number
                self._changed.wait(pause_s)
            self._threads -= 1
            return None
