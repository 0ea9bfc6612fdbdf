"""What the shell itself keeps of jobs, attempts and workers: read off the brain's records, as
they are written and as they are read again.  Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from frameworks.mapreduce import conf as properties
from frameworks.mapreduce.core import journal as records
from frameworks.mapreduce.job import JobSpec
from frameworks.mapreduce.names import parse_attempt
from frameworks.mapreduce.tracker.cleaning import Spot
from frameworks.mapreduce.tracker.store import Line, WorkerKept
from mesos_py import Resources

_NOTHING: Final = Resources.of()


@dataclass(frozen=True, slots=True)
class Live:
    """An attempt that was launched and of which no end is known."""

    attempt: str
    agent_id: str
    worker_id: str
    launched_s: float
    needs: Resources

    @property
    def spot(self) -> Spot:
        return self.agent_id, self.worker_id


class Roster:
    def __init__(self) -> None:
        self.specs: dict[str, JobSpec] = {}
        self.live: dict[str, Live] = {}
        # Workers of which no end is known.
        self.workers: set[Spot] = set()
        # Where attempts of a job have been launched, and the host names there.
        self._spots: dict[str, dict[Spot, str]] = {}

    def note(self, record: Line) -> None:
        if isinstance(record, records.Submitted):
            self.specs[record.spec.job_id] = record.spec
        elif isinstance(record, records.Launched):
            self._launched(record)
        elif isinstance(
            record, (records.AttemptEnded, records.CommitChosen, records.MapOutputKept)
        ):
            self.live.pop(record.attempt, None)
        elif isinstance(record, records.WorkerGone):
            self.workers.discard((record.agent_id, record.worker_id))
        elif isinstance(record, WorkerKept):
            self.workers.add((record.agent_id, record.worker_id))

    def spots(self, job_id: str) -> dict[Spot, str]:
        """Where files of the job may be, with the agents' host names."""
        return dict(self._spots.get(job_id, {}))

    def on_worker(self, spot: Spot) -> list[str]:
        """Attempts that live there."""
        return [one.attempt for one in self.live.values() if one.spot == spot]

    def youngest(self, agent_id: str, wanted: Resources) -> list[str]:
        """The attempts on an agent that were launched last, as few as hold what is wanted (all
        of them, if they do not)."""
        # Of those launched in the same moment, the last ones.
        there = [one for one in reversed(self.live.values()) if one.agent_id == agent_id]
        there.sort(key=lambda one: one.launched_s, reverse=True)
        chosen: list[str] = []
        held = _NOTHING
        for one in there:
            if held.contains(wanted):
                break
            chosen.append(one.attempt)
            held = held + one.needs
        return chosen

    def agent_lost(self, agent_id: str) -> set[Spot]:
        """The workers that it had."""
        gone = {spot for spot in self.workers if spot[0] == agent_id}
        self.workers -= gone
        return gone

    def drop(self, job_id: str) -> None:
        """The job is over, and nothing of it is to be done."""
        self.specs.pop(job_id, None)
        self._spots.pop(job_id, None)
        for attempt in [one for one in self.live if _job_id(one) == job_id]:
            del self.live[attempt]

    # ---- Inside ----------------------------------------------------------------------------

    def _launched(self, record: records.Launched) -> None:
        name = parse_attempt(record.attempt)
        spec = self.specs.get(name.job_id) if name else None
        if name is None or spec is None:
            return
        needs = _needs(spec, name.kind == "map")
        one = Live(record.attempt, record.agent_id, record.worker_id, record.at_s, needs)
        self.live[record.attempt] = one
        self.workers.add(one.spot)
        self._spots.setdefault(name.job_id, {}).setdefault(one.spot, record.hostname)


def _job_id(attempt: str) -> str:
    name = parse_attempt(attempt)
    return name.job_id if name else ""


def _needs(spec: JobSpec, is_map: bool) -> Resources:
    cpus, mem = (
        (properties.MAP_CPUS, properties.MAP_MEMORY_MB)
        if is_map
        else (properties.REDUCE_CPUS, properties.REDUCE_MEMORY_MB)
    )
    return Resources.of(cpus=cpus.of(spec.conf), mem=mem.of(spec.conf))


def replayed(found: Iterable[Line]) -> Roster:
    roster = Roster()
    for record in found:
        roster.note(record)
    return roster


__all__ = ["Live", "Roster", "replayed"]
