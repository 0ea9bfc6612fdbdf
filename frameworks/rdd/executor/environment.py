"""What nodes find around them while a task computes them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from frameworks.rdd import checkpoints, properties
from frameworks.rdd.errors import FetchFailed
from frameworks.rdd.executor import frames, orders, packets, shuffle_in
from frameworks.rdd.executor.state import WorkerState
from frameworks.rdd.messages import PAYLOAD, BlockId, LeftOut, MapOutput, RunTask
from frameworks.rdd.nodes import Node, ShuffleDependency
from frameworks.rdd.storage import StorageLevel

# Reserved at least at once: each reservation is a question to the parent.
_STEP_BYTES: Final = 4 << 20


class TaskEnvironment:
    """Of one task."""

    def __init__(
        self,
        task: RunTask,
        payloads: Mapping[int, Mapping[int, Any]],
        outputs: Mapping[int, tuple[MapOutput, ...]],
        state: WorkerState,
    ) -> None:
        self.task = task
        self.state = state
        self._payloads = payloads
        self._outputs = outputs
        # The fetch that failed: also if user code has caught what it raised.
        self.lost: list[FetchFailed] = []

    @property
    def memory_bytes(self) -> int:
        """What may be held while combining or sorting."""
        if properties.WORKER_MEMORY.name in self.task.properties:
            return properties.WORKER_MEMORY.of(self.task.properties)
        return self.state.settings.worker_memory_bytes

    def iterate(self, node: Node, split: int) -> Iterator[Any]:
        if node.checkpoint:
            return checkpoints.read(node.checkpoint, split)
        if node.storage:
            return _kept(self, node, split)
        return self.compute(node, split)

    def compute(self, node: Node, split: int) -> Iterator[Any]:
        return node.compute(split, _Within(self, split))

    def payload(self, node: Node, split: int) -> Any:
        """Raises FetchFailed if it was left out, since what is made of it was kept here."""
        payload = self._payloads.get(node.id, {}).get(split)
        if isinstance(payload, LeftOut):
            error = FetchFailed(PAYLOAD, -1, "", f"{payload.size} bytes were left out")
            self.lost.append(error)
            raise error
        return payload

    def read_shuffle(self, dependency: ShuffleDependency, split: int) -> Iterator[Any]:
        outputs = self._outputs.get(dependency.shuffle_id, ())
        return shuffle_in.read(self, dependency, outputs, split)


class _Within:
    """The environment of one partition of one node: `payload` is asked without a split."""

    def __init__(self, task: TaskEnvironment, split: int) -> None:
        self._split = split
        self._task = task
        self.iterate = task.iterate
        self.read_shuffle = task.read_shuffle

    def payload(self, node: Node) -> Any:
        return self._task.payload(node, self._split)


def _kept(env: TaskEnvironment, node: Node, split: int) -> Iterator[Any]:
    """From the store; if it is not there, computed and kept first, as far as there is room."""
    block: BlockId = ("rdd", node.id, split)
    view = env.state.block(block)
    if view is not None:
        return _elements(env, view)
    maker = _Maker(env, block, node.storage)
    elements = env.compute(node, split)
    try:
        rest = maker.make(elements)
        head = _elements(env, maker.view())
    finally:
        maker.close()
    return head if rest is None else itertools.chain(head, rest)


def _elements(env: TaskEnvironment, view: memoryview) -> Iterator[Any]:
    page = env.state.page
    page.read(0, len(view))
    for values in frames.read(view):
        page.read(len(values))
        yield from values


class _NoRoom(Exception):
    pass


class _Maker:
    """Writes one block: into memory while there is room, else to disk, if it may."""

    def __init__(self, env: TaskEnvironment, block: BlockId, level: StorageLevel) -> None:
        self._env = env
        self._block = block
        self._level = level
        self._reserved = 0
        self._path = ""
        self._unfinished = ""  # the path, as long as nobody else knows of it
        self._sink = frames.Sink(self._write)
        if level.useMemory:
            self._fd = packets.memory_file("block")
        else:
            self._fd = -1
            self._to_disk()

    def make(self, elements: Iterator[Any]) -> Iterator[Any] | None:
        """Keeps all of them; or, if there is no room, what `view` has are the first, and what
        is returned are the others, kept nowhere."""
        for values in frames.batches(elements, lambda: self._sink.size):
            try:
                self._sink.add(values)
            except _NoRoom:
                if not self._level.useDisk:
                    self._env.state.ask(orders.Reserve(self._block, 0))
                    os.ftruncate(self._fd, self._sink.size)
                    return itertools.chain(values, elements)
                self._to_disk()
                self._sink.add(values)
        keep = orders.Keep(
            block=self._block,
            size_bytes=self._sink.size,
            path=self._path,
            spill=self._level.useDisk,
            copies=self._level.replication,
        )
        self._env.state.tell(keep, () if self._path else (self._fd,))
        self._unfinished = ""
        return None

    def view(self) -> memoryview:
        return frames.mapped(self._fd)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._unfinished:
            Path(self._unfinished).unlink(missing_ok=True)

    def _write(self, data: bytes | memoryview, position: int) -> None:
        end = position + (data.nbytes if isinstance(data, memoryview) else len(data))
        if not self._path and end > self._reserved:
            wanted = max(end, self._reserved + max(_STEP_BYTES, self._reserved // 2))
            for size in (wanted, end):
                granted, _ = self._env.state.ask(orders.Reserve(self._block, size))
                if granted:
                    self._reserved = size
                    break
            else:
                raise _NoRoom
        packets.write_all(self._fd, data, position)

    def _to_disk(self) -> None:
        _, number, split = self._block
        directory = self._env.state.settings.place / "blocks"
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"rdd_{number}_{split}-{self._env.task.task_id}"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        if self._fd >= 0:
            packets.copy(self._fd, fd, self._sink.size)
            self._env.state.ask(orders.Reserve(self._block, 0))
            os.close(self._fd)
        self._fd = fd
        self._path = self._unfinished = str(path)
