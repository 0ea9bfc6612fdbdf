"""Jobs and nodes as the batch server tells of them, whatever its name is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# "waiting": nodes are all that it lacks.  "held": it waits for something else as well.
JobState = Literal["waiting", "held", "running", "ended"]
# "up" takes jobs; "draining" takes no new ones; "down" is not there.
NodeState = Literal["up", "draining", "down"]


@dataclass(frozen=True, slots=True)
class Job:
    """nodes: on how many different nodes it is to run, with cpus and mem_mb on each.
    walltime_s: what it may take at most; None: any time.  count: of equal jobs (an array's).
    note: what an administrator has noted at it."""

    job_id: str
    name: str
    user: str
    state: JobState
    nodes: int = 1
    cpus: int = 1
    mem_mb: int = 0
    walltime_s: float | None = None
    count: int = 1
    # In the server's words.
    why: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """busy: a job is on it, or is leaving it.  free_cpus, free_mem_mb: what no job has."""

    name: str
    state: NodeState
    cpus: int
    mem_mb: int
    free_cpus: int
    free_mem_mb: int
    busy: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class Size:
    """Of a node, as jobs see it."""

    cpus: int
    mem_mb: int

    def holds(self, other: Size) -> bool:
        return self.cpus >= other.cpus and self.mem_mb >= other.mem_mb

    def __add__(self, other: Size) -> Size:
        return Size(self.cpus + other.cpus, self.mem_mb + other.mem_mb)

    def __sub__(self, other: Size) -> Size:
        return Size(self.cpus - other.cpus, self.mem_mb - other.mem_mb)


def size_of(job: Job) -> Size:
    """What it needs on each of its nodes."""
    return Size(job.cpus, job.mem_mb)
