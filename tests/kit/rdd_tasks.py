"""Tasks of the RDD engine in the test's own process: what they write and read of shuffles."""

from __future__ import annotations

import mmap
from pathlib import Path

from frameworks.rdd.executor import page, shuffle_out
from frameworks.rdd.executor.environment import TaskEnvironment
from frameworks.rdd.executor.settings import Settings
from frameworks.rdd.executor.state import WorkerState
from frameworks.rdd.messages import MapOutput, RunTask

MEMORY = "spark.python.worker.memory"


class Place:
    """An executor's directory, and tasks there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        settings = Settings("executor-1", "", str(path), 1, 0, "here", "127.0.0.1")
        self._shared = mmap.mmap(-1, page.SIZE)
        self.page = page.Page(self._shared)
        self.state = WorkerState(settings, self._never, self._never, self.page)
        self.tasks = 0

    def _never(self, *_):
        raise AssertionError

    def task(self, split: int, limit: str, outputs=()) -> TaskEnvironment:
        self.tasks += 1
        task = RunTask(self.tasks, "stage", 1, split, 0, b"", {MEMORY: limit})
        return TaskEnvironment(task, {}, {1: tuple(outputs)}, self.state)

    def write(self, needs, parts, limit="512m") -> list[MapOutput]:
        return [
            shuffle_out.write(self.task(split, limit), needs, iter(part))
            for split, part in enumerate(parts)
        ]

    def read(self, needs, outputs, limit="512m") -> list[list]:
        count = needs.partitioner.partitions
        return [
            list(self.task(split, limit, outputs).read_shuffle(needs, split))
            for split in range(count)
        ]

    def files(self) -> set[str]:
        return {str(each.relative_to(self.path)) for each in self.path.rglob("*") if each.is_file()}
