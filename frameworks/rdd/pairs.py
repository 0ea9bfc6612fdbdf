"""Operations on pairs (key, value): all of them are built on `combineByKey` and `partitionBy`."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from frameworks.rdd.actions import Actions
from frameworks.rdd.hashing import one_nan, portable_hash
from frameworks.rdd.nodes import Aggregator, Ordering, Shuffled, ShuffleDependency
from frameworks.rdd.partitioners import Partitioner
from frameworks.rdd.places import place

if TYPE_CHECKING:
    from frameworks.rdd import nodes
    from frameworks.rdd.rdd import RDD

T = TypeVar("T")


class Pairs(Actions[T]):
    # ---- How keys are brought together -----------------------------------------------------

    def partitionBy(
        self, numPartitions: int | None, partitionFunc: Callable[[Any], int] = portable_hash
    ) -> RDD[Any]:
        """Each pair goes to the partition partitionFunc(key) modulo their number.  Nothing
        happens if it is placed so already."""
        partitioner = self._partitioner(numPartitions, partitionFunc)
        if self.partitioner == partitioner:
            return self._self()
        return self._shuffled(partitioner)

    def _partitioner(
        self, numPartitions: int | None, partitionFunc: Callable[[Any], int]
    ) -> Partitioner:
        if numPartitions is None:
            numPartitions = self._default_partitions()
        return Partitioner(numPartitions, partitionFunc)

    def _default_partitions(self) -> int:
        """Of a shuffle for which the user has named none."""
        if self.ctx.conf.contains("spark.default.parallelism"):
            return self.ctx.defaultParallelism
        return max(1, self.getNumPartitions())

    def _shuffled(
        self,
        partitioner: nodes.Partitioner,
        aggregator: Aggregator | None = None,
        *,
        map_side: bool = True,
        ordering: Ordering | None = None,
    ) -> RDD[Any]:
        dependency = ShuffleDependency(
            self.ctx.next_shuffle_id(),
            self.node,
            partitioner,
            aggregator,
            map_side and aggregator is not None,
            ordering,
            self.node.partitions,
        )
        node = Shuffled(
            self.ctx.next_id(),
            partitioner.partitions,
            shuffle=dependency,
            partitioner=partitioner,
            place=place(),
        )
        return self.ctx.rdd(node)

    def combineByKey(
        self,
        createCombiner: Callable[[Any], Any],
        mergeValue: Callable[[Any, Any], Any],
        mergeCombiners: Callable[[Any, Any], Any],
        numPartitions: int | None = None,
        partitionFunc: Callable[[Any], int] = portable_hash,
    ) -> RDD[Any]:
        """The values of each key become one combiner: made of the first by `createCombiner`,
        others of the same partition are added by `mergeValue`, those of other partitions by
        `mergeCombiners`.  The latter two may change and return their first argument."""
        return self._combined(
            Aggregator(createCombiner, mergeValue, mergeCombiners), numPartitions, partitionFunc
        )

    def _combined(
        self,
        aggregator: Aggregator,
        numPartitions: int | None,
        partitionFunc: Callable[[Any], int],
        *,
        map_side: bool = True,
    ) -> RDD[Any]:
        partitioner = self._partitioner(numPartitions, partitionFunc)
        if self.partitioner == partitioner:
            # All values of a key are in one partition already.
            return self._mapped(partial(_combine, aggregator), True)
        return self._shuffled(partitioner, aggregator, map_side=map_side)

    def _spread(self, numPartitions: int) -> RDD[T]:
        """Evenly over so many partitions: those of each partition in turns, the first of
        them somewhere else for each."""
        placed = self._mapped(partial(_placed, numPartitions))
        return placed._shuffled(Partitioner(numPartitions, _as_it_is)).values()

    def repartition(self, numPartitions: int) -> RDD[T]:
        return self.coalesce(numPartitions, shuffle=True)

    # ---- What is made of the values of a key -----------------------------------------------

    def reduceByKey(
        self,
        func: Callable[[Any, Any], Any],
        numPartitions: int | None = None,
        partitionFunc: Callable[[Any], int] = portable_hash,
    ) -> RDD[Any]:
        """`func` is to be associative and commutative."""
        return self.combineByKey(_as_it_is, func, func, numPartitions, partitionFunc)

    def aggregateByKey(
        self,
        zeroValue: Any,
        seqFunc: Callable[[Any, Any], Any],
        combFunc: Callable[[Any, Any], Any],
        numPartitions: int | None = None,
        partitionFunc: Callable[[Any], int] = portable_hash,
    ) -> RDD[Any]:
        """Each key starts with a copy of `zeroValue` in each partition where it is."""
        create = partial(_from_zero, zeroValue, seqFunc)
        return self.combineByKey(create, seqFunc, combFunc, numPartitions, partitionFunc)

    def foldByKey(
        self,
        zeroValue: Any,
        func: Callable[[Any, Any], Any],
        numPartitions: int | None = None,
        partitionFunc: Callable[[Any], int] = portable_hash,
    ) -> RDD[Any]:
        """As aggregateByKey with one function."""
        return self.aggregateByKey(zeroValue, func, func, numPartitions, partitionFunc)

    def groupByKey(
        self,
        numPartitions: int | None = None,
        partitionFunc: Callable[[Any], int] = portable_hash,
    ) -> RDD[Any]:
        """The values of each key, all together in memory as a ResultIterable.  For sums and
        the like reduceByKey sends much less."""
        lists = Aggregator(_list_of, _appended, _extended)
        grouped = self._combined(lists, numPartitions, partitionFunc, map_side=False)
        return grouped.mapValues(ResultIterable)

    def groupBy(
        self,
        f: Callable[[T], Any],
        numPartitions: int | None = None,
        partitionFunc: Callable[[Any], int] = portable_hash,
    ) -> RDD[Any]:
        """The elements for which `f` gives the same key, as groupByKey has them."""
        return self.keyBy(f).groupByKey(numPartitions, partitionFunc)

    def distinct(self, numPartitions: int | None = None) -> RDD[T]:
        """Of equal elements the first one met."""
        return self._mapped(_keyed).reduceByKey(_first, numPartitions).keys()

    def lookup(self, key: Any) -> list[Any]:
        """All values of `key`; only its partition is looked at if keys were placed."""
        splits = None
        if self.partitioner is not None:
            splits = [self.partitioner(key)]
        parts = self.ctx.run(self.node, partial(_of_key, key), splits)
        return [value for part in parts for value in part]


class ResultIterable:
    """The values of a key: can be iterated over, again and again, and has a length."""

    def __init__(self, data: Sequence[Any]) -> None:
        self.data = data
        self.index = 0
        self.maxindex = len(data)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)


# ---- What runs in tasks ----------------------------------------------------------------------


def _as_it_is(value: Any) -> Any:
    return value


def _first(value: Any, other: Any) -> Any:
    return value


def _keyed(split: int, elements: Iterator[Any]) -> Iterator[tuple[Any, None]]:
    for each in elements:
        yield each, None


def _placed(parts: int, split: int, elements: Iterator[Any]) -> Iterator[tuple[int, Any]]:
    start = random.Random(split).randrange(parts)
    return enumerate(elements, start)


def _from_zero(zero: Any, function: Callable[[Any, Any], Any], value: Any) -> Any:
    return function(copy.deepcopy(zero), value)


def _list_of(value: Any) -> list[Any]:
    return [value]


def _appended(values: list[Any], value: Any) -> list[Any]:
    values.append(value)
    return values


def _extended(values: list[Any], others: list[Any]) -> list[Any]:
    values.extend(others)
    return values


def _of_key(key: Any, split: int, pairs: Iterator[Any]) -> list[Any]:
    # As members of tuples: those are equal if they are the same object, be it NaN.
    wanted = (one_nan(key),)
    return [value for each, value in pairs if (one_nan(each),) == wanted]


def _combine(aggregator: Aggregator, split: int, pairs: Iterator[Any]) -> Iterable[Any]:
    """For pairs of which each key is in one partition."""
    found: dict[Any, Any] = {}
    create, merge = aggregator.create, aggregator.merge_value
    for key, value in pairs:
        key = one_nan(key)
        found[key] = merge(found[key], value) if key in found else create(value)
    return found.items()
