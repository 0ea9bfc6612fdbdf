"""A Runner of one process: for the API's tests, without engine and executors.

Stages are pickled and unpickled as they are for real, each task's result too, and shuffles are
in memory; everything else is as plain as can be.
"""

import itertools
import pickle
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any
from weakref import WeakValueDictionary

import cloudpickle

from frameworks.rdd import accumulators, broadcasts, checkpoints
from frameworks.rdd.core.views import JobView, View
from frameworks.rdd.errors import JobFailed, NotPicklable
from frameworks.rdd.messages import StageWork
from frameworks.rdd.nodes import Node, ShuffleDependency
from frameworks.rdd.runner import Job, Result
from frameworks.rdd.taskcontext import TaskContext

Pair = tuple[Any, Any]


def _shipped(work: StageWork) -> bytes:
    try:
        return bytes(cloudpickle.dumps(work, protocol=5))
    except NotPicklable:
        raise
    except Exception as error:
        raise NotPicklable(str(error)) from error


class PlainRunner:
    """`jobs` has the jobs that were run, `tasks` what was computed: (node id, split)."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.stopped = False
        self.cancelled: list[tuple[str | None, str]] = []
        self.files: list[tuple[str, bool]] = []
        self.computed: list[tuple[int, int]] = []
        self.cache: dict[tuple[int, int], bytes] = {}
        self.outputs: dict[int, list[list[Pair]]] = {}
        self.shared: dict[int, bytes] = {}
        self._ids = itertools.count()
        self._tasks = itertools.count()

    # ---- Runner ----------------------------------------------------------------------------

    def run(self, job: Job) -> Generator[Result, None, None]:
        self.jobs.append(job)
        shipped = _shipped(StageWork(job.node, function=job.function))
        for stage, node in enumerate(self._before(job.node, set())):
            self._map(stage, node, job)
        for split in job.splits:
            yield Result(split, self._task(shipped, job, split, len(self.outputs)))

    def cancel(self, group: str | None, reason: str) -> None:
        self.cancelled.append((group, reason))

    def cancel_tag(self, tag: str, reason: str) -> None:
        self.cancelled.append((tag, reason))

    def unpersist(self, rdd_id: int, *, blocking: bool) -> None:
        for key in [key for key in self.cache if key[0] == rdd_id]:
            del self.cache[key]

    def broadcast(self, value: Any) -> int:
        number = next(self._ids)
        self.shared[number] = cloudpickle.dumps(value, protocol=5)
        return number

    def destroy(self, broadcast_id: int) -> None:
        self.shared.pop(broadcast_id, None)

    def release(self, broadcast_id: int) -> None:
        self.shared.pop(broadcast_id, None)

    def add_file(self, path: str, *, python: bool) -> None:
        self.files.append((path, python))

    slots = 2
    page_url = None

    def view(self) -> View:
        """Jobs only, as if each were done."""
        jobs = (
            JobView(i, job.action, job.place, job.group, job.description, "SUCCEEDED", (), 0.0, 0.0)
            for i, job in enumerate(self.jobs)
        )
        return View(0.0, tuple(jobs), (), (), (), 0)

    def stop(self) -> None:
        self.stopped = True

    # ---- Stages ----------------------------------------------------------------------------

    def _before(self, node: Node, seen: set[int]) -> list[ShuffleDependency]:
        """The shuffles that it needs and that were not yet made, in order."""
        if node.checkpoint or node.id in seen:
            return []
        seen.add(node.id)
        found = []
        for parent in node.parents:
            found += self._before(parent, seen)
        shuffle = node.shuffle
        if shuffle is not None and shuffle.shuffle_id not in self.outputs:
            assert shuffle.parent is not None
            found += [*self._before(shuffle.parent, seen), shuffle]
        return found

    def _map(self, stage: int, shuffle: ShuffleDependency, job: Job) -> None:
        parent = shuffle.parent
        assert parent is not None
        work = _shipped(StageWork(parent, shuffle))
        partitions: list[list[Pair]] = [[] for _ in range(shuffle.partitioner.partitions)]
        for split in range(parent.partitions):
            for target, pair in self._task(work, job, split, stage):
                partitions[target].append(pair)
        self.outputs[shuffle.shuffle_id] = partitions

    def _task(self, blob: bytes, job: Job, split: int, stage: int) -> Any:
        TaskContext.enter(TaskContext(stage, split, 0, next(self._tasks), job.properties))
        source, broadcasts.source = broadcasts.source, self._broadcast
        # As in a process of its own, where no accumulator is the driver's.
        of_driver, accumulators._registered = accumulators._registered, WeakValueDictionary()
        place = _Place(self, self._payloads(job))
        try:
            # Each task has a copy of its own.
            work: StageWork = pickle.loads(blob)
            accumulators.begin()
            elements = place.iterate(work.node, split)
            if work.shuffle is None:
                value = work.function(split, elements)
            else:
                value = list(_written(work.shuffle, elements))
            result = pickle.loads(cloudpickle.dumps(value, protocol=5))
        except Exception as error:
            raise JobFailed(f"{type(error).__name__}: {error}") from error
        finally:
            TaskContext.leave()
            broadcasts.source = source
            accumulators._registered = of_driver
        accumulators.merge(accumulators.added())
        return result

    def _payloads(self, job: Job) -> dict[int, Callable[[int], Any]]:
        found: dict[int, Callable[[int], Any]] = {}
        pending, seen = [job.node], set()
        while pending:
            node = pending.pop()
            if node.id in seen:
                continue
            seen.add(node.id)
            found[node.id] = node.payload
            pending += node.parents
            if node.shuffle is not None and node.shuffle.parent is not None:
                pending.append(node.shuffle.parent)
        return found

    def _broadcast(self, number: int) -> Any:
        return pickle.loads(self.shared[number])


class _Place:
    """The Environment of one task."""

    def __init__(self, runner: PlainRunner, payloads: dict[int, Callable[[int], Any]]) -> None:
        self.runner = runner
        self.payloads = payloads
        self.split: dict[int, int] = {}

    def iterate(self, node: Node, split: int) -> Iterator[Any]:
        key = (node.id, split)
        if not node.storage:
            return self._compute(node, split)
        if key not in self.runner.cache:
            elements = list(self._compute(node, split))
            self.runner.cache[key] = cloudpickle.dumps(elements, protocol=5)
        kept: list[Any] = pickle.loads(self.runner.cache[key])
        return iter(kept)

    def _compute(self, node: Node, split: int) -> Iterator[Any]:
        self.split[node.id] = split
        self.runner.computed.append((node.id, split))
        if node.checkpoint:
            return checkpoints.read(node.checkpoint, split)
        return node.compute(split, self)

    def payload(self, node: Node) -> Any:
        return self.payloads[node.id](self.split[node.id])

    def read_shuffle(self, dependency: ShuffleDependency, split: int) -> Iterator[Any]:
        pairs: Sequence[Pair] = pickle.loads(
            cloudpickle.dumps(self.runner.outputs[dependency.shuffle_id][split], protocol=5)
        )
        aggregator = dependency.aggregator
        if aggregator is not None:
            if dependency.map_side:
                pairs = _grouped(pairs, lambda combiner: combiner, aggregator.merge_combiners)
            else:
                pairs = _grouped(pairs, aggregator.create, aggregator.merge_value)
        ordering = dependency.ordering
        if ordering is not None:
            by = ordering.key
            pairs = sorted(
                pairs,
                key=(lambda pair: by(pair[0])) if by else (lambda pair: pair[0]),
                reverse=not ordering.ascending,
            )
        return iter(pairs)


def _written(shuffle: ShuffleDependency, pairs: Iterator[Pair]) -> Iterator[tuple[int, Pair]]:
    aggregator = shuffle.aggregator
    if aggregator is not None and shuffle.map_side:
        pairs = iter(_grouped(pairs, aggregator.create, aggregator.merge_value))
    for pair in pairs:
        yield shuffle.partitioner(pair[0]), pair


def _grouped(
    pairs: Any, create: Callable[[Any], Any], merge: Callable[[Any, Any], Any]
) -> list[Pair]:
    from frameworks.rdd.hashing import one_nan

    found: dict[Any, Any] = {}
    for key, value in pairs:
        key = one_nan(key)
        found[key] = merge(found[key], value) if key in found else create(value)
    return list(found.items())
