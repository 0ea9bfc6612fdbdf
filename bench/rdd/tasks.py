"""Empty tasks: what each costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from bench.rdd.contenders import DASK, OURS, PLAIN, Contender, Runs, Stage, python, rdd, run
from bench.report import Row
from bench.stats import Spread

Found = dict[str, Runs]


@dataclass(frozen=True)
class Load:
    """times: so often in one process."""

    tasks: int
    times: int


def contenders(stage: Stage, load: Load, master: str = "") -> list[Contender]:
    """The floor comes first.  master: of a cluster for ours, or ""."""
    what = ["--tasks", load.tasks, "--runs", load.times]
    wide = [*what, "--width", stage.width]
    made = [Contender(f"{PLAIN}, a pool", python("tasks_plain", *wide), floor=True)]
    made += [Contender(engine, rdd(stage, engine, "tasks_rdd", what)) for engine in stage.engines]
    if master:
        argv = rdd(stage, OURS, "tasks_rdd", what, master)
        made.append(Contender(f"{OURS}, cluster", argv))
    if not stage.quick:
        made.append(Contender(f"{DASK}, processes", python("tasks_dask", *wide)))
    return made


def measure(stage: Stage, compete: Sequence[Contender]) -> Found:
    found: Found = {contender.name: Runs() for contender in compete}
    for contender in compete:
        run(stage, contender, found[contender.name])
    return found


def each_ms(runs: Runs, tasks: int) -> Spread:
    """What a task took, by run."""
    laps_s = runs.laps_s[0]
    return Spread.of([1000 * (end - begin) / tasks for begin, end in pairwise([0.0, *laps_s])])


def rows(found: Found, compete: Sequence[Contender], load: Load) -> list[Row]:
    made = []
    for contender in compete:
        runs = found[contender.name]
        spread = each_ms(runs, load.tasks)
        note = f"whole process {runs.whole_s[0]:.1f} s, CPU {runs.cpu_s[0]:.1f} s"
        what = f"empty tasks: {contender.name}"
        made.append(Row(what, spread, "ms per task", contender.floor, note, digits=3))
    return made
