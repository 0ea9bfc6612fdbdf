"""A small framework: tasks on one agent, in its offers' order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from bench.processes import BenchFailed
from mesos_py.resources import Resources
from mesos_py.scheduler.aio import SchedulerClient
from mesos_py.states import TASK_RUNNING, is_terminal
from mesos_py.tasks import command_task
from mesos_py.v1.scheduler_pb2 import Event
from mesos_py.v1.types_pb2 import FrameworkInfo, Offer, TaskState, TaskStatus

WITHIN_S = 60.0


class Tasks:
    """For use in `async with`: started one after the other, and ended with it."""

    def __init__(self, master: str) -> None:
        self._client = SchedulerClient(
            FrameworkInfo(name="bench-isolation"), master, connect_timeout_s=10
        )
        self._offers: dict[str, Offer] = {}

    async def __aenter__(self) -> Tasks:
        await self._client.__aenter__()
        self._events = aiter(self._client)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._client.__aexit__(*error)  # type: ignore[arg-type]

    async def start(
        self, resources: str, *commands: tuple[str, str | list[str]], **labels: str
    ) -> None:
        """Start these on the next offer, and wait until all of them run."""
        for tries_left in range(3, -1, -1):
            try:
                await self._start(resources, commands, labels)
            except BenchFailed as error:
                # Offers are taken back at times, as the master sees fit.
                if "is gone" not in str(error) or not tries_left:
                    raise
            else:
                return

    async def _start(
        self,
        resources: str,
        commands: tuple[tuple[str, str | list[str]], ...],
        labels: dict[str, str],
    ) -> None:
        async with asyncio.timeout(WITHIN_S):
            need = Resources.parse(resources)
            while (offer := self._fitting(need)) is None:
                await self._event()
            tasks = [command_task(n, n, offer, c, resources=need) for n, c in commands]
            for task in tasks:
                for name, value in labels.items():
                    task.labels.labels.add(key=f"mesos_py.{name}", value=value)
            self._client.launch_tasks(offer, tasks, filters=0)
            await self._until(TASK_RUNNING.__eq__, {name for name, _ in commands})

    async def kill(self, *names: str) -> None:
        """End these, and wait until they are gone."""
        for name in names:
            self._client.kill_task(name)
        async with asyncio.timeout(WITHIN_S):
            await self._until(is_terminal, set(names))

    async def _until(self, wanted: Callable[[TaskState.ValueType], bool], names: set[str]) -> None:
        while names:
            status = await self._event()
            if status is None:
                continue
            name = status.task_id.value
            if name in names and wanted(status.state):
                names.discard(name)
            elif name in names and is_terminal(status.state):
                raise BenchFailed(f"{name} ended: {status.message}")

    def _fitting(self, need: Resources) -> Offer | None:
        for offer in self._offers.values():
            if Resources.from_proto("offer", offer.resources).contains(need):
                return self._offers.pop(offer.id.value)
        return None

    async def _event(self) -> TaskStatus | None:
        """Wait for one; the status if it is an update."""
        event = await anext(self._events)
        if event.type == Event.OFFERS:
            self._offers.update((offer.id.value, offer) for offer in event.offers.offers)
        elif event.type == Event.RESCIND:
            self._offers.pop(event.rescind.offer_id.value, None)
        return event.update.status if event.type == Event.UPDATE else None
