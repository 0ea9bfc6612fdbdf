"""From a container's description to its processes, and back to how they ended.

    launch -> (thread: user, sandbox, isolators' prepare) -> warden -> started
           -> (thread: isolate, watch) -> ... -> ended -> (thread: cleanup)

Without isolators, and for a user that is known, the request goes to the warden at
once.  When a warden is lost its tasks go on: they become this process's own children,
which is their subreaper too, and are watched from here; a new warden starts new ones.
"""

from __future__ import annotations

import asyncio
import enum
import os
import signal
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from agent.containers import sandbox
from agent.containers.isolating import Isolating
from agent.containers.processes import (
    UNSURE_RETRY_S,
    Processes,
    become_subreaper,
    children,
    marked_container,
)
from agent.containers.spawn import StartRequest
from agent.containers.users import User, Users
from agent.containers.warden import OnAgentLoss
from agent.containers.warden_client import WardenClient
from agent.core.effects import ContainerSpec, Signal
from agent.core.records import Exit
from agent.isolation.base import NOTHING, Container, Limitation, Preparation
from mesos_py import logs
from mesos_py.errors import MesosPyError
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb

log = logs.get("agent.containers")

STOPPED = "stopped before it was started"
LOST_AT_START = (
    "the process that starts tasks ended just then: it is not known whether this one ran"
)
# Wardens that end again and again are started more slowly.
RESTART_PAUSE_S = 1.0
QUICK_RESTARTS = 3
RESTARTS_WINDOW_S = 60.0


class ContainerEvents(Protocol):
    """Who is told of containers.  Called on the event loop."""

    def container_started(self, container_id: str, pid: int) -> None: ...

    def container_failed(self, container_id: str, message: str) -> None: ...

    def container_ended(self, container_id: str, exit: Exit) -> None: ...

    def container_limited(self, container_id: str, limitation: Limitation) -> None: ...

    def containers_told(self) -> None:
        """That was all for now: act on it."""
        ...


class _Phase(enum.Enum):
    PREPARING = enum.auto()
    STARTING = enum.auto()
    RUNNING = enum.auto()


@dataclass(slots=True, eq=False)
class _Container:
    spec: ContainerSpec
    phase: _Phase = _Phase.PREPARING
    pid: int = 0
    # What the warden was asked, until it has answered.
    request: StartRequest | None = None
    # The last signal that was asked for.
    signal: Signal | None = None


