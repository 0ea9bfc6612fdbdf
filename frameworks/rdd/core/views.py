"""How jobs, stages, executors and kept data stand, as records for people and pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

JobStatus = Literal["RUNNING", "SUCCEEDED", "FAILED"]
StageStatus = Literal["WAITING", "ACTIVE", "COMPLETE", "FAILED"]


@dataclass(frozen=True, slots=True)
class StageView:
    """done, running and failed count tasks; failed ones were tried again, mostly.
    attempt: from 0.  began_s and ended_s: of the core's clock; None: not yet.
    lineage: what is computed in one task, the last first, in a line each."""

    id: int
    attempt: int
    name: str
    place: str
    rdd_id: int
    jobs: tuple[int, ...]
    status: StageStatus
    total: int
    done: int
    running: int
    failed: int
    began_s: float | None
    ended_s: float | None
    shuffle_id: int | None
    reads: tuple[int, ...]
    read_bytes: int = 0
    written_bytes: int = 0
    spilled_bytes: int = 0
    lineage: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobView:
    """error: the first line of why it failed."""

    number: int
    action: str
    place: str
    group: str
    description: str
    status: JobStatus
    stages: tuple[int, ...]
    began_s: float
    ended_s: float | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class ExecutorView:
    id: str
    host: str
    slots: int
    running: int
    memory_bytes: int
    disk_bytes: int
    excluded: bool
    leaving: bool


@dataclass(frozen=True, slots=True)
class KeptView:
    """Of one persisted data set."""

    rdd_id: int
    partitions: int
    memory_bytes: int
    disk_bytes: int


@dataclass(frozen=True, slots=True)
class TaskView:
    """One that runs.  elements: as many as it had read when it last told."""

    task_id: int
    stage: int
    partition: int
    attempt: int
    executor: str
    host: str
    ran_s: float
    elements: int
    cancelled: bool


@dataclass(frozen=True, slots=True)
class View:
    """All that runs, in order, then what has ended, the latest last.  waiting: tasks without
    a slot."""

    now_s: float
    jobs: tuple[JobView, ...]
    stages: tuple[StageView, ...]
    executors: tuple[ExecutorView, ...]
    kept: tuple[KeptView, ...]
    waiting: int
    tasks: tuple[TaskView, ...] = ()


__all__ = [
    "ExecutorView",
    "JobStatus",
    "JobView",
    "KeptView",
    "StageStatus",
    "StageView",
    "TaskView",
    "View",
]
