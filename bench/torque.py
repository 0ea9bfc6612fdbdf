"""A batch system with no nodes: from qsub to the start of the job, and back to no nodes.

Real agents, a real Slurm, one job at a time.  The floor of the start is the same job on a node
that is there already.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from bench.processes import BenchFailed, Processes, processes
from bench.report import Result, Row
from bench.stats import Spread

AGENTS: Final = 2
RESOURCES: Final = "cpus:2;mem:1024"
IDLE_S: Final = 3.0
POLL_S: Final = 0.5
LIMIT_S: Final = 60.0
_LOOK_S: Final = 0.02
JOB: Final = "#!/bin/sh\ndate +%s.%N > {mark}.new && mv {mark}.new {mark}\n"


class Batch:
    """`mesos-py torque up` and what users do."""

    def __init__(self, running: Processes, master: str) -> None:
        self.home = running.directory / "pbs"
        self._running = running
        flags = ["--master", master, "--state-dir", str(self.home), "--idle", f"{IDLE_S}s"]
        self.process = running.start(
            "torque", [*_mesos_py("up"), *flags, "--poll", f"{POLL_S}s", "--log-level", "warning"]
        )
        running.wait_for(self.home / "status.json", self.process, "torque")
        self._env = {**os.environ, "SLURM_CONF": str(self.home / "slurm.conf")}

    def starts(self, number: int) -> float:
        """Submit a job; seconds until it has begun, by the machine's clock."""
        mark = self._running.directory / f"mark-{number}"
        script = self._running.directory / f"job-{number}.sh"
        script.write_text(JOB.format(mark=mark))
        began = time.time()
        argv = ["qsub", "-o", "/dev/null", "-e", "/dev/null", str(script)]
        subprocess.run(argv, env=self._env, check=True, capture_output=True, timeout=LIMIT_S)
        _until(mark.exists, "the job has not begun")
        return float(mark.read_text()) - began

    def goes(self) -> float:
        """Seconds until there is no node any more."""
        began = time.monotonic()
        book = self.home / "wrapper.json"
        _until(lambda: '"nodes": []' in book.read_text(), "nodes have not gone")
        return time.monotonic() - began


def run(quick: bool) -> Result:
    rounds = 1 if quick else 10
    cold, warm, back = [], [], []
    with processes() as running, _batch(running) as batch:
        # The first one warms up.
        for number in range(1 if quick else 0, rounds + 1):
            first = batch.starts(2 * number)
            second = batch.starts(2 * number + 1)
            gone = batch.goes()
            if number:
                cold.append(first)
                warm.append(second)
                back.append(gone)
    return result(cold, warm, back)


@contextmanager
def _batch(running: Processes) -> Iterator[Batch]:
    _, master = running.daemon("master")
    for number in range(AGENTS):
        flags = ("--master", master, "--resources", RESOURCES, "--hostname", f"host{number}")
        running.daemon(f"agent-{number}", *flags, "--tasks-on-exit", "end")
    batch = Batch(running, master)
    try:
        yield batch
    finally:
        # The server outlives the wrapper; its files go with the bench.
        argv = [*_mesos_py("down"), "--force", "--state-dir", str(batch.home)]
        subprocess.run(argv, check=False, capture_output=True, timeout=LIMIT_S)


def result(cold: list[float], warm: list[float], back: list[float]) -> Result:
    """From the seconds of each round."""
    rows = [
        Row("qsub to start, no nodes", Spread.of(cold), "s", digits=2),
        Row("qsub to start, on a node that is there", Spread.of(warm), "s", True, digits=2),
        Row("last job to no nodes", Spread.of(back), "s", digits=2),
        Row("of that, the idle time that was asked for", Spread.of([IDLE_S]), "s", True, digits=2),
    ]
    worst = max(cold)
    return Result(
        name="torque",
        title="torque: a batch system whose nodes come and go",
        rows=rows,
        aim="jobs start within 30 s with no nodes",
        reached=f"{worst:.1f} s in the slowest of {len(cold)} rounds",
        met=worst < 30,
        parameters={"agents": AGENTS, "idle_s": IDLE_S, "poll_s": POLL_S, "rounds": len(cold)},
        details={"cold_s": cold, "warm_s": warm, "back_s": back},
    )


def _mesos_py(command: str) -> list[str]:
    return [sys.executable, "-m", "mesos_py.cli", "torque", command]


def _until(done: Callable[[], bool], what: str) -> None:
    until_s = time.monotonic() + LIMIT_S
    while not done():
        if time.monotonic() > until_s:
            raise BenchFailed(f"{what} in {LIMIT_S:.0f} s")
        time.sleep(_LOOK_S)
