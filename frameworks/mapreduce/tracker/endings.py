"""From a job's end to nothing being left of it but its history."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from frameworks.mapreduce.core.brain import Brain
from frameworks.mapreduce.core.views import TaskView
from frameworks.mapreduce.job import JobSpec, Program
from frameworks.mapreduce.tracker.cleaning import Cleaning, Done
from frameworks.mapreduce.tracker.committing import Output
from frameworks.mapreduce.tracker.labour import Labour
from frameworks.mapreduce.tracker.roster import Roster
from frameworks.mapreduce.tracker.store import Store, Summary
from mesos_py import logs

log = logs.get("mapreduce.endings")

# Of a job's tasks, so many are looked at in one round.
TASKS_AT_ONCE: Final = 2000
# What attempts have left in the output is tried to be removed for so long.
TIDY_S: Final = 30.0


@dataclass(slots=True)
class _Ending:
    tasks: list[TaskView] = field(default_factory=list)
    kept: bool = False
    cleaned: Done | None = None


class Endings:
    """Of jobs that have ended: the history is written, agents are cleaned, and when both is
    done the job is forgotten.  All of it is gone through again after a failover.

    For the engine's thread.  later: has a call made in a round to come.  over: told when
    nothing of a job is left to be done.
    """

    def __init__(
        self,
        brain: Brain,
        roster: Roster,
        cleaning: Cleaning,
        labour: Labour,
        store: Store,
        later: Callable[[Callable[[], object]], None],
        over: Callable[[str], None],
    ) -> None:
        self._brain = brain
        self._roster = roster
        self._cleaning = cleaning
        self._labour = labour
        self._store = store
        self._later = later
        self._over = over
        self._endings: dict[str, _Ending] = {}

    @property
    def busy(self) -> bool:
        return bool(self._endings)

    def begin(self, job_id: str, now_s: float) -> None:
        """The job has ended (its output is as it is to be)."""
        if job_id in self._endings:
            return
        self._endings[job_id] = _Ending()
        self._cleaning.begin(job_id, self._roster.spots(job_id), now_s)
        self._gather(job_id)

    def cleaned(self, done: Done) -> None:
        """No agent is asked any more to remove the job's files."""
        ending = self._endings.get(done.job_id)
        if ending is None:
            return
        ending.cleaned = done
        log.info(
            "files of a job removed from agents",
            job=done.job_id,
            workers=done.cleaned,
            left=dict(done.left),
        )
        self._advance(done.job_id)

    # ---- Inside ----------------------------------------------------------------------------

    def _gather(self, job_id: str) -> None:
        """A part of the tasks per round: there may be very many."""
        tasks = self._endings[job_id].tasks
        more = self._brain.tasks(job_id, since=len(tasks), limit=TASKS_AT_ONCE)
        tasks.extend(more)
        if len(more) == TASKS_AT_ONCE:
            self._later(lambda: self._gather(job_id))
            return
        summary = self._summary(job_id, {})
        self._labour.begin(
            f"history of {job_id}",
            lambda: self._store.put_history(summary, tasks),
            lambda: self._later(lambda: self._kept(job_id)),
        )

    def _summary(self, job_id: str, left: Mapping[str, str]) -> Summary:
        spec = shown(self._roster.specs[job_id])
        return Summary(view=self._brain.view(job_id), spec=spec, agents_left=left)

    def _kept(self, job_id: str) -> None:
        self._endings[job_id].kept = True
        self._endings[job_id].tasks.clear()
        self._advance(job_id)

    def _advance(self, job_id: str) -> None:
        ending = self._endings[job_id]
        if not ending.kept or ending.cleaned is None:
            return
        summary = self._summary(job_id, ending.cleaned.left)

        def last() -> None:
            if summary.agents_left:
                self._store.put_summary(summary)
            self._store.remove_job(job_id)

        def remove(why: str = "", given_up: object = None) -> None:
            if why:
                log.warning("attempts' leftovers stay in an output", job=job_id, error=why)
            self._labour.begin(
                f"end of {job_id}", last, lambda: self._later(lambda: self._forget(job_id))
            )

        # An output that cannot be reached any more keeps no job from being forgotten.
        self._labour.attempt(
            f"leftovers of {job_id}",
            lambda: Output(summary.spec).tidy(),
            remove,
            remove,
            patience_s=TIDY_S,
        )

    def _forget(self, job_id: str) -> None:
        del self._endings[job_id]
        self._over(job_id)


def shown(spec: JobSpec) -> JobSpec:
    """Without the code of functions, which may be large and is of no use to anybody later."""

    def bare(program: Program | None) -> Program | None:
        return None if program is None else Program(command=program.command)

    return msgspec.structs.replace(
        spec,
        mapper=Program(command=spec.mapper.command),
        combiner=bare(spec.combiner),
        reducer=bare(spec.reducer),
    )


__all__ = ["Endings", "shown"]
