"""Sorting: keys are sampled, and cut into ranges that are about equally full; each range is a
partition, sorted as it comes out of the shuffle."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from frameworks.rdd.hashing import portable_hash
from frameworks.rdd.joins import Joins
from frameworks.rdd.nodes import Ordering
from frameworks.rdd.partitioners import Partitioner, Ranges

if TYPE_CHECKING:
    from frameworks.rdd.rdd import RDD

T = TypeVar("T")

# Keys that are looked at for each range, over all partitions; three times that of any one, so
# that one which is fuller than others is seen as such.
_SAMPLE: Final = 20


class Sorting(Joins[T]):
    def repartitionAndSortWithinPartitions(
        self,
        numPartitions: int | None = None,
        partitionFunc: Callable[[Any], int] = portable_hash,
        ascending: bool = True,
        keyfunc: Callable[[Any], Any] | None = None,
    ) -> RDD[Any]:
        """As partitionBy, with each partition sorted by keyfunc(key)."""
        partitioner = self._partitioner(numPartitions, partitionFunc)
        return self._shuffled(partitioner, ordering=Ordering(keyfunc, ascending))

    def sortByKey(
        self,
        ascending: bool | None = True,
        numPartitions: int | None = None,
        keyfunc: Callable[[Any], Any] | None = None,
    ) -> RDD[Any]:
        """By keyfunc(key), over all partitions: those of the first are the least.  A job
        looks at the keys first, unless there is to be one partition only."""
        if numPartitions is None:
            numPartitions = self._default_partitions()
        ordering = Ordering(keyfunc, bool(ascending))
        if numPartitions == 1 or not self.node.partitions:
            return self._shuffled(Partitioner(1, _first), ordering=ordering)
        bounds = self._bounds(numPartitions, keyfunc)
        if bounds is None:
            return self._self()
        ranges = Ranges(bounds, keyfunc, ordering.ascending)
        return self._shuffled(Partitioner(numPartitions, ranges), ordering=ordering)

    def sortBy(
        self,
        keyfunc: Callable[[T], Any],
        ascending: bool = True,
        numPartitions: int | None = None,
    ) -> RDD[T]:
        """By keyfunc(element), as sortByKey does."""
        return self.keyBy(keyfunc).sortByKey(ascending, numPartitions).values()

    def _bounds(self, numPartitions: int, keyfunc: Callable[[Any], Any] | None) -> list[Any] | None:
        """Where one range ends and the next begins, numPartitions - 1 sort keys; None if
        there are no pairs."""
        wanted = _SAMPLE * numPartitions
        most = -(-3 * wanted // self.node.partitions)
        parts = self.ctx.run(self.node, partial(_sketch, most, keyfunc))
        total = sum(count for count, _ in parts)
        if not total:
            return None
        weighed = sorted(
            ((key, count / len(keys)) for count, keys in parts for key in keys), key=_key
        )
        bounds: list[Any] = []
        passed = 0.0
        for key, weight in weighed:
            while len(bounds) < numPartitions - 1 and (
                passed + weight > total * (len(bounds) + 1) / numPartitions
            ):
                bounds.append(key)
            passed += weight
        while len(bounds) < numPartitions - 1:  # what rounding has left
            bounds.append(weighed[-1][0])
        return bounds


def _key(pair: Any) -> Any:
    return pair[0]


def _first(key: Any) -> int:
    return 0


def _sketch(
    most: int, keyfunc: Callable[[Any], Any] | None, split: int, pairs: Iterator[Any]
) -> tuple[int, list[Any]]:
    """How many pairs there are, and `most` of their sort keys, each as likely as any other."""
    chance = random.Random(split)
    sample: list[Any] = []
    count = 0
    for count, pair in enumerate(pairs, 1):
        if len(sample) < most:
            sample.append(pair[0])
        # Twice as fast as randrange(count), and as good.
        elif (place := int(chance.random() * count)) < most:
            sample[place] = pair[0]
    return count, sample if keyfunc is None else list(map(keyfunc, sample))
