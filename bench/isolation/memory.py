"""What the agent and its warden hold for each task that runs."""

from __future__ import annotations

import asyncio

import psutil

from bench.isolation.tasks import Tasks
from bench.processes import processes
from bench.report import Row
from bench.stats import Spread


def measure(root: str, tasks: int) -> dict[str, float]:
    """Bytes per task (proportional set size), by isolation."""
    found = {}
    for isolation in ("posix", "cgroups"):
        with processes() as running:
            _, master = running.daemon("master")
            flags = ["--master", master, "--resources", f"cpus:{tasks};mem:{tasks * 32}"]
            flags += ["--isolation", isolation, "--tasks-on-exit=end", "--cgroups-root", root]
            agent, _ = running.daemon("agent", *flags)
            found[isolation] = asyncio.run(_per_task(agent.pid, master, tasks))
    return found


async def _per_task(agent: int, master: str, tasks: int) -> float:
    async with Tasks(master) as started:
        await started.start("cpus:0.1;mem:1", ("first", ["sleep", "1000"]))
        # Its children as they are now: later ones are tasks' first moments.
        watched = [psutil.Process(agent), *psutil.Process(agent).children()]
        before = sum(each.memory_full_info().pss for each in watched)
        names = [f"t{number}" for number in range(tasks)]
        await started.start("cpus:0.1;mem:1", *((name, ["sleep", "1000"]) for name in names))
        after = sum(each.memory_full_info().pss for each in watched)
        await started.kill("first", *names)
    return (after - before) / tasks


def rows(found: dict[str, float]) -> list[Row]:
    return [
        Row(f"memory per task, {isolation}", Spread.of([value / 1024]), "KB")
        for isolation, value in found.items()
    ]
