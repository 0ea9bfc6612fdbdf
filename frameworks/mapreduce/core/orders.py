"""What the brain is told, beside records, and what it wants done.

The shell carries orders out one after the other, as they come from `Brain.take_orders`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from frameworks.mapreduce.core.journal import Record
from frameworks.mapreduce.messages import ToWorker
from frameworks.mapreduce.names import Kind
from frameworks.mapreduce.work import Failure, MapDone, ReduceDone, Work
from mesos_py.resources import Resources

Outcome = Literal["succeeded", "failed", "killed"]


@dataclass(frozen=True, slots=True)
class Room:
    """An offer, as the shell has read it.

    rack: from the agent's attributes; "" if it has none.
    max_task_s: the offer is for tasks that take no longer (`max_task_duration`); else None.
    """

    offer_id: str
    agent_id: str
    hostname: str
    rack: str
    resources: Resources
    max_task_s: float | None = None


# ---- How attempts end ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Finished:
    """TASK_FINISHED, with what its data says."""

    done: MapDone | ReduceDone


@dataclass(frozen=True, slots=True)
class Failed:
    """TASK_FAILED with a Failure in its data; or without one (the agent's own word: out of
    memory, the worker could not be started), which the shell words as one with blame "place".
    So is TASK_ERROR: an offer was used up as if a worker were there that had just ended, and
    the next attempt is launched with room for one; what can be launched nowhere in that form
    comes to its limit of attempts."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class Lost:
    """TASK_LOST, TASK_DROPPED, TASK_GONE, TASK_UNREACHABLE: nobody's fault, not counted."""

    why: str


@dataclass(frozen=True, slots=True)
class Preempted:
    """The cluster has taken its room (`mesos_py.is_preempted`): not counted."""

    why: str


@dataclass(frozen=True, slots=True)
class Killed:
    """TASK_KILLED: by our own order or by a person's: not counted."""

    why: str


End = Finished | Failed | Lost | Preempted | Killed


# ---- Orders --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Start:
    """One attempt to be launched; its name is the task's id."""

    attempt: str
    work: Work
    resources: Resources


@dataclass(frozen=True, slots=True)
class Launch:
    """Accept these offers, all of `agent_id`, in one call with all of `starts` (never none).

    worker_id: the executor's id.  It may be there already or not: the call is the same, with
        an ExecutorInfo that holds `Options.worker_needs`.
    refuse_s: the filter for what is left of the offers.
    """

    offer_ids: tuple[str, ...]
    agent_id: str
    worker_id: str
    starts: tuple[Start, ...]
    refuse_s: float


@dataclass(frozen=True, slots=True)
class Decline:
    offer_id: str
    refuse_s: float


@dataclass(frozen=True, slots=True)
class AskOffers:
    """Revive: there is something to be placed that earlier offers were not asked for."""


@dataclass(frozen=True, slots=True)
class StopOffers:
    """Suppress: nothing waits."""


@dataclass(frozen=True, slots=True)
class KillAttempt:
    """Kill the task of this name, wherever it is.  May name one that has ended."""

    attempt: str


@dataclass(frozen=True, slots=True)
class Send:
    agent_id: str
    worker_id: str
    message: ToWorker


@dataclass(frozen=True, slots=True)
class ReleaseWorker:
    """Shut the executor down; it has no tasks."""

    agent_id: str
    worker_id: str


@dataclass(frozen=True, slots=True)
class Journal:
    """These records must be durable before the orders that follow are carried out, and before
    the status update that has led to them is acknowledged."""

    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Commit:
    """Move the attempt's part file from `part_url` to its name in the output directory.

    Answered by `Brain.committed` or `Brain.commit_failed`.  Comes again after `restore`: a
    part that is in its place already, and is gone from `part_url`, is committed.
    """

    job_id: str
    kind: Kind
    task: int
    attempt: str
    part_url: str


@dataclass(frozen=True, slots=True)
class FinishJob:
    """All is decided, and no attempt of the job runs that could be waited for.

    succeeded: all parts are in place; write `_SUCCESS`.  Else remove what there is.  In either
    case clean up, then call `Brain.finished`.  Comes again after `restore` until then.
    """

    job_id: str
    outcome: Outcome
    failure: Failure | None


AnyOrder = (
    Launch
    | Decline
    | AskOffers
    | StopOffers
    | KillAttempt
    | Send
    | ReleaseWorker
    | Journal
    | Commit
    | FinishJob
)
