"""What is asked of a container while it runs: to end, and to keep to other limits."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, Final

from agent.containers.docker.asking import AGAIN_MAX_S
from agent.containers.docker.engine import Declined, Engine, EngineError, Silent
from agent.containers.docker.limits import limits_of
from agent.containers.docker.records import Container, Phase
from agent.containers.docker.settings import DockerSettings
from agent.core.effects import Signal
from mesos_py import logs

log = logs.get("agent.docker")

# A kill that shows no effect is repeated after this, then twice as long, and so on.
KILL_AGAIN_S: Final = 1.0


class Changing:
    """`spawn` starts a coroutine that the launcher ends with itself."""

    def __init__(
        self,
        engine: Engine,
        settings: DockerSettings,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._engine = engine
        self.settings = settings
        self._spawn = spawn

    async def insist(self, container: Container) -> None:
        """Have it end: TERM is sent once, KILL until it is gone."""
        pause_s = KILL_AGAIN_S
        while not container.gone:
            number = container.signal or Signal.KILL
            container.asked.clear()
            try:
                await self._engine.kill(container.docker_id, int(number))
                container.stuck = False
            except Declined as declined:
                # Most likely it has ended; whatever it is: look.
                container.stuck = not (declined.unknown or declined.conflict)
                log.info("kill declined", container=container.container_id, error=declined)
            except Silent as silent:
                container.stuck = True
                log.warning("kill not answered", container=container.container_id, error=silent)
            container.look.set()
            patient = number is Signal.TERM and not container.stuck
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if patient else pause_s):
                    await container.asked.wait()
            pause_s = min(pause_s * 2, AGAIN_MAX_S)

    def apply(self, container: Container) -> None:
        """Bring the limits to what the resources are now."""
        wanted = limits_of(container.resources, self.settings)
        running = container.phase is Phase.RUNNING
        if running and not container.applying and wanted != container.applied:
            container.applying = True
            self._spawn(self._set_limits(container))

    async def _set_limits(self, container: Container) -> None:
        try:
            while (wanted := limits_of(container.resources, self.settings)) != container.applied:
                container.applied = wanted
                await self._engine.update(container.docker_id, wanted.arguments())
        except EngineError as error:
            # As with isolators: the next update is tried as if there had been none.
            container.applied = None
            log.warning("update of limits failed", container=container.container_id, error=error)
        finally:
            container.applying = False
