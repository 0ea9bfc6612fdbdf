"""Records of what must survive the tracker.  `Brain.restore` makes its state of them again.

Each is of one job (`job_of`), but WorkerGone, so a shell may keep a journal per job and one
for workers.  Times are Unix times.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from frameworks.mapreduce.job import JobSpec, Split
from frameworks.mapreduce.names import parse_attempt
from frameworks.mapreduce.work import Counters, Failure, MapDone
from mesos_py.errors import InvalidValue

Level = Literal["host", "rack", "any"]


class Submitted(msgspec.Struct, frozen=True, tag=True):
    spec: JobSpec
    splits: tuple[Split, ...]
    at_s: float


class Launched(msgspec.Struct, frozen=True, tag=True):
    """An attempt is about to be launched.  Its number is never given again.

    level: how near its input is; "any" for reduces.  twin: beside another one that runs.
    """

    attempt: str
    agent_id: str
    hostname: str
    worker_id: str
    level: Level
    twin: bool
    at_s: float


class AttemptEnded(msgspec.Struct, frozen=True, tag=True):
    """An attempt has ended without a result that counts.  `failure` is set with "failed"."""

    attempt: str
    how: Literal["failed", "lost", "preempted", "killed"]
    why: str
    failure: Failure | None
    at_s: float


class MapOutputKept(msgspec.Struct, frozen=True, tag=True):
    """A map is done, and this attempt's output is the one that reduces fetch."""

    attempt: str
    done: MapDone
    at_s: float


class OutputsLost(msgspec.Struct, frozen=True, tag=True):
    """Of these attempts (of one job) the kept outputs cannot be fetched any more.

    fetch: because reduces have said so; else their agent is gone.
    """

    attempts: tuple[str, ...]
    why: str
    fetch: bool
    at_s: float


class CommitChosen(msgspec.Struct, frozen=True, tag=True):
    """Of this attempt, and of no other of its task, the part file becomes output.
    part: its size."""

    attempt: str
    part: int
    counters: Counters
    at_s: float


class Committed(msgspec.Struct, frozen=True, tag=True):
    attempt: str
    at_s: float


class CommitFailed(msgspec.Struct, frozen=True, tag=True):
    """The part was not there: the choice is void, and the attempt has failed."""

    attempt: str
    failure: Failure
    at_s: float


class Stopping(msgspec.Struct, frozen=True, tag=True):
    """The outcome is decided.  With "failed": the first cause and, if any, its attempt."""

    job_id: str
    outcome: Literal["succeeded", "failed", "killed"]
    why: str
    failure: Failure | None
    attempt: str
    at_s: float


class OutputFailed(msgspec.Struct, frozen=True, tag=True):
    """Of a job that would have succeeded: all was done, and its output could not be completed."""

    job_id: str
    failure: Failure
    at_s: float


class JobEnded(msgspec.Struct, frozen=True, tag=True):
    """The job's output is as it is to be, and nothing else is left of it."""

    job_id: str
    at_s: float


class WorkerGone(msgspec.Struct, frozen=True, tag=True):
    """A worker was lost, or is being released."""

    agent_id: str
    worker_id: str
    at_s: float


Record = (
    Submitted
    | Launched
    | AttemptEnded
    | MapOutputKept
    | OutputsLost
    | CommitChosen
    | Committed
    | CommitFailed
    | Stopping
    | OutputFailed
    | JobEnded
    | WorkerGone
)


def job_of(record: Record) -> str | None:
    """The job that a record is of; None for a worker's.  Raises InvalidValue for one that
    names no attempt in the form of `names`."""
    if isinstance(record, WorkerGone):
        return None
    if isinstance(record, Submitted):
        return record.spec.job_id
    if isinstance(record, (Stopping, OutputFailed, JobEnded)):
        return record.job_id
    attempt = record.attempts[0] if isinstance(record, OutputsLost) else record.attempt
    name = parse_attempt(attempt)
    if name is None:
        raise InvalidValue("journal.attempt", attempt, "is not the name of an attempt")
    return name.job_id
