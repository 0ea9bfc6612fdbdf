"""Asking dockerd until there is an answer, however long it takes."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Final, Self, TypeVar

from agent.containers.docker.engine import Declined, Engine, EngineError, Silent
from mesos_py import logs

T = TypeVar("T")
log = logs.get("agent.docker")

# Pauses between attempts: they double.
AGAIN_S: Final = 0.1
AGAIN_MAX_S: Final = 10.0
# So many times a removal may be under way already before that is worth a word.
PATIENCE: Final = 5


class Pauses:
    """Attempts without end: at once, and then after longer and longer pauses."""

    def __init__(
        self, most_s: float = AGAIN_MAX_S, failed: Callable[[], None] = lambda: None
    ) -> None:
        """`failed` is called when an attempt had no success, before each pause."""
        self._pause_s = 0.0
        self._most_s = most_s
        self._failed = failed

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> None:
        if self._pause_s:
            self._failed()
            await asyncio.sleep(self._pause_s)
        self._pause_s = min(self._pause_s * 2 or AGAIN_S, self._most_s)


async def answered(ask: Callable[[], Awaitable[T]]) -> T:
    """What dockerd answers in the end."""
    async for _ in Pauses():
        try:
            return await ask()
        except EngineError as error:
            log.warning("dockerd does not answer", error=error)
    raise AssertionError


class Removing:
    """Removes containers for good.

    `asked` are those that are not known to be gone yet, from the call of `remove` on, not
    from the first step of what it returns: a task may be cancelled before it has made one.
    `orphans` are those of them that have outlived an attempt.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.asked: set[str] = set()
        self.orphans: set[str] = set()

    async def remove_unknown(self, agent_id: str, container_id: str) -> None:
        """One of ours that may have been made, or not: by its label.  A name may be of
        somebody else's."""
        find = functools.partial(
            self._engine.labelled, agent_id=agent_id, container_id=container_id
        )
        for docker_id, _ in await answered(find):
            await self.remove(docker_id)

    def remove(self, docker_id: str) -> Coroutine[None, None, None]:
        """To be awaited; that returns when the container is known to be gone."""
        self.asked.add(docker_id)
        return self._remove(docker_id)

    async def _remove(self, docker_id: str) -> None:
        patience = PATIENCE
        async for _ in Pauses():
            try:
                await self._engine.remove(docker_id)
                break
            except Declined as declined:
                if declined.unknown:
                    break
                patience -= declined.conflict
                if declined.conflict and patience >= 0:
                    continue  # it is being removed already
                log.warning("removal declined", docker_id=docker_id, error=declined)
            except Silent as silent:
                log.warning("removal not answered", docker_id=docker_id, error=silent)
            self.orphans.add(docker_id)
        self.orphans.discard(docker_id)
        self.asked.discard(docker_id)
