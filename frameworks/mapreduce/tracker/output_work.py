"""What is done to the outputs of jobs: parts are moved into place, and outputs completed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from frameworks.mapreduce import conf as properties
from frameworks.mapreduce.core.brain import Brain
from frameworks.mapreduce.core.orders import Commit, FinishJob
from frameworks.mapreduce.core.views import Trouble
from frameworks.mapreduce.tracker.committing import Output
from frameworks.mapreduce.tracker.labour import Labour
from frameworks.mapreduce.tracker.roster import Roster
from mesos_py import logs
from mesos_py.errors import Conflict

log = logs.get("mapreduce.output")

# What a job that has not succeeded has left is tried to be removed for so long, at most.
REMOVE_S: Final = 30.0


class OutputWork:
    """Carries out Commit and FinishJob, and tells the brain how it went; for the engine's thread.

    later: has a call made in a round to come.  now: Unix time.
    """

    def __init__(
        self,
        brain: Brain,
        roster: Roster,
        labour: Labour,
        later: Callable[[Callable[[], object]], None],
        now: Callable[[], float],
    ) -> None:
        self._brain = brain
        self._roster = roster
        self._labour = labour
        self._later = later
        self._now = now
        # Jobs whose output is being completed or removed: no part gets in any more.
        self._closed: set[str] = set()

    def commit(self, order: Commit) -> None:
        spec = self._roster.specs[order.job_id]
        job_id = order.job_id
        job = (job_id, order.kind, order.task)
        what = f"moving the part of {order.attempt} into place"

        def move() -> None:
            if job_id in self._closed:
                raise Conflict(f"job {job_id} is over", job_id=job_id)
            Output(spec).commit(order.part_url)

        def failed(why: str, given_up: Trouble | None) -> None:
            if given_up is None:
                self._ended(job_id, what, lambda: self._brain.commit_failed(*job, why, self._now()))
            else:
                self._give_up(job_id, given_up)

        self._labour.attempt(
            what,
            move,
            lambda: self._ended(job_id, what, lambda: self._brain.committed(*job, self._now())),
            failed,
            patience_s=properties.OUTPUT_PATIENCE_S.of(spec.conf),
            trouble=lambda found: self._troubled(job_id, what, found),
        )

    def finish(self, order: FinishJob) -> None:
        spec = self._roster.specs[order.job_id]
        job_id = order.job_id
        what = "completing it" if order.outcome == "succeeded" else "removing what is left"
        log.info("job is over", job=job_id, outcome=order.outcome)
        self._closed.add(job_id)
        patience_s = properties.OUTPUT_PATIENCE_S.of(spec.conf)

        def finish() -> None:
            output = Output(spec)
            if order.outcome == "succeeded":
                output.succeed()
            else:
                output.fail()

        def failed(why: str, given_up: Trouble | None) -> None:
            self._give_up(job_id, given_up or Trouble(what=what, why=why, tries=1))

        self._labour.attempt(
            what,
            finish,
            lambda: self._ended(job_id, what, lambda: self._brain.finished(job_id, self._now())),
            failed,
            patience_s=patience_s if order.outcome == "succeeded" else min(patience_s, REMOVE_S),
            trouble=lambda found: self._troubled(job_id, what, found),
        )

    def drop(self, job_id: str) -> None:
        """Nothing of the job is to be done any more."""
        self._closed.discard(job_id)

    # ---- On the threads of the labour ------------------------------------------------------

    def _ended(self, job_id: str, what: str, tell: Callable[[], object]) -> None:
        def end() -> None:
            self._brain.troubled(job_id, what, None)
            tell()

        self._later(end)

    def _troubled(self, job_id: str, what: str, found: Trouble) -> None:
        self._later(lambda: self._brain.troubled(job_id, what, found))

    def _give_up(self, job_id: str, trouble: Trouble) -> None:
        log.error(
            "output of a job given up",
            job=job_id,
            what=trouble.what,
            tries=trouble.tries,
            error=trouble.why,
        )
        self._later(lambda: self._brain.output_failed(job_id, trouble, self._now()))


__all__ = ["OutputWork"]
