"""Operations on several data sets of pairs: all of them are built on one grouping of values
that know from which data set they come."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from frameworks.rdd.hashing import portable_hash
from frameworks.rdd.nodes import Aggregator
from frameworks.rdd.pairs import Pairs, ResultIterable
from frameworks.rdd.partitioners import Partitioner

if TYPE_CHECKING:
    from frameworks.rdd.rdd import RDD

T = TypeVar("T")

# Of one key: for each data set the list of its values.
Lists = list[list[Any]]


class Joins(Pairs[T]):
    def _lists(self, others: Sequence[RDD[Any]], numPartitions: int | None) -> RDD[Any]:
        """Pairs (key, Lists).  Those that are placed already as the result is to be stay
        where they are."""
        every = [self._self(), *others]
        tagged = [each._mapped(partial(_tag, i), True) for i, each in enumerate(every)]
        together = self.ctx.union(tagged)
        partitioner = together._partitioner(numPartitions, portable_hash)
        if together.partitioner != partitioner and _some_placed(every, partitioner):
            count = partitioner.numPartitions
            together = self.ctx.union([each.partitionBy(count) for each in tagged])
        width = len(every)
        lists = Aggregator(partial(_lists_of, width), _listed, _merged)
        return together._combined(lists, partitioner.numPartitions, portable_hash, map_side=False)

    # ---- Groups ----------------------------------------------------------------------------

    def groupWith(self, other: RDD[Any], *others: RDD[Any]) -> RDD[Any]:
        """`cogroup` of as many as you like."""
        return self._lists([other, *others], None).mapValues(_iterables)

    def cogroup(self, other: RDD[Any], numPartitions: int | None = None) -> RDD[Any]:
        """For each key that is in either: (key, (values here, values there)), both as
        ResultIterable."""
        return self._lists([other], numPartitions).mapValues(_iterables)

    # ---- Joins -----------------------------------------------------------------------------

    def join(self, other: RDD[Any], numPartitions: int | None = None) -> RDD[Any]:
        """(key, (value here, value there)) for all pairs of values of a key."""
        return self._joined(other, numPartitions, False, False)

    def leftOuterJoin(self, other: RDD[Any], numPartitions: int | None = None) -> RDD[Any]:
        """As `join`, and None for the value there if there is none."""
        return self._joined(other, numPartitions, False, True)

    def rightOuterJoin(self, other: RDD[Any], numPartitions: int | None = None) -> RDD[Any]:
        """As `join`, and None for the value here if there is none."""
        return self._joined(other, numPartitions, True, False)

    def fullOuterJoin(self, other: RDD[Any], numPartitions: int | None = None) -> RDD[Any]:
        """As `join`, and None for the value on the side that has none."""
        return self._joined(other, numPartitions, True, True)

    def _joined(
        self, other: RDD[Any], numPartitions: int | None, left_may: bool, right_may: bool
    ) -> RDD[Any]:
        """May the values of the left, of the right be missing?"""
        lists = self._lists([other], numPartitions)
        return lists.flatMapValues(partial(_pairs, left_may, right_may))

    # ---- As sets ---------------------------------------------------------------------------

    def intersectByKey(self, other: RDD[Any], numPartitions: int | None = None) -> RDD[Any]:
        """The pairs here whose keys are there as well."""
        return self._lists([other], numPartitions).flatMapValues(partial(_kept, True))

    def subtractByKey(self, other: RDD[Any], numPartitions: int | None = None) -> RDD[Any]:
        """The pairs here whose keys are not there."""
        return self._lists([other], numPartitions).flatMapValues(partial(_kept, False))

    def subtract(self, other: RDD[T], numPartitions: int | None = None) -> RDD[T]:
        """The elements here that are not there, as often as they are here."""
        here, there = self.map(_alone), other.map(_alone)
        return here.subtractByKey(there, numPartitions).keys()

    def intersection(self, other: RDD[T]) -> RDD[T]:
        """The elements that are in both, each once."""
        here, there = self.map(_alone), other.map(_alone)
        return here._lists([there], None).filter(_in_all).keys()


def _some_placed(every: Sequence[RDD[Any]], partitioner: Partitioner) -> bool:
    return any(each.partitioner == partitioner for each in every)


# ---- What runs in tasks ----------------------------------------------------------------------


def _tag(index: int, split: int, pairs: Iterator[Any]) -> Iterator[Any]:
    for key, value in pairs:
        yield key, (index, value)


def _lists_of(width: int, tagged: tuple[int, Any]) -> Lists:
    return _listed([[] for _ in range(width)], tagged)


def _listed(lists: Lists, tagged: tuple[int, Any]) -> Lists:
    lists[tagged[0]].append(tagged[1])
    return lists


def _merged(lists: Lists, others: Lists) -> Lists:
    for mine, theirs in zip(lists, others, strict=True):
        mine.extend(theirs)
    return lists


def _iterables(lists: Lists) -> tuple[ResultIterable, ...]:
    return tuple(map(ResultIterable, lists))


def _pairs(left_may: bool, right_may: bool, lists: Lists) -> Iterator[tuple[Any, Any]]:
    left, right = lists
    return itertools.product(left or [None] * left_may, right or [None] * right_may)


def _kept(there: bool, lists: Lists) -> list[Any]:
    return lists[0] if bool(lists[1]) is there else []


def _alone(element: Any) -> tuple[Any, None]:
    return element, None


def _in_all(pair: tuple[Any, Lists]) -> bool:
    return all(pair[1])
