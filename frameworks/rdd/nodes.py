"""Data sets as tasks know them: how each partition is computed from its parents.

An `RDD` (rdd.py) is what users hold, in the driver; it has a context and is never sent
anywhere.  The node behind it is sent to workers, as part of a stage: the nodes from the
last shuffle (or source) to the stage's end.  A parent across a shuffle is not sent along:
what it has made is read from where the stage before has left it.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Protocol

from frameworks.rdd.storage import NONE, StorageLevel

# (number of the partition, its elements) -> elements.
PartitionFunction = Callable[[int, Iterator[Any]], Iterable[Any]]


class Partitioner(Protocol):
    """Says in what partition a key is.  Equal partitioners place equal keys alike, so that
    data sets that have them can be joined without a shuffle."""

    @property
    def partitions(self) -> int: ...

    def __call__(self, key: Any) -> int:
        """0 to partitions - 1, the same in every process."""
        ...

    def places(self, keys: Sequence[Any]) -> list[int]:
        """Of many keys at once."""
        ...


@dataclass(frozen=True, slots=True)
class Aggregator:
    """How the values of a key become one: as combineByKey's three functions."""

    create: Callable[[Any], Any]
    merge_value: Callable[[Any, Any], Any]
    merge_combiners: Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Ordering:
    """What a partition is sorted by, after the shuffle: `key` of the pair's key."""

    key: Callable[[Any], Any] | None = None
    ascending: bool = True


@dataclass(slots=True, eq=False, weakref_slot=True)
class ShuffleDependency:
    """Pairs of `parent` are sent to the partitions that `partitioner` names.

    parent: None once it was sent to a worker.
    aggregator: None if the pairs are to arrive as they are.
    map_side: whether values are combined before they are sent as well; without, the reading
      side creates combiners from values.
    """

    shuffle_id: int
    parent: Node | None
    partitioner: Partitioner
    aggregator: Aggregator | None = None
    map_side: bool = True
    ordering: Ordering | None = None
    maps: int = 0  # how many partitions the parent has

    def __getstate__(self) -> dict[str, Any]:
        names = ("shuffle_id", "partitioner", "aggregator", "map_side", "ordering", "maps")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.parent = None
        for name, value in state.items():
            setattr(self, name, value)


class Environment(Protocol):
    """What a node finds around it while a task computes it."""

    def iterate(self, node: Node, split: int) -> Iterator[Any]:
        """The elements of a partition: from the store, a checkpoint, or computed now."""
        ...

    def payload(self, node: Node) -> Any:
        """What `node.payload` gave for the partition that this task computes of it."""
        ...

    def read_shuffle(self, dependency: ShuffleDependency, split: int) -> Iterator[Any]:
        """The pairs of one partition behind a shuffle, combined and sorted as it says.

        Raises FetchFailed if what a map has made is gone.
        """
        ...


@dataclass(slots=True, eq=False, weakref_slot=True)
class Node:
    """One data set.

    id: given once by the driver.  partitions: how many it has.
    parents: those that are computed in the same task; `splits` says which of their partitions.
    shuffle: what it reads, if it stands behind a shuffle.
    storage: changes in the driver as users persist and unpersist; a stage is sent with what
      holds when it starts.  checkpoint: the directory that has it, "" if none.
    name and place (file:line in the user's program) are for people.
    """

    id: int
    partitions: int
    parents: tuple[Node, ...] = ()
    shuffle: ShuffleDependency | None = None
    partitioner: Partitioner | None = None
    storage: StorageLevel = NONE
    checkpoint: str = ""
    name: str = ""
    place: str = ""

    def compute(self, split: int, env: Environment) -> Iterator[Any]:
        """The elements of a partition, made as they are taken."""
        raise NotImplementedError

    def splits(self, split: int) -> Sequence[tuple[int, int]]:
        """What `compute(split)` takes: pairs (index in parents, partition of that parent)."""
        return [(index, split) for index in range(len(self.parents))]

    def payload(self, split: int) -> Any:
        """What a task that computes this partition is sent besides the stage, or None."""
        return None

    def hosts(self, split: int) -> Sequence[str]:
        """Host names where this partition's input is, if it reads some."""
        return ()


