"""Numbers about a tracker, for Prometheus."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable
from typing import Final

from frameworks.mapreduce.core import journal as records
from frameworks.mapreduce.core.views import JobView
from frameworks.mapreduce.names import parse_attempt
from frameworks.mapreduce.tracker.cleaning import Done
from mesos_py.metrics import Metrics

_STATES: Final = ("waiting", "running", "stopping", "finishing")


class Numbers:
    """Survives the tenures of its process.  `wrote` and `cleaned` are for the engine's thread."""

    def __init__(self) -> None:
        self._metrics = Metrics(prefix="mesos_py_mapreduce_")
        metrics = self._metrics
        self._submitted = metrics.counter("jobs_submitted_total", "Jobs taken on")
        self._ended = metrics.counter("jobs_ended_total", "Jobs that have ended", ("outcome",))
        self._launched = metrics.counter(
            "attempts_launched_total", "Attempts launched", ("kind", "level", "twin")
        )
        self._attempts = metrics.counter(
            "attempts_ended_total", "Attempts that ended without a result that counts", ("how",)
        )
        self._lost = metrics.counter("outputs_lost_total", "Outputs of maps to be made again")
        self._committed = metrics.counter("parts_committed_total", "Parts moved into place")
        self._cleaned = metrics.counter(
            "workers_cleaned_total", "Workers rid of an ended job's files", ("done",)
        )
        self._jobs = metrics.gauge("jobs", "Jobs that have not ended", ("state",))
        self._tasks = metrics.gauge("tasks", "Tasks of these jobs", ("kind", "state"))
        self._active = metrics.gauge("active", "Whether this tracker is the active one")

    def wrote(self, lines: Iterable[records.Record], outcome_of: Callable[[str], str]) -> None:
        """What was written down, and so has happened.  outcome_of: of a job by its id."""
        for line in lines:
            if isinstance(line, records.Submitted):
                self._submitted.inc()
            elif isinstance(line, records.Launched):
                name = parse_attempt(line.attempt)
                kind = name.kind if name else ""
                self._launched.labels(kind, line.level, str(line.twin).lower()).inc()
            elif isinstance(line, records.AttemptEnded):
                self._attempts.labels(line.how).inc()
            elif isinstance(line, records.OutputsLost):
                self._lost.inc(len(line.attempts))
            elif isinstance(line, records.Committed):
                self._committed.inc()
            elif isinstance(line, records.JobEnded):
                # Not when it was decided: the output may fail after that.
                self._ended.labels(outcome_of(line.job_id)).inc()

    def cleaned(self, done: Done) -> None:
        self._cleaned.labels("true").inc(done.cleaned)
        self._cleaned.labels("false").inc(len(done.left))

    def rendered(self, views: Iterable[JobView] | None) -> bytes:
        """In the text format; views: of all jobs, None for a tracker that is not active."""
        self._active.set(views is not None)
        found = list(views or ())
        states = Tally(view.state for view in found)
        for state in _STATES:
            self._jobs.labels(state).set(states[state])
        for kind in ("map", "reduce"):
            phases = [view.maps if kind == "map" else view.reduces for view in found]
            for state in ("waiting", "running", "done"):
                count = sum(getattr(phase, state) for phase in phases)
                self._tasks.labels(kind, state).set(count)
        return self._metrics.render()


__all__ = ["Numbers"]
