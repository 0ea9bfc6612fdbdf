"""Jobs of a SparkContext: what is run, in whose name, and how it is cancelled."""

from __future__ import annotations

import contextlib
import functools
import threading
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from frameworks.rdd import checkpoints
from frameworks.rdd.nodes import Node
from frameworks.rdd.paths import opened, url_of
from frameworks.rdd.places import caller
from frameworks.rdd.runner import TAGS, Job, Results, Runner
from mesos_py.errors import InvalidValue

if TYPE_CHECKING:
    from frameworks.rdd.rdd import RDD

U = TypeVar("U")

_GROUP: Final = "spark.jobGroup.id"
_DESCRIPTION: Final = "spark.job.description"


class Jobs:
    """The part of a SparkContext that runs jobs.  What is set here, but for checkpoints, is
    of the thread that sets it."""

    runner: Runner

    def __init__(self) -> None:
        self._thread = threading.local()
        self._checkpoint_dir: str | None = None
        self._marked: dict[int, Node] = {}
        self._marking = threading.RLock()

    # ---- What the thread has set -----------------------------------------------------------

    @property
    def _local(self) -> dict[str, str]:
        if not hasattr(self._thread, "values"):
            self._thread.values = {}
        values: dict[str, str] = self._thread.values
        return values

    def setLocalProperty(self, key: str, value: str | None) -> None:
        """For jobs from this thread; tasks find it in their TaskContext.  None unsets it."""
        if value is None:
            self._local.pop(key, None)
        else:
            self._local[key] = str(value)

    def getLocalProperty(self, key: str) -> str | None:
        return self._local.get(key)

    def setJobGroup(self, groupId: str, description: str, interruptOnCancel: bool = False) -> None:
        """Jobs from this thread belong to the group from now on, for cancelJobGroup.  Tasks
        that are cancelled are always interrupted."""
        self.setLocalProperty(_GROUP, groupId)
        self.setLocalProperty(_DESCRIPTION, description)

    def setInterruptOnCancel(self, interruptOnCancel: bool) -> None:
        """Taken for programs that call it: tasks that are cancelled are always interrupted."""

    def setJobDescription(self, value: str | None) -> None:
        self.setLocalProperty(_DESCRIPTION, value)

    def addJobTag(self, tag: str) -> None:
        """For jobs from this thread, besides those that it has.  Raises ValueError for an
        empty one, or one with a comma."""
        self._set_tags(self.getJobTags() | {_checked(tag)})

    def removeJobTag(self, tag: str) -> None:
        """Nothing if it is not there."""
        self._set_tags(self.getJobTags() - {_checked(tag)})

    def getJobTags(self) -> set[str]:
        return set(filter(None, self._local.get(TAGS, "").split(",")))

    def clearJobTags(self) -> None:
        self._set_tags(set())

    def _set_tags(self, tags: set[str]) -> None:
        self.setLocalProperty(TAGS, ",".join(sorted(tags)) or None)

    @contextlib.contextmanager
    def in_group(self, group: str, description: str) -> Iterator[None]:
        """setJobGroup, and back to what it was."""
        before = dict(self._local)
        self.setJobGroup(group, description)
        try:
            yield
        finally:
            self._thread.values = before

    def inherited(self, function: Callable[[], U], *, named: bool = True) -> Callable[[], U]:
        """`function` for another thread, where jobs will be as from this one; `named`: also
        in their names, since nothing in that thread is the user's."""
        values, called = dict(self._local), caller() if named else None

        def run() -> U:
            self._thread.values = values
            self._thread.called = called
            return function()

        return run

    # ---- Cancelling ------------------------------------------------------------------------

    def cancelJobGroup(self, groupId: str) -> None:
        """Those that run; later ones of the group are not touched."""
        self.runner.cancel(groupId, f"job group {groupId} was cancelled")

    def cancelJobsWithTag(self, tag: str) -> None:
        """Those that run and have it."""
        self.runner.cancel_tag(_checked(tag), f"jobs with the tag {tag} were cancelled")

    def cancelAllJobs(self) -> None:
        self.runner.cancel(None, "all jobs were cancelled")

    # ---- Running ---------------------------------------------------------------------------

    def runJob(
        self,
        rdd: RDD[Any],
        partitionFunc: Callable[[Iterator[Any]], Any],
        partitions: Sequence[int] | None = None,
        allowLocal: bool = False,
    ) -> list[Any]:
        """What `partitionFunc` makes of these partitions, or all, in one list.  allowLocal is
        taken for programs that give it."""
        parts = self.run(rdd.node, _Elements(partitionFunc), partitions)
        return [each for part in parts for each in part]

    def run(
        self,
        node: Node,
        function: Callable[[int, Iterator[Any]], U],
        splits: Sequence[int] | None = None,
    ) -> list[U]:
        """function(split, elements) of these partitions, or all; in their order."""
        return [value for _, value in sorted(self.results(node, function, splits), key=_index)]

    def results(
        self,
        node: Node,
        function: Callable[[int, Iterator[Any]], U],
        splits: Sequence[int] | None = None,
    ) -> Coming[U]:
        """Starts the job."""
        wanted = list(range(node.partitions) if splits is None else splits)
        for each in wanted:
            if not 0 <= each < node.partitions:
                raise InvalidValue("partitions", each, f"there are {node.partitions}")
        action, where = getattr(self._thread, "called", None) or caller()
        properties = dict(self._local)
        job = Job(
            node,
            function,
            list(dict.fromkeys(wanted)),
            action,
            where,
            properties.get(_GROUP, ""),
            properties.get(_DESCRIPTION, ""),
            properties,
        )
        results = self.runner.run(job) if wanted else None
        return Coming(results, wanted, functools.partial(self._write_checkpoints, node))

    # ---- Checkpoints -----------------------------------------------------------------------

    def setCheckpointDir(self, dirName: str) -> None:
        """Where checkpoints are written: a directory that all executors reach.  They go into
        one of its own for each context, and stay there."""
        fs, path = opened(dirName)
        path = f"{path.rstrip('/')}/{uuid.uuid4()}"
        fs.makedirs(path)
        self._checkpoint_dir = url_of(fs, path)

    def getCheckpointDir(self) -> str | None:
        return self._checkpoint_dir

    def mark(self, node: Node) -> None:
        """It is to be written after the next job that needs it."""
        with self._marking:
            if not node.checkpoint:
                self._marked[node.id] = node

    def _write_checkpoints(self, node: Node) -> None:
        with self._marking:
            found = checkpoints.marked(node, set(self._marked)) if self._marked else []
            for each in found:
                del self._marked[each.id]
        for each in found:
            checkpoints.write(self, each, f"{self._checkpoint_dir}/rdd-{each.id}")


