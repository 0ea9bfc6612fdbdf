"""On an idle cluster: from the moment that something is free to its offer.

The master is real; the agent is a stream of this process, so that both ends of what is
measured are seen by one clock.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import grpc.aio

from bench.processes import processes
from bench.report import Result, Row
from bench.stats import Spread, percentile
from mesos_py import rpc
from mesos_py.resources import Resources
from mesos_py.scheduler.aio import SchedulerClient
from mesos_py.states import TASK_FINISHED
from mesos_py.tasks import command_task
from mesos_py.v1 import agent_pb2, agent_pb2_grpc, operator_pb2, operator_pb2_grpc
from mesos_py.v1 import types_pb2 as pb
from mesos_py.v1.scheduler_pb2 import Event
from mesos_py.v1.types_pb2 import FrameworkInfo

AMOUNT: Final = Resources.parse("cpus:1;mem:128")
WITHIN_S: Final = 120.0
# Between two measurements nothing happens: the cluster is idle again.
PAUSE_S: Final = 0.03
CASES: Final = ("new agent", "task ended", "declined by another")


@dataclass
class Run:
    """Milliseconds, by case; and those of one call to the master and back."""

    cases: dict[str, list[float]] = field(default_factory=lambda: {case: [] for case in CASES})
    floors: list[float] = field(default_factory=list)


class Agent:
    """One agent with room for one task, which ends when it is told to."""

    def __init__(self, channel: grpc.aio.Channel, number: int) -> None:
        self._call: Any = agent_pb2_grpc.AgentServiceStub(channel).Connect()
        self._info = pb.AgentInfo(
            hostname=f"host-{number}", ip="127.0.0.1", port=number, resources=AMOUNT.to_proto()
        )
        self._number = number
        self._ordered: asyncio.Queue[agent_pb2.Event.RunTasks] = asyncio.Queue()
        self._reader = asyncio.create_task(self._read())

    async def register(self) -> None:
        register = agent_pb2.Call.Register(
            agent_info=self._info, version="bench", protocol_version=rpc.PROTOCOL_VERSION
        )
        await self._write(agent_pb2.Call(type=agent_pb2.Call.REGISTER, register=register))

    async def task(self) -> agent_pb2.Event.RunTasks:
        """Wait until it is told to run one."""
        return await self._ordered.get()

    async def end(self, run: agent_pb2.Event.RunTasks) -> None:
        status = pb.TaskStatus(
            task_id=run.tasks[0].task_id,
            state=TASK_FINISHED,
            agent_id=self._info.id,
            uuid=self._number.to_bytes(16, "big"),
        )
        update = agent_pb2.Call.Update(
            framework_id=run.framework_info.id, status=status, latest_state=TASK_FINISHED
        )
        await self._write(agent_pb2.Call(type=agent_pb2.Call.UPDATE, update=update))

    async def unregister(self) -> None:
        gone = agent_pb2.Call.Unregister(message="the bench is done with it")
        await self._write(agent_pb2.Call(type=agent_pb2.Call.UNREGISTER, unregister=gone))
        await self._reader

    async def _write(self, call: agent_pb2.Call) -> None:
        await self._call.write(agent_pb2.Calls(calls=[call]))

    async def _read(self) -> None:
        async for events in self._call:
            for event in events.events:
                if event.type == agent_pb2.Event.RUN_TASKS:
                    self._ordered.put_nowait(event.run_tasks)
                elif event.type == agent_pb2.Event.PING:
                    await self._write(agent_pb2.Call(type=agent_pb2.Call.PONG))
                elif event.type == agent_pb2.Event.REGISTERED:
                    self._info.id.CopyFrom(event.registered.agent_id)


class Schedulers:
    """Two of them; an offer goes to either."""

    def __init__(self, clients: list[SchedulerClient]) -> None:
        self._offers: asyncio.Queue[tuple[SchedulerClient, pb.Offer]] = asyncio.Queue()
        self._readers = [asyncio.create_task(self._read(client)) for client in clients]

    async def _read(self, client: SchedulerClient) -> None:
        async for event in client:
            if event.type == Event.OFFERS:
                for offer in event.offers.offers:
                    self._offers.put_nowait((client, offer))

    async def offer_after(
        self, step: Callable[[], Awaitable[None]]
    ) -> tuple[float, SchedulerClient, pb.Offer]:
        """Milliseconds from the step to an offer, and who got it."""
        await asyncio.sleep(PAUSE_S)
        began = time.perf_counter()
        await step()
        client, offer = await self._offers.get()
        return (time.perf_counter() - began) * 1e3, client, offer

    async def close(self) -> None:
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)


def run(quick: bool) -> Result:
    runs, rounds = (2, 3) if quick else (5, 100)
    with processes() as running:
        # What expires on a busy machine would be waited for in vain.
        _, master = running.daemon("master", "--offer-timeout", "0")
        found = asyncio.run(measure(master, runs, rounds))
    return result(found, rounds)


async def measure(master: str, runs: int, rounds: int) -> list[Run]:
    async with AsyncExitStack() as stack:
        channel = await stack.enter_async_context(rpc.open_channel(master))
        clients = []
        for name in "ab":
            client = SchedulerClient(
                FrameworkInfo(name=f"bench-{name}"), master, connect_timeout_s=10
            )
            clients.append(await stack.enter_async_context(client))
        await stack.enter_async_context(asyncio.timeout(WITHIN_S))
        schedulers = Schedulers(clients)
        stack.push_async_callback(schedulers.close)
        numbers = itertools.count(1)
        found = []
        for run_number in range(-1, runs):
            one = Run()
            for _ in range(3 if run_number < 0 else rounds):
                await measure_round(one, channel, schedulers, next(numbers))
            if run_number >= 0:  # the first one warms up
                found.append(one)
    return found


async def measure_round(
    one: Run, channel: grpc.aio.Channel, schedulers: Schedulers, number: int
) -> None:
    """An agent comes, runs a task for one scheduler, is refused by it, and goes."""
    operator = operator_pb2_grpc.OperatorServiceStub(channel)
    agent = Agent(channel, number)
    took, client, offer = await schedulers.offer_after(agent.register)
    one.cases["new agent"].append(took)
    task = command_task("bench", f"task-{number}", offer, "true", resources=AMOUNT)
    client.launch_tasks(offer, task)
    ordered = await agent.task()
    took, client, offer = await schedulers.offer_after(lambda: agent.end(ordered))
    one.cases["task ended"].append(took)

    async def decline() -> None:
        client.decline_offers(offer, filters=60)

    took, _, _ = await schedulers.offer_after(decline)
    one.cases["declined by another"].append(took)
    await asyncio.sleep(PAUSE_S)
    began = time.perf_counter()
    await operator.Execute(operator_pb2.Call(type=operator_pb2.Call.GET_HEALTH))
    one.floors.append((time.perf_counter() - began) * 1e3)
    await agent.unregister()


def result(found: list[Run], rounds: int) -> Result:
    rows = []
    for case in CASES:
        for percent in (50, 99):
            value = Spread.of([percentile(one.cases[case], percent) for one in found])
            rows.append(Row(f"{case}, p{percent}", value, "ms", digits=1))
    floor = Spread.of([percentile(one.floors, 50) for one in found])
    rows.append(Row("one call to the master and back, p50", floor, "ms", floor=True, digits=1))
    worst = max(percentile([x for one in found for x in one.cases[case]], 99) for case in CASES)
    return Result(
        name="offer_latency",
        title="offer_latency: from free to offered, on an idle cluster",
        rows=rows,
        aim="under 50 ms",
        reached=f"{worst:.1f} ms in the 99th percentile of the slowest case; "
        "10 ms of it are the window in which changes are gathered",
        met=worst < 50,
        parameters={"runs": len(found), "rounds_per_run": rounds},
        details={"runs": [vars(one) for one in found]},
    )
