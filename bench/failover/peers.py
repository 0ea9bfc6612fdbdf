"""Agents and frameworks that exist only as streams, and come back as real ones do.

What of a peer is real: a connection and a stream of its own, what it says when it
registers (all its tasks, with what is unacknowledged of them), updates that are sent
again until they are acknowledged, and the rules of `agent/api/master_link.py` and
`mesos_py/scheduler/link.py` by which it looks for a master.  What is not: the tasks
are timers, and all peers of the process share one detector.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from agent.flags import AgentFlags
from bench.failover.wire import Wire, preface
from mesos_py import rpc
from mesos_py.address import Address
from mesos_py.election import Backoff, Detector, Patience, rest
from mesos_py.resources import Resources
from mesos_py.states import TASK_FINISHED, TASK_RUNNING, TASK_STARTING, TaskState
from mesos_py.v1 import agent_pb2, scheduler_pb2
from mesos_py.v1 import types_pb2 as pb

TASK: Final = Resources.of(cpus=1, mem=128)
TASK_S: Final = 20.0
_SEED: Final = 4


def _path(module: Any, service: str, method: str) -> str:
    return f"/{module.DESCRIPTOR.services_by_name[service].full_name}/{method}"


@dataclass(frozen=True)
class Load:
    """The cluster that is played."""

    agents: int
    frameworks: int = 200
    roles: int = 20
    # Tasks that an agent has room for.
    slots: int = 1
    rounds: int = 5
    # Frameworks keep their offers and launch nothing.
    idle: bool = False
    # At first so many come at the same time; what is measured is how they come back.
    come_together: int = 20
    # Between "all are well" and the kill; a little longer in each round.
    rest_s: float = 2.0
    # Tasks of all slots must run before a kill, this share of them.
    busy: float = 0.9
    steady_within_s: float = 120.0
    back_within_s: float = 60.0


@dataclass
class Count:
    """How many of one kind there are, how many have a link, and since when all have."""

    total: int
    linked: int = 0
    all_s: float | None = None
    # When each came back since the last `begin`.
    back_s: list[float] = field(default_factory=list)


@dataclass
class World:
    """What all peers of one load generator share, and what they have seen."""

    detector: Detector
    agents: Count
    frameworks: Count
    uuids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    task_ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    chance: random.Random = field(default_factory=lambda: random.Random(_SEED))
    running: int = 0
    finished: int = 0
    # Since the last `begin`.
    first_offer_s: float | None = None
    # The first offer that came when everybody was back.
    flowing_s: float | None = None
    attempts: int = 0
    refused: int = 0
    # The master said something that no sound run has.
    complaints: list[str] = field(default_factory=list)

    def begin(self) -> None:
        """The leader is about to be killed: what counts is what comes from now on."""
        for count in (self.agents, self.frameworks):
            count.back_s.clear()
            count.all_s = None
        self.first_offer_s = self.flowing_s = None
        self.attempts = self.refused = 0
        self.complaints.clear()

    @property
    def complete(self) -> bool:
        """Everybody has a link."""
        return all(c.linked == c.total for c in (self.agents, self.frameworks))

    @property
    def renewed(self) -> bool:
        """Everybody has one that was made since the last `begin`."""
        return self.complete and all(
            len(c.back_s) >= c.total for c in (self.agents, self.frameworks)
        )

    def linked(self, count: Count) -> None:
        now_s = time.monotonic()
        count.linked += 1
        count.back_s.append(now_s)
        if count.linked == count.total:
            count.all_s = now_s
        # Whoever came last decides when offers flow to everybody.
        self.flowing_s = None

    def offered(self) -> None:
        if not self.frameworks.back_s:
            return  # the last words of the leader that is to die
        now_s = time.monotonic()
        if self.first_offer_s is None:
            self.first_offer_s = now_s
        if self.flowing_s is None and self.renewed:
            self.flowing_s = now_s

    def uuid(self) -> bytes:
        """16 bytes of an RFC 4122 uuid (version 4), the same in every run."""
        low = 0x8000_0000_0000_0000 | next(self.uuids)
        return (0x4000 << 64 | low).to_bytes(16, "big")

    def complain(self, what: str) -> None:
        if len(self.complaints) < 20:
            self.complaints.append(what)


class Peer:
    """One link at a time to whoever leads, renewed by the rules of the real ones."""

    path: str
    first_pause_s = rpc.LINK_TIMEOUTS.backoff_first_s

    def __init__(self, world: World, count: Count) -> None:
        self.world = world
        self._count = count
        timeouts = rpc.LINK_TIMEOUTS
        self._backoff = Backoff(self.first_pause_s, timeouts.backoff_cap_s, world.chance.random)
        self._cap_s = timeouts.backoff_cap_s
        self._patience = Patience(timeouts.connect_s, timeouts.agent_silence_s)
        self._wire: Wire | None = None
        self._over: asyncio.Future[None] | None = None
        self._linked_s: float | None = None
        self.address: Address | None = None

    async def run(self) -> None:
        """Find, register, serve, for ever."""
        world = self.world
        while True:
            address = self.address = await world.detector.leader()
            await self._serve(address)
            world.detector.failed(address)
            lasted_s, self._linked_s = self._linked_s, None
            if lasted_s is not None and time.monotonic() - lasted_s >= self._cap_s:
                self._backoff.reset()
            await rest(world.detector, address, self._backoff.next(), self._backoff)

    async def _serve(self, address: Address) -> None:
        world = self.world
        world.attempts += 1
        loop = asyncio.get_running_loop()
        over = self._over = loop.create_future()
        wire = Wire(self, preface(str(address), self.path))
        try:
            await loop.create_connection(lambda: wire, address.host, address.port)
        except OSError:
            world.refused += 1
            return
        self._wire = wire
        wire.send(self.opening())
        late = loop.call_later(self._patience.now_s, self._late)
        await over
        late.cancel()

    def _late(self) -> None:
        if self._linked_s is None:
            self._patience.exhausted()
            self.cut()

    def cut(self) -> None:
        if self._wire is not None:
            self._wire.cut()

    def ended(self) -> None:
        self._wire = None
        if self._linked_s is not None:
            self._count.linked -= 1
            self.unlinked()
        assert self._over is not None
        if not self._over.done():
            self._over.set_result(None)

    def linked(self) -> None:
        """To be called when the master has taken this peer."""
        self._patience.answered()
        self._linked_s = time.monotonic()
        self.world.linked(self._count)

    def say(self, message: Any) -> None:
        """Send it, if there is a link that is registered."""
        if self._wire is not None and self._linked_s is not None:
            self._wire.send(message.SerializeToString())

    def opening(self) -> bytes:
        raise NotImplementedError

    def received(self, message: bytes) -> None:
        raise NotImplementedError

    def unlinked(self) -> None:
        """A link that had been taken is gone."""


@dataclass
class _Task:
    framework: pb.FrameworkInfo
    record: pb.Task
    # The update that waits for its acknowledgement.
    head: agent_pb2.Call | None = None
    ended: bool = False


class Agent(Peer):
    """`slots` tasks fill it.  Each runs for TASK_S, the first ones shorter: out of step."""

    path = _path(agent_pb2, "AgentService", "Connect")
    first_pause_s = AgentFlags.registration_backoff_s

    def __init__(self, world: World, number: int, slots: int) -> None:
        super().__init__(world, world.agents)
        self._early = slots
        self._attempts = 0
        self._tasks: dict[str, _Task] = {}
        self.info = pb.AgentInfo(
            hostname=f"host-{number}",
            ip="127.0.0.1",
            port=10_000 + number,
            resources=Resources.of(cpus=slots, mem=128 * slots).to_proto(),
            attributes=[
                pb.Attribute(name="rack", type=pb.Value.TEXT, text=pb.Value.Text(value="r1"))
            ],
        )

    def opening(self) -> bytes:
        self._attempts += 1
        frameworks = {t.framework.id.value: t.framework for t in self._tasks.values()}
        register = agent_pb2.Call.Register(
            agent_info=self.info,
            tasks=[task.record for task in self._tasks.values()],
            frameworks=frameworks.values(),
            version="bench",
            protocol_version=rpc.PROTOCOL_VERSION,
            instance=self.info.hostname,
            attempt=self._attempts,
        )
        call = agent_pb2.Call(type=agent_pb2.Call.REGISTER, register=register)
        return agent_pb2.Calls(calls=[call]).SerializeToString()

    def received(self, message: bytes) -> None:
        answers: list[agent_pb2.Call] = []
        for event in agent_pb2.Events.FromString(message).events:
            match event.type:
                case agent_pb2.Event.RUN_TASKS:
                    answers += [self._start(event.run_tasks, t) for t in event.run_tasks.tasks]
                case agent_pb2.Event.ACKNOWLEDGE:
                    answers += self._acknowledged(event.acknowledge)
                case agent_pb2.Event.PING:
                    pong = agent_pb2.Call.Pong(sequence=event.ping.sequence)
                    answers.append(agent_pb2.Call(type=agent_pb2.Call.PONG, pong=pong))
                case agent_pb2.Event.REGISTERED:
                    self.info.id.CopyFrom(event.registered.agent_id)
                    self.linked()
                    answers += [t.head for t in self._tasks.values() if t.head is not None]
                case _:
                    self.world.complain(f"an agent got {event}")
        if answers:
            self.say(agent_pb2.Calls(calls=answers))

    def hold(self, framework: pb.FrameworkInfo, task: pb.TaskInfo) -> None:
        """Have a task that runs for ever, as if launched before: for the bare server."""
        self._start(agent_pb2.Event.RunTasks(framework_info=framework), task)
        held = self._tasks[task.task_id.value]
        held.head = None
        self._enter(held, TASK_RUNNING)
        held.head = None

    def _start(self, order: agent_pb2.Event.RunTasks, task: pb.TaskInfo) -> agent_pb2.Call:
        framework = pb.FrameworkInfo()
        framework.CopyFrom(order.framework_info)
        record = pb.Task(
            name=task.name,
            task_id=task.task_id,
            framework_id=framework.id,
            agent_id=self.info.id,
            resources=task.resources,
            allocation_role=framework.role,
            launched_time=time.time(),
        )
        started = self._tasks[task.task_id.value] = _Task(framework, record)
        return self._enter(started, TASK_STARTING)

    def _acknowledged(self, acknowledge: agent_pb2.Event.Acknowledge) -> list[agent_pb2.Call]:
        task = self._tasks.get(acknowledge.task_id.value)
        if task is None or task.head is None:
            return []
        if task.head.update.status.uuid != acknowledge.uuid:
            return []
        task.head = None
        if task.record.state == TASK_STARTING:
            self.world.running += 1
            early = self._early > 0
            self._early -= early
            lasts_s = self.world.chance.uniform(0, TASK_S) if early else TASK_S
            asyncio.get_running_loop().call_later(lasts_s, self._ended, task)
            return [self._enter(task, TASK_RUNNING)]
        if task.record.state == TASK_FINISHED:
            del self._tasks[acknowledge.task_id.value]
        elif task.ended:
            return [self._finish(task)]
        return []

    def _ended(self, task: _Task) -> None:
        """The task's time is over.  RUNNING may still wait for its acknowledgement."""
        task.ended = True
        self.world.running -= 1
        if task.head is None:
            self.say(agent_pb2.Calls(calls=[self._finish(task)]))

    def _finish(self, task: _Task) -> agent_pb2.Call:
        self.world.finished += 1
        return self._enter(task, TASK_FINISHED)

    def _enter(self, task: _Task, state: TaskState.ValueType) -> agent_pb2.Call:
        record = task.record
        status = pb.TaskStatus(
            task_id=record.task_id,
            state=state,
            source=pb.TaskStatus.SOURCE_EXECUTOR,
            agent_id=self.info.id,
            timestamp=time.time(),
            uuid=self.world.uuid(),
        )
        record.state = record.status_update_state = state
        record.status_update_uuid = status.uuid
        del record.statuses[:]
        record.statuses.append(status)
        update = agent_pb2.Call.Update(
            framework_id=record.framework_id, status=status, latest_state=state
        )
        task.head = agent_pb2.Call(type=agent_pb2.Call.UPDATE, update=update)
        return task.head


