"""A job as `hadoop jar` tells of it on stderr, in the words that programs look for."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Final

from frameworks.mapreduce import report
from frameworks.mapreduce.core.views import AttemptView, JobView, TaskView
from frameworks.mapreduce.hadoop.tasklogs import TaskLogs
from frameworks.mapreduce.watch import Display
from frameworks.mapreduce.work import Counters

_GROUPS: Final = {
    "org.apache.hadoop.mapreduce.TaskCounter": "Map-Reduce Framework",
    "org.apache.hadoop.mapreduce.JobCounter": "Job Counters ",
    "org.apache.hadoop.mapreduce.FileSystemCounter": "File System Counters",
}
# What begins a record, wherever in a line it is: to those who read them, not to us.
_RECORD: Final = re.compile(r"(?<=\s)(?=[A-Z]+(?:\s+\[.*?\])?\s+\S+(?:\s+\(.*?\))?(?: - |: ))")
_APART: Final = "\u200b"
_CONSTANT: Final = re.compile(r"[A-Z][A-Z0-9_]*")


def application_id(job_id: str) -> str:
    """What YARN calls the job."""
    return f"application_{job_id.removeprefix('job_')}"


class Log(Display):
    """Lines like `26/11/28 14:15:00 INFO mapreduce.Job: Running job: job_...`.

    output: as the user gave it.  logs: where failed attempts leave theirs; None: nowhere.
    """

    def __init__(self, write: Callable[[str], None], output: str, logs: TaskLogs | None) -> None:
        self._write = write
        self._output = output
        self._logs = logs
        self._told = (-1, -1)
        self._splits = False
        self._failed: set[str] = set()

    def line(self, level: str, logger: str, message: str) -> None:
        """A record; what follows the first line of `message` belongs to it."""
        now = time.strftime("%y/%m/%d %H:%M:%S")
        first, *more = message.split("\n")
        text = "\n".join([f"{now} {level} {logger}: {first}", *map(continued, more)])
        self._write(f"{text}\n")

    def begin(self, job_id: str) -> None:
        application = application_id(job_id)
        self.line("INFO", "impl.YarnClientImpl", f"Submitted application {application}")
        self.line("INFO", "mapreduce.Job", f"Running job: {job_id}")

    def update(self, view: JobView, tasks: Sequence[TaskView]) -> None:
        if not self._splits and view.maps.total:
            self._splits = True
            self.line("INFO", "mapreduce.JobSubmitter", f"number of splits:{view.maps.total}")
        self._tell_failures(view, tasks)
        told = (report.percent(view.maps.progress), report.percent(view.reduces.progress))
        if told != self._told:
            self._told = told
            self.line("INFO", "mapreduce.Job", f" map {told[0]}% reduce {told[1]}%")

    def note(self, text: str) -> None:
        self.line("WARN", "mapreduce.Job", text)

    def end(self, view: JobView, tasks: Sequence[TaskView]) -> None:
        self._tell_failures(view, tasks)
        if view.state == "succeeded":
            self.line("INFO", "mapreduce.Job", f"Job {view.job_id} completed successfully")
        else:
            self._tell_end(view, tasks)
        self._tell_counters(view.counters)
        if view.state == "succeeded":
            self.line("INFO", "streaming.StreamJob", f"Output directory: {self._output}")
        else:
            self.failed("Job not successful!")

    def failed(self, why: str) -> None:
        """What Hadoop Streaming ends with."""
        self.line("ERROR", "streaming.StreamJob", why)
        self._write("Streaming Command Failed!\n")

    def _tell_end(self, view: JobView, tasks: Sequence[TaskView]) -> None:
        state = "KILLED" if view.state == "killed" else "FAILED"
        why = "\n".join(report.failure_lines(view, tasks)) if view.failure else view.why
        text = f"Job {view.job_id} failed with state {state} due to: {why}"
        self.line("INFO", "mapreduce.Job", text)

    def _tell_failures(self, view: JobView, tasks: Sequence[TaskView]) -> None:
        for task, attempt in report.failed_attempts(tasks):
            if attempt.attempt not in self._failed:
                self._failed.add(attempt.attempt)
                self._tell_failure(task, attempt)
                if self._logs is not None:
                    self._logs.write(application_id(view.job_id), task, attempt)

    def _tell_failure(self, task: TaskView, attempt: AttemptView) -> None:
        failure = attempt.failure
        if failure is None:
            return
        lines = [f"Task Id : {attempt.attempt}, Status : FAILED", f"Error: {failure.message}"]
        if failure.details.strip():
            lines += failure.details.rstrip().splitlines()
        where = failure.where or task.where
        lines += [
            f"{word}: {text}" for word, text in (("input", where), ("log", failure.log)) if text
        ]
        self.line("INFO", "mapreduce.Job", "\n".join(lines))

    def _tell_counters(self, counters: Counters) -> None:
        shown = displayed(counters)
        if shown:
            lines = [f"Counters: {report.counter_total(shown)}", *report.counter_lines(shown, "\t")]
            self.line("INFO", "mapreduce.Job", "\n".join(lines))


def continued(line: str) -> str:
    """A line that nobody takes for the beginning of a record, be it a user's that looks so:
    with a space of no width in it."""
    return _RECORD.sub(_APART, line)


def displayed(counters: Counters) -> Counters:
    """By the names that Hadoop shows, as "Map input records" for MAP_INPUT_RECORDS."""
    found: dict[str, dict[str, int]] = {}
    for group, counts in counters.items():
        ours = group in _GROUPS
        shown = found.setdefault(_GROUPS.get(group, group), {})
        for name, count in counts.items():
            words = ours and _CONSTANT.fullmatch(name)
            shown[name.replace("_", " ").capitalize() if words else name] = count
    return found
