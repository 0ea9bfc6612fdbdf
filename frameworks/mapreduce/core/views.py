"""What people are shown of jobs, tasks and agents.  Plain records, JSON-ready."""

from __future__ import annotations

from typing import Literal

import msgspec

from frameworks.mapreduce.names import Kind
from frameworks.mapreduce.work import Counters, Failure

# waiting: nothing of it has started.  stopping: its outcome is decided, attempts still run.
# finishing: the shell is completing its output.
JobState = Literal["waiting", "running", "stopping", "finishing", "succeeded", "failed", "killed"]
TaskState = Literal["waiting", "running", "committing", "done", "failed"]
AttemptState = Literal[
    "launched", "running", "committing", "done", "failed", "lost", "preempted", "killed"
]


class PhaseView(msgspec.Struct, frozen=True, kw_only=True):
    """The maps, or the reduces, of a job.

    progress: 0 to 1, of all its tasks.  The attempts that have ended without a result, by how;
    `on_host`, `on_rack` and `elsewhere`: how near to their input attempts were launched
    (those of inputs that lie nowhere in particular are in none).
    lost_outputs: outputs that had to be made again.
    eta_s: estimated seconds to the end of the phase; None if that cannot be told yet.
    """

    total: int
    waiting: int = 0
    running: int = 0
    committing: int = 0
    done: int = 0
    failed: int = 0
    progress: float = 0.0
    attempts_failed: int = 0
    attempts_lost: int = 0
    attempts_killed: int = 0
    twins: int = 0
    on_host: int = 0
    on_rack: int = 0
    elsewhere: int = 0
    lost_outputs: int = 0
    eta_s: float | None = None


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Something to be done to a job's output that fails, and is tried again.

    what: is to be done.  why: it has failed, the last time.  since_s, next_s, until_s: Unix
    times, when it failed first, when it is tried next, and after which it is given up.
    """

    what: str
    why: str
    tries: int
    since_s: float = 0.0
    next_s: float = 0.0
    until_s: float = 0.0


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """A job.  Times are Unix times, 0.0 for what has not happened.

    failure, failed_attempt, failed_host: of a failed job, its first cause.
    why: why it was killed, or has failed, in one line.
    waiting_for: why nothing more of it is started now, in words; "" if that is no question.
    trouble: with its output, that which has lasted longest; None if there is none.
    excluded: host names of agents that are not used for it now.
    counters: of what is done, and of what runs.
    """

    job_id: str
    name: str
    user: str
    priority: str
    output: str
    state: JobState
    submitted_s: float
    started_s: float
    ended_s: float
    maps: PhaseView
    reduces: PhaseView
    why: str = ""
    failure: Failure | None = None
    failed_attempt: str = ""
    failed_host: str = ""
    waiting_for: str = ""
    trouble: Trouble | None = None
    excluded: tuple[str, ...] = ()
    counters: Counters = {}


class AttemptView(msgspec.Struct, frozen=True, kw_only=True):
    """locality: "host", "rack", "any", or "" where the input lies nowhere in particular.

    why: how it ended, if not well; for one that was stopped because of another one: which.
    """

    attempt: str
    agent_id: str
    hostname: str
    worker_id: str
    locality: str
    state: AttemptState
    twin: bool
    launched_s: float
    started_s: float = 0.0
    ended_s: float = 0.0
    progress: float = 0.0
    phase: str = ""
    status: str = ""
    why: str = ""
    failure: Failure | None = None


class TaskView(msgspec.Struct, frozen=True, kw_only=True):
    """where: what it reads, in words.  failures: those that count against the limit."""

    task_id: str
    kind: Kind
    number: int
    state: TaskState
    where: str
    failures: int
    attempts: tuple[AttemptView, ...]


class AgentView(msgspec.Struct, frozen=True, kw_only=True):
    """An agent on which there is a worker, or on which there were failures."""

    agent_id: str
    hostname: str
    rack: str
    worker_id: str
    running: int
    idle_since_s: float
    failures: int
    excluded_until_s: float
