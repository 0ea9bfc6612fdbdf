"""From a container's description to its processes, and back to how they ended.

    launch -> (fetcher, if it has URIs)
           -> (thread: user, sandbox, isolators' prepare) -> warden -> started
           -> (thread: isolate, watch) -> ... -> (thread: end) -> ended -> (thread: cleanup)

Without isolators, and for a user that is known, the request goes to the warden at
once.  When a warden is lost its tasks go on: they become this process's own children,
which is their subreaper too, and are watched from here; a new warden starts new ones.

The warden outlives the agent, too.  An agent that is started again looks for it, hears
which containers run and how others ended, and goes on; should it have been lost as
well, its containers are watched without it (`adrift`).
"""

from __future__ import annotations

import asyncio
import signal
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.checks.command import CommandProbes, end_leftovers
from agent.containers import adrift, sandbox, settling, volume_links, wire
from agent.containers.events import ProbedContainerEvents
from agent.containers.held import Held, Phase
from agent.containers.isolating import Isolating, described
from agent.containers.processes import become_subreaper, start_ticks
from agent.containers.settling import LOST_AT_START, UNSEEN
from agent.containers.spawn import StartRequest
from agent.containers.strays import Strays, just_started
from agent.containers.users import User, Users
from agent.containers.volume_links import Place
from agent.containers.warden import OnAgentLoss
from agent.containers.warden_client import WardenClient, attach, forget_word
from agent.containers.within import Within
from agent.core.effects import ContainerSpec, Signal
from agent.core.nested import is_mark
from agent.core.records import Exit
from agent.core.recovery import SavedContainer
from agent.core.sandbox_paths import links_of
from agent.fetcher.fetcher import Fetcher
from agent.isolation.base import NOTHING, Limitation, Preparation
from agent.volumes.links import VolumeLinks
from mesos_py import logs
from mesos_py.errors import MesosPyError
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb

log = logs.get("agent.containers")

STOPPED = "stopped before it was started"
# Wardens that end again and again are started more slowly.
RESTART_PAUSE_S = 1.0
QUICK_RESTARTS = 3
RESTARTS_WINDOW_S = 60.0


