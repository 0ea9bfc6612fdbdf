"""Iterations over points in memory, empty tasks and shuffles: the RDD engine beside the others."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.mapreduce.meter import adopting
from bench.processes import LOOPBACK, Processes, processes
from bench.rdd import logistic, points, shuffles, tasks
from bench.rdd.contenders import EXECUTORS, Stage
from bench.rdd.pictures import draw
from bench.report import Result

SIZE_MB: Final = 400
SHUFFLE_MB: Final = 1024
RUNS: Final = 1
# What can be had alone.
PARTS: Final = ("logistic", "tasks", "shuffle")
# Nothing that is measured here is slower than this, on a busy machine.
_WITHIN_S: Final = 1800.0
# Of a part of the text or of a shuffle: some for each task that runs at once.
_PART_MB: Final = 25
_SHUFFLE_PART_MB: Final = 32
_TASKS: Final = 2000
# What the agent has for MapReduce's worker itself.
_WORKER_CPUS: Final = 0.5
# Room for an executor, whose memory is that of `contenders`.
_AGENT_MEM_MB: Final = 6144


@dataclass(frozen=True)
class Choices:
    """pyspark: a Python that has PySpark, to be measured, too.  only: one of PARTS; None: all."""

    size_mb: int = SIZE_MB
    shuffle_mb: int = SHUFFLE_MB
    runs: int = RUNS
    pyspark: Path | None = None
    only: str | None = None


def run(quick: bool, choices: Choices | None = None) -> Result:
    chosen = choices or Choices()
    result = Result(
        name="rdd" if chosen.only is None else f"rdd-{chosen.only}",
        title="rdd: ",
        rows=[],
        aim="what others need is in the rows",
        reached="measured",
        met=True,
        parameters={"size_mb": chosen.size_mb, "runs": chosen.runs, "width": _width()},
        details={part: {} for part in PARTS},
    )
    titles = []
    for part, measured in zip(PARTS, (_logistic, _tasks, _shuffle), strict=True):
        if chosen.only in (None, part):
            with adopting(), processes() as running:
                stage = Stage(running, _width(), chosen.pyspark, quick, _WITHIN_S)
                stage.scratch.mkdir()
                titles.append(measured(stage, quick, chosen, result))
    result.title += "; ".join(titles)
    if chosen.pyspark is None:
        result.notes.append("PySpark was not measured: --pyspark names a Python that has it")
    return result


def _width() -> int:
    return os.cpu_count() or 1


def _logistic(stage: Stage, quick: bool, chosen: Choices, result: Result) -> str:
    """Adds what it finds; what was done."""
    size_mb = 1 if quick else chosen.size_mb
    files = max(2 * stage.width, size_mb // _PART_MB)
    load = logistic.Load(size_mb, 3 if quick else max(logistic.MARKS), files)
    text = points.write(stage.running.directory / "points", size_mb << 20, files)
    compete = logistic.contenders(stage, text, load, None if quick else _clusters(stage))
    found = logistic.measure(stage, compete, 1 if quick else chosen.runs)
    result.rows += logistic.rows(found, compete, load)
    result.details["logistic"] = logistic.details(found)
    result.parameters["logistic"] = {"bytes": text.size, "points": text.points, "files": files}
    gain = logistic.gain(found, load)
    if gain is not None:
        result.aim = f"a job of MapReduce for each takes {logistic.PUBLISHED:g} times as long"
        result.reached = f"{gain:.1f} times after {load.iterations} iterations"
        result.met = gain >= logistic.PUBLISHED
    return f"{text.points / 1e6:.1f} million points, {text.size / 2**20:.0f} MB"


def _clusters(stage: Stage) -> logistic.Clusters:
    return logistic.Clusters(_cluster(stage), _tracker(stage))


def _cluster(stage: Stage) -> str:
    """For our executors: an agent for each; the master's address."""
    running = stage.running
    _, master = running.daemon("master-rdd")
    resources = f"cpus:{stage.slots};mem:{_AGENT_MEM_MB}"
    for number in range(EXECUTORS):
        flags = ["--hostname", f"host{number}", "--resources", resources]
        running.daemon(f"agent-rdd{number}", "--master", master, *flags, "--tasks-on-exit=end")
    return master


def _tracker(stage: Stage) -> str:
    """MapReduce's, on a cluster of one agent that has room for `width` maps at once; it stays for
    all jobs, and so do its workers.  Its address."""
    running: Processes = stage.running
    _, master = running.daemon("master")
    resources = f"cpus:{stage.width + _WORKER_CPUS};mem:{_AGENT_MEM_MB}"
    running.daemon("agent", "--master", master, "--resources", resources, "--tasks-on-exit=end")
    port_file = running.directory / "tracker.port"
    argv = [sys.executable, "-m", "mesos_py.cli", "mapreduce", "tracker", "--master", master]
    argv += ["--port", "0", "--port-file", str(port_file)]
    argv += ["--state", str(running.directory / "tracker")]
    process = running.start("tracker", argv)
    return f"http://{LOOPBACK}:{running.wait_for(port_file, process, 'tracker')}"


def _tasks(stage: Stage, quick: bool, _chosen: Choices, result: Result) -> str:
    """The same."""
    load = tasks.Load(20 if quick else _TASKS, 1 if quick else 3)
    compete = tasks.contenders(stage, load, "" if quick else _cluster(stage))
    found = tasks.measure(stage, compete)
    result.rows += tasks.rows(found, compete, load)
    result.details["tasks"] = {name: vars(runs) for name, runs in found.items()}
    return f"{load.tasks} empty tasks"


def _shuffle(stage: Stage, quick: bool, chosen: Choices, result: Result) -> str:
    """The same."""
    size_mb = 1 if quick else chosen.shuffle_mb
    parts = max(2 * stage.width, size_mb // _SHUFFLE_PART_MB)
    load = shuffles.Load((size_mb << 20) // shuffles.RECORD_BYTES, parts)
    compete = shuffles.contenders(stage, load)
    found = shuffles.measure(stage, compete, 1 if quick else chosen.runs)
    result.rows += shuffles.rows(found, compete)
    result.details["shuffle"] = {
        what: {name: vars(runs) for name, runs in each.items()} for what, each in found.items()
    }
    described: dict[str, Any] = {"records": load.records, "parts": parts, "keys": load.keys}
    result.parameters["shuffle"] = described
    if not quick:
        result.notes.append("A Dask bag cannot sort; its groupby makes a list for each key")
    return f"{load.records / 1e6:.1f} million records shuffled"


__all__ = ["PARTS", "RUNS", "SHUFFLE_MB", "SIZE_MB", "Choices", "draw", "run"]