@dataclass(slots=True, eq=False)
class Mapped(Node):
    """`function` over each partition of the one parent."""

    function: PartitionFunction = field(kw_only=True)

    def compute(self, split: int, env: Environment) -> Iterator[Any]:
        return iter(self.function(split, env.iterate(self.parents[0], split)))


@dataclass(slots=True, eq=False)
class Slices(Node):
    """What was in the driver: `slices[i]` is partition i, pickled."""

    slices: Sequence[bytes] = field(kw_only=True)

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        # The slices go with the tasks, each with its own.
        state = {each.name: getattr(self, each.name) for each in fields(self)}
        return None, {**state, "slices": ()}

    def payload(self, split: int) -> bytes:
        return self.slices[split]

    def compute(self, split: int, env: Environment) -> Iterator[Any]:
        return iter(pickle.loads(env.payload(self)))


@dataclass(slots=True, eq=False)
class Union(Node):
    """All partitions of all parents, one after the other."""

    def splits(self, split: int) -> Sequence[tuple[int, int]]:
        for index, parent in enumerate(self.parents):
            if split < parent.partitions:
                return [(index, split)]
            split -= parent.partitions
        raise IndexError(split)

    def compute(self, split: int, env: Environment) -> Iterator[Any]:
        ((index, of_parent),) = self.splits(split)
        return env.iterate(self.parents[index], of_parent)


@dataclass(slots=True, eq=False)
class Together(Node):
    """Partition i is the partitions i of all parents, which are partitioned alike."""

    def compute(self, split: int, env: Environment) -> Iterator[Any]:
        return itertools.chain.from_iterable(env.iterate(each, split) for each in self.parents)


@dataclass(slots=True, eq=False)
class Coalesced(Node):
    """groups[i]: the partitions of the one parent that make partition i."""

    groups: Sequence[Sequence[int]] = field(kw_only=True)

    def splits(self, split: int) -> Sequence[tuple[int, int]]:
        return [(0, each) for each in self.groups[split]]

    def compute(self, split: int, env: Environment) -> Iterator[Any]:
        parent = self.parents[0]
        return itertools.chain.from_iterable(
            env.iterate(parent, each) for each in self.groups[split]
        )


# Elements of which a Product makes pairs at once.
_LOT: Final = 1000


@dataclass(slots=True, eq=False)
class Product(Node):
    """Each element of the first parent with each of the second."""

    def splits(self, split: int) -> Sequence[tuple[int, int]]:
        first, second = divmod(split, self.parents[1].partitions)
        return [(0, first), (1, second)]

    def compute(self, split: int, env: Environment) -> Iterator[Any]:
        (_, first), (_, second) = self.splits(split)
        lefts = env.iterate(self.parents[0], first)
        # Some at a time: the second is computed again for each of these lots, not each element.
        while some := list(itertools.islice(lefts, _LOT)):
            rights = env.iterate(self.parents[1], second)
            while others := list(itertools.islice(rights, _LOT)):
                yield from itertools.product(some, others)


@dataclass(slots=True, eq=False)
class Zipped(Node):
    """`function` of the iterators of the partitions i of all parents."""

    function: Callable[[Sequence[Iterator[Any]]], Iterable[Any]] = field(kw_only=True)

    def compute(self, split: int, env: Environment) -> Iterator[Any]:
        return iter(self.function([env.iterate(each, split) for each in self.parents]))


@dataclass(slots=True, eq=False)
class Shuffled(Node):
    """What comes out of a shuffle."""

    def compute(self, split: int, env: Environment) -> Iterator[Any]:
        assert self.shuffle is not None
        return env.read_shuffle(self.shuffle, split)
