"""From data sets to stages: what one task computes, and what must be there before.

A program that iterates makes lineages of thousands of data sets, so nothing here recurses,
and a walk for each task passes only the nodes at which something may happen.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from frameworks.rdd.core.kept import Kept
from frameworks.rdd.messages import LeftOut
from frameworks.rdd.nodes import Node, ShuffleDependency


@dataclass(slots=True, eq=False)
class Knot:
    """A node at which something may happen, and the knots next to it, one for each of its
    parents: the nodes between have one parent, partition by partition."""

    node: Node
    parents: tuple[Knot, ...] = ()


@dataclass(frozen=True, slots=True)
class Inputs:
    """Of one task.  payloads: node id -> split -> what that node's payload is.
    hidden: (node id, split) of payloads that are needed only if what is kept is not there.
    kept: (node id, split) of the persisted ones nearest to the end.  hosts: where files are.
    reads: (shuffle id, split) of what comes out of shuffles, as far as nothing kept hides it.
    """

    payloads: dict[int, dict[int, Any]] = field(default_factory=dict)
    hidden: set[tuple[int, int]] = field(default_factory=set)
    kept: list[tuple[int, int]] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    reads: list[tuple[int, int]] = field(default_factory=list)

    def packed(self, *, whole: bool = True) -> bytes:
        """The payloads as RunTask has them; if not whole, without large ones that are
        hidden."""
        if not self.payloads:
            return NO_PAYLOADS
        if whole or not self.hidden:
            return pickle.dumps(self.payloads, protocol=5)
        payloads = {node_id: dict(of_node) for node_id, of_node in self.payloads.items()}
        for node_id, split in self.hidden:
            payload = payloads[node_id][split]
            if isinstance(payload, bytes) and len(payload) > LARGE_PAYLOAD:
                payloads[node_id][split] = LeftOut(len(payload))
        return pickle.dumps(payloads, protocol=5)


# A smaller one is not worth it.
LARGE_PAYLOAD = 4096
NO_PAYLOADS = pickle.dumps({}, protocol=5)


class Plan:
    """The nodes from the last shuffles, sources or checkpoints to `node`.

    nodes: all of them, parents first.  shuffles: what they read, by id.
    choosy: whether its tasks may wish to run somewhere for what they read besides shuffles.
    """

    __slots__ = ("_last", "_persisted", "choosy", "node", "nodes", "shuffles")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.nodes = _parents_first(node)
        self.shuffles: dict[int, ShuffleDependency] = {
            each.shuffle.shuffle_id: each.shuffle
            for each in self.nodes
            if each.shuffle is not None and not each.checkpoint
        }
        self._persisted = [each for each in self.nodes if each.storage]
        self.choosy = bool(self._persisted) or any(
            type(each).hosts is not Node.hosts for each in self.nodes
        )
        self._last = _knots(self.nodes)

    def inputs(self, split: int) -> Inputs:
        """What the task for this partition of the last node needs."""
        found = Inputs()
        # Whether it was seen with nothing kept before it.
        seen: dict[tuple[int, int], bool] = {}
        # Behind a kept partition nothing says where the task is to run.
        stack = [(self._last, split, True)]
        while stack:
            knot, at, near = stack.pop()
            node = knot.node
            before = seen.get((node.id, at))
            if before or (before is False and not near):
                continue
            seen[node.id, at] = near
            if node.storage and near:
                found.kept.append((node.id, at))
                near = False
            if node.checkpoint:
                continue
            if node.shuffle is not None and near:
                found.reads.append((node.shuffle.shuffle_id, at))
            if (payload := node.payload(at)) is not None:
                found.payloads.setdefault(node.id, {})[at] = payload
                (found.hidden.discard if near else found.hidden.add)((node.id, at))
            if near:
                found.hosts.extend(node.hosts(at))
            if knot.parents:
                for index, of_parent in node.splits(at):
                    stack.append((knot.parents[index], of_parent, near))
        return found

    def persisted_now(self) -> Iterator[int]:
        """Ids of those that are to be kept, and still are."""
        return (each.id for each in self._persisted if each.storage)

    def needed(self, kept: Kept | None) -> Iterator[ShuffleDependency]:
        """The shuffles whose outputs must be there: those that are not hidden behind data
        sets of which every partition is kept.  None: nothing is."""
        seen: set[int] = set()
        stack = [self._last]
        while stack:
            knot = stack.pop()
            node = knot.node
            if node.id in seen:
                continue
            seen.add(node.id)
            if node.checkpoint or (node.storage and kept and _complete(node, kept)):
                continue
            if node.shuffle is not None:
                yield node.shuffle
            stack.extend(knot.parents)


def unmade(
    plan: Plan, kept: Kept, made: Callable[[int], bool]
) -> Iterator[tuple[ShuffleDependency, Plan]]:
    """The shuffles that must be made before `plan` can run, each once, with what makes it.

    made: whether all outputs of a shuffle are there, or somebody is at it.
    """
    seen: set[int] = set()
    stack = [plan]
    while stack:
        for shuffle in stack.pop().needed(kept):
            if shuffle.shuffle_id in seen or made(shuffle.shuffle_id):
                continue
            seen.add(shuffle.shuffle_id)
            assert shuffle.parent is not None
            before = Plan(shuffle.parent)
            stack.append(before)
            yield shuffle, before


def _complete(node: Node, kept: Kept) -> bool:
    return kept.complete(node.id, node.partitions)


def _parents_first(last: Node) -> tuple[Node, ...]:
    """All nodes of the stage that ends with it, each after its parents."""
    order: list[Node] = []
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(last, False)]
    while stack:
        node, parents_done = stack.pop()
        if parents_done:
            order.append(node)
        elif node.id not in seen:
            seen.add(node.id)
            stack.append((node, True))
            if not node.checkpoint:
                stack.extend((parent, False) for parent in reversed(node.parents))
    return tuple(order)


def _knots(nodes: tuple[Node, ...]) -> Knot:
    """The last one's; a plain node is passed over."""
    knots: dict[int, Knot] = {}
    for node in nodes:
        if _plain(node):
            knots[node.id] = knots[node.parents[0].id]
        elif node.checkpoint:
            knots[node.id] = Knot(node)
        else:
            knots[node.id] = Knot(node, tuple(knots[parent.id] for parent in node.parents))
    return knots[nodes[-1].id]


def _plain(node: Node) -> bool:
    """Whether its partitions are made of the same ones of its one parent, and that is all."""
    kind = type(node)
    return (
        len(node.parents) == 1
        and node.shuffle is None
        and not node.storage
        and not node.checkpoint
        and kind.splits is Node.splits
        and kind.payload is Node.payload
        and kind.hosts is Node.hosts
    )


__all__ = ["NO_PAYLOADS", "Inputs", "Knot", "Plan", "unmade"]
