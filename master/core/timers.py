"""Deadlines by key, on the monotonic clock.

Nothing here waits: `due` hands out what has come, `next_s` says when to ask again.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from typing import Final

# A wake-up later than this means that this process did not run for a while.
STALL_S: Final = 1.0
# Deadlines at which an agent or a framework is judged for its silence.  While there is one,
# this process looks at the clock so often: it must know for how long it could not listen.
JUDGED: Final = frozenset({"unreachable", "expected", "removal", "failover"})
PULSE_S: Final = 1.0


class Timers:
    """At most one deadline per key; setting it again moves it."""

    def __init__(self) -> None:
        self._deadlines: dict[tuple[str, str], float] = {}
        self._heap: list[tuple[float, tuple[str, str]]] = []
        # How many there are of each kind.
        self._counts: Counter[str] = Counter()

    def set(self, kind: str, name: str, at_s: float) -> None:
        key = (kind, name)
        if key not in self._deadlines:
            self._counts[kind] += 1
        self._deadlines[key] = at_s
        heapq.heappush(self._heap, (at_s, key))
        if len(self._heap) > 64 and len(self._heap) > 4 * len(self._deadlines):
            self._rebuild()

    def cancel(self, kind: str, name: str) -> None:
        if self._deadlines.pop((kind, name), None) is not None:
            self._counts[kind] -= 1

    def next_s(self) -> float | None:
        """The earliest deadline, None if there is none."""
        while self._heap:
            at_s, key = self._heap[0]
            if self._deadlines.get(key) == at_s:
                return at_s
            heapq.heappop(self._heap)
        return None

    def due(self, now_s: float) -> Iterator[tuple[str, str]]:
        """Take out the keys whose time has come, one by one, the earliest first.

        What is not asked for any more (since a step raised something) stays.
        """
        while (at_s := self.next_s()) is not None and at_s <= now_s:
            _, key = heapq.heappop(self._heap)
            del self._deadlines[key]
            self._counts[key[0]] -= 1
            yield key

    def all(self) -> list[tuple[str, str, float]]:
        """Every kind and name with its deadline."""
        return [(kind, name, at_s) for (kind, name), at_s in self._deadlines.items()]

    def has(self, kind: str, name: str) -> bool:
        return (kind, name) in self._deadlines

    def any_of(self, kinds: frozenset[str]) -> bool:
        """Whether there is a deadline of one of these kinds."""
        return any(self._counts[kind] for kind in kinds)

    def _rebuild(self) -> None:
        self._heap = [(at_s, key) for key, at_s in self._deadlines.items()]
        heapq.heapify(self._heap)
