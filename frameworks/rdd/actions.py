"""Actions: what runs jobs and brings their results to the driver."""

from __future__ import annotations

import copy
import functools
import heapq
import itertools
import math
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

from frameworks.rdd.elements import Elements, count_elements
from frameworks.rdd.hashing import one_nan
from frameworks.rdd.jobs import Coming

T = TypeVar("T")
U = TypeVar("U")


class Actions(Elements[T]):
    # ---- Bring elements --------------------------------------------------------------------

    def collect(self) -> list[T]:
        """All elements, in the order of partitions.  They must fit the driver's memory."""
        return [each for part in self.ctx.run(self.node, _list) for each in part]

    def collectWithJobGroup(
        self, groupId: str, description: str, interruptOnCancel: bool = False
    ) -> list[T]:
        """`collect` as a job of this group."""
        with self.ctx.in_group(groupId, description):
            return self.collect()

    def toLocalIterator(self, prefetchPartitions: bool = False) -> Generator[T, None, None]:
        """All elements, of which the driver holds one partition at a time (two, if the next
        one is fetched meanwhile).  Each partition is a job of its own."""
        coming: deque[Coming[list[T]]] = deque()
        try:
            for split in range(self.node.partitions):
                coming.append(self.ctx.results(self.node, _list, [split]))
                if len(coming) > int(prefetchPartitions):
                    yield from _only(coming.popleft())
            while coming:
                yield from _only(coming.popleft())
        finally:
            for each in coming:
                each.close()

    def take(self, num: int) -> list[T]:
        """The first `num`.  One partition is looked at first, then as many more as what was
        found lets expect to be enough, four times more at most."""
        items: list[T] = []
        total, scanned = self.node.partitions, 0
        while len(items) < num and scanned < total:
            more = 1
            if scanned:
                more = scanned * 4
                if items:
                    needed = int(1.5 * num * scanned / len(items)) - scanned
                    more = min(max(needed, 1), more)
            splits = list(range(scanned, min(scanned + more, total)))
            for part in self.ctx.run(self.node, partial(_first, num - len(items)), splits):
                items += part[: num - len(items)]
            scanned += more
        return items

    def first(self) -> T:
        """Raises ValueError if there is none."""
        found = self.take(1)
        if not found:
            raise ValueError("RDD is empty")
        return found[0]

    def isEmpty(self) -> bool:
        return not self.take(1)

    def top(self, num: int, key: Callable[[T], Any] | None = None) -> list[T]:
        """The largest, in descending order."""
        return self._extreme(heapq.nlargest, num, key)

    def takeOrdered(self, num: int, key: Callable[[T], Any] | None = None) -> list[T]:
        """The smallest, in ascending order.  Raises ValueError if `num` is negative."""
        if num < 0:
            raise ValueError("top N cannot be negative.")
        return self._extreme(heapq.nsmallest, num, key)

    def _extreme(self, pick: Callable[..., list[Any]], num: int, key: Any) -> list[T]:
        parts = self.ctx.run(self.node, partial(_extreme, pick, num, key))
        found: list[T] = pick(num, itertools.chain.from_iterable(parts), key=key)
        return found

    # ---- For what they do ------------------------------------------------------------------

    def foreach(self, f: Callable[[T], Any]) -> None:
        self.ctx.run(self.node, partial(_foreach, f))

    def foreachPartition(self, f: Callable[[Iterator[T]], Any]) -> None:
        """`f` may be a generator: it is run to its end."""
        self.ctx.run(self.node, partial(_foreach_partition, f))

    # ---- Bring them together ---------------------------------------------------------------

    def count(self) -> int:
        return sum(self.ctx.run(self.node, count_elements))

    def reduce(self, f: Callable[[T, T], T]) -> T:
        """Raises ValueError if there is nothing."""
        parts: list[T] = []
        for part in self.ctx.run(self.node, partial(_reduce, f)):
            parts += part
        if not parts:
            raise ValueError("Can not reduce() empty RDD")
        return functools.reduce(f, parts)

    def fold(self, zeroValue: T, op: Callable[[T, T], T]) -> T:
        """As `aggregate` with one operation."""
        return self.aggregate(zeroValue, op, op)

    def aggregate(self, zeroValue: U, seqOp: Callable[[U, T], U], combOp: Callable[[U, U], U]) -> U:
        """Each partition starts with `zeroValue`, and so does what brings their results
        together, in the order of partitions.  The operations may change their first argument."""
        parts = self.ctx.run(self.node, partial(_aggregate, zeroValue, seqOp))
        return functools.reduce(combOp, parts, copy.deepcopy(zeroValue))

    def treeReduce(self, f: Callable[[T, T], T], depth: int = 2) -> T:
        """`reduce` in tasks, in `depth` levels; raises ValueError if there is nothing."""
        _check_depth(depth)
        levels = self.mapPartitions(partial(_reduced, f))
        found = levels._tree(partial(_both, f), depth)
        if not found:
            raise ValueError("Cannot reduce empty RDD.")
        return found[0]  # type: ignore[no-any-return]

    def treeAggregate(
        self,
        zeroValue: U,
        seqOp: Callable[[U, T], U],
        combOp: Callable[[U, U], U],
        depth: int = 2,
    ) -> U:
        """`aggregate` in tasks, in `depth` levels; `zeroValue` starts partitions only."""
        _check_depth(depth)
        if not self.node.partitions:
            return zeroValue
        levels = self.mapPartitions(partial(_aggregated, zeroValue, seqOp))
        return levels._tree(partial(_both, combOp), depth)[0]  # type: ignore[no-any-return]

    def _tree(self, both: Callable[[Any, Any], Any], depth: int) -> list[Any]:
        """Of lists of one element or none, one for each partition: what all have become."""
        parts = self.node.partitions
        scale = max(math.ceil(parts ** (1 / depth)), 2)
        level = self._self()
        while parts > scale + parts / scale:
            parts //= scale
            tagged = level.mapPartitionsWithIndex(partial(_numbered, parts))
            level = tagged.reduceByKey(both, parts).values()
        return functools.reduce(both, level.collect(), [])

    # ---- Count them ------------------------------------------------------------------------

    def countByValue(self) -> dict[T, int]:
        """How often each is there, as a defaultdict."""
        return self._counts(_counts)

    def countByKey(self) -> dict[Any, int]:
        """How often each key is there, as a defaultdict."""
        return self._counts(_key_counts)

    def _counts(self, function: Callable[[int, Iterator[Any]], dict[Any, int]]) -> dict[Any, int]:
        total: dict[Any, int] = defaultdict(int)
        for part in self.ctx.run(self.node, function):
            for key, count in part.items():
                total[one_nan(key)] += count
        return total

    def collectAsMap(self) -> dict[Any, Any]:
        """The pairs as a dict; of several values of a key it has the last."""
        pairs: list[Any] = self.collect()
        return dict(pairs)

    def reduceByKeyLocally(self, func: Callable[[Any, Any], Any]) -> dict[Any, Any]:
        """As reduceByKey, brought together in the driver, as a dict."""
        merged: dict[Any, Any] = {}
        for part in self.ctx.run(self.node, partial(_reduce_by_key, func)):
            for key, value in part.items():
                key = one_nan(key)
                merged[key] = func(merged[key], value) if key in merged else value
        return merged


