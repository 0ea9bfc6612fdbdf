"""Deadlines by key, on the monotonic clock.

Nothing waits here: the shell asks `next_s` when to come back, and `due` what for.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import TypeAlias

TimerKey: TypeAlias = tuple[str, ...]  # what for, and whom it concerns


class Timers:
    """At most one deadline per key; setting it again moves it."""

    def __init__(self) -> None:
        self._deadlines: dict[TimerKey, float] = {}
        self._heap: list[tuple[float, TimerKey]] = []

    def set(self, key: TimerKey, at_s: float) -> None:
        self._deadlines[key] = at_s
        heapq.heappush(self._heap, (at_s, key))
        # Moved and cancelled deadlines stay in the heap until their time comes.
        if len(self._heap) > 1024 and len(self._heap) > 4 * len(self._deadlines):
            self._heap = [(at_s, key) for key, at_s in self._deadlines.items()]
            heapq.heapify(self._heap)

    def cancel(self, key: TimerKey) -> None:
        self._deadlines.pop(key, None)

    def at_s(self, key: TimerKey) -> float | None:
        return self._deadlines.get(key)

    def next_s(self) -> float | None:
        """The earliest deadline, None if there is none."""
        while self._heap:
            at_s, key = self._heap[0]
            if self._deadlines.get(key) == at_s:
                return at_s
            heapq.heappop(self._heap)
        return None

    def due(self, now_s: float) -> Iterator[TimerKey]:
        """Take out the keys whose time has come, one by one, the earliest first.

        What is not asked for any more (since a step raised something) stays.
        """
        while (at_s := self.next_s()) is not None and at_s <= now_s:
            _, key = heapq.heappop(self._heap)
            del self._deadlines[key]
            yield key
