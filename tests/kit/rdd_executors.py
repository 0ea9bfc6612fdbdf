"""Executors without processes: a Backend whose tasks run in threads of the test, or when the
test says so, on what was really pickled."""

from __future__ import annotations

import pickle
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import cloudpickle

from frameworks.rdd.backend import Listener
from frameworks.rdd.errors import FetchFailed
from frameworks.rdd.messages import (
    BlockId,
    CancelTask,
    DefineStage,
    FetchLost,
    Forget,
    FromDriver,
    Hello,
    Kept,
    Killed,
    MapOutput,
    Outcome,
    Raised,
    RunTask,
    StageWork,
    Succeeded,
    TaskEnded,
)
from frameworks.rdd.nodes import Node, ShuffleDependency
from mesos_py.errors import Unavailable

PYTHON = (3, 11, 0)
# Results of more bytes stay in the executor, to be fetched.
BIG = 10_000


class Blocks:
    """Of the driver, and of all executors."""

    def __init__(self) -> None:
        self.address = "driver:1"
        self.content: dict[tuple[str, BlockId], bytes] = {}
        self.lock = threading.Lock()

    def put(self, block: BlockId, content: bytes) -> None:
        with self.lock:
            self.content[self.address, block] = content

    def put_file(self, block: BlockId, path: str, start: int, size_bytes: int) -> None:
        self.put(block, Path(path).read_bytes()[start : start + size_bytes])

    def remove(self, blocks: Iterable[BlockId]) -> None:
        with self.lock:
            for block in blocks:
                self.content.pop((self.address, block), None)

    def fetch(self, address: str, block: BlockId) -> Future[bytes]:
        fetched: Future[bytes] = Future()
        with self.lock:
            content = self.content.get((address, block))
        if content is None:
            fetched.set_exception(Unavailable(f"{address} does not have {block}"))
        else:
            fetched.set_result(content)
        return fetched


class Executor:
    """One thread runs its tasks, one after the other; it says to have `slots` all the same."""

    def __init__(self, backend: ThreadBackend, name: str, slots: int, host: str) -> None:
        self.backend = backend
        self.name = name
        self.slots = slots
        self.host = host
        self.stages: dict[str, DefineStage] = {}
        self.works: dict[str, StageWork] = {}
        self.cache: dict[tuple[int, int], list[Any]] = {}
        self.cancelled: dict[int, str] = {}
        self.inbox: queue.SimpleQueue[FromDriver | None] = queue.SimpleQueue()
        self.gone = False
        self.thread = threading.Thread(target=self._run, name=name)

    def _run(self) -> None:
        while (message := self.inbox.get()) is not None:
            if isinstance(message, DefineStage):
                self.stages[message.key] = message
                self.works[message.key] = pickle.loads(message.blob)
            elif isinstance(message, Forget):
                self._forget(message)
            elif isinstance(message, RunTask):
                reason = self.cancelled.get(message.task_id)
                outcome = Killed(reason) if reason is not None else self._task(message)
                if not self.gone:
                    self.backend.hear(self.name, TaskEnded(message.task_id, outcome))

    def _forget(self, message: Forget) -> None:
        for key in message.stages:
            del self.stages[key], self.works[key]
        for rdd_id in message.rdds:
            for pair in [pair for pair in self.cache if pair[0] == rdd_id]:
                del self.cache[pair]
        for task_id in message.results:
            with self.backend.blocks.lock:
                self.backend.blocks.content.pop((self.name, ("result", task_id, 0)), None)

    def _task(self, task: RunTask) -> Outcome:
        work = self.works[task.stage_key]
        place = _Place(self, task)
        try:
            elements = place.iterate(work.node, task.split)
            if work.shuffle is not None:
                return Succeeded(output=self._write(work.shuffle, task, elements))
            result = cloudpickle.dumps(work.function(task.split, elements), protocol=5)
        except FetchFailed as error:
            fields: Any = error.fields
            return FetchLost(
                fields["shuffle_id"], fields["map_index"], fields["executor_id"], str(error)
            )
        except Exception as error:
            return Raised(
                type(error).__name__,
                str(error),
                f"Traceback: {type(error).__name__}: {error}",
                cloudpickle.dumps(error),
            )
        if len(result) <= BIG:
            return Succeeded(result)
        block: BlockId = ("result", task.task_id, 0)
        with self.backend.blocks.lock:
            self.backend.blocks.content[self.name, block] = result
        return Succeeded(result_block=block, result_bytes=len(result))

    def _write(self, shuffle: ShuffleDependency, task: RunTask, pairs: Iterator[Any]) -> MapOutput:
        parts: dict[int, list[Any]] = {}
        for pair in pairs:
            parts.setdefault(shuffle.partitioner(pair[0]), []).append(pair)
        path = f"{self.name}/{shuffle.shuffle_id}/{task.split}-{task.attempt}"
        self.backend.files[path] = parts
        sizes = bytes(8 * (shuffle.partitioner.partitions + 1))
        return MapOutput(shuffle.shuffle_id, task.split, self.name, self.host, path, "", sizes)


