"""Transformations that need no shuffle: of elements, of whole partitions, of several data sets."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from frameworks.rdd import piping
from frameworks.rdd.base import Base
from frameworks.rdd.nodes import Coalesced, Product, Zipped
from frameworks.rdd.places import place

if TYPE_CHECKING:
    from frameworks.rdd.rdd import RDD

T = TypeVar("T")
U = TypeVar("U")


class Elements(Base[T]):
    # ---- Of partitions ---------------------------------------------------------------------

    def mapPartitionsWithIndex(
        self,
        f: Callable[[int, Iterator[T]], Iterable[U]],
        preservesPartitioning: bool = False,
    ) -> RDD[U]:
        """`f` gets the number of the partition and an iterator over it."""
        return self._mapped(f, preservesPartitioning)

    def mapPartitionsWithSplit(
        self,
        f: Callable[[int, Iterator[T]], Iterable[U]],
        preservesPartitioning: bool = False,
    ) -> RDD[U]:
        """The old name of mapPartitionsWithIndex."""
        warnings.warn(
            "mapPartitionsWithSplit is deprecated; use mapPartitionsWithIndex instead",
            FutureWarning,
            stacklevel=2,
        )
        return self._mapped(f, preservesPartitioning)

    def mapPartitions(
        self, f: Callable[[Iterator[T]], Iterable[U]], preservesPartitioning: bool = False
    ) -> RDD[U]:
        return self._mapped(partial(_whole, f), preservesPartitioning)

    def glom(self) -> RDD[list[T]]:
        """Each partition as one list."""
        return self._mapped(_glom)

    def coalesce(self, numPartitions: int, shuffle: bool = False) -> RDD[T]:
        """Neighbouring partitions become one, until there are `numPartitions`.  Without
        `shuffle` their number does not grow.  Raises ValueError if that is to be none."""
        if numPartitions < 1:
            raise ValueError("Number of partitions must be positive.")
        if shuffle:
            return self._self()._spread(numPartitions)
        before = self.node.partitions
        after = min(numPartitions, before)
        groups = [range(i * before // after, (i + 1) * before // after) for i in range(after)]
        node = Coalesced(self.ctx.next_id(), after, (self.node,), place=place(), groups=groups)
        return self.ctx.rdd(node)

    def pipe(
        self, command: str, env: dict[str, str] | None = None, checkCode: bool = False
    ) -> RDD[str]:
        """The lines that `command` writes, to which each partition's elements are written as
        lines.  env: variables besides those of the executor.  checkCode: an exit code other
        than 0 fails the task."""
        return self._mapped(partial(piping.through, command, dict(env or {}), checkCode))

    # ---- Of elements -----------------------------------------------------------------------

    def map(self, f: Callable[[T], U], preservesPartitioning: bool = False) -> RDD[U]:
        return self._mapped(partial(_map, f), preservesPartitioning)

    def flatMap(self, f: Callable[[T], Iterable[U]], preservesPartitioning: bool = False) -> RDD[U]:
        return self._mapped(partial(_flat_map, f), preservesPartitioning)

    def filter(self, f: Callable[[T], Any]) -> RDD[T]:
        return self._mapped(partial(_filter, f), True)

    def keyBy(self, f: Callable[[T], U]) -> RDD[tuple[U, T]]:
        """Pairs (f(element), element)."""
        return self._mapped(partial(_key_by, f))

    # ---- Of pairs --------------------------------------------------------------------------

    def keys(self) -> RDD[Any]:
        return self._mapped(_keys)

    def values(self) -> RDD[Any]:
        return self._mapped(_values)

    def mapValues(self, f: Callable[[Any], Any]) -> RDD[Any]:
        return self._mapped(partial(_map_values, f), True)

    def flatMapValues(self, f: Callable[[Any], Iterable[Any]]) -> RDD[Any]:
        return self._mapped(partial(_flat_map_values, f), True)

    # ---- Of several ------------------------------------------------------------------------

    def union(self, other: RDD[Any]) -> RDD[Any]:
        """All elements of both, duplicates too."""
        return self.ctx.union([self._self(), other])

    def __add__(self, other: RDD[Any]) -> RDD[Any]:
        if not isinstance(other, Base):
            raise TypeError(f"an RDD is wanted, not {type(other).__name__}")
        return self.union(other)

    def cartesian(self, other: RDD[U]) -> RDD[tuple[T, U]]:
        """All pairs of an element here and one of `other`."""
        node = Product(
            self.ctx.next_id(),
            self.node.partitions * other.node.partitions,
            (self.node, other.node),
            place=place(),
        )
        return self.ctx.rdd(node)

    def zip(self, other: RDD[U]) -> RDD[tuple[T, U]]:
        """Pairs of the first elements, the second, ...  Both are to have as many partitions,
        with as many elements in each: raises ValueError for the former now, in tasks for the
        latter."""
        if self.node.partitions != other.node.partitions:
            raise ValueError("Can only zip with RDD which has the same number of partitions")
        node = Zipped(
            self.ctx.next_id(),
            self.node.partitions,
            (self.node, other.node),
            place=place(),
            function=_zip,
        )
        return self.ctx.rdd(node)

    def zipWithUniqueId(self) -> RDD[tuple[T, int]]:
        """The elements of partition k of n get k, k + n, k + 2n, ...; no job is run for it."""
        return self._mapped(partial(_with_unique_id, self.node.partitions))

    def zipWithIndex(self) -> RDD[tuple[T, int]]:
        """The elements with their numbers from 0 up, in the order of partitions.  If there
        are several partitions, a job counts them first."""
        starts = [0]
        if self.node.partitions > 1:
            before = list(range(self.node.partitions - 1))
            for count in self.ctx.run(self.node, count_elements, before):
                starts.append(starts[-1] + count)
        return self._mapped(partial(_with_index, starts))


# ---- What runs in tasks: functions of modules, that are pickled by name -----------------------

# Generators where a `map` would do: a StopIteration that the user's function lets out would end
# a `map` in silence, and with it the partition; a generator makes a RuntimeError of it.


def _whole(f: Callable[..., Any], split: int, elements: Iterator[Any]) -> Iterable[Any]:
    return f(elements)  # type: ignore[no-any-return]


def _glom(split: int, elements: Iterator[Any]) -> Iterable[Any]:
    yield list(elements)


def _map(f: Callable[..., Any], split: int, elements: Iterator[Any]) -> Iterable[Any]:
    for each in elements:
        yield f(each)


def _flat_map(f: Callable[..., Any], split: int, elements: Iterator[Any]) -> Iterable[Any]:
    for each in elements:
        yield from f(each)


def _filter(f: Callable[..., Any], split: int, elements: Iterator[Any]) -> Iterable[Any]:
    for each in elements:
        if f(each):
            yield each


def _key_by(f: Callable[..., Any], split: int, elements: Iterator[Any]) -> Iterable[Any]:
    for each in elements:
        yield f(each), each


def _keys(split: int, pairs: Iterator[Any]) -> Iterable[Any]:
    for pair in pairs:
        yield pair[0]


def _values(split: int, pairs: Iterator[Any]) -> Iterable[Any]:
    for pair in pairs:
        yield pair[1]


def _map_values(f: Callable[..., Any], split: int, pairs: Iterator[Any]) -> Iterable[Any]:
    for key, value in pairs:
        yield key, f(value)


def _flat_map_values(f: Callable[..., Any], split: int, pairs: Iterator[Any]) -> Iterable[Any]:
    for key, value in pairs:
        for each in f(value):
            yield key, each


def flat(parts: Iterator[Iterable[Any]]) -> Iterator[Any]:
    return itertools.chain.from_iterable(parts)


def count_elements(split: int, elements: Iterator[Any]) -> int:
    return sum(1 for _ in elements)


def _with_unique_id(step: int, split: int, elements: Iterator[Any]) -> Iterable[Any]:
    for index, each in enumerate(elements):
        yield each, index * step + split


def _with_index(starts: list[int], split: int, elements: Iterator[Any]) -> Iterable[Any]:
    for index, each in enumerate(elements, starts[split]):
        yield each, index


_END = object()


def _zip(parts: Sequence[Iterator[Any]]) -> Iterable[Any]:
    left, right = parts
    for each in left:
        other = next(right, _END)
        if other is _END:
            break
        yield each, other
    else:
        if next(right, _END) is _END:
            return
    raise ValueError("Can only zip RDDs with same number of elements in each partition")
