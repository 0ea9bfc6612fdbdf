"""Command probes of tasks that the agent's own executor has started.

That tells its processes apart, and the warden knows the executor only: so it is told here
whose process to start, in which of its directories, and with what environment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, Protocol

from agent.checks.command import CommandProbes
from agent.checks.prober import ProbeEvents, ended
from agent.containers.isolating import Isolating
from agent.containers.spawn import StartRequest
from agent.containers.users import User, Users
from agent.core import environment, probing
from agent.core.health import Outcome
from agent.core.records import Executor, Task
from agent.core.state import AgentState
from agent.default_executor import description
from mesos_py import logs
from mesos_py.errors import MesosPyError, Unavailable
from mesos_py.v1 import types_pb2 as pb

log = logs.get("agent.checks")

# A directory of users that does not answer holds a thread for each who is looked up in it: of
# the threads for all that may block, which are five on the smallest machine.
MAX_LOOKUPS: Final = 3


class Host(Protocol):
    """The launcher, as far as it is needed here."""

    users: Users
    isolating: Isolating
    probes: CommandProbes

    def flush(self) -> None: ...


class GroupProbes:
    """Implements agent.checks.prober.Containers for those of the launcher: for tasks of
    groups by itself, for others as CommandProbes does."""

    def __init__(self, state: AgentState, host: Host, events: ProbeEvents) -> None:
        self._s = state
        self._host = host
        self._events = events
        # Those that the warden does not know yet.
        self._starting: dict[tuple[str, str], asyncio.Task[None]] = {}
        # Users who are being looked up, each once for all who wait for it.
        self._lookups: dict[str, asyncio.Task[User]] = {}
        self._room = asyncio.Semaphore(MAX_LOOKUPS)

    def probe(
        self, container_id: str, kind: str, number: int, command: pb.CommandInfo, timeout_s: float
    ) -> None:
        executor = self._s.containers.get(container_id)
        if executor is None or not executor.default:
            self._host.probes.probe(container_id, kind, number, command, timeout_s)
            return
        key = (container_id, kind)
        start = self._start(container_id, kind, number, command, timeout_s)
        task = self._starting[key] = asyncio.create_task(start)
        task.add_done_callback(lambda done: self._forget(key, done))

    def stop_probe(self, container_id: str, kind: str) -> None:
        starting = self._starting.pop((container_id, kind), None)
        if starting is not None:
            starting.cancel()
        self._host.probes.stop_probe(container_id, kind)

    async def close(self) -> None:
        """Start nothing any more."""
        await ended([*self._starting.values(), *self._lookups.values()])

    def _forget(self, key: tuple[str, str], done: asyncio.Task[None]) -> None:
        if self._starting.get(key) is done:
            del self._starting[key]

    async def _start(
        self, container_id: str, kind: str, number: int, command: pb.CommandInfo, timeout_s: float
    ) -> None:
        try:
            like = await self._like_its_task(container_id, kind, timeout_s)
        except Exception as error:
            if not isinstance(error, MesosPyError | OSError):
                log.exception("probe failed", container=container_id, kind=kind)
            # Nothing of the task was looked at.
            text = error.message if isinstance(error, MesosPyError) else str(error)
            self._events.probe_ended(container_id, kind, number, Outcome(None, None, text))
            self._events.containers_told()
            return
        self._host.probes.probe(container_id, kind, number, command, timeout_s, like)
        self._host.flush()

    async def _like_its_task(self, container_id: str, kind: str, timeout_s: float) -> StartRequest:
        """How the task was started whose check this is, as far as a probe is like it."""
        executor = self._s.containers[container_id]
        found = probing.task_of(executor, kind)
        if found is None:
            raise Unavailable("its task has ended")
        task, _ = found
        known = self._s.frameworks.get(executor.key[0]) is executor.framework
        if not (task.info.command.user or known):
            # Its record was damaged: nothing is run as the agent's own user for want of another.
            raise Unavailable("its user is not known")
        name = description.user_of(task.info, executor.framework.info)
        user = await self._user(name, timeout_s)
        extra = await self._host.isolating.join(container_id, executor.pid or 0)
        return StartRequest(
            id=container_id,
            exe="",
            argv=[],
            env=self._environment(executor, task, extra.environment),
            sandbox=[*executor.sandbox, *description.sandbox_of(task.info)],
            owner=(user.uid, user.gid),
            user=user.switch,
            enter=list(extra.enter),
            namespaces=list(extra.namespaces),
            rlimits=list(extra.rlimits),
        )

    async def _user(self, name: str, timeout_s: float) -> User:
        """Raises Unavailable while there is no answer: before the probe's time is up (the
        core's), which would be held against the task.  Half of it is left to the probe."""
        looking = self._lookups.get(name)
        if looking is None:
            looking = self._lookups[name] = asyncio.create_task(self._look_up(name))
            looking.add_done_callback(lambda done: self._looked_up(name, done))
        # It goes on when its time is up, and when who waits is stopped: no thread can be ended.
        await asyncio.wait([looking], timeout=timeout_s / 2 or None)
        if not looking.done():
            raise Unavailable(f"its user {name!r} is being looked up for long already")
        return looking.result()

    async def _look_up(self, name: str) -> User:
        async with self._room:
            return await asyncio.to_thread(self._host.users.find, name)

    def _looked_up(self, name: str, done: asyncio.Task[User]) -> None:
        del self._lookups[name]
        if not done.cancelled():
            done.exception()  # told to whoever still waits

    def _environment(
        self, executor: Executor, task: Task, of_isolators: Mapping[str, str]
    ) -> dict[str, str]:
        info = executor.info
        assert info is not None
        given = environment.for_executor(self._s, executor, info, task.info)
        return description.environment_of(
            task.info, {**given, **of_isolators}, info, self._s.info.ip
        )


__all__ = ["MAX_LOOKUPS", "GroupProbes"]
