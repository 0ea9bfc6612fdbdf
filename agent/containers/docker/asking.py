"""Asking dockerd until there is an answer, however long it takes."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, TypeVar

from agent.containers.docker.engine import Declined, Engine, EngineError, Silent
from mesos_py import logs

T = TypeVar("T")
log = logs.get("agent.docker")

# Pauses between attempts: they double.
AGAIN_S: Final = 0.1
AGAIN_MAX_S: Final = 10.0


async def pauses(most_s: float = AGAIN_MAX_S) -> AsyncIterator[None]:
    """Forever: yields, and waits, longer and longer."""
    pause_s = AGAIN_S
    while True:
        yield
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, most_s)


async def answered(ask: Callable[[], Awaitable[T]]) -> T:
    """What dockerd answers in the end."""
    async for _ in pauses():
        try:
            return await ask()
        except EngineError as error:
            log.warning("dockerd does not answer", error=error)
    raise AssertionError


class Removing:
    """Removes containers for good; `orphans` are those that have outlived an attempt."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.orphans: set[str] = set()

    async def remove_unknown(self, agent_id: str, container_id: str) -> None:
        """One of ours that may have been made, or not: by its label.  A name may be of
        somebody else's."""
        find = functools.partial(
            self._engine.labelled, agent_id=agent_id, container_id=container_id
        )
        for docker_id, _ in await answered(find):
            await self.remove(docker_id)

    async def remove(self, docker_id: str) -> None:
        """Returns when it is known to be gone."""
        try:
            async for _ in pauses():
                try:
                    await self._engine.remove(docker_id)
                    break
                except Declined as declined:
                    if declined.unknown:
                        break
                    log.warning("removal declined", docker_id=docker_id, error=declined)
                except Silent as silent:
                    log.warning("removal not answered", docker_id=docker_id, error=silent)
                self.orphans.add(docker_id)
        except asyncio.CancelledError:
            self.orphans.add(docker_id)
            raise
        self.orphans.discard(docker_id)
