"""The face of the tracker's brain: told what happens, it decides what is to be done.

Pure: time is an argument (`now_s`, Unix time; one that runs backwards is taken for the latest
one given).  Nothing is done here: after each call the shell takes the orders and carries them
out (`orders.py`).  What must survive the tracker is among them (`Journal`), and
`Brain.restore` continues from it.  One caller at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from frameworks.mapreduce.core import (
    applying,
    ending,
    hearing,
    losing,
    placing,
    results,
    showing,
    watching,
)
from frameworks.mapreduce.core.journal import Record, Submitted
from frameworks.mapreduce.core.options import Options
from frameworks.mapreduce.core.orders import AnyOrder, AskOffers, End, Room, StopOffers
from frameworks.mapreduce.core.rules import rules_of
from frameworks.mapreduce.core.state import State
from frameworks.mapreduce.core.views import AgentView, JobView, TaskState, TaskView, Trouble
from frameworks.mapreduce.job import JobSpec, Split
from frameworks.mapreduce.messages import FromWorker
from frameworks.mapreduce.names import Kind, checked_job_id
from mesos_py.errors import AlreadyExists, Conflict, InvalidValue
from mesos_py.resources import EMPTY, Resources


@dataclass(frozen=True, slots=True)
class Waiting:
    """`count` tasks of a job that wait for `resources` each: with a worker's own while there is
    no worker, or else what nearly fits would be taken to fit."""

    job_id: str
    kind: Kind
    count: int
    resources: Resources


class Brain:
    def __init__(self, options: Options) -> None:
        self._state = State(options)

    # ---- Jobs ------------------------------------------------------------------------------

    def submit(self, spec: JobSpec, splits: Sequence[Split], now_s: float) -> None:
        """Take a job on.  Raises AlreadyExists for an id that is known (ended jobs, too, until
        they are dropped), and InvalidValue for properties that are wrong."""
        state = self._state
        state.at(now_s)
        checked_job_id("job_id", spec.job_id)
        if spec.job_id in state.jobs:
            raise AlreadyExists(f"job {spec.job_id} is there already", job_id=spec.job_id)
        if spec.reduces < 0:
            raise InvalidValue("reduces", spec.reduces, "must be 0 or more")
        rules_of(spec.conf, len(splits))
        state.write(Submitted(spec, tuple(splits), state.now_s))
        state.revive = True
        ending.advance(state, state.jobs[spec.job_id])

    def kill(self, job_id: str, why: str, now_s: float) -> None:
        """Stop it; nothing if its outcome is decided already.  Raises NotFound."""
        self._state.at(now_s)
        ending.stop(self._state, self._state.job(job_id), "killed", why)

    def finished(self, job_id: str, now_s: float) -> None:
        """FinishJob was carried out.  Nothing if that was said before, or of an unknown job."""
        self._state.at(now_s)
        ending.finished(self._state, job_id)

    def drop(self, job_id: str) -> None:
        """Forget a job that has ended: it is in no view any more.  Raises NotFound, and
        Conflict for a job that has not ended."""
        job = self._state.job(job_id)
        if not job.ended:
            raise Conflict(f"job {job_id} has not ended", job_id=job_id, state=job.state)
        del self._state.jobs[job_id]

    # ---- The cluster -----------------------------------------------------------------------

    def offers(self, rooms: Sequence[Room], now_s: float) -> None:
        """Each is answered by the orders of this very call, exactly once, by a Launch or a
        Decline: none is kept, so rescinded offers are no concern."""
        self._state.at(now_s)
        placing.place(self._state, rooms)

    def started(self, attempt: str, now_s: float) -> None:
        """TASK_RUNNING.  For an attempt that is not known (any more), KillAttempt is ordered."""
        self._state.at(now_s)
        results.started(self._state, attempt)

    def ended(self, attempt: str, end: End, now_s: float) -> None:
        """A terminal status.  Nothing if that attempt has ended already, or is unknown."""
        self._state.at(now_s)
        results.ended(self._state, attempt, end)

    def said(self, agent_id: str, message: FromWorker, now_s: float) -> None:
        """A worker's message.  One from an attempt that is not known is answered by
        KillAttempt."""
        self._state.at(now_s)
        hearing.said(self._state, agent_id, message)

    def agent_lost(self, agent_id: str, now_s: float) -> None:
        """The agent is gone with all that it had: its worker, what ran there, map outputs."""
        self._state.at(now_s)
        losing.agent_lost(self._state, agent_id)

    def worker_lost(self, agent_id: str, worker_id: str, why: str, now_s: float) -> None:
        """The executor has ended.  What ran in it has failed, by blame "place" (one that kills
        its worker wherever it runs must come to an end); map outputs are still served by the
        agent.  Nothing for a worker that was released."""
        self._state.at(now_s)
        losing.worker_lost(self._state, agent_id, worker_id, why)

    def link(self, up: bool, now_s: float) -> None:
        """Whether there is a subscription at the master.  While there is none nothing can be
        heard of workers, so none is taken to hang, nor what runs there.  It begins as up."""
        self._state.at(now_s)
        self._state.linked = up
        for worker in self._state.cluster.workers():
            worker.heard_s = self._state.now_s
        watching.begin_anew(self._state)

    # ---- Output ----------------------------------------------------------------------------

    def committed(self, job_id: str, kind: Kind, task: int, now_s: float) -> None:
        """The part is in its place.  Nothing if that is known, or nothing was to be committed."""
        self._state.at(now_s)
        results.committed(self._state, job_id, kind, task)

    def commit_failed(self, job_id: str, kind: Kind, task: int, why: str, now_s: float) -> None:
        """There is nothing at `part_url`, nor is the part in its place: the attempt has failed,
        and the task is done once more.  What may succeed when tried again, as a file system
        that is away for a while, is tried again by the shell."""
        self._state.at(now_s)
        results.commit_failed(self._state, job_id, kind, task, why)

    def troubled(self, job_id: str, what: str, trouble: Trouble | None) -> None:
        """How it stands with something that is to be done to the job's output; None: it is done,
        or is not to be done any more.  Only to be shown; nothing for an unknown job."""
        job = self._state.jobs.get(job_id)
        if job is None:
            return
        if trouble is None or job.ended:
            job.troubles.pop(what, None)
        else:
            job.troubles[what] = trouble

    def output_failed(self, job_id: str, trouble: Trouble, now_s: float) -> None:
        """A Commit or FinishJob was tried for as long as the job has patience: the job fails, or
        has ended as it was to, with its output as it is."""
        self._state.at(now_s)
        ending.output_failed(self._state, job_id, trouble)

    # ---- Time ------------------------------------------------------------------------------

    def tick(self, now_s: float) -> float | None:
        """Do what is due.  Returns when to call again at the latest, None: not before something
        else happens.  Call it after each of the other calls, or ask again after each."""
        self._state.at(now_s)
        return watching.tick(self._state)

    # ---- What the shell asks ---------------------------------------------------------------

    def take_orders(self) -> list[AnyOrder]:
        """What is to be done, in this order; each is handed out once."""
        self._settle()
        return self._state.take()

    def wants_offers(self) -> bool:
        """As AskOffers and StopOffers, of those that were taken, have said last."""
        return self._state.asked

    def waiting(self) -> list[Waiting]:
        """What waits for room now (for `state_waiting`)."""
        state = self._state
        extra = EMPTY if any(state.cluster.workers()) else state.options.worker_needs
        return [
            Waiting(job.job_id, phase.kind, phase.waiting.count, phase.rules.needs + extra)
            for job in state.current.values()
            if placing.has_work(job)
            for phase in job.phases()
            if phase.waiting.count and (phase.kind == "map" or job.reduces_may_start())
        ]

    def attempts(self) -> list[tuple[str, str]]:
        """(attempt, agent) of all that have not ended, as far as is known: those of which to
        ask the master how they are, after `restore`."""
        return [
            (attempt.name, attempt.agent_id)
            for job in self._state.jobs.values()
            for attempt in job.live()
        ]

    def view(self, job_id: str) -> JobView:
        """Raises NotFound."""
        return showing.job_views(self._state, [self._state.job(job_id)])[0]

    def views(self) -> list[JobView]:
        """All jobs that are not dropped, in the order of their submission."""
        return showing.job_views(self._state, self._state.jobs.values())

    def tasks(
        self,
        job_id: str,
        kind: Kind | None = None,
        state: TaskState | None = None,
        since: int = 0,
        limit: int = 1000,
    ) -> list[TaskView]:
        """At most `limit` of the tasks of a job, in their order (maps first), those before the
        `since`-th of these left out.  Raises NotFound."""
        return showing.task_views(self._state.job(job_id), kind, state, since, limit)

    def agents(self) -> list[AgentView]:
        return showing.agent_views(self._state)

    # ---- Failover --------------------------------------------------------------------------

    def restore(self, records: Iterable[Record], now_s: float) -> None:
        """Once, before any other call: continue from a journal.

        What had been launched counts as running until the shell hears otherwise: let it ask
        the master about all of `attempts()`.  Commits and FinishJobs that were not confirmed
        are ordered again.  Records of a job come in the order in which they were ordered; a
        last one that is torn is left out by the shell.  Raises InvalidValue for one that
        contradicts those before.
        """
        state = self._state
        # Jobs may have journals of their own.
        for record in sorted(records, key=lambda record: record.at_s):
            applying.apply(state, record)
            state.at(record.at_s)
        state.restored_s = state.at(now_s)
        for worker in state.cluster.workers():
            worker.sure = False
            worker.heard_s = state.now_s
        for job in list(state.jobs.values()):
            results.resume(state, job)
        state.revive = True

    def _settle(self) -> None:
        """Ask for offers when something can be placed, and stop when nothing can: once for all
        that has happened, since it looks at every job."""
        state = self._state
        wants = any(placing.has_work(job) for job in state.current.values())
        if wants and (not state.asked or (state.revive and state.declined)):
            state.order(AskOffers())
            state.asked, state.declined = True, False
        elif state.asked and not wants:
            state.order(StopOffers())
            state.asked = False
        state.revive = False
