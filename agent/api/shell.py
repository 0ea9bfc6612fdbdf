"""The shell around the core: hands it what is heard, with the time, and carries out
what it decides.  All of it on one event loop; nothing here waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeVar

from agent.api.executor_streams import INTERNAL, ExecutorStreams
from agent.api.files import FileService
from agent.api.master_link import MasterLink
from agent.checkpoint.store import Checkpoint, CheckpointUnwritable
from agent.checks.prober import Prober
from agent.containers.nested import Nested
from agent.containers.router import Containers
from agent.core.agent import AgentCore
from agent.core.effects import (
    CloseExecutor,
    Drop,
    Effect,
    EraseVolumes,
    ExecutorKey,
    ForgetContainer,
    KillContainer,
    LaunchContainer,
    LinkVolumes,
    SendExecutor,
    SendMaster,
    SentAway,
    Signal,
    StartProbe,
    Stop,
    StopProbe,
    TaskEnded,
    UnlinkVolumes,
    UpdateContainer,
)
from agent.core.executors import Standing
from agent.core.health import Outcome
from agent.core.journal import LASTING, Change
from agent.core.records import Exit
from agent.isolation.base import Limitation
from agent.volumes.keeper import VolumeKeeper
from mesos_py import logs
from mesos_py.clock import Clock, Now
from mesos_py.errors import MesosPyError, Unavailable
from mesos_py.metrics import Metrics
from mesos_py.rpc import PROTOCOL_VERSION
from mesos_py.v1 import agent_pb2, executor_pb2
from mesos_py.v1 import types_pb2 as pb
from mesos_py.version import VERSION

T = TypeVar("T")
log = logs.get("agent")

# When to look again whether the disk has room.
WRITE_AGAIN_S: Final = 1.0


class ShellEvents(Protocol):
    """The daemon, as the shell sees it."""

    def registered(self, agent_id: str) -> None:
        """A master has taken this agent, for the first time or again."""
        ...

    def must_end(self, reason: str, wanted: bool) -> None:
        """Nothing runs any more (`wanted`), or the agent may not go on."""
        ...

    def sent_away(self, reason: str) -> None:
        """The master has taken leave of this agent, and nothing runs any more."""
        ...


class Sandboxes(Protocol):
    """Who keeps sandboxes after their containers."""

    def ended(self, parts: tuple[str, ...]) -> None:
        """The container with this sandbox has ended; () if the core knows of none."""
        ...


class Shell:
    """Implements what link, launcher and services tell (LinkEvents and so on)."""

    def __init__(
        self,
        core: AgentCore,
        clock: Clock,
        metrics: Metrics,
        checkpoint: Checkpoint,
        events: ShellEvents,
        sandboxes: Sandboxes,
    ) -> None:
        self.core = core
        self._clock = clock
        self._checkpoint = checkpoint
        # Not written yet, and what is to be done when it is.
        self._unwritten: list[Change] = []
        self._held: list[Effect] = []
        # Whether the checkpoint could not be written when it was last tried.
        self._blocked = False
        # Not set while something is unwritten that is to outlive the machine: a master that
        # heard of it would have it for ever, and a run after this one perhaps not.
        self._lasting_written = asyncio.Event()
        self._lasting_written.set()
        self._closed = False
        self._events = events
        self._metrics = metrics
        self._sandboxes = sandboxes
        self._timer: asyncio.TimerHandle | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._settled: asyncio.Event | None = None
        self._do: dict[type[Any], Callable[[Any], object]] = {}
        self._nested: Nested | None = None
        self._volumes: VolumeKeeper | None = None

    def wire(
        self,
        link: MasterLink,
        launcher: Containers,
        executors: ExecutorStreams,
        files: FileService,
        prober: Prober,
        nested: Nested | None = None,
        volumes: VolumeKeeper | None = None,
    ) -> None:
        """Say who carries out what; before anything is heard.

        `nested`: who launches containers within those of tasks and executors.
        `volumes`: who shows and erases them; without that there are none.
        """
        self._launcher = launcher
        self._nested = nested
        self._volumes = volumes
        self._send_executor = executors.send
        self._do = {
            SendMaster: lambda effect: link.send(effect.call),
            SendExecutor: lambda effect: executors.send(effect.key, effect.event),
            LinkVolumes: self._link,
            UnlinkVolumes: self._unlink,
            CloseExecutor: lambda effect: executors.close_stream(effect.key, effect.reason),
            LaunchContainer: lambda effect: launcher.launch(effect.spec),
            KillContainer: lambda effect: launcher.kill(effect.container_id, effect.signal),
            ForgetContainer: lambda effect: launcher.forget(effect.container_id),
            UpdateContainer: lambda effect: launcher.update(effect.container_id, effect.resources),
            EraseVolumes: self._erase,
            StartProbe: prober.start,
            StopProbe: prober.stop,
            TaskEnded: lambda effect: files.task_ended(effect.key),
            Drop: self._dropped,
            SentAway: lambda effect: self._events.sent_away(effect.reason),
            Stop: lambda effect: self._events.must_end(effect.reason, effect.wanted),
        }

    def close(self) -> None:
        for timer in (self._timer, self._retry):
            if timer is not None:
                timer.cancel()
        self._timer = self._retry = None
        self._closed = True

    # ---- Stopping -----------------------------------------------------------------

    def stop(self, *, at_once: bool) -> None:
        now = self._clock.now()
        if at_once:
            self.core.on_stop_at_once(now)
            if self._settled is not None:
                self._settled.set()
        else:
            self.core.on_stop(now)
        self._act()

    async def all_acknowledged(self, within_s: float) -> bool:
        """Wait until no update is on its way any more, if there is a master to take them."""
        if not self.core.state.registered:
            return False
        self._settled = asyncio.Event()
        self._act()
        try:
            async with asyncio.timeout(within_s):
                await self._settled.wait()
        except TimeoutError:
            return False
        return True

    # ---- What the master says (LinkEvents) ----------------------------------------

    async def may_register(self) -> None:
        await self._lasting_written.wait()

    def register_call(self) -> agent_pb2.Call:
        return self.core.register_call(VERSION, PROTOCOL_VERSION)

    def master_said(self, events: Sequence[agent_pb2.Event], epoch: int = 0) -> None:
        now = self._clock.now()
        self.core.on_epoch(epoch)
        for event in events:
            self._guarded("event of the master", self.core.on_master_event, event, now)
            if event.type == agent_pb2.Event.SHUTDOWN:
                self._log_sent_away(event.shutdown.message)
            elif event.type == agent_pb2.Event.REGISTERED:
                self._events.registered(self.core.state.agent_id)
        self._act()

    def link_lost(self) -> None:
        self.core.on_disconnected()
        self._act()

    def refused_for_good(self, reason: str, *, shut_down: bool) -> None:
        if shut_down:
            self._log_sent_away(reason)
            self.core.on_sent_away(reason, self._now())
            self._act()
        else:
            self._events.must_end(f"the master refused this agent for good: {reason}", False)

    def _log_sent_away(self, reason: str) -> None:
        log.error("the master has sent this agent away; its tasks end", reason=reason)

    # ---- What executors say (ExecutorEvents) --------------------------------------

    def executor_standing(self, key: ExecutorKey) -> Standing:
        return self.core.executor_standing(key)

    def executor_subscribed(
        self, key: ExecutorKey, call: executor_pb2.Call.Subscribe
    ) -> str | None:
        return self._guarded(
            "executor's subscription", self.core.on_executor_subscribed, key, call, self._now()
        )

    def executor_update(self, key: ExecutorKey, status: pb.TaskStatus) -> str | None:
        return self._guarded(
            "executor's update", self.core.on_executor_update, key, status, self._now()
        )

    def executor_message(self, key: ExecutorKey, data: bytes) -> None:
        self.core.on_executor_message(key, data)

    def executor_disconnected(self, key: ExecutorKey) -> None:
        self.core.on_executor_disconnected(key, self._now())

    def executors_welcome(self) -> None:
        """They can connect from now on."""
        self.core.on_executors_welcome(self._now())
        self._act()

    def executors_told(self) -> None:
        self._act()

    # ---- What is heard of containers (ContainerEvents) ----------------------------

    def container_addressed(self, container_id: str, addresses: tuple[str, ...]) -> None:
        self._guarded("addresses", self.core.on_container_addressed, container_id, addresses)

    def container_started(self, container_id: str, pid: int, start_ticks: int = 0) -> None:
        now = self._now()
        self._guarded("start", self.core.on_container_started, container_id, pid, now, start_ticks)

    def container_failed(self, container_id: str, message: str) -> None:
        sandbox = self._sandbox_of(container_id)
        self._guarded("failure", self.core.on_container_failed, container_id, message, self._now())
        self._over(container_id, Exit(None, message))
        self._sandboxes.ended(sandbox)

    def container_ended(self, container_id: str, exit: Exit) -> None:
        sandbox = self._sandbox_of(container_id)
        self._guarded("end", self.core.on_container_ended, container_id, exit, self._now())
        self._over(container_id, exit)
        self._sandboxes.ended(sandbox)

    def _over(self, container_id: str, exit: Exit) -> None:
        if self._nested is not None:
            self._guarded("end", self._nested.outermost_over, container_id, exit)

    def _sandbox_of(self, container_id: str) -> tuple[str, ...]:
        executor = self.core.state.containers.get(container_id)
        return executor.sandbox if executor is not None else ()

    def container_limited(self, container_id: str, limitation: Limitation) -> None:
        exceeded = pb.TaskResourceLimitation(resources=limitation.resources.to_proto())
        self.core.on_container_limited(
            container_id,
            limitation.reason,
            limitation.message,
            exceeded,
            self._now(),
            fatal=limitation.fatal,
        )

    def probe_ended(self, container_id: str, kind: str, number: int, outcome: Outcome) -> None:
        self._guarded(
            "probe", self.core.on_probe_ended, container_id, kind, number, outcome, self._now()
        )

    def containers_told(self) -> None:
        self._act()

    def container_unwanted(self, container_id: str, signal: Signal) -> None:
        """An operator has it ended."""
        self.core.on_container_unwanted(container_id, signal, self._now())
        self._act()

    # ---- Carrying out -------------------------------------------------------------

    def _now(self) -> Now:
        return self._clock.now()

    def _act(self) -> None:
        """Carry out all that the core has decided, and see to its next deadline."""
        while effects := self._take_effects():
            for effect in effects:
                self._carry_out(effect)
        self._launcher.flush()
        self._arm()
        if self._settled is not None and not self.core.unacknowledged:
            self._settled.set()

    def _take_effects(self) -> list[Effect]:
        """What may be done now: all, once what it rests on is written down."""
        self._held.extend(self.core.take_effects())
        self._unwritten.extend(self.core.take_changes())
        if self._unwritten:
            try:
                self._checkpoint.write(self._unwritten)
            except CheckpointUnwritable as error:
                if any(kind in LASTING for kind, _, data in self._unwritten if data is not None):
                    self._lasting_written.clear()
                self._write_again(error)
                return self._kills()
            self._unwritten.clear()
            self._lasting_written.set()
            if self._blocked:
                self._blocked = False
                log.info("checkpoint can be written again")
                self.core.on_checkpoint(writable=True, now=self._now())
        effects, self._held = self._held, []
        return effects

    def _write_again(self, error: CheckpointUnwritable) -> None:
        """Nothing is promised that is not written: all waits until that is possible."""
        if self._retry is None and not self._closed:
            log.error("checkpoint cannot be written; the agent waits", error=error)
            self._metrics.drop("checkpoint not written")
            if not self._blocked:
                self._blocked = True
                self.core.on_checkpoint(writable=False, now=self._now())
            loop = asyncio.get_running_loop()
            self._retry = loop.call_later(WRITE_AGAIN_S, self._try_again)

    def _kills(self) -> list[Effect]:
        """Of what waits, that which promises nothing and may be what gives room again."""
        launches = {e.spec.container_id for e in self._held if isinstance(e, LaunchContainer)}
        kills: list[Effect] = []
        waiting: list[Effect] = []
        for effect in self._held:
            may = isinstance(effect, Stop | SentAway) or (
                isinstance(effect, KillContainer | StopProbe)
                and effect.container_id not in launches
            )
            (kills if may else waiting).append(effect)
        self._held = waiting
        return kills

    def _try_again(self) -> None:
        self._retry = None
        self._act()

    def _carry_out(self, effect: Effect) -> None:
        try:
            self._do[type(effect)](effect)
        except Exception as error:
            # One effect that goes wrong must not keep the others from happening.
            log.exception("effect failed", effect=type(effect).__name__, error=error)
            self._metrics.drop("effect failed")

    def _guarded(self, what: str, method: Callable[..., T], *arguments: object) -> T | str:
        try:
            return method(*arguments)
        except Exception as error:
            log.exception("input failed", what=what, error=error)
            self._metrics.drop("input failed")
            return INTERNAL

    def _link(self, effect: LinkVolumes) -> None:
        try:
            if self._volumes is None:
                raise Unavailable("this agent keeps no volumes")
            self._volumes.links.show_beneath(effect.volumes, effect.sandbox)
        except MesosPyError as error:
            self.core.on_volumes_not_linked(effect, error.message, self._now())
        except Exception as error:
            # As where a launch fails: whatever it is, the task does not wait for ever.
            log.exception("volumes cannot be shown", executor=effect.key)
            text = f"its volumes cannot be shown: {type(error).__name__}: {error}"
            self.core.on_volumes_not_linked(effect, text, self._now())
        else:
            self._send_executor(effect.key, effect.event)

    def _unlink(self, effect: UnlinkVolumes) -> None:
        if self._volumes is not None:
            self._volumes.links.hide_beneath(effect.volumes, effect.sandbox)

    def _erase(self, effect: EraseVolumes) -> None:
        if self._volumes is not None:
            self._volumes.eraser.erase(effect.generation)

    def _dropped(self, drop: Drop) -> None:
        self._metrics.drop(drop.reason)
        log.warning("ignored", reason=drop.reason, **drop.fields)

    def _arm(self) -> None:
        at_s = self.core.next_deadline_s() if not self._closed else None
        if self._timer is not None:
            if at_s == self._timer.when():
                return
            self._timer.cancel()
            self._timer = None
        if at_s is not None:
            # The loop's clock is the monotonic one that the core is told.
            self._timer = asyncio.get_running_loop().call_at(at_s, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        # Should a step raise, what else is due stays due: _act sets the timer again.
        self._guarded("timer", self.core.on_time, self._now())
        self._act()
