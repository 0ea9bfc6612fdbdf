"""Which partition a key belongs to."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any

from frameworks.rdd.hashing import portable_hash, portable_places
from mesos_py.errors import InvalidValue


class Partitioner:
    """`partitionFunc(key)` modulo the number of partitions.  Equal ones place keys alike."""

    def __init__(
        self, numPartitions: int, partitionFunc: Callable[[Any], int] = portable_hash
    ) -> None:
        if numPartitions < 1:
            raise InvalidValue("numPartitions", numPartitions, "must be 1 or more")
        self.numPartitions = numPartitions
        self.partitionFunc = partitionFunc

    @property
    def partitions(self) -> int:
        return self.numPartitions

    def __call__(self, key: Any) -> int:
        return self.partitionFunc(key) % self.numPartitions

    def places(self, keys: Sequence[Any]) -> list[int]:
        """Of many at once."""
        if self.partitionFunc is portable_hash:
            return portable_places(keys, self.numPartitions)
        return [self(key) for key in keys]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Partitioner)
            and self.numPartitions == other.numPartitions
            and self.partitionFunc == other.partitionFunc
        )

    def __hash__(self) -> int:
        return hash((self.numPartitions, self.partitionFunc))


class Ranges:
    """The partition function of sorting: bounds[i] is the last sort key of partition i.

    keyfunc: makes sort keys of keys; None if they are the same.
    """

    def __init__(
        self, bounds: Sequence[Any], keyfunc: Callable[[Any], Any] | None, ascending: bool
    ) -> None:
        self.bounds = bounds
        self.keyfunc = keyfunc
        self.ascending = ascending

    def __call__(self, key: Any) -> int:
        found = bisect_left(self.bounds, key if self.keyfunc is None else self.keyfunc(key))
        return found if self.ascending else len(self.bounds) - found
