"""What trackers keep beneath their state URL.

::

    framework.json            the framework's id, the same for all trackers of this state
    trackers/000003.json      the tracker of epoch 3, and how its workers are started
    journal/                  see `journal`
    jobs/JOB/job.json         a job, as it was submitted
    jobs/JOB/files/           what it ships (its client puts it there)
    history/JOB.json          a job that has ended
    history/JOB.tasks.json    its tasks

A job's directory is removed when it has ended and its files are gone from the agents; its
history stays.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from frameworks.mapreduce.core.journal import Launched, Record, WorkerGone, job_of
from frameworks.mapreduce.core.views import JobView, TaskView
from frameworks.mapreduce.job import JobSpec
from frameworks.mapreduce.names import checked_job_id
from frameworks.mapreduce.records import decode, encode
from frameworks.mapreduce.tracker.journal import Entry
from frameworks.mapreduce.tracker.place import Place
from mesos_py import logs
from mesos_py.errors import AlreadyExists, InvalidValue, NotFound

log = logs.get("mapreduce.store")

# The owner of what is of no job.
NO_JOB: Final = "-"


class WorkerStart(msgspec.Struct, frozen=True):
    """How the workers of a tracker are started: an executor that runs is only given tasks by
    those who describe it in the same words, so a successor needs them."""

    command: tuple[str, ...]
    env: Mapping[str, str]
    cpus: float
    mem_mb: float
    user: str = ""


class TrackerRecord(msgspec.Struct, frozen=True):
    epoch: int
    writer: str
    hostname: str
    started_s: float
    worker: WorkerStart


class Cleaned(msgspec.Struct, frozen=True, tag=True):
    """Of the tracker, beside the brain's records: nothing of the job is left to be done."""

    job_id: str


class WorkerKept(msgspec.Struct, frozen=True, tag=True):
    """Of the tracker: a worker that lives on when the jobs that it was launched for are over."""

    agent_id: str
    worker_id: str


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A job that has ended.

    agents_left: host names of agents that may have files of it still, and why.
    """

    view: JobView
    spec: JobSpec
    agents_left: Mapping[str, str] = {}


class _Framework(msgspec.Struct, frozen=True):
    id: str


class Store:
    """Blocking, from any thread.  What a file system raises comes through."""

    def __init__(self, url: str) -> None:
        """Raises InvalidValue."""
        self.place = Place(url)

    # ---- The framework and its trackers ----------------------------------------------------

    def framework_id(self) -> str:
        """Of the framework; chosen by whoever asks first."""
        try:
            mine = _Framework(f"mapreduce-{secrets.token_hex(8)}")
            self.place.create("framework.json", encode(mine))
        except AlreadyExists:
            data = self.place.read("framework.json")
            return decode(_Framework, data, self.place.url_of("framework.json")).id
        return mine.id

    def forget_framework(self) -> None:
        """It has ended for the cluster, and its id cannot be used any more."""
        self.place.remove("framework.json")

    def add_tracker(self, record: TrackerRecord) -> None:
        self.place.replace(f"trackers/{record.epoch:06}.json", encode(record))

    def tracker(self, epoch: int) -> TrackerRecord | None:
        """None if nothing is known of it."""
        name = f"trackers/{epoch:06}.json"
        try:
            return decode(TrackerRecord, self.place.read(name), self.place.url_of(name))
        except NotFound:
            return None

    # ---- Jobs ------------------------------------------------------------------------------

    def staging(self, job_id: str) -> str:
        """The URL of a job's own directory."""
        return self.place.url_of(f"jobs/{checked_job_id('job_id', job_id)}")

    def put_job(self, spec: JobSpec) -> bool:
        """Keep a job; whether it was there before.  Raises AlreadyExists if there is another
        one with its id."""
        name = f"jobs/{checked_job_id('job_id', spec.job_id)}/job.json"
        try:
            self.place.create(name, encode(spec))
        except AlreadyExists:
            if decode(JobSpec, self.place.read(name), self.place.url_of(name)) != spec:
                raise AlreadyExists(
                    f"job {spec.job_id}: another job has this id", job_id=spec.job_id
                ) from None
            return True
        return False

    def remove_job(self, job_id: str) -> None:
        self.place.remove_tree(f"jobs/{job_id}")

    def withdraw_job(self, job_id: str) -> None:
        """It was not taken on; what its client has put there is the client's."""
        self.place.remove(f"jobs/{job_id}/job.json")

    # ---- History ---------------------------------------------------------------------------

    def put_history(self, summary: Summary, tasks: Sequence[TaskView]) -> None:
        job_id = summary.view.job_id
        lines = (encode(task) for task in tasks)
        self.place.replace(f"history/{job_id}.tasks.json", b"".join(one + b"\n" for one in lines))
        self.place.replace(f"history/{job_id}.json", encode(summary))

    def put_summary(self, summary: Summary) -> None:
        self.place.replace(f"history/{summary.view.job_id}.json", encode(summary))

    def summary(self, job_id: str) -> Summary:
        """Raises NotFound."""
        name = f"history/{checked_job_id('job_id', job_id)}.json"
        try:
            data = self.place.read(name)
        except NotFound:
            raise NotFound("job", job_id) from None
        return decode(Summary, data, self.place.url_of(name))

    def tasks(self, job_id: str) -> list[TaskView]:
        """Of a job that has ended.  Raises NotFound."""
        name = f"history/{checked_job_id('job_id', job_id)}.tasks.json"
        try:
            lines = self.place.read(name).split(b"\n")
        except NotFound:
            raise NotFound("job", job_id) from None
        return [decode(TaskView, line, self.place.url_of(name)) for line in lines if line]

    def summaries(self, limit: int) -> list[Summary]:
        """Of the newest jobs that have ended, in the order of their ids.  One that cannot be
        read is left out."""
        names = [each for each in self.place.names("history") if not each.endswith(".tasks.json")]
        found = []
        for name in names[-limit:] if limit else []:
            try:
                found.append(self.summary(name.removesuffix(".json")))
            except (InvalidValue, NotFound) as error:
                log.warning("history of a job left out", name=name, error=error.message)
        return found