class ThreadBackend:
    """`join` adds executors, `lose` ends them; `files` has what maps have left.

    before: called before each task's result is told, with (executor, task).
    """

    def __init__(self, *, elastic: bool = False) -> None:
        self.blocks = Blocks()
        self.elastic = elastic
        self.executors: dict[str, Executor] = {}
        self.files: dict[str, dict[int, list[Any]]] = {}
        self.listener: Listener | None = None
        self.sent: list[tuple[str, FromDriver]] = []
        self.wanted: list[int] = []
        self.dropped: list[tuple[str, str]] = []
        self.on_start: Callable[[ThreadBackend], None] = lambda _: None
        self.stopped = False

    def start(self, listener: Listener) -> None:
        self.listener = listener
        self.on_start(self)

    def join(
        self,
        name: str,
        slots: int = 1,
        host: str = "host",
        python: tuple[int, int, int] = PYTHON,
    ) -> None:
        executor = self.executors[name] = Executor(self, name, slots, host)
        executor.thread.start()
        assert self.listener is not None
        self.listener.executor_joined(Hello(name, host, slots, name, python, f"agent of {host}"))

    def lose(self, name: str, *, outputs_lost: bool = True, blame: bool = False) -> None:
        executor = self.executors.pop(name)
        executor.gone = True
        executor.inbox.put(None)
        if outputs_lost:
            for path in [path for path in self.files if path.startswith(f"{name}/")]:
                del self.files[path]
        assert self.listener is not None
        self.listener.executor_lost(name, "test", outputs_lost=outputs_lost, blame=blame)
        if threading.current_thread() is not executor.thread:
            executor.thread.join()

    def hear(self, name: str, message: Any) -> None:
        assert self.listener is not None
        self.listener.heard(name, message)

    def send(self, executor_id: str, message: FromDriver) -> None:
        self.sent.append((executor_id, message))
        executor = self.executors.get(executor_id)
        if executor is not None:
            if isinstance(message, CancelTask):
                executor.cancelled[message.task_id] = message.reason
            executor.inbox.put(message)

    def want(self, slots: int) -> None:
        self.wanted.append(slots)

    def drop(self, executor_id: str, reason: str) -> None:
        self.dropped.append((executor_id, reason))

    def stop(self) -> None:
        self.stopped = True
        for executor in self.executors.values():
            executor.gone = True
            executor.inbox.put(None)
        for executor in self.executors.values():
            executor.thread.join()


class _Place:
    """The Environment of one task."""

    def __init__(self, executor: Executor, task: RunTask) -> None:
        self.executor = executor
        self.task = task
        self.payloads = pickle.loads(task.payloads)
        self.at: dict[int, int] = {}

    def iterate(self, node: Node, split: int) -> Iterator[Any]:
        self.at[node.id] = split
        if not node.storage:
            return node.compute(split, self)
        cache = self.executor.cache
        if (node.id, split) not in cache:
            cache[node.id, split] = list(node.compute(split, self))
            block: BlockId = ("rdd", node.id, split)
            self.executor.backend.hear(self.executor.name, Kept({block: (1, True)}))
        return iter(cache[node.id, split])

    def payload(self, node: Node) -> Any:
        return self.payloads[node.id][self.at[node.id]]

    def read_shuffle(self, dependency: ShuffleDependency, split: int) -> Iterator[Any]:
        outputs = self.executor.stages[self.task.stage_key].outputs[dependency.shuffle_id]
        if len(outputs) < dependency.maps:
            raise FetchFailed(dependency.shuffle_id, -1, "", "not all outputs are known")
        pairs: list[Any] = []
        for output in outputs:
            parts = self.executor.backend.files.get(output.path)
            if parts is None:
                raise FetchFailed(
                    output.shuffle_id, output.map_index, output.executor_id, "is gone"
                )
            pairs += parts.get(split, [])
        return iter(pairs)
