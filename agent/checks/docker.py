"""Command probes in docker containers: `docker exec`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from agent.checks.prober import ProbeEvents, ended
from agent.checks.words import ending
from agent.core.health import Outcome
from agent.core.launch import argv_of
from agent.core.records import Exit
from mesos_py.v1 import types_pb2 as pb

if TYPE_CHECKING:
    from agent.containers.docker.execs import Ran

# Container, argv, environment; see DockerLauncher.run_in.
RunIn: TypeAlias = Callable[[str, list[str], Mapping[str, str]], Coroutine[Any, Any, "Ran | None"]]


class DockerProbes:
    """Implements agent.checks.prober.Containers.  A command that is stopped is killed."""

    def __init__(self, run_in: RunIn, events: ProbeEvents) -> None:
        self._run_in = run_in
        self._events = events
        self._running: dict[tuple[str, str], asyncio.Task[None]] = {}

    def probe(
        self, container_id: str, kind: str, number: int, command: pb.CommandInfo, timeout_s: float
    ) -> None:
        key = (container_id, kind)
        before = self._running.get(key)
        run = self._run(before, container_id, kind, number, command)
        task = self._running[key] = asyncio.create_task(run)
        task.add_done_callback(lambda done: self._forget(key, done))

    def stop_probe(self, container_id: str, kind: str) -> None:
        task = self._running.get((container_id, kind))
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """End what is under way; nothing is told any more."""
        await ended(self._running.values())

    def _forget(self, key: tuple[str, str], done: asyncio.Task[None]) -> None:
        if self._running.get(key) is done:
            del self._running[key]

    async def _run(
        self,
        before: asyncio.Task[None] | None,
        container_id: str,
        kind: str,
        number: int,
        command: pb.CommandInfo,
    ) -> None:
        if before is not None:
            # It was stopped; two of one check never run side by side.
            await asyncio.wait([before])
        executable, argv = argv_of(command)
        environment = {each.name: each.value for each in command.environment.variables}
        ran = await self._run_in(container_id, [executable, *argv[1:]], environment)
        self._events.probe_ended(container_id, kind, number, _outcome(ran))
        self._events.containers_told()


def _outcome(ran: Ran | None) -> Outcome:
    if ran is None:
        return Outcome(None, None, "the container does not run")
    if ran.code is None:
        return Outcome(None, None, f"dockerd does not say how it ended: {ran.output}")
    return Outcome(ran.code == 0, ran.code, ending(Exit(ran.code << 8), ran.output))