# ---- Records as entries of a journal -------------------------------------------------------

Line: TypeAlias = Record | Cleaned | WorkerKept


def entries_of(lines: Iterable[Line]) -> list[Entry]:
    return [Entry(_owner(line), encode(line)) for line in lines]


def lines_of(entries: Iterable[Entry]) -> list[Line]:
    """Raises InvalidValue."""
    return [_line_of(entry) for entry in entries]


def living(lines: Sequence[Line]) -> list[Line]:
    """Without those of jobs of which nothing is left to be done, and of workers that are gone."""
    over = {line.job_id for line in lines if isinstance(line, Cleaned)}
    gone = {(line.agent_id, line.worker_id) for line in lines if isinstance(line, WorkerGone)}
    launched = {
        (line.agent_id, line.worker_id)
        for line in lines
        if isinstance(line, Launched) and _owner(line) not in over
    }

    def lives(line: Line) -> bool:
        if isinstance(line, WorkerKept):
            return (line.agent_id, line.worker_id) not in gone
        if isinstance(line, WorkerGone):
            return (line.agent_id, line.worker_id) in launched
        return _owner(line) not in over

    return [line for line in lines if lives(line)]


def _owner(line: Line) -> str:
    if isinstance(line, Cleaned):
        return line.job_id
    if isinstance(line, WorkerKept):
        return NO_JOB
    return job_of(line) or NO_JOB


def _line_of(entry: Entry) -> Line:
    try:
        found: Line = msgspec.json.decode(entry.data, type=Line)
    except msgspec.MsgspecError as error:
        raise InvalidValue("journal", entry.data[:200], str(error)) from None
    return found


__all__ = [
    "NO_JOB",
    "Cleaned",
    "Line",
    "Store",
    "Summary",
    "TrackerRecord",
    "WorkerKept",
    "WorkerStart",
    "entries_of",
    "lines_of",
    "living",
]
