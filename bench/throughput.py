"""Tasks of `true` per second through one agent, with many in flight."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import psutil

from bench.processes import BenchFailed, cpu_seconds, processes
from bench.report import Result, Row
from bench.stats import Spread
from mesos_py.resources import Resources
from mesos_py.scheduler.aio import SchedulerClient
from mesos_py.states import TASK_FINISHED, is_terminal
from mesos_py.tasks import command_task
from mesos_py.v1.scheduler_pb2 import Event
from mesos_py.v1.types_pb2 import FrameworkInfo, Offer, TaskStatus

ARGV: Final = ["/bin/true"]
# So many tasks can be in flight.
SLOTS: Final = 200
CPUS: Final = 0.01
NEED: Final = Resources.of(cpus=CPUS, mem=1)
AGENT: Final = f"cpus:{SLOTS * CPUS:g};mem:{SLOTS}"
WITHIN_S: Final = 900.0


@dataclass
class Run:
    tasks: int
    seconds: float
    # CPU seconds by process.
    cpu_s: dict[str, float]
    # Processes per second of the plain loops.
    floor: float
    floor_cpu_s: float
    with_subprocess: float


def run(quick: bool) -> Result:
    runs, tasks, directly = (2, 50, 50) if quick else (5, 2000, 1000)
    with processes() as running:
        master, address = running.daemon("master")
        flags = ["--master", address, "--resources", AGENT, "--tasks-on-exit=end"]
        agent, _ = running.daemon("agent", *flags)
        wardens = [child.pid for child in psutil.Process(agent.pid).children()]
        pids = {
            "master": [master.pid],
            "agent": [agent.pid],
            "warden": wardens,
            "scheduler": [os.getpid()],
        }
        found = asyncio.run(measure(address, pids, runs, tasks, directly))
    return result(found)


async def measure(
    master: str, pids: dict[str, list[int]], runs: int, tasks: int, directly: int
) -> list[Run]:
    framework = FrameworkInfo(name="bench-throughput")
    found = []
    async with (
        SchedulerClient(framework, master, connect_timeout_s=10) as client,
        asyncio.timeout(WITHIN_S),
    ):
        crowd = Crowd(client)
        await crowd.run_all(tasks // 5)  # to warm up
        for _ in range(runs):
            floor, floor_cpu_s = loop_of_posix_spawn(directly)
            compared = loop_of_subprocess(directly // 5)
            before = {name: cpu_seconds(of) for name, of in pids.items()}
            seconds = await crowd.run_all(tasks)
            used = {name: cpu_seconds(of) - before[name] for name, of in pids.items()}
            found.append(Run(tasks, seconds, used, floor, floor_cpu_s, compared))
    return found


def loop_of_posix_spawn(count: int) -> tuple[float, float]:
    """Processes per second, and the CPU seconds of the loop and its processes for each."""
    before = os.times()
    began = time.perf_counter()
    for _ in range(count):
        os.waitpid(os.posix_spawn(ARGV[0], ARGV, os.environ), 0)
    seconds = time.perf_counter() - began
    used = sum(os.times()[:4]) - sum(before[:4])
    return count / seconds, used / count


def loop_of_subprocess(count: int) -> float:
    began = time.perf_counter()
    for _ in range(count):
        subprocess.run(ARGV, check=True)
    return count / (time.perf_counter() - began)


class Crowd:
    """A scheduler that keeps the agent full."""

    def __init__(self, client: SchedulerClient) -> None:
        self._client = client
        self._events = aiter(client)
        self._numbers = itertools.count(1)
        self._offers: list[Offer] = []

    async def run_all(self, tasks: int) -> float:
        """Run so many tasks to their end; the seconds from the first accept to it."""
        waiting = [f"task-{next(self._numbers)}" for _ in range(tasks)]
        left = tasks
        began = 0.0
        while True:
            if self._offers and waiting:
                began = began or time.perf_counter()
                self._place(waiting)
            event = await anext(self._events)
            if event.type == Event.OFFERS:
                self._offers.extend(event.offers.offers)
            elif event.type == Event.RESCIND:
                gone = event.rescind.offer_id.value
                self._offers = [offer for offer in self._offers if offer.id.value != gone]
            elif event.type == Event.UPDATE and is_terminal(event.update.status.state):
                status = event.update.status
                if status.reason == TaskStatus.REASON_INVALID_OFFERS:
                    # Its offer was taken back while the machine stood still.
                    waiting.append(f"task-{next(self._numbers)}")
                    continue
                if status.state != TASK_FINISHED:
                    raise BenchFailed(f"a task ended with {status}")
                left -= 1
                if not left:
                    return time.perf_counter() - began

    def _place(self, waiting: list[str]) -> None:
        """Fill the offers; what has found a place is no longer waiting."""
        for offer in self._offers:
            amount = sum(item.scalar.value for item in offer.resources if item.name == "cpus")
            names = [waiting.pop() for _ in range(min(len(waiting), round(amount / CPUS)))]
            tasks = [command_task("bench", name, offer, ARGV, resources=NEED) for name in names]
            self._client.launch_tasks(offer, tasks)
        self._offers = []


def result(found: list[Run]) -> Result:
    rate = Spread.of([one.tasks / one.seconds for one in found])
    floor = Spread.of([one.floor for one in found])
    compared = Spread.of([one.with_subprocess for one in found])
    ratio = Spread.of([one.tasks / one.seconds / one.floor for one in found])
    return Result(
        name="throughput",
        title="throughput: tasks of `true` through one agent",
        rows=[
            Row("tasks", rate, "1/s", digits=0),
            Row("plain loop of posix_spawn and wait", floor, "1/s", floor=True, digits=0),
            Row("for comparison: loop of subprocess.run", compared, "1/s", digits=0),
            Row("part of the floor", ratio, "", digits=2),
            *cpu_rows(found),
        ],
        aim="a third of the floor",
        reached=f"{ratio.median:.2f} of the floor",
        met=ratio.median >= 1 / 3,
        parameters={"tasks_per_run": found[0].tasks, "in_flight": SLOTS, "command": ARGV},
        details={"runs": [vars(one) for one in found]},
    )


def cpu_rows(found: list[Run]) -> Iterator[Row]:
    for name in found[0].cpu_s:
        per_task = Spread.of([one.cpu_s[name] / one.tasks * 1e6 for one in found])
        note = "without what its children used" if name == "warden" else ""
        yield Row(f"CPU per task, {name}", per_task, "µs", digits=0, note=note)
    direct = Spread.of([one.floor_cpu_s * 1e6 for one in found])
    note = "with what its children used"
    yield Row("CPU per process, plain loop", direct, "µs", floor=True, digits=0, note=note)
