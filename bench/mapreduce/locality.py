"""Jobs whose blocks lie on some hosts of many: how often are they read there, and what is
gained by waiting for a place there?

All hosts are agents on this machine, whose disks and network are emulated by the maps
(`programs/read_block.py`).  The jobs are there at once, and share the slots.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.mapreduce.contenders import PROGRAMS, command
from bench.processes import BenchFailed, Processes
from bench.report import Row
from bench.stats import Spread
from frameworks.mapreduce import api as mapreduce

_SCRIPT: Final = "read_block.py"
# What a slot is, and what an agent has beside it for the worker itself.
_SLOT_MEM_MB: Final = 32
_WORKER: Final = "cpus:1.5;mem:320"
_JOB_WITHIN_S: Final = 300.0


@dataclass(frozen=True)
class Load:
    """hosts: with one slot each.  maps: of a job, each with a block of its own.

    A block of 128 MB is read in 2 s from a disk (64 MB/s), in 5 s over a network that others
    use, too (26 MB/s).
    """

    hosts: int = 20
    jobs: int = 10
    maps: int = 20
    replicas: int = 3
    here_s: float = 2.0
    elsewhere_s: float = 5.0
    waits_s: tuple[float, ...] = (0.0, 1.0, 5.0)
    runs: int = 3


QUICK: Final = Load(
    hosts=2, jobs=2, maps=2, replicas=1, here_s=0.1, elsewhere_s=0.3, waits_s=(1.0,), runs=1
)
# Published for these waits, in percent of the maps.
PUBLISHED: Final = {1.0: 90.0, 5.0: 95.0}
# The setting in which all hosts have all blocks.
EVERYWHERE: Final = "all blocks on all hosts"


@dataclass
class Round:
    """Of all jobs, with one setting, once.  job_s: from its start to its end, of each."""

    here: int = 0
    elsewhere: int = 0
    job_s: list[float] = field(default_factory=list)

    @property
    def percent(self) -> float:
        return 100 * self.here / (self.here + self.elsewhere)


# By setting.
Found = dict[str, list[Round]]


def setting(wait_s: float) -> str:
    return f"waiting {wait_s:g} s" if wait_s else "without waiting"


def measure(running: Processes, load: Load) -> Found:
    _, master = running.daemon("master")
    for number in range(load.hosts):
        name = _host(number)
        flags = ["--hostname", name, "--resources", _WORKER, "--tasks-on-exit=end"]
        running.daemon(name, "--master", master, *flags)
    bed = _Bed(running, load, _tracker(running, master))
    found: Found = {}
    bed.warm_up()
    for number in range(load.runs):
        found.setdefault(EVERYWHERE, []).append(bed.play(number, load.hosts, 0.0))
        for wait_s in load.waits_s:
            one = bed.play(number, load.replicas, wait_s)
            found.setdefault(setting(wait_s), []).append(one)
    return found


def _host(number: int) -> str:
    return f"agent-{number}"


def _tracker(running: Processes, master: str) -> str:
    """One for all jobs; its address."""
    port_file = running.directory / "tracker.port"
    argv = [*command("tracker"), "--master", master, "--port", "0"]
    argv += ["--port-file", str(port_file), "--state", str(running.directory / "tracker")]
    process = running.start("tracker", argv)
    return f"127.0.0.1:{running.wait_for(port_file, process, 'tracker')}"


class _Bed:
    """Where all rounds happen: workers stay from one to the next."""

    def __init__(self, running: Processes, load: Load, tracker: str) -> None:
        self._running = running
        self._load = load
        self._tracker = tracker
        self._directory = running.directory / "blocks"

    def warm_up(self) -> None:
        """A worker on each host: what that takes is measured elsewhere."""
        self.play(-1, self._load.hosts, 0.0)

    def play(self, number: int, replicas: int, wait_s: float) -> Round:
        """Blocks lie in the same places in all settings of a round."""
        self._directory.mkdir()
        places = random.Random(number)
        for at in range(self._load.jobs):
            self._lay_out(self._directory / f"job-{at}", places, replicas)
        manifest = self._manifest()
        jobs = [self._submit(at, manifest, wait_s) for at in range(self._load.jobs)]
        found = Round()
        for job, submitted in enumerate(jobs):
            view = submitted.wait(_JOB_WITHIN_S)
            found.job_s.append(view.ended_s - view.submitted_s)
            here = self._count(self._directory / f"job-{job}.out", found)
            if here != view.maps.on_host:
                raise BenchFailed(f"{here} blocks were read where they are; told: {view.maps}")
        shutil.rmtree(self._directory)
        return found

    def _lay_out(self, directory: Path, places: random.Random, replicas: int) -> None:
        load = self._load
        directory.mkdir()
        for block in range(load.maps):
            hosts = places.sample([_host(number) for number in range(load.hosts)], replicas)
            words = [f"{block}", f"{load.here_s}", f"{load.elsewhere_s}", *hosts]
            (directory / f"block-{block:03}").write_text(" ".join(words) + "\n")

    def _manifest(self) -> Path:
        path = self._directory / "locations.json"
        files = {
            str(block): block.read_text().split()[3:]
            for block in self._directory.glob("job-*/block-*")
        }
        path.write_text(json.dumps({"version": 1, "files": files}))
        return path

    def _submit(self, job: int, manifest: Path, wait_s: float) -> mapreduce.Job:
        return mapreduce.submit(
            tracker=self._tracker,
            name=f"job-{job}",
            inputs=str(self._directory / f"job-{job}"),
            output=str(self._directory / f"job-{job}.out"),
            mapper=f"{sys.executable} -I -S {_SCRIPT}",
            files=[str(PROGRAMS / _SCRIPT)],
            reduces=0,
            conf={
                "mesos.locations": manifest,
                "mesos.locality.wait.host": wait_s,
                "mesos.locality.wait.rack": 0,
                "mesos.input.combine": "false",
                "mapreduce.map.speculative": "false",
                "mapreduce.map.memory.mb": _SLOT_MEM_MB,
            },
        )

    def _count(self, out: Path, found: Round) -> int:
        """How many blocks were read where they are.  Raises BenchFailed unless each was read, and
        once."""
        lines = sorted(_read(out))
        if [block for block, _ in lines] != list(range(self._load.maps)):
            raise BenchFailed(f"{out.name} has the blocks {lines}")
        here = sum(where == "here" for _, where in lines)
        found.here += here
        found.elsewhere += len(lines) - here
        return here


def _read(out: Path) -> Iterator[tuple[int, str]]:
    for part in sorted(out.glob("part-*")):
        for line in part.read_text().splitlines():
            block, where = line.split("\t")
            yield int(block), where


def rows(found: Found, load: Load) -> list[Row]:
    made = []
    for name, rounds in found.items():
        floor = name == EVERYWHERE
        spread = Spread.of([one.percent for one in rounds])
        made.append(Row(f"locality, {name}", spread, "% of maps", floor=floor))
    for name, rounds in found.items():
        floor = name == EVERYWHERE
        means = Spread.of([sum(one.job_s) / len(one.job_s) for one in rounds])
        whole = Spread.of([max(one.job_s) for one in rounds])
        note = f"mean of {load.jobs} jobs; the last one after {whole.text()} s"
        made.append(Row(f"job time, {name}", means, "s per job", floor=floor, note=note))
    return made


def percent(found: Found, wait_s: float) -> float:
    """How many of the maps ran where their blocks are: the round in the middle."""
    return Spread.of([one.percent for one in found[setting(wait_s)]]).median


def details(found: Found, load: Load) -> dict[str, Any]:
    rounds = {name: [asdict(one) for one in each] for name, each in found.items()}
    return {"load": asdict(load), "rounds": rounds, "cores": os.cpu_count()}
