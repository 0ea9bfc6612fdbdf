"""Asks isolators and processes what the containers use, once for all who want to know."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeAlias

from agent.core import listing
from agent.core.listing import Container
from agent.core.state import AgentState
from agent.usage import processes
from agent.usage.statistics import note_asked, statistics
from mesos_py import logs
from mesos_py.clock import Clock

log = logs.get("agent.usage")

# An isolator that takes longer is not waited for: its numbers are missing this time.
ISOLATORS_S: Final = 1.0


# What counts for them knows of a container; {} if nothing does.  Names and units: Usage in
# agent.isolation.base.
UsageOf: TypeAlias = Callable[[str], Coroutine[Any, Any, Mapping[str, float]]]


class UsageCollector:
    """Measures when it is asked.  Used from the event loop."""

    def __init__(self, state: AgentState, usage_of: UsageOf, clock: Clock) -> None:
        self._state = state
        self._usage_of = usage_of
        self._clock = clock
        self._running: asyncio.Task[list[Container]] | None = None
        # Answers that are still waited for: a slow isolator is not asked again meanwhile.
        self._asked: dict[str, asyncio.Task[Mapping[str, float]]] = {}
        self._sample: Callable[[Mapping[str, int]], Mapping[str, Mapping[str, float]]] = (
            processes.sample
        )

    async def collect(self) -> list[Container]:
        """All containers with what they use; whoever asks meanwhile gets the same ones."""
        if self._running is None:
            self._running = asyncio.create_task(self._collect())
            self._running.add_done_callback(self._done)
        return await asyncio.shield(self._running)

    async def close(self) -> None:
        pending: list[asyncio.Task[Any]] = list(self._asked.values())
        if self._running is not None:
            pending.append(self._running)
        for each in pending:
            each.cancel()
        if pending:
            await asyncio.wait(pending)

    def _done(self, _: asyncio.Task[list[Container]]) -> None:
        self._running = None

    async def _collect(self) -> list[Container]:
        found = listing.containers(self._state)
        ids = [each.container_id.value for each in found]
        numbers = await self._counted(ids)
        lacking = {
            each.container_id.value: each.container_status.executor_pid
            for each in found
            if each.container_status.executor_pid
            and not numbers.get(each.container_id.value, {}).keys() >= processes.BASICS
        }
        sampled = await asyncio.to_thread(self._sample, lacking) if lacking else {}
        now = self._clock.now()
        for each in found:
            container_id = each.container_id.value
            own = numbers.get(container_id, {})
            if own or container_id in sampled:
                merged = {**sampled.get(container_id, {}), **own}
                used = statistics(merged, now.wall_s)
                note_asked(used, each.resources)
                each.resource_statistics.CopyFrom(used)
        return found

    async def _counted(self, ids: list[str]) -> dict[str, Mapping[str, float]]:
        for container_id in ids:
            if container_id not in self._asked:
                asked = asyncio.create_task(self._usage_of(container_id))
                self._asked[container_id] = asked
        if not self._asked:
            return {}
        await asyncio.wait(self._asked.values(), timeout=ISOLATORS_S)
        numbers: dict[str, Mapping[str, float]] = {}
        for container_id, asked in list(self._asked.items()):
            if not asked.done():
                log.warning("isolators are slow to say what is used", container=container_id)
                continue
            del self._asked[container_id]
            if asked.cancelled():
                continue
            error = asked.exception()
            if error is not None:
                log.warning("usage is not known", container=container_id, error=error)
            else:
                numbers[container_id] = asked.result()
        return numbers
