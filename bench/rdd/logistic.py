"""Logistic regression: many iterations over the same points, kept in memory or read anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from bench.processes import BenchFailed
from bench.rdd import points
from bench.rdd.contenders import (
    DASK,
    EXECUTORS,
    OURS,
    PLAIN,
    Contender,
    Runs,
    Stage,
    python,
    rdd,
    run,
)
from bench.report import Row

# After how many iterations figures are given.
MARKS: Final = (1, 5, 10, 20, 30)
# Published for Spark beside Hadoop, after 30 iterations.
PUBLISHED: Final = 10.0
WITHIN: Final = 1e-9
CACHED: Final = f"{OURS}, cached"
CACHED_CLUSTER: Final = f"{OURS}, cached, cluster"
KILLED: Final = f"{OURS}, cached, cluster, one of {EXECUTORS} executors killed after"
_KILL_AFTER: Final = 10
MAPREDUCE: Final = "MapReduce, a job each, no cluster"
MAPREDUCE_CLUSTER: Final = "MapReduce, a job each, cluster"

# By contender.
Found = dict[str, Runs]


@dataclass(frozen=True)
class Load:
    size_mb: int
    iterations: int
    files: int

    @property
    def marks(self) -> list[int]:
        return [*(mark for mark in MARKS if mark < self.iterations), self.iterations]


@dataclass(frozen=True)
class Clusters:
    """master: of ours.  tracker: of the one that MapReduce uses."""

    master: str
    tracker: str


def contenders(
    stage: Stage, text: points.Text, load: Load, clusters: Clusters | None
) -> list[Contender]:
    """The floor comes first."""
    what = ["--text", text.directory, "--iterations", load.iterations]
    wide = [*what, "--width", stage.width]
    made = [Contender(PLAIN, python("logistic_plain", *wide), floor=True)]
    for engine in stage.engines:
        for cached in (True,) if stage.quick else (True, False):
            name = f"{engine}, {'cached' if cached else 'not cached'}"
            words = [*what, *(["--cache"] if cached else [])]
            argv = rdd(stage, engine, "logistic_rdd", words)
            made.append(Contender(name, argv, once=not cached))
    if not stage.quick:
        made.append(Contender(f"{DASK}, persisted", python("logistic_dask", *wide)))
        made.append(Contender(MAPREDUCE, python("logistic_mapreduce", *wide), once=True))
    if clusters is not None:
        words = [*what, "--cache"]
        for name, more in (
            (CACHED_CLUSTER, []),
            (f"{KILLED} {_KILL_AFTER}", ["--kill-after", _KILL_AFTER]),
        ):
            argv = rdd(stage, OURS, "logistic_rdd", [*words, *more], clusters.master)
            made.append(Contender(name, argv))
        argv = python("logistic_mapreduce", *wide, "--tracker", clusters.tracker)
        made.append(Contender(MAPREDUCE_CLUSTER, argv, once=True))
    return made


def measure(stage: Stage, compete: Sequence[Contender], runs: int) -> Found:
    """Raises BenchFailed if anybody finds other weights than the first one."""
    found: Found = {contender.name: Runs() for contender in compete}
    wanted: list[float] | None = None
    for number in range(runs):
        for contender in compete:
            if number and contender.once:
                continue
            weights = run(stage, contender, found[contender.name])["weights"]
            wanted = wanted or weights
            check(contender, weights, wanted)
    return found


def check(contender: Contender, weights: Sequence[float], wanted: Sequence[float]) -> None:
    """Raises BenchFailed, also if any of them is no number."""
    apart = [abs(one - other) for one, other in zip(weights, wanted, strict=True)]
    if not all(each <= WITHIN for each in apart):
        raise BenchFailed(f"{contender.name} finds {weights}; others {wanted}")


def rows(found: Found, compete: Sequence[Contender], load: Load) -> list[Row]:
    made = []
    for mark in load.marks:
        ours = found[CACHED].after(mark).median if CACHED in found else None
        for contender in compete:
            runs = found[contender.name]
            after = runs.after(mark)
            notes = []
            if ours is not None and contender.name != CACHED:
                notes.append(f"{after.median / ours:.2f} times ours, cached")
            if mark == load.iterations:
                notes.append(f"whole process {runs.whole().text()} s, CPU {runs.cpu().text()} s")
            what = f"logistic regression, {_times(mark)}: {contender.name}"
            made.append(
                Row(what, after, "s", floor=contender.floor, note="; ".join(notes), digits=2)
            )
    return made


def _times(mark: int) -> str:
    return f"{mark} iteration{'' if mark == 1 else 's'}"


def gain(found: Found, load: Load) -> float | None:
    """How many times longer MapReduce takes than ours, cached, in the end; both on a cluster if
    there was one.  None if one of both was not measured."""
    for theirs, ours in ((MAPREDUCE_CLUSTER, CACHED_CLUSTER), (MAPREDUCE, CACHED)):
        if theirs in found and ours in found:
            longer = found[theirs].after(load.iterations).median
            return longer / found[ours].after(load.iterations).median
    return None


def details(found: Found) -> dict[str, Any]:
    """Seconds after each iteration, of each run."""
    return {
        name: {"laps_s": runs.laps_s, "whole_s": runs.whole_s, "cpu_s": runs.cpu_s}
        for name, runs in found.items()
    }