class Coming(Iterator[tuple[int, U]]):
    """(index in splits, result) of a job that runs, as they come.

    results: of the job; None if there are to be none.  ended: called after the last.
    """

    def __init__(
        self, results: Results | None, splits: Sequence[int], ended: Callable[[], None]
    ) -> None:
        self._results = results
        self._ended = ended
        self._indices: dict[int, list[int]] = {}
        for index, split in enumerate(splits):
            self._indices.setdefault(split, []).append(index)
        self._pairs = self._all()

    def __next__(self) -> tuple[int, U]:
        return next(self._pairs)

    def close(self) -> None:
        """Before the end it cancels the job, also if nobody has asked for a result yet."""
        self._pairs.close()
        if self._results is not None:
            self._results.close()

    def _all(self) -> Generator[tuple[int, U], None, None]:
        if self._results is not None:
            try:
                for result in self._results:
                    for index in self._indices[result.split]:
                        yield index, result.value
            finally:
                self._results.close()
        self._ended()


class _Elements:
    """The function of runJob, which is not told what partition it has."""

    def __init__(self, function: Callable[[Iterator[Any]], Any]) -> None:
        self.function = function

    def __call__(self, split: int, elements: Iterator[Any]) -> list[Any]:
        return list(self.function(elements))


def _checked(tag: str) -> str:
    if not tag or "," in tag:
        raise ValueError("Spark job tag cannot be an empty string, nor have a comma in it")
    return tag


def _index(pair: tuple[int, Any]) -> int:
    return pair[0]
