"""What frameworks refused and until when."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Final, TypeAlias

from mesos_py.allocation import Refusal
from mesos_py.resources import Resources

# Refusals in force for one framework, role and agent: enough for what is declined
# piece by piece, few enough that a framework cannot make the master remember much.
MAX_PER_AGENT: Final = 8
# Dead entries that the heap may hold before it is made anew.
_SLACK: Final = 256

# One framework's refusals in one role, by agent.  Ended ones are among them until
# `Filters.due` takes them out.
Book: TypeAlias = dict[str, list[Refusal]]


def blocked_until(
    refusals: Sequence[Refusal],
    candidate: Resources,
    now_s: float,
    max_task_s: float | None = None,
) -> float | None:
    """When the last refusal that covers the candidate ends; None: nothing blocks it.

    Whoever refuses what is kept for short tasks may want the same for long ones."""
    until = None
    for refusal in refusals:
        if (
            refusal.until_s > now_s
            and (until is None or refusal.until_s > until)
            and (refusal.max_task_s is None or max_task_s is not None)
            # What comes back from an offer is mostly the very bundle that was refused.
            and (refusal.resources is candidate or refusal.resources.contains(candidate))
        ):
            until = refusal.until_s
    return until


class Filters:
    """All books together: how many refusals there are, and which one ends next.

    The heap is cleaned lazily: an entry counts only while its very refusal is still
    in its book.  It never holds more than twice the live ones (and a few).
    """

    def __init__(self) -> None:
        self._live = 0
        self._heap: list[tuple[float, int, Refusal, Book]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return self._live

    def add(self, book: Book, refusal: Refusal) -> bool:
        """Store it; true if an older one had to go, which may unblock the agent."""
        stored = book.get(refusal.agent_id, [])
        if any(_covers(older, refusal) for older in stored):
            return False
        kept = [older for older in stored if not _covers(refusal, older)]
        kept.append(refusal)
        evicted = len(kept) > MAX_PER_AGENT
        if evicted:
            kept.remove(min(kept, key=lambda item: item.until_s))
        book[refusal.agent_id] = kept
        self._live += len(kept) - len(stored)
        heapq.heappush(self._heap, (refusal.until_s, next(self._numbers), refusal, book))
        self._tidy()
        return evicted

    def clear(self, book: Book) -> None:
        self._live -= sum(map(len, book.values()))
        book.clear()
        self._tidy()

    def drop_agent(self, agent_id: str, books: Iterable[Book]) -> None:
        for book in books:
            self._live -= len(book.pop(agent_id, ()))
        self._tidy()

    def due(self, now_s: float) -> list[Refusal]:
        """Take out and return the refusals that have ended."""
        ended = []
        while self._heap and self._heap[0][0] <= now_s:
            _, _, refusal, book = heapq.heappop(self._heap)
            if _is_live(refusal, book):
                self._live -= 1
                kept = [item for item in book[refusal.agent_id] if item is not refusal]
                if kept:
                    book[refusal.agent_id] = kept
                else:
                    del book[refusal.agent_id]
                ended.append(refusal)
        return ended

    def next_end_s(self) -> float | None:
        while self._heap and not _is_live(self._heap[0][2], self._heap[0][3]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _tidy(self) -> None:
        if len(self._heap) > 2 * self._live + _SLACK:
            self._heap = [entry for entry in self._heap if _is_live(entry[2], entry[3])]
            heapq.heapify(self._heap)


def _is_live(refusal: Refusal, book: Book) -> bool:
    for item in book.get(refusal.agent_id, ()):
        if item is refusal:
            return True
    return False


def _covers(one: Refusal, other: Refusal) -> bool:
    """Whether `other` blocks nothing that `one` does not block at least as long."""
    return (
        one.until_s >= other.until_s
        and (one.max_task_s is None or other.max_task_s is not None)
        and one.resources.contains(other.resources)
    )
