"""Who takes part: a program for each, which one process runs, and what is known of its run."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.mapreduce.meter import metered
from bench.processes import LOOPBACK, ROOT, BenchFailed, Processes
from bench.stats import Spread

OURS: Final = "ours"
PYSPARK: Final = "PySpark"
DASK: Final = "Dask"
PLAIN: Final = "plain Python"
_ENGINES: Final = {OURS: "frameworks.rdd", PYSPARK: "pyspark"}
# On a cluster.
EXECUTORS: Final = 2
# The same for both engines; each takes the one that it knows.
_MEMORY: Final = ("spark.driver.memory=4g", "spark.executor.memory=4g")


@dataclass(frozen=True)
class Stage:
    """Where it happens.

    width: how many tasks, processes or threads at once.  pyspark: a Python that has PySpark; None:
    PySpark takes no part.  quick: only ours and the floors, and a little of what they can do.
    within_s: nothing takes longer.
    """

    running: Processes
    width: int
    pyspark: Path | None
    quick: bool
    within_s: float

    @property
    def slots(self) -> int:
        """Of each executor on a cluster, where there are two."""
        return max(1, self.width // EXECUTORS)

    @property
    def scratch(self) -> Path:
        return self.running.directory / "scratch"

    @property
    def engines(self) -> list[str]:
        """The names of those that have RDDs."""
        return [OURS, *([PYSPARK] if self.pyspark is not None and not self.quick else [])]


@dataclass(frozen=True)
class Contender:
    """argv: but for `--out FILE`.  floor: done by hand.  once: it takes so much longer than others
    that one run has to do."""

    name: str
    argv: Sequence[str]
    floor: bool = False
    once: bool = False


@dataclass
class Runs:
    """Of one contender.

    laps_s: what each run says of itself, from when its engine was there; whole_s: from the start of
    its process to its end.  cpu_s: of the process and all that it has started.
    """

    laps_s: list[list[float]] = field(default_factory=list)
    whole_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)

    def after(self, lap: int) -> Spread:
        """From the beginning to the end of this lap; the first one is 1."""
        return Spread.of([laps[lap - 1] for laps in self.laps_s])

    def whole(self) -> Spread:
        return Spread.of(self.whole_s)

    def cpu(self) -> Spread:
        return Spread.of(self.cpu_s)


def rdd(
    stage: Stage, engine: str, program: str, words: Iterable[object], master: str = ""
) -> list[str]:
    """A program of an RDD engine: on the cluster of `master`, or without one."""
    python = str(stage.pyspark) if engine == PYSPARK else sys.executable
    settings = [
        *_MEMORY,
        "spark.ui.enabled=false",
        "spark.ui.showConsoleProgress=false",
        f"spark.local.dir={stage.scratch}",
    ]
    argv = [*_module(python, program), "--engine", _ENGINES[engine]]
    argv += ["--master", master or f"local[{stage.width}]"]
    if master:
        settings += [
            f"spark.cores.max={stage.width}",
            f"spark.executor.cores={stage.slots}",
            f"spark.executorEnv.PYTHONPATH={ROOT}",
        ]
    for setting in settings:
        argv += ["--set", setting]
    return [*argv, *map(str, words)]


def python(program: str, *words: object) -> list[str]:
    return [*_module(sys.executable, program), *map(str, words)]


def _module(python: str, program: str) -> list[str]:
    return [python, "-m", f"bench.rdd.programs.{program}"]


def run(stage: Stage, contender: Contender, runs: Runs) -> dict[str, Any]:
    """What the program has written; what it took is added to `runs`.  Raises BenchFailed."""
    out = stage.running.directory / "found.json"
    out.unlink(missing_ok=True)
    os.sync()  # what the one before has written costs this one nothing
    with metered() as took:
        argv = [*contender.argv, "--out", str(out)]
        stage.running.finish(_log(contender), argv, stage.within_s, _env(stage))
    found: dict[str, Any] = json.loads(out.read_text())
    if not found["laps_s"]:
        raise BenchFailed(f"{contender.name} has measured nothing")
    runs.laps_s.append(found["laps_s"])
    runs.whole_s.append(took.wall_s)
    runs.cpu_s.append(took.cpu_s)
    return found


def _log(contender: Contender) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in contender.name)


def _env(stage: Stage) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {
        "PYTHONPATH": path,
        "TMPDIR": str(stage.scratch),
        # Tasks are what runs in parallel.
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "SPARK_LOCAL_IP": LOOPBACK,
    }
    if stage.pyspark is not None:
        env["PYSPARK_PYTHON"] = str(stage.pyspark)
    return env