class Launcher:
    """All containers of one agent.  Used from one event loop, the main thread's."""

    def __init__(
        self,
        work_dir: str,
        events: ProbedContainerEvents,
        fetcher: Fetcher,
        on_agent_loss: OnAgentLoss = OnAgentLoss.KILL,
        recovery_timeout_s: float = 900.0,
    ) -> None:
        """`on_agent_loss`: what becomes of containers when this process ends; with WAIT
        they are ended if no agent has come for them within `recovery_timeout_s`."""
        self._work_dir = work_dir
        self._events = events
        self._fetcher = fetcher
        self._on_agent_loss = on_agent_loss
        self._recovery_timeout_s = recovery_timeout_s
        self.users = Users()
        self._volumes = VolumeLinks(work_dir)
        self._containers: dict[str, Held] = {}
        self._warden: WardenClient | None = None
        # Requests while there is no warden.
        self._held: list[list[Any]] = []
        # Whether the warden was started by an earlier run of this agent.
        self._inherited = False
        self._strays = Strays(self._ended, self._events.containers_told)
        self._losses_s: deque[float] = deque(maxlen=QUICK_RESTARTS)
        self._restart: asyncio.Task[None] | None = None
        # Containers of which the file of a warden that has ended tells.
        self._left_word: set[str] = set()
        self.isolating = Isolating([])
        self.probes = CommandProbes(self._send, events.probe_ended)
        self.within = Within(self._send)

    async def start(self, saved: Sequence[SavedContainer] = ()) -> None:
        """`saved`: containers of the agent's earlier run.  How each is now is told as
        events before this returns, as far as it has ended since.

        What else runs of the agent's is none that it knows, and is ended.
        """
        become_subreaper()
        for each in saved:
            # What is ordered before it is known how they are is carried out then.
            self._containers[each.container_id] = Held(each.container_id, each.sandbox)
        self._fetcher.start()
        attached = await asyncio.to_thread(attach, self._work_dir)
        since: list[list[Any]] = []
        if attached is None:
            known = await asyncio.to_thread(settling.read, self._work_dir)
            self._left_word = set(known.results)
            await asyncio.to_thread(end_leftovers, {each.container_id for each in saved})
        else:
            known, since = settling.asked(attached)
        outcomes = await asyncio.to_thread(settling.settle, saved, known, self._has_begun)
        recovered = settling.recovered(saved, outcomes)
        await asyncio.to_thread(self.isolating.recover, recovered)
        for each in saved:
            self._take_up(each, outcomes[each.container_id])
        self._disown({each.container_id for each in saved}, known)
        # From now on it may say more.
        if attached is None:
            await self._start_warden()
        else:
            warden = WardenClient(self)
            await warden.take_over(attached)
            self.within.possible = attached.version >= wire.WITHIN
            warden.send(["on_agent_loss", self._on_agent_loss.value, self._recovery_timeout_s])
            self._inherited = True
            self._use(warden)
        self.warden_said(since)

    def _take_up(self, saved: SavedContainer, outcome: settling.Outcome) -> None:
        container_id = saved.container_id
        container = self._containers[container_id]
        container.phase = Phase.RUNNING
        if isinstance(outcome, settling.Told):
            self._told(outcome.message)
        elif isinstance(outcome, settling.Failed):
            self._fail(container_id, outcome.text)
        elif isinstance(outcome, settling.EndedUnseen):
            self._ended(container_id, Exit(None, UNSEEN))
        else:
            log.info("container goes on", container=container_id, pid=outcome.pid)
            container.pid, container.start_ticks = outcome.pid, saved.start_ticks
            if outcome.adrift is not None:
                self._strays.add_adrift(container_id, outcome.adrift)
            if saved.pid is None:
                self._started(container_id, outcome.pid)
            else:
                self._tell_addresses(container_id)
                self.isolating.resume(container_id, self._exceeded(container_id))
            if container.signal is not None:
                self.kill(container_id, container.signal)

    def _disown(self, ours: set[str], known: settling.Knowledge) -> None:
        """What the warden has beyond what the agent knows: a record was damaged."""
        for container_id in (known.alive or {}).keys() - ours:
            log.warning("container of nobody is ended", container=container_id)
            self._send(["signal", container_id, int(signal.SIGKILL)])
        for container_id in known.results.keys() - ours:
            self.forget(container_id)

    def _has_begun(self, where: tuple[str, ...]) -> bool:
        """Whether there are traces of a start."""
        return Path(self._work_dir, *where, sandbox.STDOUT).exists()

    def __len__(self) -> int:
        return len(self._containers)

    @property
    def warden_pid(self) -> int:
        return self._warden.pid if self._warden is not None else 0

    # ---- Orders -------------------------------------------------------------------

    def launch(self, spec: ContainerSpec) -> None:
        """Start it; `flush` afterwards."""
        container = Held(spec.container_id, spec.sandbox)
        self._containers[spec.container_id] = container
        if spec.command.uris:
            self._fetcher.begin(
                spec, self.users.find, lambda why: self._fetched(container, spec, why)
            )
        else:
            self._go_on(container, spec)

    def _fetched(self, container: Held, spec: ContainerSpec, why: Exception | None) -> None:
        if why is None and container.signal is None:
            self._go_on(container, spec)
            self.flush()
        else:
            self._give_up(container, why)

    def _go_on(self, container: Held, spec: ContainerSpec) -> None:
        user = self.users.known(spec.user)
        plain = not spec.volumes and (spec.container is None or not spec.container.volumes)
        if user is not None and not self.isolating.active and plain:
            self._request(container, spec, user, NOTHING)
            return
        future = self.isolating.run(spec.container_id, lambda: self._prepare(spec))
        future.add_done_callback(lambda done: self._prepared(container, spec, done))

    def kill(self, container_id: str, number: Signal) -> None:
        """Send a signal to all its processes; `flush` afterwards."""
        container = self._containers.get(container_id)
        if container is None:
            return
        container.signal = number
        self._fetcher.stop(container_id)
        if container_id in self._strays:
            self._strays.signal(container_id, number)
        elif container.phase is not Phase.PREPARING:
            self._send(["signal", container_id, int(number)])
        if number is Signal.KILL and container.phase is Phase.RUNNING:
            self.isolating.kill(container_id)

    def update(self, container_id: str, resources: Resources) -> None:
        if container_id in self._containers:
            self.isolating.update(container_id, resources)

    def forget(self, container_id: str) -> None:
        """How it ended is written down; `flush` afterwards."""
        if self._warden is not None:
            self._warden.forget(container_id)
        else:
            self._held.append(["forget", container_id])
        if container_id in self._left_word:
            self._left_word.discard(container_id)
            if not self._left_word:
                forget_word(self._work_dir)

    def flush(self) -> None:
        """Write what was asked for as one message."""
        if self._warden is not None:
            self._warden.flush()

    async def close(self) -> None:
        """End everything that still runs, and the warden.  Nothing is told any more."""
        await self._fetcher.close()
        if self._restart is not None:
            self._restart.cancel()
        self._strays.kill_all()
        if self._warden is not None:
            await self._warden.close()
        await self._strays.all_gone()
        for container_id in self._containers:
            self.isolating.cleanup(container_id)
        await self.isolating.close()

    async def leave(self) -> None:
        """Let everything go on, for the next run of this agent to find."""
        await self._fetcher.close()
        if self._restart is not None:
            self._restart.cancel()
        if self._warden is not None:
            await self._warden.leave()
        self._strays.leave()
        await self.isolating.close()

    # ---- Preparing ----------------------------------------------------------------

    def _prepare(self, spec: ContainerSpec) -> tuple[User, Preparation]:
        """In a thread.  Raises MesosPyError, OSError, or what an isolator raises."""
        user = self.users.find(spec.user)
        links = links_of("container", spec.container or pb.ContainerInfo())
        if not self.isolating.active and not links and not spec.volumes:
            return user, NOTHING
        where = "/".join((self._work_dir, *spec.sandbox))
        with (
            sandbox.opened(self._work_dir) as root,
            sandbox.closing(sandbox.create(root, spec.sandbox, user.uid, user.gid)) as here,
        ):
            place = Place(here, where, user.uid, user.gid)
            # First, for what else is shown may be in one of them.
            self._volumes.show(spec.volumes, place)
            volume_links.show(links, place)
        if not self.isolating.active:
            return user, NOTHING
        return user, self.isolating.prepare(described(spec, where, user.uid, user.gid))

    def _prepared(
        self,
        container: Held,
        spec: ContainerSpec,
        done: asyncio.Future[tuple[User, Preparation]],
    ) -> None:
        if done.cancelled():
            return  # the agent ends
        error = done.exception()
        if error is None and container.signal is None:
            self._request(container, spec, *done.result())
            self.flush()
            return
        self._give_up(container, error)

    def _give_up(self, container: Held, error: BaseException | None) -> None:
        """It is not started: for a reason, or because it was stopped."""
        if error is None:
            text = STOPPED
        elif isinstance(error, MesosPyError):
            text = error.message
        else:
            text = f"cannot prepare the container: {type(error).__name__}: {error}"
        self._fail(container.container_id, text)
        self._events.containers_told()

    def _request(
        self, container: Held, spec: ContainerSpec, user: User, extra: Preparation
    ) -> None:
        container.phase = Phase.STARTING
        request = StartRequest(
            id=spec.container_id,
            exe=spec.executable,
            argv=spec.argv,
            env={**spec.environment, **extra.environment, **spec.command_environment},
            sandbox=list(spec.sandbox),
            owner=(user.uid, user.gid),
            user=user.switch if not spec.as_agent else None,
            enter=list(extra.enter),
            namespaces=list(extra.namespaces),
            rlimits=list(extra.rlimits),
        )
        container.request = request
        self.probes.about_to_start(request, spec.holders)
        self._send(["start", request])

    def _send(self, message: list[Any]) -> None:
        if self._warden is not None:
            self._warden.send(message)
        else:
            self._held.append(message)

    # ---- What the warden says -----------------------------------------------------

    def warden_said(self, messages: list[list[Any]]) -> None:
        for message in messages:
            self._told(message)
        self._events.containers_told()

    def _told(self, message: list[Any]) -> None:
        what, container_id, detail = message
        if what == "started":
            self._started(container_id, detail)
        elif what == "failed":
            self._fail(container_id, detail)
        elif what == "ended":
            self._ended(container_id, Exit(detail))
        elif is_mark(container_id):
            self.within.heard(what, container_id, detail)
        else:
            self.probes.heard(what, container_id, detail)

    def _started(self, container_id: str, pid: int) -> None:
        container = self._containers.get(container_id)
        if container is None:
            return
        container.phase, container.pid, container.request = Phase.RUNNING, pid, None
        container.start_ticks = start_ticks(pid)
        if self.isolating.active:
            self._tell_addresses(container_id)
            exceeded = self._exceeded(container_id)

            def failed(error: Exception) -> None:
                reason = pb.TaskStatus.REASON_CONTAINER_LAUNCH_FAILED
                text = f"cannot isolate the container: {error}"
                exceeded(Limitation(reason, text, Resources()))

            self.isolating.isolate(container_id, pid, exceeded, failed)
        self._events.container_started(container_id, pid, container.start_ticks)

    def _tell_addresses(self, container_id: str) -> None:
        addresses = self.isolating.addresses(container_id)
        if addresses:
            self._events.container_addressed(container_id, addresses)

    def _exceeded(self, container_id: str) -> Callable[[Limitation], None]:
        """What isolators call, from their threads."""
        loop = asyncio.get_running_loop()

        def exceeded(limitation: Limitation) -> None:
            loop.call_soon_threadsafe(self._limited, container_id, limitation)

        return exceeded

    def _limited(self, container_id: str, limitation: Limitation) -> None:
        if container_id in self._containers:
            self._events.container_limited(container_id, limitation)
            self._events.containers_told()

    def _fail(self, container_id: str, message: str) -> None:
        if self._containers.pop(container_id, None) is not None:
            self.probes.forget(container_id)
            self.isolating.cleanup(container_id)
            self._events.container_failed(container_id, message)

    def _ended(self, container_id: str, exit: Exit) -> None:
        container = self._containers.get(container_id)
        if container is None:
            self.forget(container_id)  # of nobody
            self.flush()
            return
        if container.phase is Phase.ENDING:
            return
        container.phase = Phase.ENDING
        if not self.isolating.active:
            self._gone(container_id, exit, None)
            return

        def gone(limitation: Limitation | None) -> None:
            self._gone(container_id, exit, limitation)
            self._events.containers_told()

        self.isolating.end(container_id, gone)

    def _gone(self, container_id: str, exit: Exit, limitation: Limitation | None) -> None:
        """Nothing of it runs; `limitation`: what an isolator says was the cause."""
        if self._containers.pop(container_id, None) is None:
            return
        self.probes.forget(container_id)
        self.isolating.cleanup(container_id)
        if limitation is not None:
            # A task that says it has succeeded has coped.
            fatal = limitation.fatal and exit.status != 0
            self._events.container_limited(container_id, replace(limitation, fatal=fatal))
        self._events.container_ended(container_id, exit)

    # ---- When the warden is lost --------------------------------------------------

    def warden_lost(self) -> None:
        self._warden = None
        for container in list(self._containers.values()):
            if container.container_id in self._strays:
                continue
            if container.phase is Phase.STARTING:
                self._settle_start(container)
            if container.phase is Phase.RUNNING:
                self._take_in(container)
        take_in = self._strays.end_adrift if self._inherited else self._strays.end_child
        self.probes.lost(take_in)
        self.within.lost(take_in)
        self._inherited = False
        count = len(self._strays)
        log.warning("tasks of the lost warden are watched by the agent", count=count)
        self._strays.reap()
        self._restart = asyncio.get_running_loop().create_task(self._restart_warden())

    def _settle_start(self, container: Held) -> None:
        """It was about to be started: is it there, or not?"""
        container_id = container.container_id
        if (pid := just_started(container_id)) is not None:
            self._started(container_id, pid)
        elif container.signal is not None:
            self._fail(container_id, STOPPED)
        elif self._has_begun(container.sandbox):
            # The process may have run and ended.  Not to be run twice.
            self._fail(container_id, LOST_AT_START)
        else:
            self._send(["start", container.request])

    def _take_in(self, container: Held) -> None:
        """Watch a container that has lost its warden."""
        container_id = container.container_id
        if not self._inherited:
            self._strays.add_child(container_id, container.pid)
        elif found := adrift.find(container_id, container.pid, container.start_ticks):
            self._strays.add_adrift(container_id, found)
        else:
            self._ended(container_id, Exit(None, UNSEEN))
        if container.signal is not None:
            self._strays.signal(container_id, container.signal)

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
        await warden.start(self._work_dir, self._on_agent_loss, self._recovery_timeout_s)
        self.within.possible = True
        self._use(warden)

    def _use(self, warden: WardenClient) -> None:
        self._warden = warden
        for message in self._held:
            warden.send(message)
        self._held.clear()
        warden.flush()
