"""What a worker is told to do, and what it says when it is done.

`Work` travels in TaskInfo.data; `MapDone`, `ReduceDone` and `Failure` in the data of the
terminal status (TASK_FINISHED for the first two, TASK_FAILED for the last), as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from frameworks.mapreduce.job import Split

# {group: {name: count}}
Counters = Mapping[str, Mapping[str, int]]


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt.

    job_url: of the job's `job.json`; read once per worker and job.
    split: of a map.  maps: of a reduce, how many maps there are in all.
    out: where an attempt with output for good (a reduce, a map without reduces) writes
        its one part file: a URL that is this attempt's own.  "" for other maps.
    mem_mb, cpus: what the task was given.
    """

    attempt: str
    job_url: str
    split: Split | None = None
    maps: int = 0
    out: str = ""
    mem_mb: int = 0
    cpus: float = 0.0


class Segment(msgspec.Struct, frozen=True, array_like=True):
    """A partition's part of a map's output file.  `raw` is its length unpacked, `crc` the
    CRC-32 of the bytes as they lie in the file."""

    offset: int
    length: int
    raw: int
    crc: int


class MapDone(msgspec.Struct, frozen=True, kw_only=True):
    """url: where the agent serves the output file; path: where it lies on the agent;
    segments: one per partition.  A map without reduces: `part` is the size of its part file
    (-1: it has none, also one of nothing where output is lazy), and there are no segments."""

    url: str = ""
    path: str = ""
    segments: tuple[Segment, ...] = ()
    part: int = -1
    counters: Counters = {}


class ReduceDone(msgspec.Struct, frozen=True, kw_only=True):
    """part: the size of the part file; -1: it has none, where output is lazy."""

    part: int = 0
    counters: Counters = {}


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why an attempt has failed.

    blame: "program" (the user's: it raised, ended with an exit code, broke the contract),
        "data" (the input cannot be read or unpacked), "fetch" (map output could not be had;
        `lost` names the attempts that made it), "place" (the worker's machine: no space,
        no memory, a missing program), "job" (no attempt anywhere can do better: a script that
        does not parse, a file that cannot be shipped).
    message: one line.  details: the program's own traceback or last lines of stderr.
    missing: the program that is not on that machine, with blame "place".
    where: the split in words.  log: path or URL of the attempt's log.
    """

    blame: Literal["program", "data", "fetch", "place", "job"]
    message: str
    details: str = ""
    missing: str = ""
    where: str = ""
    log: str = ""
    lost: tuple[str, ...] = ()
    counters: Counters = {}
