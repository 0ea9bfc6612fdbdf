"""How much memory objects take, measured on samples.

An estimate: containers are looked into at a few places, and what several objects share is
counted for each.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

_LOOKS: Final = 8
_DEPTH: Final = 6
_ATOMS: Final = frozenset({int, float, complex, bool, type(None), str, bytes, bytearray})
_SAMPLE: Final = 48
_MAX_STEP: Final = 4096


def size_of(value: Any, depth: int = _DEPTH) -> int:
    """Bytes of an object with all that it holds."""
    kind = type(value)
    try:
        own = sys.getsizeof(value)
    except Exception:
        # A __sizeof__ of the user's.
        own = 64
    if kind in _ATOMS or depth == 0:
        return own
    if isinstance(value, (list, tuple)):
        return own + _of_items(_spread(value), len(value), depth)
    if isinstance(value, dict):
        return own + _of_items(_some(value.items()), len(value), depth)
    if isinstance(value, (set, frozenset)):
        return own + _of_items(_some(value), len(value), depth)
    # numpy's arrays do not count what they only view, and it may be theirs alone.
    own = max(own, _number(getattr(value, "nbytes", 0)))
    held = getattr(value, "__dict__", None)
    return own + (size_of(held, depth - 1) if type(held) is dict else 0)


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _of_items(sample: list[Any], count: int, depth: int) -> int:
    if not sample:
        return 0
    return sum(size_of(each, depth - 1) for each in sample) * count // len(sample)


def _spread(values: Sequence[Any]) -> list[Any]:
    if len(values) <= _LOOKS:
        return list(values)
    step = len(values) // _LOOKS
    return [values[index * step] for index in range(_LOOKS)]


def _some(values: Iterable[Any]) -> list[Any]:
    return list(itertools.islice(values, _LOOKS))


class DictMeter:
    """Watches a dict that grows, in the number of its keys and in each of its values.

    Two samples of keys: the biggest of those that came last when it was looked at, so that
    what is seen most is measured by itself; and those that were new, which stand for all others.
    """

    def __init__(self, limit_bytes: int, seed: int = 0) -> None:
        self._limit = limit_bytes
        self._random = random.Random(seed)
        self.reset()

    def reset(self) -> None:
        """The dict is empty."""
        self._big: dict[Any, int] = {}  # -> size when it was noted or last measured
        self._fresh: list[Any] = []
        self._records = 0
        self._due = 1
        self._last = (0, 0)  # records, bytes
        self.size_bytes = 0
        self.step = 1

    def is_over(self, held: dict[Any, Any], key: Any) -> bool:
        """To be asked after each `step` records; `key` is the last one's."""
        self._records += self.step
        if key not in self._big:
            self._note(key, _entry(held, key))
        fresh = next(reversed(held))
        if len(self._fresh) < _SAMPLE:
            self._fresh.append(fresh)
        else:
            self._fresh[self._random.randrange(_SAMPLE)] = fresh
        if self._records >= self._due:
            self._measure(held)
        self.step = max(1, min(2 * self.step, self._due - self._records, _MAX_STEP))
        return self.size_bytes > self._limit

    def _note(self, key: Any, size: int) -> None:
        if len(self._big) >= _SAMPLE:
            least = min(self._big, key=self._big.__getitem__)
            if self._big[least] >= size:
                return
            del self._big[least]
        self._big[key] = size

    def _measure(self, held: dict[Any, Any]) -> None:
        for key in self._big:
            self._big[key] = _entry(held, key)
        # None of the others is bigger than the least of these, as far as one knows.
        most = min(self._big.values())
        mean = sum(min(_entry(held, key), most) for key in self._fresh) / len(self._fresh)
        rest = (len(held) - len(self._big)) * mean
        size = int(sum(self._big.values()) + rest) + sys.getsizeof(held)
        records, before = self._last
        growth = max(size - before, 1) / max(self._records - records, 1)
        self._last = (self._records, size)
        self.size_bytes = size
        # Soon enough; but if nothing can be done about it, not again and again.
        room = (self._limit - size) / 4 / growth if size < self._limit else self._records / 8
        self._due = self._records + max(1, int(room))


def _entry(held: dict[Any, Any], key: Any) -> int:
    return size_of(key) + size_of(held[key])


class ListMeter:
    """Watches records that are held as they come."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self.reset()

    def reset(self) -> None:
        self.size_bytes = 0
        self._records = 0
        self.step = 1

    @property
    def each_bytes(self) -> int:
        """The mean of a record."""
        return max(1, self.size_bytes // max(1, self._records))

    def is_over(self, record: Any, records: int) -> bool:
        """After so many more, of which one is given."""
        self._records += records
        # And its place in a list.
        self.size_bytes += (size_of(record) + 8) * records
        room = max(self._limit - self.size_bytes, 0)
        self.step = max(1, min(2 * self.step, room // 4 // self.each_bytes, _MAX_STEP))
        return self.size_bytes > self._limit
