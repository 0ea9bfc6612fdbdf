"""What all parts of the brain share: jobs, agents, orders that are to go out."""

from __future__ import annotations

from dataclasses import dataclass

from frameworks.common.blame import Blame
from frameworks.mapreduce.core import applying
from frameworks.mapreduce.core.cluster import Cluster
from frameworks.mapreduce.core.jobs import Job
from frameworks.mapreduce.core.journal import Record
from frameworks.mapreduce.core.options import Options
from frameworks.mapreduce.core.orders import AnyOrder, Journal, KillAttempt
from frameworks.mapreduce.core.tasks import Attempt
from frameworks.mapreduce.names import parse_attempt
from mesos_py.errors import NotFound


@dataclass(frozen=True, slots=True)
class Hold:
    """On this agent nothing is started but what this job has waiting (`holding.py`)."""

    job: int
    agent_id: str
    since_s: float


class State(applying.Facts):
    """revive: there is something to place that the offers declined since may fit.
    restored_s: when it was made from a journal, 0.0 if it was not.
    asked: offers are asked for.  linked: there is a link to the master."""

    def __init__(self, options: Options) -> None:
        super().__init__(Cluster(), Blame(options.agent_failures, options.exclude_s), options)
        self.now_s = 0.0
        self.restored_s = 0.0
        self._orders: list[AnyOrder] = []
        self._records: list[Record] = []
        self.revive = False
        self.declined = False
        self.asked = False
        self.linked = True
        self.speculated_s = 0.0
        self.hold: Hold | None = None

    def at(self, now_s: float) -> float:
        """Time never runs backwards here."""
        self.now_s = max(self.now_s, now_s)
        return self.now_s

    def write(self, record: Record) -> None:
        """Take it for a fact, and have it kept before what is ordered next is done."""
        applying.apply(self, record)
        self._records.append(record)

    def order(self, order: AnyOrder) -> None:
        self._flush()
        self._orders.append(order)

    def take(self) -> list[AnyOrder]:
        self._flush()
        orders, self._orders = self._orders, []
        return orders

    def _flush(self) -> None:
        if self._records:
            self._orders.append(Journal(tuple(self._records)))
            self._records = []

    def kill(self, attempt: Attempt, why: str) -> None:
        """However it ends now, it was killed for this reason."""
        if not attempt.kill_why:
            attempt.kill_why = why
            self.order(KillAttempt(attempt.name))

    def job(self, job_id: str) -> Job:
        """Raises NotFound."""
        found = self.jobs.get(job_id)
        if found is None:
            raise NotFound("job", job_id)
        return found

    def attempt(self, name: str) -> Attempt | None:
        """One that has not ended."""
        parsed = parse_attempt(name)
        job = None if parsed is None else self.jobs.get(parsed.job_id)
        return None if parsed is None or job is None else job.phase(parsed.kind).live.get(name)
