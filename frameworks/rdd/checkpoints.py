"""Data sets that were written to files, so that what they were computed from can be forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from frameworks.rdd import reading, writing

if TYPE_CHECKING:
    from frameworks.rdd.jobs import Jobs
    from frameworks.rdd.nodes import Node


def write(ctx: Jobs, node: Node, directory: str) -> None:
    """All its partitions; then its lineage is cut: it is read from there from now on."""
    writing.save(ctx, node, directory, partial(writing.pickles, 0), "")
    node.checkpoint = directory
    node.parents = ()
    node.shuffle = None


def read(directory: str, split: int) -> Iterator[Any]:
    """The elements of a partition, in a task, instead of computing it."""
    url = f"{directory}/{writing.part_name(split)}"
    return reading.unpickled(reading.Piece(url, 0, 0))


def marked(node: Node, wanted: set[int]) -> list[Node]:
    """Of those wanted the ones in the lineage of a node, the first made first."""
    found, seen = [], set()
    pending = [node]
    while pending:
        node = pending.pop()
        if node.id in seen or node.checkpoint:
            continue
        seen.add(node.id)
        if node.id in wanted:
            found.append(node)
        pending += node.parents
        if node.shuffle is not None and node.shuffle.parent is not None:
            pending.append(node.shuffle.parent)
    return sorted(found, key=_id)


def _id(node: Node) -> int:
    return node.id
