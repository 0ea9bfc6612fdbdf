"""Who must still remove files of which ended job, and how it is got to do so.  Pure.

Where a worker runs, it is told Forget, again and again, until it has answered.  Where
the worker is gone, what it has left is removed by a short command (`sweep`), once the agent offers
room for one.  What is not done in time is left to the agent, which removes sandboxes that are
old; it is counted, and said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

TELL_EVERY_S: Final = 2.0
TASK_PREFIX: Final = "clean_"


# An agent and one of the workers that it has had for the job: (agent id, worker id).
Spot: TypeAlias = tuple[str, str]


@dataclass(slots=True)
class _Left:
    """told_s: at first when the job ended, since the brain has its workers told then."""

    hostname: str
    told_s: float
    task_id: str = ""
    why: str = ""


@dataclass(slots=True)
class _Job:
    deadline_s: float
    spots: dict[Spot, _Left]
    cleaned: int = 0
    left: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tell:
    """Send Forget to the worker."""

    agent_id: str
    worker_id: str
    job_id: str


@dataclass(frozen=True, slots=True)
class Command:
    """A task that removes what the worker has left of the job, and needs hardly anything."""

    task_id: str
    worker_id: str
    job_id: str


@dataclass(frozen=True, slots=True)
class Done:
    """All that could be done has been.  left: why, by host name, where files may remain."""

    job_id: str
    cleaned: int
    left: Mapping[str, str]


class Cleaning:
    """is_there: whether a worker runs, as far as is known.
    serial: a word in the ids of tasks, that no other tracker of the framework uses."""

    def __init__(self, is_there: Callable[[Spot], bool], serial: str, limit_s: float) -> None:
        self._is_there = is_there
        self._serial = serial
        self._limit_s = limit_s
        self._jobs: dict[str, _Job] = {}
        self._tasks: dict[str, tuple[str, Spot]] = {}
        self._numbers = 0

    def begin(self, job_id: str, spots: Mapping[Spot, str], now_s: float) -> None:
        """A job has ended, that has had attempts at these spots (with the agents' host names).
        Nothing if that was said before."""
        if job_id not in self._jobs:
            lefts = {spot: _Left(hostname, now_s) for spot, hostname in spots.items()}
            self._jobs[job_id] = _Job(now_s + self._limit_s, lefts)

    @property
    def busy(self) -> bool:
        return bool(self._jobs)

    # ---- What happens ----------------------------------------------------------------------

    def forgotten(self, spot: Spot, job_id: str) -> None:
        """The worker has removed what there was."""
        self._settled(job_id, spot)

    def agent_lost(self, agent_id: str) -> None:
        """It may come back, and is waited for as others are."""
        for job in self._jobs.values():
            for spot, left in job.spots.items():
                if spot[0] == agent_id:
                    left.why, left.task_id = "the agent is gone", ""

    def task_ended(self, task_id: str, failed: str) -> None:
        """failed: why a command did not do it, "" if it did.  Nothing for an unknown one."""
        if task_id not in self._tasks:
            return
        job_id, spot = self._tasks.pop(task_id)
        job = self._jobs.get(job_id)
        if job is None or spot not in job.spots:
            return
        job.spots[spot].task_id = ""
        if failed:
            # Once more, if it is not too late.
            job.spots[spot].why = failed
        else:
            self._settled(job_id, spot)

    # ---- What is to be done ----------------------------------------------------------------

    def due(self, now_s: float) -> list[Tell | Done]:
        orders: list[Tell | Done] = []
        for job_id, job in list(self._jobs.items()):
            for spot, left in list(job.spots.items()):
                if now_s >= job.deadline_s:
                    self._settled(job_id, spot, left.why or self._missed(spot))
                elif self._is_there(spot) and now_s >= left.told_s + TELL_EVERY_S:
                    left.told_s = now_s
                    orders.append(Tell(*spot, job_id))
            if not job.spots:
                orders.append(Done(job_id, job.cleaned, job.left))
                del self._jobs[job_id]
        return orders

    def next_s(self) -> float | None:
        """When to ask again at the latest what is due."""
        times = [
            min(job.deadline_s, left.told_s + TELL_EVERY_S)
            if self._is_there(spot)
            else job.deadline_s
            for job in self._jobs.values()
            for spot, left in job.spots.items()
        ]
        return min(times, default=None)

    def wants_room(self) -> set[str]:
        """Agents on which a command is to run."""
        return {
            spot[0]
            for job in self._jobs.values()
            for spot, left in job.spots.items()
            if self._needs_command(spot, left)
        }

    def commands(self, agent_id: str, at_most: int) -> list[Command]:
        """To be launched on an agent now, where there is room for so many."""
        found: list[Command] = []
        for job_id, job in self._jobs.items():
            for spot, left in job.spots.items():
                if spot[0] != agent_id or not self._needs_command(spot, left):
                    continue
                if len(found) < at_most:
                    self._numbers += 1
                    left.task_id = f"{TASK_PREFIX}{job_id}_{self._serial}_{self._numbers}"
                    self._tasks[left.task_id] = (job_id, spot)
                    found.append(Command(left.task_id, spot[1], job_id))
        return found

    # ---- Inside ----------------------------------------------------------------------------

    def _missed(self, spot: Spot) -> str:
        return "no answer in time" if self._is_there(spot) else "no room for a command in time"

    def _needs_command(self, spot: Spot, left: _Left) -> bool:
        return not left.task_id and not self._is_there(spot)

    def _settled(self, job_id: str, spot: Spot, left: str = "") -> None:
        job = self._jobs.get(job_id)
        if job is None or spot not in job.spots:
            return
        found = job.spots.pop(spot)
        if left:
            job.left[found.hostname] = left
        else:
            job.cleaned += 1


__all__ = ["TASK_PREFIX", "Cleaning", "Command", "Done", "Spot", "Tell"]