class Framework(Peer):
    """Takes every offer, and fills it with tasks; an idle one leaves them where they are."""

    path = _path(scheduler_pb2, "SchedulerService", "Subscribe")

    def __init__(self, world: World, number: int, roles: int, idle: bool = False) -> None:
        super().__init__(world, world.frameworks)
        self._idle = idle
        self._attempts = 0
        self._name = f"framework-{number}"
        self.info = pb.FrameworkInfo(
            user="nobody", name=self._name, role=f"role-{number % roles}", failover_timeout=3600
        )

    def opening(self) -> bytes:
        self._attempts += 1
        subscribe = scheduler_pb2.Call.Subscribe(
            framework_info=self.info,
            client="bench",
            instance=self._name,
            attempt=self._attempts,
        )
        call = scheduler_pb2.Call(type=scheduler_pb2.Call.SUBSCRIBE, subscribe=subscribe)
        call.framework_id.CopyFrom(self.info.id)
        return scheduler_pb2.Calls(calls=[call]).SerializeToString()

    def received(self, message: bytes) -> None:
        answers: list[scheduler_pb2.Call] = []
        for event in scheduler_pb2.Events.FromString(message).events:
            match event.type:
                case scheduler_pb2.Event.UPDATE:
                    answers += self._acknowledge(event.update.status)
                case scheduler_pb2.Event.OFFERS:
                    self.world.offered()
                    if not self._idle:
                        answers += map(self._accept, event.offers.offers)
                case scheduler_pb2.Event.SUBSCRIBED:
                    self.info.id.CopyFrom(event.subscribed.framework_id)
                    self.linked()
                case (
                    scheduler_pb2.Event.HEARTBEAT
                    | scheduler_pb2.Event.RESCIND
                    | scheduler_pb2.Event.GUARANTEE
                ):
                    pass
                case _:
                    self.world.complain(f"a framework got {event}")
        if answers:
            self.say(scheduler_pb2.Calls(calls=answers))

    def _acknowledge(self, status: pb.TaskStatus) -> list[scheduler_pb2.Call]:
        if status.state not in (TASK_STARTING, TASK_RUNNING, TASK_FINISHED):
            self.world.complain(f"a task ended so: {status}")
        if not status.uuid:
            return []
        acknowledge = scheduler_pb2.Call.Acknowledge(
            agent_id=status.agent_id, task_id=status.task_id, uuid=status.uuid
        )
        kind = scheduler_pb2.Call.ACKNOWLEDGE
        return [scheduler_pb2.Call(framework_id=self.info.id, type=kind, acknowledge=acknowledge)]

    def _accept(self, offer: pb.Offer) -> scheduler_pb2.Call:
        cpus = sum(r.scalar.value for r in offer.resources if r.name == "cpus")
        tasks = [self.task(offer.agent_id) for _ in range(int(cpus))]
        launch = pb.Offer.Operation(
            type=pb.Offer.Operation.LAUNCH,
            launch=pb.Offer.Operation.Launch(task_infos=tasks),
        )
        return scheduler_pb2.Call(
            framework_id=self.info.id,
            type=scheduler_pb2.Call.ACCEPT,
            accept=scheduler_pb2.Call.Accept(offer_ids=[offer.id], operations=[launch]),
        )

    def task(self, agent_id: pb.AgentID) -> pb.TaskInfo:
        return pb.TaskInfo(
            name="bench",
            task_id=pb.TaskID(value=f"task-{next(self.world.task_ids)}"),
            agent_id=agent_id,
            resources=TASK.to_proto(),
            command=pb.CommandInfo(value="sleep 20"),
        )


async def follow(detector: Detector, peers: list[Peer], found: Callable[[], None]) -> None:
    """What each real peer's own watch does: links to others than the leader are cut."""
    async for leader in detector.watch():
        if leader is None:
            continue
        found()
        for peer in peers:
            if peer.address is not None and peer.address != leader:
                peer.cut()
