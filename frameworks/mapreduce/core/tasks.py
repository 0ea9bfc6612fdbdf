"""Tasks and their attempts.  A task is made when its first attempt is: one that waits for
that is a number in a queue (`waiting.py`), and no more."""

from __future__ import annotations

from frameworks.common.attempts import Attempts
from frameworks.mapreduce.core.journal import Level
from frameworks.mapreduce.core.views import AttemptState, TaskState
from frameworks.mapreduce.names import Kind
from frameworks.mapreduce.work import Counters, Failure


class Attempt:
    """One run of a task.

    moved_s: when it last had something new to say: progress, or counters.
    wants: from which entry on a reduce waits for outputs of maps; None if it does not ask.
    kill_why: set when its kill was ordered; however it ends then, it was killed.
    """

    __slots__ = (
        "agent_id",
        "counters",
        "ended_s",
        "failure",
        "hostname",
        "job_id",
        "kill_why",
        "kind",
        "launched_s",
        "level",
        "moved_s",
        "name",
        "number",
        "phase",
        "progress",
        "started_s",
        "state",
        "status",
        "task",
        "twin",
        "wants",
        "why",
        "worker_id",
    )

    def __init__(
        self, name: str, job_id: str, kind: Kind, task: int, number: int, at_s: float
    ) -> None:
        self.name = name
        self.job_id = job_id
        self.kind: Kind = kind
        self.task = task
        self.number = number
        self.launched_s = at_s
        self.started_s = 0.0
        self.moved_s = 0.0
        self.ended_s = 0.0
        self.agent_id = ""
        self.hostname = ""
        self.worker_id = ""
        self.level: Level = "any"
        self.twin = False
        self.state: AttemptState = "launched"
        self.progress = 0.0
        self.phase = ""
        self.status = ""
        self.counters: Counters = {}
        self.wants: int | None = None
        self.kill_why = ""
        self.why = ""
        self.failure: Failure | None = None

    def ran_s(self, now_s: float) -> float:
        return max(0.0, now_s - (self.started_s or self.launched_s))

    def still_s(self, now_s: float) -> float:
        """For how long it has had nothing new to say."""
        return min(self.ran_s(now_s), now_s - self.moved_s)


class Task:
    """history: of all its attempts, those that run included, in the order of their numbers.

    counted: its counters are among the job's already (it is being done once more).
    failed_s: when its last attempt failed; for a while it is then tried elsewhere.
    last_fetch_agent: of a map, the one agent for which its output was made once more.
    fetch_failures: of a reduce, failures by blame "fetch"; of a map, outputs that could not be
        fetched.
    """

    __slots__ = (
        "attempts",
        "counted",
        "failed_s",
        "fetch_failures",
        "history",
        "last_fetch_agent",
        "number",
        "state",
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.state: TaskState = "waiting"
        self.attempts = Attempts()
        self.history: list[Attempt] = []
        self.counted = False
        self.failed_s = 0.0
        self.fetch_failures = 0
        self.last_fetch_agent = ""

    def running(self) -> list[Attempt]:
        live = self.attempts.running
        return [attempt for attempt in self.history if attempt.number in live] if live else []

    def attempt(self, number: int) -> Attempt | None:
        for attempt in reversed(self.history):
            if attempt.number == number:
                return attempt
        return None
