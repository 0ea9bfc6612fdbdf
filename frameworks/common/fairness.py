"""Whose turn it is, of several jobs that want the same room."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Final, Literal

Order = Literal["fair", "fifo", "priority"]

# From the first to be served to the last, each with its weight in a fair order.
PRIORITIES: Final[dict[str, float]] = {
    "very_high": 4.0,
    "high": 2.0,
    "normal": 1.0,
    "low": 0.5,
    "very_low": 0.25,
}
_RANKS: Final = {name: rank for rank, name in enumerate(PRIORITIES)}

# (rank or share, what is held within the share, number of the job)
_Key = tuple[float, float, int]


class Turns:
    """Jobs by their number (the order of submission) in the order of their turns.

    fair: who holds least for its weight.  fifo: the oldest.  priority: the highest, then the
    oldest; a lower one gets what higher ones cannot use.
    """

    def __init__(self, order: Order) -> None:
        self._order = order
        self._keys: list[_Key] = []
        self._key_of: dict[int, _Key] = {}

    def add(self, number: int, priority: str, held: float, within: float = 0.0) -> None:
        """held: what it has now, in any unit that is the same for all.  within: decides, in a
        fair order, between those of the same share."""
        key = self._key(number, priority, held, within)
        self._key_of[number] = key
        insort(self._keys, key)

    def remove(self, number: int) -> None:
        key = self._key_of.pop(number)
        del self._keys[bisect_left(self._keys, key)]

    def __iter__(self) -> Iterator[int]:
        """Numbers, whose turn it is first.  Begin anew after `add` and `remove`."""
        return (number for _share, _within, number in self._keys)

    def __contains__(self, number: object) -> bool:
        return number in self._key_of

    def __len__(self) -> int:
        return len(self._keys)

    def _key(self, number: int, priority: str, held: float, within: float) -> _Key:
        if self._order == "fair":
            return (held / PRIORITIES[priority], within, number)
        return (_RANKS[priority] if self._order == "priority" else 0.0, 0.0, number)
