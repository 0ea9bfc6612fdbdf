"""From the accept of an offer to RUNNING at the scheduler, one task at a time."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from bench.processes import BenchFailed, processes
from bench.report import Result, Row
from bench.stats import Spread, percentile
from mesos_py.resources import Resources
from mesos_py.scheduler.aio import SchedulerClient
from mesos_py.states import TASK_FINISHED, TASK_RUNNING, TASK_STARTING
from mesos_py.tasks import command_task
from mesos_py.v1.scheduler_pb2 import Event
from mesos_py.v1.types_pb2 import ContainerInfo, FrameworkInfo, Offer, TaskStatus

ARGV: Final = ["/bin/true"]
# A task takes all of the agent, so that no other offer comes while it runs.
AGENT: Final = "cpus:1;mem:32"
NEED: Final = Resources.parse(AGENT)
WITHIN_S: Final = 120.0


@dataclass
class Launch:
    """One task, in milliseconds since its offer was accepted: when the agent made an
    update, and when the scheduler had RUNNING."""

    starting_at_agent: float = 0.0
    running_at_agent: float = 0.0
    running: float = 0.0


@dataclass
class Run:
    launches: list[Launch] = field(default_factory=list)
    # Starting the same process directly, in milliseconds.
    floors: list[float] = field(default_factory=list)


def run(quick: bool) -> Result:
    runs, launches = (2, 10) if quick else (5, 200)
    with processes() as running:
        _, master = running.daemon("master")
        running.daemon("agent", "--master", master, "--resources", AGENT, "--tasks-on-exit=end")
        found = asyncio.run(measure(master, runs, launches))
    return result(found, launches)


async def measure(
    master: str, runs: int, launches: int, container: ContainerInfo | None = None
) -> list[Run]:
    framework = FrameworkInfo(name="bench-launch")
    found = []
    async with (
        SchedulerClient(framework, master, connect_timeout_s=10) as client,
        asyncio.timeout(WITHIN_S),
    ):
        launcher = Launcher(client, container)
        for number in range(-1, runs):
            one = Run()
            for task in range(10 if number < 0 else launches):
                one.floors.append(start_directly())
                one.launches.append(await launcher.launch(f"task-{number}-{task}"))
            if number >= 0:  # the first one warms up
                found.append(one)
    return found


def start_directly() -> float:
    """Milliseconds until the process exists."""
    began = time.perf_counter()
    pid = os.posix_spawn(ARGV[0], ARGV, os.environ)
    took = time.perf_counter() - began
    os.waitpid(pid, 0)
    return took * 1e3


class Launcher:
    """A scheduler with one task at a time."""

    def __init__(self, client: SchedulerClient, container: ContainerInfo | None = None) -> None:
        self._client = client
        self._container = container
        self._events = aiter(client)
        # An offer of what the task had may come before the update of its end.
        self._offers: dict[str, Offer] = {}

    async def launch(self, task_id: str) -> Launch:
        """Accept an offer with one task, and follow that to its end.  An offer that was taken
        back while the machine stood still is no measurement: another one is used."""
        for number in itertools.count():
            launched = await self._launch(f"{task_id}-{number}" if number else task_id)
            if launched is not None:
                return launched
        raise AssertionError

    async def _launch(self, task_id: str) -> Launch | None:
        while not self._offers:
            await self._event()
        _, offer = self._offers.popitem()
        task = command_task("bench", task_id, offer, ARGV, resources=NEED)
        if self._container is not None:
            task.container.CopyFrom(self._container)
        one = Launch()
        # The agent stamps its updates with the wall clock, which is ours too.
        began, began_wall = time.perf_counter(), time.time()
        self._client.launch_tasks(offer, task)
        while True:
            status = await self._event()
            if status is None or status.task_id.value != task_id:
                continue
            took, at_agent = time.perf_counter() - began, status.timestamp - began_wall
            if status.state == TASK_STARTING:
                one.starting_at_agent = at_agent * 1e3
            elif status.state == TASK_RUNNING:
                one.running, one.running_at_agent = took * 1e3, at_agent * 1e3
            elif status.state == TASK_FINISHED and one.running:
                return one
            elif status.reason == TaskStatus.REASON_INVALID_OFFERS:
                return None
            else:
                raise BenchFailed(f"the task ended with {status}")

    async def _event(self) -> TaskStatus | None:
        """Wait for one; the status if it is an update."""
        event = await anext(self._events)
        if event.type == Event.OFFERS:
            self._offers.update((offer.id.value, offer) for offer in event.offers.offers)
        elif event.type == Event.RESCIND:
            self._offers.pop(event.rescind.offer_id.value, None)
        return event.update.status if event.type == Event.UPDATE else None


def result(found: list[Run], launches: int) -> Result:
    totals = [one.running for run in found for one in run.launches]
    floors = [floor for run in found for floor in run.floors]
    rows = []
    for percent in (50, 95, 99):
        value = Spread.of([percentile([x.running for x in run.launches], percent) for run in found])
        rows.append(Row(f"accept to RUNNING, p{percent}", value, "ms", digits=2))
        floor = Spread.of([percentile(run.floors, percent) for run in found])
        rows.append(Row(f"posix_spawn of the same, p{percent}", floor, "ms", True, digits=2))
    rows += hops(found)
    over = percentile(totals, 50) - percentile(floors, 50)
    slow = percentile(totals, 99) - percentile(floors, 50)
    return Result(
        name="launch",
        title="launch: from accept to RUNNING at the scheduler, one task at a time",
        rows=rows,
        aim="within 10 ms of the floor",
        reached=f"{over:.2f} ms over the floor in the median, {slow:.2f} ms in the 99th percentile",
        met=over <= 10,
        parameters={"runs": len(found), "launches_per_run": launches, "command": ARGV},
        details={
            "running_ms": [[one.running for one in run.launches] for run in found],
            "floor_ms": [run.floors for run in found],
        },
    )


def hops(found: list[Run]) -> list[Row]:
    """Where the time goes, in medians."""
    parts: dict[str, Callable[[Launch], float]] = {
        "  accept, master, agent: STARTING made": lambda x: x.starting_at_agent,
        "  agent, warden: process exists": lambda x: x.running_at_agent - x.starting_at_agent,
        "  RUNNING made to RUNNING at the scheduler": lambda x: x.running - x.running_at_agent,
    }
    return [
        Row(
            name,
            Spread.of([percentile([part(x) for x in run.launches], 50) for run in found]),
            "ms",
            note="median",
            digits=2,
        )
        for name, part in parts.items()
    ]
