"""A driver without an engine: starts executors of `local[N]` and says itself what they do."""

from __future__ import annotations

import itertools
import pickle
import queue
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import cloudpickle

from frameworks.rdd import nodes
from frameworks.rdd.backends.local import LocalBackend
from frameworks.rdd.messages import (
    BlockId,
    DefineStage,
    Forget,
    FromExecutor,
    Hello,
    Kept,
    Locations,
    MapOutput,
    Outcome,
    RunTask,
    StageWork,
    Succeeded,
    TaskEnded,
    WhereIs,
)
from frameworks.rdd.nodes import Mapped, Node, ShuffleDependency, Slices
from frameworks.rdd.partitioners import Partitioner

PATIENCE_S = 90.0


class Driver:
    """Implements backend.Listener.  What is not answered at once is in `events`."""

    def __init__(self, slots: int = 2, conf: Mapping[str, str] | None = None) -> None:
        self.backend = LocalBackend(slots, conf)
        self.hello: Hello | None = None
        self.joined: queue.Queue[Hello] = queue.Queue()
        self.lost: queue.Queue[tuple[str, str]] = queue.Queue()
        self.ended: dict[int, Outcome] = {}
        self._ends: queue.Queue[TaskEnded] = queue.Queue()
        self.kept: dict[BlockId, tuple[int, bool] | None] = {}
        self.where: dict[BlockId, tuple[str, ...]] = {}
        self.asked: list[WhereIs] = []
        self.beats: queue.Queue[Any] = queue.Queue()
        self.refusals: queue.Queue[str] = queue.Queue()
        self._ids = itertools.count(1)

    def __enter__(self) -> Driver:
        self.backend.start(self)
        self.executor()
        return self

    def __exit__(self, *_: object) -> None:
        self.backend.stop()

    def executor(self) -> Hello:
        """The next that joins."""
        self.hello = self.joined.get(timeout=PATIENCE_S)
        return self.hello

    # ---- Listener --------------------------------------------------------------------------

    def executor_joined(self, hello: Hello) -> None:
        self.joined.put(hello)

    def heard(self, executor_id: str, message: FromExecutor) -> None:
        if isinstance(message, TaskEnded):
            self._ends.put(message)
        elif isinstance(message, Kept):
            self.kept.update(message.blocks)
        elif isinstance(message, WhereIs):
            self.asked.append(message)
            found = {block: self.where.get(block, ()) for block in message.wanted}
            self.backend.send(executor_id, Locations(message.number, found))
        else:
            self.beats.put(message)

    def executor_lost(
        self, executor_id: str, reason: str, *, outputs_lost: bool, blame: bool
    ) -> None:
        self.lost.put((executor_id, reason))

    def executor_leaving(self, executor_id: str, reason: str) -> None:
        raise AssertionError("local executors do not leave")

    def agent_lost(self, agent_id: str, reason: str) -> None: ...

    def refused(self, text: str) -> None:
        self.refusals.put(text)

    def waiting(self, text: str) -> None: ...

    # ---- what tests do -----------------------------------------------------------------------

    def send(self, message: Any) -> None:
        assert self.hello is not None
        self.backend.send(self.hello.executor_id, message)

    def define(
        self, work: StageWork, outputs: Mapping[int, tuple[MapOutput, ...]] | None = None
    ) -> str:
        key = f"stage-{next(self._ids)}"
        self.send(DefineStage(key, cloudpickle.dumps(work), outputs or {}))
        return key

    def run(
        self,
        key: str,
        split: int,
        payloads: Mapping[int, Mapping[int, Any]] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> int:
        """Starts a task; its id."""
        task_id = next(self._ids)
        data = pickle.dumps(payloads or {})
        self.send(RunTask(task_id, key, 1, split, 0, data, properties or {}))
        return task_id

    def outcome(self, task_id: int) -> Outcome:
        until = time.monotonic() + PATIENCE_S
        while task_id not in self.ended:
            end = self._ends.get(timeout=max(0.0, until - time.monotonic()))
            self.ended[end.task_id] = end.outcome
        return self.ended[task_id]

    def value(self, task_id: int) -> Any:
        outcome = self.outcome(task_id)
        assert isinstance(outcome, Succeeded), outcome
        if outcome.result is not None:
            return pickle.loads(outcome.result)
        assert self.hello is not None
        assert outcome.result_block is not None
        address = self.hello.block_address
        data = self.backend.blocks.fetch(address, outcome.result_block).result(PATIENCE_S)
        assert len(data) == outcome.result_bytes
        self.send(Forget(results=(task_id,)))
        return pickle.loads(data)

    def call(self, function: Callable[[], Any]) -> Any:
        """The value of a function that a task calls."""
        return self.value(self.start(function))

    def start(self, function: Callable[[], Any]) -> int:
        node = slices([[None]])
        key = self.define(StageWork(node, function=lambda _split, _elements: function()))
        return self.run(key, 0, payloads(node, 0))

    def collect(
        self,
        node: Node,
        outputs: Mapping[int, tuple[MapOutput, ...]] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> list[list[Any]]:
        """All partitions."""
        work = StageWork(node, function=lambda _split, elements: list(elements))
        key = self.define(work, outputs)
        tasks = [
            self.run(key, split, payloads(node, split), properties)
            for split in range(node.partitions)
        ]
        return [self.value(task) for task in tasks]

    def shuffle(
        self, dependency: ShuffleDependency, properties: Mapping[str, str] | None = None
    ) -> tuple[MapOutput, ...]:
        """Runs the maps."""
        node = dependency.parent
        assert node is not None
        key = self.define(StageWork(node, shuffle=dependency))
        tasks = [
            self.run(key, split, payloads(node, split), properties)
            for split in range(node.partitions)
        ]
        outcomes = [self.outcome(task) for task in tasks]
        return tuple(
            each.output for each in outcomes if isinstance(each, Succeeded) and each.output
        )


def slices(parts: Sequence[Sequence[Any]], number: int = 1) -> Slices:
    """The elements of each partition."""
    return Slices(number, len(parts), slices=[pickle.dumps(list(part)) for part in parts])


def mapped(parent: Node, number: int, function: Callable[[int, Iterator[Any]], Any]) -> Mapped:
    return Mapped(number, parent.partitions, (parent,), function=function)


def payloads(node: Node, split: int) -> dict[int, dict[int, Any]]:
    """As the engine makes them."""
    found: dict[int, dict[int, Any]] = {}
    payload = node.payload(split)
    if payload is not None:
        found[node.id] = {split: payload}
    for index, of_parent in node.splits(split):
        for number, by_split in payloads(node.parents[index], of_parent).items():
            found.setdefault(number, {}).update(by_split)
    return found


def dependency(
    parent: Node, number: int = 1, partitioner: nodes.Partitioner | None = None, **how: Any
) -> ShuffleDependency:
    placed = partitioner or Partitioner(3)
    return ShuffleDependency(number, parent, placed, maps=parent.partitions, **how)