class Launcher:
    """All containers of one agent.  Used from one event loop, the main thread's."""

    def __init__(self, work_dir: str, events: ContainerEvents) -> None:
        self._work_dir = work_dir
        self._events = events
        self._users = Users()
        self._containers: dict[str, _Container] = {}
        self._warden: WardenClient | None = None
        # Requests while there is no warden.
        self._held: list[list[Any]] = []
        # Containers whose warden was lost, now children of this process.
        self._orphans = Processes(shared=True)
        self._look_again: asyncio.TimerHandle | None = None
        self._losses_s: deque[float] = deque(maxlen=QUICK_RESTARTS)
        self._restart: asyncio.Task[None] | None = None
        self._orphans_gone = asyncio.Event()
        self.isolating = Isolating([])

    async def start(self) -> None:
        become_subreaper()
        await self._start_warden()

    def __len__(self) -> int:
        return len(self._containers)

    @property
    def warden_pid(self) -> int:
        return self._warden.pid if self._warden is not None else 0

    # ---- Orders -------------------------------------------------------------------

    def launch(self, spec: ContainerSpec) -> None:
        """Start it; `flush` afterwards."""
        container = self._containers[spec.container_id] = _Container(spec)
        user = self._users.known(spec.user)
        if user is not None and not self.isolating.active:
            self._request(container, user, NOTHING)
            return
        future = self.isolating.run(spec.container_id, lambda: self._prepare(spec))
        future.add_done_callback(lambda done: self._prepared(container, done))

    def kill(self, container_id: str, number: Signal) -> None:
        """Send a signal to all its processes; `flush` afterwards."""
        container = self._containers.get(container_id)
        if container is None:
            return
        container.signal = number
        if container_id in self._orphans:
            self._orphans.signal(container_id, number)
        elif container.phase is not _Phase.PREPARING:
            self._send(["signal", container_id, int(number)])

    def update(self, container_id: str, resources: Resources) -> None:
        if container_id in self._containers:
            self.isolating.update(container_id, resources)

    def flush(self) -> None:
        """Write what was asked for as one message."""
        if self._warden is not None:
            self._warden.flush()

    async def close(self) -> None:
        """End everything that still runs, and the warden.  Nothing is told any more."""
        if self._restart is not None:
            self._restart.cancel()
        for container in self._containers.values():
            self._orphans.signal(container.spec.container_id, signal.SIGKILL)
        if self._warden is not None:
            await self._warden.close()
        if len(self._orphans):
            await self._orphans_gone.wait()
        await self.isolating.close()

    # ---- Preparing ----------------------------------------------------------------

    def _prepare(self, spec: ContainerSpec) -> tuple[User, Preparation]:
        """In a thread.  Raises MesosPyError, OSError, or what an isolator raises."""
        user = self._users.find(spec.user)
        if not self.isolating.active:
            return user, NOTHING
        with (
            sandbox.opened(self._work_dir) as root,
            sandbox.closing(sandbox.create(root, spec.sandbox, user.uid, user.gid)),
        ):
            pass
        first = next((each for each in spec.holders if isinstance(each, pb.TaskInfo)), None)
        labels = first.labels.labels if first is not None else ()
        container = Container(
            container_id=spec.container_id,
            framework_id=spec.framework_id,
            executor_id=spec.executor_id,
            sandbox="/".join((self._work_dir, *spec.sandbox)),
            uid=user.uid,
            gid=user.gid,
            resources=spec.resources(),
            info=spec.container,
            labels={label.key: label.value for label in labels},
        )
        return user, self.isolating.prepare(container)

    def _prepared(
        self, container: _Container, done: asyncio.Future[tuple[User, Preparation]]
    ) -> None:
        if done.cancelled():
            return  # the agent ends
        error = done.exception()
        if error is None and container.signal is None:
            self._request(container, *done.result())
            self.flush()
            return
        if error is None:
            text = STOPPED
        elif isinstance(error, MesosPyError):
            text = error.message
        else:
            text = f"cannot prepare the container: {type(error).__name__}: {error}"
        self._fail(container.spec.container_id, text)
        self._events.containers_told()

    def _request(self, container: _Container, user: User, extra: Preparation) -> None:
        spec = container.spec
        container.phase = _Phase.STARTING
        request = StartRequest(
            id=spec.container_id,
            exe=spec.executable,
            argv=spec.argv,
            env={**spec.environment, **extra.environment, **spec.command_environment},
            sandbox=list(spec.sandbox),
            owner=(user.uid, user.gid),
            user=user.switch,
            enter=list(extra.enter),
            namespaces=list(extra.namespaces),
            rlimits=list(extra.rlimits),
        )
        container.request = request
        self._send(["start", request])

    def _send(self, message: list[Any]) -> None:
        if self._warden is not None:
            self._warden.send(message)
        else:
            self._held.append(message)

    # ---- What the warden says -----------------------------------------------------

    def warden_said(self, messages: list[list[Any]]) -> None:
        for what, container_id, detail in messages:
            if what == "started":
                self._started(container_id, detail)
            elif what == "failed":
                self._fail(container_id, detail)
            else:
                self._ended(container_id, Exit(detail))
        self._events.containers_told()

    def _started(self, container_id: str, pid: int) -> None:
        container = self._containers.get(container_id)
        if container is None:
            return
        container.phase, container.pid, container.request = _Phase.RUNNING, pid, None
        if self.isolating.active:
            loop = asyncio.get_running_loop()

            def exceeded(limitation: Limitation) -> None:
                loop.call_soon_threadsafe(self._limited, container_id, limitation)

            def failed(error: Exception) -> None:
                reason = pb.TaskStatus.REASON_CONTAINER_LAUNCH_FAILED
                text = f"cannot isolate the container: {error}"
                exceeded(Limitation(reason, text, Resources()))

            self.isolating.isolate(container_id, pid, exceeded, failed)
        self._events.container_started(container_id, pid)

    def _limited(self, container_id: str, limitation: Limitation) -> None:
        if container_id in self._containers:
            self._events.container_limited(container_id, limitation)
            self._events.containers_told()

    def _fail(self, container_id: str, message: str) -> None:
        if self._containers.pop(container_id, None) is not None:
            self.isolating.cleanup(container_id)
            self._events.container_failed(container_id, message)

    def _ended(self, container_id: str, exit: Exit) -> None:
        if self._containers.pop(container_id, None) is not None:
            self.isolating.cleanup(container_id)
            self._events.container_ended(container_id, exit)

    # ---- When the warden is lost --------------------------------------------------

    def warden_lost(self) -> None:
        self._warden = None
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self._reap_orphans)
        # Those that it was about to start: are they there, or not?
        leaders = {marked_container(pid): pid for pid in children() if _leads_session(pid)}
        for container_id, container in list(self._containers.items()):
            if container.phase is _Phase.STARTING:
                self._settle_start(container, leaders.get(container_id))
            if container.phase is _Phase.RUNNING and container_id not in self._orphans:
                self._orphans.add(container_id, container.pid)
                if container.signal is not None:
                    self._orphans.signal(container_id, container.signal)
        self._orphans_gone.clear()
        log.warning("tasks of the lost warden are watched by the agent", count=len(self._orphans))
        self._reap_orphans()
        self._restart = loop.create_task(self._restart_warden())

    def _settle_start(self, container: _Container, pid: int | None) -> None:
        container_id = container.spec.container_id
        if pid is not None:
            self._started(container_id, pid)
        elif container.signal is not None:
            self._fail(container_id, STOPPED)
        elif Path(self._work_dir, *container.spec.sandbox, sandbox.STDOUT).exists():
            # It had begun: the process may have run and ended.  Not to be run twice.
            self._fail(container_id, LOST_AT_START)
        else:
            self._send(["start", container.request])

    def _reap_orphans(self) -> None:
        for container_id, status in self._orphans.reap():
            unknown = "the process that waited for it ended before"
            self._ended(container_id, Exit(status, unknown if status is None else ""))
        if not len(self._orphans):
            self._orphans_gone.set()
        elif self._orphans.unsure and self._look_again is None:
            loop = asyncio.get_running_loop()
            self._look_again = loop.call_later(UNSURE_RETRY_S, self._reap_orphans_again)
        self._events.containers_told()

    def _reap_orphans_again(self) -> None:
        self._look_again = None
        self._reap_orphans()

    async def _restart_warden(self) -> None:
        now_s = asyncio.get_running_loop().time()
        often = len(self._losses_s) == QUICK_RESTARTS
        if often and now_s - self._losses_s[0] < RESTARTS_WINDOW_S:
            await asyncio.sleep(RESTART_PAUSE_S)
        self._losses_s.append(now_s)
        while self._warden is None:
            try:
                await self._start_warden()
            except OSError as error:
                log.error("warden cannot be started", error=error)
                await asyncio.sleep(RESTART_PAUSE_S)

    async def _start_warden(self) -> None:
        warden = WardenClient(self)
        await warden.start(self._work_dir, OnAgentLoss.KILL)
        self._warden = warden
        for message in self._held:
            warden.send(message)
        self._held.clear()
        warden.flush()


def _leads_session(pid: int) -> bool:
    try:
        return os.getsid(pid) == pid
    except ProcessLookupError:
        return False
