"""What every data set has, whatever is in it: its place in the lineage, and keeping it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from frameworks.rdd.errors import NotPicklable
from frameworks.rdd.nodes import Mapped, Node, PartitionFunction
from frameworks.rdd.places import place
from frameworks.rdd.storage import NONE, StorageLevel
from mesos_py.errors import Conflict

if TYPE_CHECKING:
    from frameworks.rdd.context import SparkContext
    from frameworks.rdd.nodes import Partitioner
    from frameworks.rdd.rdd import RDD

T = TypeVar("T")
U = TypeVar("U")


class Base(Generic[T]):
    """Made by a SparkContext or by another data set, never by users."""

    def __init__(self, node: Node, ctx: SparkContext) -> None:
        self.node = node
        self.ctx = ctx

    # ---- Who it is -------------------------------------------------------------------------

    @property
    def context(self) -> SparkContext:
        return self.ctx

    @property
    def partitioner(self) -> Partitioner | None:
        """What has placed its keys, if anything has."""
        return self.node.partitioner

    def id(self) -> int:
        return self.node.id

    def name(self) -> str | None:
        return self.node.name or None

    def setName(self, name: str) -> RDD[T]:
        self.node.name = name
        return self._self()

    def getNumPartitions(self) -> int:
        return self.node.partitions

    def __repr__(self) -> str:
        return _described(self.node)

    def __reduce__(self) -> NoReturn:
        raise NotPicklable(
            f"{self!r} is used inside a task. An RDD is known to the driver only: transformations "
            "and actions cannot be called in a function that is given to another "
            "transformation. Use join, or collect the one first and broadcast it",
            rdd=self.node.id,
        )

    # ---- How others are made of it ---------------------------------------------------------

    def _self(self) -> RDD[T]:
        this: Any = self
        return this  # type: ignore[no-any-return]

    def _mapped(self, function: PartitionFunction, keeps: bool = False) -> RDD[Any]:
        """`function` over each partition; `keeps`: keys stay in their partitions."""
        node = Mapped(
            self.ctx.next_id(),
            self.node.partitions,
            (self.node,),
            partitioner=self.node.partitioner if keeps else None,
            place=place(),
            function=function,
        )
        return self.ctx.rdd(node)

    # ---- Keeping it ------------------------------------------------------------------------

    @property
    def is_cached(self) -> bool:
        return bool(self.node.storage)

    def cache(self) -> RDD[T]:
        return self.persist()

    def persist(self, storageLevel: StorageLevel = StorageLevel.MEMORY_ONLY) -> RDD[T]:
        """Partitions are kept as they are computed; none is computed by this.

        Raises Conflict if it has another level already: unpersist it first.
        """
        if not isinstance(storageLevel, StorageLevel):
            raise TypeError(f"storageLevel should be a StorageLevel, got {storageLevel!r}")
        if self.node.storage not in (NONE, storageLevel):
            raise Conflict(
                "Cannot change storage level of an RDD after it was already assigned a level: "
                f"it is {self.node.storage}; unpersist it first",
                rdd=self.node.id,
            )
        self.node.storage = storageLevel
        return self._self()

    def unpersist(self, blocking: bool = False) -> RDD[T]:
        """blocking: return only when all executors have dropped it."""
        if self.node.storage:
            self.node.storage = NONE
            self.ctx.runner.unpersist(self.node.id, blocking=blocking)
        return self._self()

    def getStorageLevel(self) -> StorageLevel:
        return self.node.storage

    # ---- Lineage ---------------------------------------------------------------------------

    def toDebugString(self) -> bytes:
        """Its lineage, a line for each data set; indented where a shuffle is between."""
        return "\n".join(_lineage(self.node)).encode()


# What Spark calls the kinds of nodes, for people who know its lineages.
_KINDS = {
    "Coalesced": "CoalescedRDD",
    "Mapped": "PythonRDD",
    "Pieces": "FilesRDD",
    "Product": "CartesianRDD",
    "Shuffled": "ShuffledRDD",
    "Slices": "ParallelCollectionRDD",
    "Together": "PartitionerAwareUnionRDD",
    "Union": "UnionRDD",
    "Zipped": "ZippedPartitionsRDD",
}


def _described(node: Node) -> str:
    name = f"{node.name} " if node.name else ""
    kind = type(node).__name__
    return f"{name}{_KINDS.get(kind, kind)}[{node.id}] at {node.place}"


def _lineage(node: Node) -> Iterator[str]:
    """Without recursion: a lineage of thousands is no rarity in iterative programs."""
    pending = [(node, "", f"({node.partitions}) ")]
    seen = set()
    while pending:
        node, prefix, lead = pending.pop()
        kept = f" [{node.storage}]" if node.storage else ""
        again = " (as above)" if node.id in seen else ""
        yield f"{prefix}{lead}{_described(node)}{kept}{again}"
        if node.id in seen:
            continue
        seen.add(node.id)
        if lead.startswith(" +-"):
            prefix += "   "
        if node.checkpoint:
            yield f"{prefix} |  checkpoint in {node.checkpoint}"
            continue
        if node.shuffle is not None and node.shuffle.parent is not None:
            before = node.shuffle.parent
            pending.append((before, prefix, f" +-({before.partitions}) "))
        pending.extend((each, prefix, " |  ") for each in reversed(node.parents))
