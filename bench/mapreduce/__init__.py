"""MapReduce: throughput beside a shell pipeline, mrjob and Dask, what the cluster costs, and
what waiting for a place near the input brings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from bench.mapreduce import corpus, locality, throughput
from bench.mapreduce.contenders import Stage
from bench.mapreduce.meter import adopting
from bench.processes import Processes, processes
from bench.report import Result
from bench.stats import Spread

SIZE_MB: Final = 1024
QUICK_MB: Final = 1
RUNS: Final = 3
# What can be had alone.  "overhead": our own jobs only, and what the result has to be.
PARTS: Final = ("throughput", "overhead", "locality")
AIM_PERCENT: Final = 4.0
# From so many MB on mrjob runs once: it takes minutes.
_ONCE_MB: Final = 256
_FILES: Final = 2
# Nothing that is measured here is slower than this, on a busy machine.
_WITHIN_S: Final = 120.0
_WITHIN_S_PER_MB: Final = 8.0
# What the agent has for the worker itself.
_WORKER_CPUS: Final = 0.5
_AGENT_MEM_MB: Final = 4096


@dataclass(frozen=True)
class Choices:
    """only: one of PARTS; None: all, where throughput has what overhead is about."""

    size_mb: int = SIZE_MB
    runs: int = RUNS
    only: str | None = None


def run(quick: bool, choices: Choices | None = None) -> Result:
    chosen = choices or Choices()
    if quick:
        chosen = Choices(QUICK_MB, 1, chosen.only)
    result = Result(
        name="mapreduce" if chosen.only is None else f"mapreduce-{chosen.only}",
        title="mapreduce: ",
        rows=[],
        aim=_aim(chosen.only),
        reached="",
        met=True,
        parameters={**asdict(chosen), "width": _width()},
    )
    said = [
        measured(quick, chosen, result)
        for measured, names in ((_throughput, PARTS[:2]), (_locality, PARTS[2:]))
        if chosen.only is None or chosen.only in names
    ]
    result.title += "; ".join(title for title, _ in said)
    result.reached = "; ".join(part for _, parts in said for part in parts)
    return result


def _throughput(quick: bool, chosen: Choices, result: Result) -> tuple[str, list[str]]:
    """Adds what it finds; the title, and what was reached."""
    with adopting(), processes() as running:
        text = corpus.write(running.directory / "text", chosen.size_mb << 20, _FILES)
        within_s = _WITHIN_S + _WITHIN_S_PER_MB * chosen.size_mb
        stage = Stage(running, text, _width(), within_s)
        master = _cluster(running)
        compete = (
            throughput.quick_workloads(stage, master)
            if quick
            else throughput.workloads(stage, master, chosen.size_mb >= _ONCE_MB)
        )
        if chosen.only == "overhead":
            compete = throughput.without_peers(compete)
        found = throughput.measure(stage, compete, chosen.runs)
    overheads = throughput.overheads(found, throughput.pairs(compete))
    result.rows += throughput.rows(found, compete, text.size)
    result.met &= all(spread.median < AIM_PERCENT for spread in overheads.values())
    result.parameters["corpus"] = _described(text)
    result.details["throughput"] = {
        workload: {name: asdict(runs) for name, runs in each.items()}
        for workload, each in found.items()
    }
    result.details["overhead_percent"] = {
        what: asdict(spread) for what, spread in overheads.items()
    }
    return f"{text.size / 2**20:.0f} MB of text, {_width()} tasks at once", _costs(overheads)


def _locality(quick: bool, _chosen: Choices, result: Result) -> tuple[str, list[str]]:
    """The same."""
    load = locality.QUICK if quick else locality.Load()
    with adopting(), processes() as running:
        near = locality.measure(running, load)
    result.rows += locality.rows(near, load)
    result.met &= all(
        locality.percent(near, wait_s) >= locality.PUBLISHED.get(wait_s, 0.0)
        for wait_s in load.waits_s
    )
    result.details["locality"] = locality.details(near, load)
    return f"{load.jobs} jobs on {load.hosts} hosts", _shares(near, load)


def _width() -> int:
    return os.cpu_count() or 1


def _cluster(running: Processes) -> str:
    """One agent, with as many slots as there are cores; the master's address."""
    _, master = running.daemon("master")
    resources = f"cpus:{_width() + _WORKER_CPUS};mem:{_AGENT_MEM_MB}"
    running.daemon("agent", "--master", master, "--resources", resources, "--tasks-on-exit=end")
    return master


def _aim(only: str | None) -> str:
    near = ", ".join(
        f"{least:g} % local {locality.setting(wait_s)}"
        for wait_s, least in locality.PUBLISHED.items()
    )
    cost = f"the cluster adds under {AIM_PERCENT:g} %"
    if only is None:
        return f"{cost}; {near}"
    return near if only == "locality" else cost


def _costs(overheads: Mapping[str, Spread]) -> list[str]:
    return [f"{what} {spread.median:+.1f} %" for what, spread in overheads.items()]


def _shares(near: locality.Found, load: locality.Load) -> list[str]:
    return [
        f"{locality.percent(near, wait_s):.0f} % local {locality.setting(wait_s)}"
        for wait_s in load.waits_s
    ]


def _described(text: corpus.Corpus) -> dict[str, Any]:
    return {
        "bytes": text.size,
        "files": len(text.files),
        "own_bytes": text.own_size,
        "sha256": text.digest,
    }
