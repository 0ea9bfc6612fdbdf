"""How workers are started, and attempts handed to them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from frameworks.mapreduce.core.orders import Launch
from frameworks.mapreduce.records import encode
from frameworks.mapreduce.tracker.options import TrackerOptions
from frameworks.mapreduce.tracker.store import WorkerStart
from mesos_py import ExecutorInfo, Resources, TaskInfo, custom_executor, executor_task

MODULE: Final = "frameworks.mapreduce.worker"
# From being told to end to being killed: attempts are ended, and their ends are said.
SHUTDOWN_S: Final = 5.0

_ID = re.compile(r"worker-(\d+)-\d+")


def prefix(epoch: int) -> str:
    """What the ids of workers begin with that the tracker of this epoch starts."""
    return f"worker-{epoch}"


def epoch_of(worker_id: str) -> int | None:
    found = _ID.fullmatch(worker_id)
    return None if found is None else int(found[1])


def start_of(options: TrackerOptions) -> WorkerStart:
    return WorkerStart(
        command=(options.worker_python, "-m", MODULE),
        env=dict(options.worker_env),
        cpus=options.worker_needs.scalar("cpus"),
        mem_mb=options.worker_needs.scalar("mem"),
        user=options.user,
    )


class Workers:
    """earlier: how the tracker of another epoch has started its workers; None if that is not
    known any more."""

    def __init__(
        self, start: WorkerStart, epoch: int, earlier: Callable[[int], WorkerStart | None]
    ) -> None:
        self._start = start
        self._epoch = epoch
        self._earlier = earlier
        self._known: dict[str, ExecutorInfo] = {}

    def tasks(self, launch: Launch) -> list[TaskInfo]:
        """Raises InvalidValue and TooLarge for what cannot be launched in any form."""
        executor = self.executor(launch.worker_id)
        return [
            executor_task(
                start.attempt,
                start.attempt,
                launch.agent_id,
                executor,
                data=encode(start.work),
                resources=start.resources,
            )
            for start in launch.starts
        ]

    def executor(self, worker_id: str) -> ExecutorInfo:
        found = self._known.get(worker_id)
        if found is None:
            found = self._known[worker_id] = _executor(worker_id, self._start_of(worker_id))
        return found

    def gone(self, worker_id: str) -> None:
        self._known.pop(worker_id, None)

    def _start_of(self, worker_id: str) -> WorkerStart:
        epoch = epoch_of(worker_id)
        if epoch is None or epoch == self._epoch:
            return self._start
        return self._earlier(epoch) or self._start


def _executor(worker_id: str, start: WorkerStart) -> ExecutorInfo:
    amounts = {"cpus": start.cpus, "mem": start.mem_mb}
    return custom_executor(
        worker_id,
        list(start.command),
        cpus=None,
        mem=None,
        resources=Resources.of(None, **{name: n for name, n in amounts.items() if n}),
        env=start.env,
        user=start.user or None,
        shutdown_grace_s=SHUTDOWN_S,
    )


__all__ = ["Workers", "epoch_of", "prefix", "start_of"]
