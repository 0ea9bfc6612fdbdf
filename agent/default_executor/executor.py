"""The process: connected to the agent by our SDK, as any custom executor could be."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from agent.core.records import Exit, Reason, State
from agent.default_executor import description
from agent.default_executor.fetching import Fetching
from agent.default_executor.groups import GRACE_S, Cancel, Groups
from agent.default_executor.processes import TaskProcesses
from agent.default_executor.program import limits_of
from agent.fetcher.fetcher import Limits
from agent.volumes.links import VolumeLinks
from mesos_py import logs
from mesos_py.errors import MesosPyError
from mesos_py.executor import ExecutorClient, ExecutorEnvironment
from mesos_py.tasks import task_status
from mesos_py.v1 import types_pb2 as pb
from mesos_py.v1.executor_pb2 import Event

log = logs.get("agent.default_executor")

# Of the time that the agent gives us to end, so much is the tasks'.
_SHARE_OF_GRACE: Final = 0.6


class DefaultExecutor:
    """Runs until the agent wants no more of it, or is gone for good."""

    def __init__(self, given: Mapping[str, str], limits: Limits, work_dir: str) -> None:
        """`given`: the environment that the agent has made.  `work_dir`: the agent's.

        Raises InvalidValue.
        """
        self._given = given
        self._environment = ExecutorEnvironment.read(given)
        self._limits = limits
        self._volumes = VolumeLinks(work_dir)
        self._client = ExecutorClient(self._environment)
        self._groups = Groups(self)
        self._processes: TaskProcesses | None = None
        self._subscribed = Event.Subscribed()
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Raises MesosPyError when the agent refuses this executor or was never there; all
        tasks have ended then, too."""
        self._processes = TaskProcesses(
            self._environment.sandbox,
            self._volumes,
            Fetching(self._environment.sandbox, self._limits),
            self._groups.started,
            self._groups.failed,
            self._ended,
        )
        async with self._client:
            reading = asyncio.create_task(self._read())
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, reading.cancel)
            try:
                await asyncio.wait({reading})
            finally:
                await self._end_all()
            if not reading.cancelled():
                reading.result()

    async def _read(self) -> None:
        """Until it is to end."""
        async for event in self._client:
            if event.type == Event.SUBSCRIBED:
                self._subscribed = event.subscribed
                types = {each.type for each in event.subscribed.framework_info.capabilities}
                killing = pb.FrameworkInfo.Capability.TASK_KILLING_STATE
                self._groups.reports_killing = killing in types
            elif event.type == Event.LAUNCH_GROUP:
                self._groups.launch(event.launch_group.task_group.tasks)
            elif event.type == Event.KILL:
                grace_s = self._client.kill_grace_s(event.kill)
                self._groups.kill(event.kill.task_id.value, grace_s)
            elif event.type == Event.LAUNCH:
                # Mesos: what is no group is none of its business.
                log.error("a task without a group", task=event.launch.task.task_id.value)
                return

    async def _end_all(self) -> None:
        self._groups.shut_down(min(GRACE_S, _SHARE_OF_GRACE * self._environment.shutdown_grace_s))
        while len(self._groups):
            self._changed.clear()
            await self._changed.wait()

    # ---- Host -----------------------------------------------------------------------

    def start(self, task: pb.TaskInfo) -> None:
        assert self._processes is not None
        told = self._subscribed
        user = description.user_of(task, told.framework_info)

        def environment() -> dict[str, str]:
            info = told.executor_info
            return description.environment_of(task, self._given, info, told.agent_info.ip)

        self._processes.start(task, environment, user)

    def signal(self, task_id: str, number: int) -> None:
        assert self._processes is not None
        self._processes.signal(task_id, number)

    def report(
        self,
        task: pb.TaskInfo,
        state: State,
        message: str = "",
        *,
        reason: Reason | None = None,
        exit: Exit | None = None,
    ) -> None:
        self._changed.set()
        status = task_status(task, state, message=message, reason=reason)
        if exit is not None:
            exit.fill(status)
        try:
            self._client.send_status(status)
        except MesosPyError as error:
            log.error("an update is lost", task=task.task_id.value, error=error)

    def after(self, seconds: float, do: Callable[[], None]) -> Cancel:
        return asyncio.get_running_loop().call_later(seconds, do)

    def _ended(self, task_id: str, exit: Exit) -> None:
        self._groups.ended(task_id, exit)


def _given() -> dict[str, str]:
    """As this process was started with: libraries have added to `os.environ` since."""
    pairs = Path("/proc/self/environ").read_bytes().split(b"\0")
    texts = (os.fsdecode(pair).partition("=") for pair in pairs if pair)
    return {name: value for name, _, value in texts}


def main() -> None:
    """The process.  Arguments: limits of fetching and the agent's work directory, as
    `program.command_line` has them."""
    logs.setup("warning")
    try:
        asyncio.run(DefaultExecutor(_given(), limits_of(sys.argv[1]), sys.argv[2]).run())
    except MesosPyError as error:
        sys.exit(f"default executor: {error.message}")
