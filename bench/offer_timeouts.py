"""What a framework that never answers its offers takes from one that does.

The master is real, with its time-outs made shorter by `FACTOR`; agents with room for one
short task each are streams of this process.  A framework that launches on each offer at
once is measured alone, beside a silent one, and beside another one like itself.
"""

from __future__ import annotations

import asyncio
import itertools
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

import grpc.aio

from bench.offer_latency import AMOUNT, Agent
from bench.processes import processes
from bench.report import Result, Row
from bench.stats import Spread
from mesos_py import rpc
from mesos_py.scheduler.aio import SchedulerClient
from mesos_py.tasks import command_task
from mesos_py.v1.scheduler_pb2 import Event
from mesos_py.v1.types_pb2 import FrameworkInfo, Offer

FACTOR: Final = 5
FIRST_S: Final = 2.0 / FACTOR
MOST_S: Final = 30.0 / FACTOR
AGENTS: Final = 4
TASK_S: Final = 0.05


class Worker:
    """Launches one task on each offer as soon as it comes."""

    def __init__(self, client: SchedulerClient) -> None:
        self.launched = self.rescinded = 0
        self._client = client
        self._numbers = itertools.count()
        self.reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for event in self._client:
            if event.type == Event.OFFERS:
                for offer in event.offers.offers:
                    self._launch(offer)
            elif event.type == Event.RESCIND:
                self.rescinded += 1

    def _launch(self, offer: Offer) -> None:
        task_id = f"task-{next(self._numbers)}"
        task = command_task("bench", task_id, offer, "true", resources=AMOUNT)
        self._client.launch_tasks(offer, task, filters=0)
        self.launched += 1


async def ignore(client: SchedulerClient) -> None:
    """A scheduler that looks alive and does nothing."""
    async for _ in client:
        pass


async def work_off(agent: Agent) -> None:
    while True:
        order = await agent.task()
        await asyncio.sleep(TASK_S)
        await agent.end(order)


@dataclass
class Run:
    """Launches per second; and how many offers of prompt frameworks were rescinded."""

    alone: float
    beside_silent: float
    beside_prompt: float
    rescinded: int


def run(quick: bool) -> Result:
    runs, seconds = (1, 3.0) if quick else (3, 20.0)
    with processes() as running:
        times = (f"--first-offer-timeout={FIRST_S}s", f"--offer-timeout={MOST_S}s")
        _, master = running.daemon("master", *times)
        found = asyncio.run(measure(master, runs, seconds))
    return result(found, seconds)


async def measure(master: str, runs: int, seconds: float) -> list[Run]:
    async with AsyncExitStack() as stack:
        channel: grpc.aio.Channel = await stack.enter_async_context(rpc.open_channel(master))
        agents = [Agent(channel, number) for number in range(1, AGENTS + 1)]
        working = [asyncio.create_task(work_off(agent)) for agent in agents]
        for agent in agents:
            await agent.register()
        found = []
        for number in range(-1, runs):
            one = await measure_run(master, seconds if number >= 0 else 1.0)
            if number >= 0:  # the first one warms up
                found.append(one)
        for each in working:
            each.cancel()
        await asyncio.gather(*working, return_exceptions=True)
        for agent in agents:
            await agent.unregister()
    return found


async def measure_run(master: str, seconds: float) -> Run:
    rescinded = 0
    rates = []
    for company in ("", "silent", "prompt"):
        async with AsyncExitStack() as stack:
            first = Worker(await _client(stack, master, "prompt"))
            workers, readers = [first], [first.reader]
            if company == "silent":
                silent = await _client(stack, master, company)
                readers.append(asyncio.create_task(ignore(silent)))
            elif company == "prompt":
                workers.append(Worker(await _client(stack, master, company)))
                readers.append(workers[1].reader)
            await asyncio.sleep(seconds)
            rates.append(sum(worker.launched for worker in workers) / seconds)
            if company != "silent":
                rescinded += sum(worker.rescinded for worker in workers)
            for reader in readers:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)
    alone, beside_silent, beside_prompt = rates
    return Run(alone, beside_silent, beside_prompt, rescinded)


async def _client(stack: AsyncExitStack, master: str, name: str) -> SchedulerClient:
    client = SchedulerClient(FrameworkInfo(name=f"bench-{name}"), master, connect_timeout_s=10)
    return await stack.enter_async_context(client)


def result(found: list[Run], seconds: float) -> Result:
    kept = Spread.of([100 * one.beside_silent / one.alone for one in found])
    rescinded = sum(one.rescinded for one in found)
    return Result(
        name="offer_timeouts",
        title=f"offer_timeouts: beside a silent framework (time-outs shorter by {FACTOR})",
        rows=[
            Row("alone", Spread.of([one.alone for one in found]), "tasks/s", floor=True),
            Row("beside a silent one", Spread.of([one.beside_silent for one in found]), "tasks/s"),
            Row("two prompt ones", Spread.of([one.beside_prompt for one in found]), "tasks/s"),
            Row("kept beside a silent one", kept, "%"),
        ],
        aim="95 % of its rate beside a silent one; nothing rescinded with prompt ones",
        reached=f"{kept.median:.1f} % kept; {rescinded} offers of prompt ones rescinded",
        met=kept.median >= 95 and rescinded == 0,
        parameters={"runs": len(found), "seconds": seconds, "agents": AGENTS, "factor": FACTOR},
        details={"runs": [vars(one) for one in found]},
    )