def _check_depth(depth: int) -> None:
    if depth < 1:
        raise ValueError(f"Depth cannot be smaller than 1 but got {depth}.")


# ---- What runs in tasks ----------------------------------------------------------------------


def _only(coming: Coming[U]) -> U:
    """Of a job with one partition."""
    [(_, value)] = coming
    return value


def _list(split: int, elements: Iterator[Any]) -> list[Any]:
    return list(elements)


def _first(num: int, split: int, elements: Iterator[Any]) -> list[Any]:
    return list(itertools.islice(elements, num))


def _extreme(
    pick: Callable[..., list[Any]], num: int, key: Any, split: int, elements: Iterator[Any]
) -> list[Any]:
    return pick(num, elements, key=key)


def _foreach(f: Callable[[Any], Any], split: int, elements: Iterator[Any]) -> None:
    for each in elements:
        f(each)


def _foreach_partition(f: Callable[[Any], Any], split: int, elements: Iterator[Any]) -> None:
    made = f(elements)
    if isinstance(made, Iterable):
        for _ in made:
            pass


def _reduce(f: Callable[[Any, Any], Any], split: int, elements: Iterator[Any]) -> list[Any]:
    for first in elements:
        return [functools.reduce(f, elements, first)]
    return []


def _reduced(f: Callable[[Any, Any], Any], elements: Iterator[Any]) -> Iterator[list[Any]]:
    yield _reduce(f, 0, elements)


def _aggregate(zero: Any, op: Callable[[Any, Any], Any], split: int, elements: Any) -> Any:
    # Each task has unpickled its own `zero`.
    return functools.reduce(op, elements, zero)


def _aggregated(
    zero: Any, op: Callable[[Any, Any], Any], elements: Iterator[Any]
) -> Iterator[list[Any]]:
    yield [_aggregate(zero, op, 0, elements)]


def _both(op: Callable[[Any, Any], Any], left: list[Any], right: list[Any]) -> list[Any]:
    return [op(left[0], right[0])] if left and right else left or right


def _numbered(parts: int, split: int, elements: Iterator[Any]) -> Iterator[tuple[int, Any]]:
    for each in elements:
        yield split % parts, each


def _counts(split: int, elements: Iterator[Any]) -> dict[Any, int]:
    found: dict[Any, int] = {}
    for each in elements:
        each = one_nan(each)
        found[each] = found.get(each, 0) + 1
    return found


def _key_counts(split: int, pairs: Iterator[Any]) -> dict[Any, int]:
    return _counts(split, (pair[0] for pair in pairs))


def _reduce_by_key(
    f: Callable[[Any, Any], Any], split: int, pairs: Iterator[Any]
) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for key, value in pairs:
        key = one_nan(key)
        found[key] = f(found[key], value) if key in found else value
    return found
