"""The same work by everybody, in turns, on the same text."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.mapreduce import contenders
from bench.mapreduce.contenders import Contender, Shares, Stage
from bench.mapreduce.meter import metered
from bench.report import Row
from bench.stats import Spread

_MB = 2**20


@dataclass
class Runs:
    """Of one contender; `shares` as that of the run that took the median's time."""

    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    shares: list[Shares] = field(default_factory=list)

    def wall(self) -> Spread:
        return Spread.of(self.wall_s)

    def cpu(self) -> Spread:
        return Spread.of(self.cpu_s)


# By workload, and contender.
Found = dict[str, dict[str, Runs]]


# By workload: the first one says what the result is, and what it takes without a framework.
Compete = dict[str, list[Contender]]


def workloads(stage: Stage, master: str, slow_once: bool) -> Compete:
    sort = contenders.sort_job()
    plain, combined = contenders.count_job(False), contenders.count_job(True)
    return {
        "sort": [
            contenders.gnu_sort(stage),
            contenders.ours(stage, sort, None),
            contenders.ours(stage, sort, master),
        ],
        "word count": [
            contenders.count_pipeline(stage),
            contenders.ours(stage, plain, None),
            contenders.ours(stage, plain, master),
            contenders.ours(stage, combined, None),
            contenders.ours(stage, combined, master),
            contenders.dask(stage),
            contenders.mrjob(stage, slow_once),
        ],
    }


def quick_workloads(stage: Stage, master: str) -> Compete:
    """A little of each kind."""
    combined = contenders.count_job(True)
    return {
        "word count": [
            contenders.count_pipeline(stage),
            contenders.ours(stage, combined, None),
            contenders.ours(stage, combined, master),
            contenders.dask(stage),
        ],
    }


def without_peers(compete: Compete) -> Compete:
    """The floors, and ours."""
    return {
        workload: [each[0], *(one for one in each[1:] if one.name.startswith("ours, "))]
        for workload, each in compete.items()
    }


def measure(stage: Stage, compete: Compete, runs: int) -> Found:
    found: Found = {name: {one.name: Runs() for one in each} for name, each in compete.items()}
    stage.scratch.mkdir()
    for number in range(runs):
        for workload, each in compete.items():
            wanted = stage.running.directory / f"{workload}.wanted"
            for contender in each:
                if number == 0 or not contender.once:
                    _one(stage, contender, wanted, found[workload][contender.name])
            wanted.unlink()
    return found


def _one(stage: Stage, contender: Contender, wanted: Any, runs: Runs) -> None:
    out = stage.running.directory / "out"
    out.mkdir()
    os.sync()  # what the one before has written costs this one nothing
    with metered() as took:
        shares = contender.run(out)
    runs.wall_s.append(took.wall_s)
    runs.cpu_s.append(took.cpu_s)
    runs.shares.append(shares)
    if wanted.exists():
        contenders.check(contender, out, wanted, stage)
    else:
        (out / contenders.PART).rename(wanted)
    shutil.rmtree(out)


def rows(found: Found, compete: Compete, size: int) -> list[Row]:
    made = []
    for workload, each in compete.items():
        floor = found[workload][each[0].name].wall().median
        for contender in each:
            runs = found[workload][contender.name]
            note = f"{size / _MB / runs.wall().median:.1f} MB/s"
            if not contender.floor:
                note += f", {runs.wall().median / floor:.2f} times the floor"
            note += f"; CPU {runs.cpu().median:.1f} s{_shares(runs)}"
            what = f"{workload}: {contender.name}"
            made.append(Row(what, runs.wall(), "s", floor=contender.floor, note=note, digits=2))
    return made


def _shares(runs: Runs) -> str:
    """Of the run in the middle."""
    middle = sorted(range(len(runs.wall_s)), key=runs.wall_s.__getitem__)[len(runs.wall_s) // 2]
    shares = runs.shares[middle]
    each = ", ".join(f"{name} {used:.1f}" for name, used in shares.items())
    return f" ({each})" if each else ""


def overheads(found: Found, pairs: Sequence[tuple[str, str, str]]) -> dict[str, Spread]:
    """Of each (workload, without, with) what the latter takes longer, in percent, run by run:
    those of one round were taken close to one another."""
    result = {}
    for workload, without, beside in pairs:
        bare, whole = found[workload][without].wall_s, found[workload][beside].wall_s
        result[f"{workload}: {beside}"] = Spread.of(
            [100 * (a / b - 1) for a, b in zip(whole, bare, strict=True)]
        )
    return result


def pairs(compete: Compete) -> list[tuple[str, str, str]]:
    """Ours without a cluster, and the same with one, which follows it."""
    return [
        (workload, bare.name, whole.name)
        for workload, each in compete.items()
        for bare, whole in itertools.pairwise(each)
        if bare.name.replace("no cluster", "cluster") == whole.name
    ]
