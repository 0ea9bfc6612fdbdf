"""Carries out the probes that the core asks for, each where it belongs."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Collection
from typing import Any, Final, Protocol

from agent.checks import tcp
from agent.checks.dial import CannotLook, network_of
from agent.core.effects import StartProbe, StopProbe
from agent.core.health import Outcome
from mesos_py import logs
from mesos_py.health import CommandProbe, TcpProbe
from mesos_py.v1 import types_pb2 as pb

log = logs.get("agent.checks")

# The core keeps the time; this is for the day that it does not.
_SLACK_S: Final = 5.0


class ProbeEvents(Protocol):
    """Who hears what probes found.  Called on the event loop."""

    def probe_ended(self, container_id: str, kind: str, number: int, outcome: Outcome) -> None: ...

    def containers_told(self) -> None:
        """That was all for now: act on it."""
        ...


class Containers(Protocol):
    """What a containerizer does for probes."""

    def probe(
        self, container_id: str, kind: str, number: int, command: pb.CommandInfo, timeout_s: float
    ) -> None:
        """Run a command in the container beside its processes, as the same user, in the
        same sandbox, environment and namespaces.  Answered by `probe_ended`, never from
        within this call, unless `stop_probe` comes first."""
        ...

    def stop_probe(self, container_id: str, kind: str) -> None:
        """End it, if it runs; it is not answered any more."""
        ...


class Prober:
    """All probes of one agent.  Used from its event loop."""

    def __init__(
        self,
        containers: Callable[[str], Containers],
        pid_of: Callable[[str], int],
        events: ProbeEvents,
    ) -> None:
        """By container: who runs it, and its first process (0: there is none)."""
        self._containers = containers
        self._pid_of = pid_of
        self._events = events
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    def start(self, probe: StartProbe) -> None:
        if isinstance(probe.probe, CommandProbe):
            command = probe.probe.command
            self._containers(probe.container_id).probe(
                probe.container_id, probe.kind, probe.number, command, probe.timeout_s
            )
            return
        key = (probe.container_id, probe.kind)
        task = self._tasks[key] = asyncio.create_task(self._run(probe))
        task.add_done_callback(lambda done: self._forget(key, done))

    def stop(self, probe: StopProbe) -> None:
        task = self._tasks.pop((probe.container_id, probe.kind), None)
        if task is not None:
            task.cancel()
        else:
            self._containers(probe.container_id).stop_probe(probe.container_id, probe.kind)

    async def close(self) -> None:
        """End what is under way; nothing is told any more."""
        await ended(self._tasks.values())

    def _forget(self, key: tuple[str, str], done: asyncio.Task[None]) -> None:
        if self._tasks.get(key) is done:
            del self._tasks[key]

    async def _run(self, probe: StartProbe) -> None:
        limit_s = probe.timeout_s + _SLACK_S if probe.timeout_s else None
        try:
            async with asyncio.timeout(limit_s):
                outcome = await self._tried(probe)
        except TimeoutError:
            outcome = Outcome(False, None, f"no answer within {probe.timeout_s:g} s")
        except CannotLook as error:
            outcome = Outcome(None, None, str(error))
        except Exception as error:
            # Our own fault: not for the task to die of.
            log.exception("probe failed", container=probe.container_id, kind=probe.kind)
            outcome = Outcome(None, None, f"{type(error).__name__}: {error}")
        self._events.probe_ended(probe.container_id, probe.kind, probe.number, outcome)
        self._events.containers_told()

    async def _tried(self, probe: StartProbe) -> Outcome:
        namespaces = network_of(self._pid_of(probe.container_id))
        if isinstance(probe.probe, TcpProbe):
            return await tcp.tried(probe.probe, namespaces)
        # It takes long to load, and few tasks need it.
        http = await asyncio.to_thread(importlib.import_module, "agent.checks.http")
        outcome: Outcome = await http.tried(probe.probe, namespaces)
        return outcome


async def ended(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait until they are done."""
    waiting = list(tasks)
    for task in waiting:
        task.cancel()
    if waiting:
        await asyncio.wait(waiting)
