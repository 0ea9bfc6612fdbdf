"""What trackers and workers say to each other while attempts run.

These travel as framework messages (JSON, tagged by type), which may be lost: whatever must
arrive is said again until it is answered.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from frameworks.mapreduce.work import Counters, Segment


class Progress(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Of attempts that run, from the worker, every second or two: 0 to 1, what phase they
    are in ("map", "sort", "copy", "merge", "reduce"), counters so far, and the status text
    that the program has set."""

    attempts: Mapping[str, Running]


class Running(msgspec.Struct, frozen=True):
    progress: float
    phase: str = ""
    status: str = ""
    counters: Counters = {}


class WantMaps(msgspec.Struct, frozen=True, tag=True):
    """A reduce asks for the map outputs that it does not know yet: all from `since` on.
    Said again every second or so until it has all."""

    attempt: str
    since: int


class MapOutput(msgspec.Struct, frozen=True):
    """Where a reduce finds its part of a map's output."""

    map: int
    attempt: str
    agent_id: str
    url: str
    path: str
    segment: Segment


class Maps(msgspec.Struct, frozen=True, tag=True):
    """The answer to WantMaps: entries `since` to `since + len(outputs)` of the job's list of
    outputs.  A later entry for the same map replaces an earlier one, whose output is lost."""

    attempt: str
    since: int
    outputs: tuple[MapOutput, ...]


class FetchFailed(msgspec.Struct, frozen=True, tag=True):
    """A reduce could not have the output of these map attempts, after retries; it goes on
    asking, and fetches what replaces them."""

    attempt: str
    lost: tuple[str, ...]
    why: str


class Forget(msgspec.Struct, frozen=True, tag=True):
    """To a worker: the job has ended; remove its files.  Answered by Forgotten."""

    job_id: str


class Forgotten(msgspec.Struct, frozen=True, tag=True):
    job_id: str


FromWorker = Progress | WantMaps | FetchFailed | Forgotten
ToWorker = Maps | Forget
