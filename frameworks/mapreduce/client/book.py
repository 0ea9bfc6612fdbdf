"""What is known of a job that runs in this process, as the views that trackers show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from frameworks.mapreduce import conf as properties
from frameworks.mapreduce.core.views import (
    AttemptState,
    AttemptView,
    JobState,
    JobView,
    PhaseView,
    TaskState,
    TaskView,
)
from frameworks.mapreduce.job import JobSpec
from frameworks.mapreduce.messages import Running
from frameworks.mapreduce.names import Kind, parse_attempt, task_id
from frameworks.mapreduce.work import Counters, Failure, MapDone, ReduceDone

HERE: Final = "localhost"
_KINDS: Final[tuple[Kind, Kind]] = ("map", "reduce")


@dataclass(slots=True)
class _Attempt:
    name: str
    started_s: float
    state: AttemptState = "running"
    ended_s: float = 0.0
    running: Running = field(default_factory=lambda: Running(progress=0.0))
    failure: Failure | None = None
    why: str = ""


@dataclass(slots=True)
class _Task:
    number: int
    attempts: list[_Attempt] = field(default_factory=list)

    @property
    def state(self) -> TaskState:
        states = {each.state for each in self.attempts}
        if "done" in states:
            return "done"
        if "running" in states:
            return "running"
        return "waiting"

    @property
    def progress(self) -> float:
        if self.state == "done":
            return 1.0
        return max(
            (each.running.progress for each in self.attempts if each.state == "running"),
            default=0.0,
        )


class Book:
    """Told of events; not safe for threads."""

    def __init__(self, spec: JobSpec) -> None:
        self._spec = spec
        self._tasks: Mapping[Kind, dict[int, _Task]] = {"map": {}, "reduce": {}}
        self._attempts: dict[str, _Attempt] = {}
        self._state: JobState = "waiting"
        self._started_s = self._ended_s = 0.0
        self._failure: tuple[str, Failure] | None = None
        self._why = ""
        self._done: Counters = {}

    # ---- Told ----------------------------------------------------------------------------------

    def planned(self, maps: int, reduces: int) -> None:
        for kind, count in zip(_KINDS, (maps, reduces), strict=True):
            self._tasks[kind].update({number: _Task(number) for number in range(count)})
        self._state = "running"

    def started(self, attempt: str, now_s: float) -> None:
        name = parse_attempt(attempt)
        if name is None:
            return
        self._started_s = self._started_s or now_s
        made = self._attempts[attempt] = _Attempt(attempt, now_s)
        self._tasks[name.kind].setdefault(name.task, _Task(name.task)).attempts.append(made)

    def moved(self, attempt: str, running: Running) -> None:
        if attempt in self._attempts:
            self._attempts[attempt].running = running

    def ended(
        self, attempt: str, outcome: MapDone | ReduceDone | Failure | None, now_s: float
    ) -> None:
        """outcome: None if it was stopped because of another one."""
        found = self._attempts.get(attempt)
        if found is None:
            return
        found.ended_s = now_s
        if isinstance(outcome, Failure):
            found.state, found.failure, found.why = "failed", outcome, outcome.message
        elif outcome is None:
            found.state = "killed"
        else:
            found.state = "done"
            self._done = summed(self._done, outcome.counters)

    def finished(
        self,
        state: Literal["succeeded", "failed", "killed"],
        now_s: float,
        *,
        counters: Counters | None = None,
        cause: tuple[str, Failure] | None = None,
        why: str = "",
    ) -> None:
        """The job has ended.  cause: the attempt that has failed it, and how."""
        self._state, self._ended_s = state, now_s
        self._failure, self._why = cause, why
        if cause is not None:
            self._why = self._why or cause[1].message
        if counters is not None:
            self._done = counters
        stopped = f"stopped since {cause[0]} had failed" if cause else f"stopped: {self._why}"
        for each in self._attempts.values():
            if each.state == "running":
                each.state, each.ended_s = "killed", now_s
            if each.state == "killed":
                each.why = stopped

    # ---- Asked ---------------------------------------------------------------------------------

    def view(self) -> JobView:
        attempt, failure = self._failure or ("", None)
        return JobView(
            job_id=self._spec.job_id,
            name=self._spec.name,
            user=self._spec.user,
            priority=properties.PRIORITY.of(self._spec.conf),
            output=self._spec.output,
            state=self._state,
            submitted_s=self._spec.submitted_s,
            started_s=self._started_s,
            ended_s=self._ended_s,
            maps=self._phase("map"),
            reduces=self._phase("reduce"),
            why=self._why,
            failure=failure,
            failed_attempt=attempt,
            failed_host=HERE if attempt else "",
            counters=self._counters(),
        )

    def tasks(self) -> list[TaskView]:
        """All, maps first."""
        return [
            self._task_view(kind, task) for kind in _KINDS for task in self._tasks[kind].values()
        ]

    def _counters(self) -> Counters:
        found = self._done
        if not self._ended_s:
            for each in self._attempts.values():
                if each.state == "running":
                    found = summed(found, each.running.counters)
        return found

    def _phase(self, kind: Kind) -> PhaseView:
        tasks = self._tasks[kind].values()
        states = [task.state for task in tasks]
        attempts = [each for task in tasks for each in task.attempts]
        total = len(tasks)
        return PhaseView(
            total=total,
            waiting=states.count("waiting"),
            running=states.count("running"),
            done=states.count("done"),
            progress=sum(task.progress for task in tasks) / total if total else 1.0,
            attempts_failed=sum(each.state == "failed" for each in attempts),
            attempts_killed=sum(each.state == "killed" for each in attempts),
        )

    def _task_view(self, kind: Kind, task: _Task) -> TaskView:
        failed_for_good = self._state == "failed" and any(
            self._failure is not None and each.name == self._failure[0] for each in task.attempts
        )
        return TaskView(
            task_id=task_id(self._spec.job_id, kind, task.number),
            kind=kind,
            number=task.number,
            state="failed" if failed_for_good else task.state,
            where=next((each.failure.where for each in task.attempts if each.failure), ""),
            failures=sum(each.state == "failed" for each in task.attempts),
            attempts=tuple(_attempt_view(each) for each in task.attempts),
        )


def _attempt_view(each: _Attempt) -> AttemptView:
    return AttemptView(
        attempt=each.name,
        agent_id="",
        hostname=HERE,
        worker_id="",
        locality="",
        state=each.state,
        twin=False,
        launched_s=each.started_s,
        started_s=each.started_s,
        ended_s=each.ended_s,
        progress=1.0 if each.state == "done" else each.running.progress,
        phase=each.running.phase,
        status=each.running.status,
        why=each.why,
        failure=each.failure,
    )


def summed(one: Counters, other: Counters) -> Counters:
    """Both together."""
    found = {group: dict(counts) for group, counts in one.items()}
    for group, counts in other.items():
        mine = found.setdefault(group, {})
        for name, count in counts.items():
            mine[name] = mine.get(name, 0) + count
    return found
