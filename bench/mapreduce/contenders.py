"""Who does the same work: floors, peers, and ourselves with and without a cluster."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.mapreduce import pipelines
from bench.mapreduce.corpus import Corpus
from bench.processes import ROOT, BenchFailed, Processes

PROGRAMS: Final = Path(__file__).parent / "programs"
PART: Final = "part-00000"
# A line as a whole is its key: it has no more fields than that.
_WHOLE_LINE: Final = 1_000_000

# CPU seconds by what used them, where that can be told.
Shares = dict[str, float]
# A counter that our command shows at the end: of attempts, and the programs that they run.
_ATTEMPTS_MS: Final = re.compile(r"CPU_MILLISECONDS=(\d+)")


@dataclass(frozen=True)
class Contender:
    """run: do the work, and leave its result as `part-*` in this new directory.

    once: it takes so much longer than others that one run has to do.
    in_order: its parts are sorted.
    """

    name: str
    run: Callable[[Path], Shares]
    floor: bool = False
    once: bool = False
    in_order: bool = True


@dataclass(frozen=True)
class Stage:
    """Where it happens.

    width: how many tasks, processes or workers at once.  within_s: nothing takes longer.
    """

    running: Processes
    corpus: Corpus
    width: int
    within_s: float

    @property
    def scratch(self) -> Path:
        return self.running.directory / "scratch"

    @property
    def texts(self) -> list[str]:
        return [str(path) for path in self.corpus.files]

    @property
    def log(self) -> Path:
        return self.running.directory / "pipelines.log"


def gnu_sort(stage: Stage) -> Contender:
    def run(out: Path) -> Shares:
        sort = ["sort", "-T", str(stage.scratch), *stage.texts]
        (used,) = pipelines.run([sort], out / PART, stage.log)
        return {"sort": used}

    return Contender("LC_ALL=C sort", run, floor=True)


def count_pipeline(stage: Stage) -> Contender:
    def run(out: Path) -> Shares:
        stages = [
            ["cat", *stage.texts],
            _python("count_map.py"),
            ["sort", "-T", str(stage.scratch)],
            _python("count_reduce.py"),
        ]
        used = pipelines.run(stages, out / PART, stage.log)
        return dict(zip(("cat", "mapper", "sort", "reducer"), used, strict=True))

    return Contender("cat | mapper | sort | reducer", run, floor=True)


def dask(stage: Stage) -> Contender:
    """A bag's `frequencies` combines in each partition, and then in a tree."""

    def run(out: Path) -> Shares:
        block = max(1, min(64 << 20, stage.corpus.size // (2 * stage.width)))
        argv = [*_python("count_dask.py"), str(stage.width), str(block), str(out / PART)]
        stage.running.finish("dask", [*argv, *stage.texts], stage.within_s, _env(stage))
        return {}

    return Contender("Dask bag, processes", run)


def mrjob(stage: Stage, once: bool) -> Contender:
    """Its parts are in order, too, but it does not promise that."""

    def run(out: Path) -> Shares:
        argv = [*_python("count_mrjob.py"), "-r", "local", "--no-conf", "--no-cat-output"]
        argv += ["--num-cores", str(stage.width), "--output-dir", str(out / "mrjob")]
        stage.running.finish("mrjob", [*argv, *stage.texts], stage.within_s, _env(stage))
        for part in (out / "mrjob").glob("part-*"):
            part.rename(out / part.name)
        return {}

    return Contender("mrjob, local runner, with combiner", run, once=once, in_order=False)


@dataclass(frozen=True)
class Job:
    """A job of ours.  words: its options, beside input and output."""

    name: str
    words: tuple[str, ...]


def sort_job() -> Job:
    words = ["-D", f"stream.num.map.output.key.fields={_WHOLE_LINE}"]
    return Job("sort", (*words, "-mapper", "cat", "-reducer", "cat"))


def count_job(combined: bool) -> Job:
    words = ["-mapper", _shell("count_map.py"), "-reducer", _shell("count_reduce.py")]
    if combined:
        words += ["-combiner", _shell("count_reduce.py")]
    for name in ("count_map.py", "count_reduce.py"):
        words += ["-file", str(PROGRAMS / name)]
    return Job("count-combined" if combined else "count", tuple(words))


def ours(stage: Stage, job: Job, master: str | None) -> Contender:
    """On the cluster of this master, or with no cluster (None)."""
    where = ["--local", str(stage.width)] if master is None else ["--master", master]
    name = f"{job.name}-{'local' if master is None else 'cluster'}"

    def run(out: Path) -> Shares:
        words = ["-D", f"mapreduce.job.reduces={stage.width}", *job.words]
        for text in stage.texts:
            words += ["-input", text]
        argv = [*command("run"), *where, *words, "-output", str(out / "job")]
        stage.running.finish(name, argv, stage.within_s, _env(stage))
        for part in (out / "job").glob("part-*"):
            part.rename(out / part.name)
        return _told(stage, name)

    combined = ", with combiner" if "-combiner" in job.words else ""
    return Contender(f"ours, {'no cluster' if master is None else 'cluster'}{combined}", run)


def _told(stage: Stage, name: str) -> Shares:
    said = (stage.running.directory / f"{name}.log").read_text()
    attempts_ms = _ATTEMPTS_MS.findall(said)
    if not attempts_ms:
        raise BenchFailed(f"{name} does not say what it has used:\n{said[-1000:]}")
    return {"attempts": int(attempts_ms[-1]) / 1000}


def command(name: str) -> list[str]:
    """The beginning of a call of ours."""
    return [sys.executable, "-m", "mesos_py.cli", "mapreduce", name]


def check(contender: Contender, out: Path, wanted: Path, stage: Stage) -> None:
    """Raises BenchFailed if what it left is not `wanted`, byte for byte."""
    parts = sorted(str(path) for path in out.glob("part-*"))
    merge: Sequence[str] = ["-m"] if contender.in_order else []
    sort = ["sort", *merge, "-T", str(stage.scratch), *parts]
    stage.log.unlink(missing_ok=True)
    pipelines.run([sort, ["cmp", "-", str(wanted)]], None, stage.log)


def _python(program: str) -> list[str]:
    return [sys.executable, str(PROGRAMS / program)]


def _shell(program: str) -> str:
    """As tasks run it, in whose directories it is."""
    return f"{sys.executable} {program}"


def _env(stage: Stage) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {"TMPDIR": str(stage.scratch), "PYTHONPATH": path}
