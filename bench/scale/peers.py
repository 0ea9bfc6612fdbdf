"""Agents, frameworks and the probe, as little work as they can be.

What an agent says and what a framework answers are the messages of real ones; tasks are
timers.  Messages that differ in a few fields only are filled into one that is kept.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from bench.failover.peers import TASK
from bench.scale.connection import Connection
from mesos_py import rpc
from mesos_py.resources import Resources
from mesos_py.states import TASK_FINISHED, TASK_RUNNING, TaskState
from mesos_py.v1 import agent_pb2, scheduler_pb2
from mesos_py.v1 import types_pb2 as pb

_SEED: Final = 5
# Ends of tasks are gathered for so long.
TICK_S: Final = 0.02
LEAST_S: Final = 1.0
PROBE_ROLE: Final = "probe"


def _path(module: Any, service: str, method: str) -> str:
    return f"/{module.DESCRIPTOR.services_by_name[service].full_name}/{method}"


AGENTS: Final = _path(agent_pb2, "AgentService", "Connect")
SCHEDULERS: Final = _path(scheduler_pb2, "SchedulerService", "Subscribe")


@dataclass(frozen=True)
class Load:
    """The cluster that is played, and how it is measured."""

    agents: int
    frameworks: int = 200
    roles: int = 20
    # Tasks that an agent has room for.
    slots: int = 2
    task_s: float = 30.0
    task_sd_s: float = 10.0
    # Agents that share a connection.
    together: int = 250
    probes: int = 5
    probe_s: float = 10.0
    # Before the first probe all slots are to be taken, as far as the master gets in
    # this time; and then for one task's length.
    fill_within_s: float = 90.0
    settle_s: float = 10.0
    register_within_s: float = 300.0
    probe_within_s: float = 60.0


@dataclass
class World:
    """What all peers of the process share, and what they have seen."""

    load: Load
    chance: random.Random = field(default_factory=lambda: random.Random(_SEED))
    uuids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    task_ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    registered: int = 0
    subscribed: int = 0
    launched: int = 0
    running: int = 0
    finished: int = 0
    # Entries of messages, by way and kind of stream.
    entries: Counter[str] = field(default_factory=Counter)
    # The master said something that no sound run has.
    complaints: list[str] = field(default_factory=list)

    def uuid(self) -> bytes:
        """16 bytes of an RFC 4122 uuid (version 4), the same in every run."""
        low = 0x8000_0000_0000_0000 | next(self.uuids)
        return (0x4000 << 64 | low).to_bytes(16, "big")

    def complain(self, what: str) -> None:
        if len(self.complaints) < 20:
            self.complaints.append(what)


class Wheel:
    """Calls that are due at about the same time, one after the other."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._slots: dict[int, list[tuple[Callable[..., None], Any]]] = {}

    def call_in(self, seconds: float, call: Callable[[Any], None], what: Any) -> None:
        tick = math.ceil((self._loop.time() + seconds) / TICK_S)
        slot = self._slots.get(tick)
        if slot is None:
            slot = self._slots[tick] = []
            self._loop.call_at(tick * TICK_S, self._due, tick)
        slot.append((call, what))

    def _due(self, tick: int) -> None:
        for call, what in self._slots.pop(tick):
            call(what)


class Agent:
    """One stream of a connection."""

    def __init__(self, world: World, wheel: Wheel, number: int, wire: Connection) -> None:
        self._world = world
        self._wheel = wheel
        self._wire = wire
        self._number = number
        self._stream = wire.open(AGENTS, self)
        self._id = ""

    def info(self) -> pb.AgentInfo:
        """What the master is to know of it."""
        slots = self._world.load.slots
        return pb.AgentInfo(
            hostname=f"host-{self._number}",
            ip="127.0.0.1",
            port=10_000 + self._number,
            resources=Resources.of(cpus=slots, mem=128 * slots).to_proto(),
            attributes=[
                pb.Attribute(name="rack", type=pb.Value.TEXT, text=pb.Value.Text(value="r1"))
            ],
        )

    def register(self) -> None:
        info = self.info()
        register = agent_pb2.Call.Register(
            agent_info=info,
            version="bench",
            protocol_version=rpc.PROTOCOL_VERSION,
            instance=info.hostname,
            attempt=1,
        )
        call = agent_pb2.Call(type=agent_pb2.Call.REGISTER, register=register)
        self._wire.send(self._stream, agent_pb2.Calls(calls=[call]).SerializeToString())

    def received(self, message: bytes) -> None:
        events = agent_pb2.Events.FromString(message).events
        self._world.entries["agent in"] += len(events)
        for event in events:
            match event.type:
                case agent_pb2.Event.ACKNOWLEDGE:
                    pass
                case agent_pb2.Event.RUN_TASKS:
                    self._run(event.run_tasks)
                case agent_pb2.Event.PING:
                    pong = agent_pb2.Call.Pong(sequence=event.ping.sequence)
                    self._say(agent_pb2.Call(type=agent_pb2.Call.PONG, pong=pong))
                case agent_pb2.Event.REGISTERED:
                    self._id = event.registered.agent_id.value
                    self._world.registered += 1
                case _:
                    self._world.complain(f"an agent got {event}")

    def ended(self) -> None:
        self._world.complain("the master ended the stream of an agent")

    def _run(self, order: agent_pb2.Event.RunTasks) -> None:
        framework_id = order.framework_info.id.value
        for task in order.tasks:
            task_id = task.task_id.value
            self._update(framework_id, task_id, TASK_RUNNING)
            lasts_s = float(task.command.value.removeprefix("sleep "))
            self._wheel.call_in(lasts_s, self._finish, (framework_id, task_id))
            self._world.running += 1

    def _finish(self, which: tuple[str, str]) -> None:
        self._world.running -= 1
        self._world.finished += 1
        self._update(*which, TASK_FINISHED)

    def _update(self, framework_id: str, task_id: str, state: TaskState.ValueType) -> None:
        update = _UPDATE.update
        status = update.status
        update.framework_id.value = framework_id
        status.task_id.value = task_id
        status.agent_id.value = self._id
        status.uuid = self._world.uuid()
        status.timestamp = time.time()
        status.state = update.latest_state = state
        self._wire.send(self._stream, _UPDATES.SerializeToString())

    def _say(self, call: agent_pb2.Call) -> None:
        self._wire.send(self._stream, agent_pb2.Calls(calls=[call]).SerializeToString())


_UPDATES: Final = agent_pb2.Calls(calls=[agent_pb2.Call(type=agent_pb2.Call.UPDATE)])
_UPDATE: Final = _UPDATES.calls[0]
_UPDATE.update.status.source = pb.TaskStatus.SOURCE_EXECUTOR

_TASK: Final = pb.TaskInfo(name="bench", resources=TASK.to_proto())


class Framework:
    """Takes every offer, and fills it with tasks."""

    def __init__(self, world: World, name: str, role: str, wire: Connection) -> None:
        self.world = world
        self._wire = wire
        self._name = name
        self._role = role
        self._stream = wire.open(SCHEDULERS, self)
        # The first tasks end at any time of their length: later ones come evenly.
        self._early = world.load.agents * world.load.slots / max(1, world.load.frameworks)

    def subscribe(self, *suppressed: str) -> None:
        subscribe = scheduler_pb2.Call.Subscribe(
            framework_info=pb.FrameworkInfo(
                user="nobody", name=self._name, role=self._role, failover_timeout=3600
            ),
            suppressed_roles=suppressed,
            client="bench",
        )
        call = scheduler_pb2.Call(type=scheduler_pb2.Call.SUBSCRIBE, subscribe=subscribe)
        self.say(scheduler_pb2.Calls(calls=[call]))

    def say(self, calls: scheduler_pb2.Calls) -> None:
        self.world.entries["framework out"] += len(calls.calls)
        self._wire.send(self._stream, calls.SerializeToString())

    def received(self, message: bytes) -> None:
        answers = scheduler_pb2.Calls()
        events = scheduler_pb2.Events.FromString(message).events
        self.world.entries["framework in"] += len(events)
        for event in events:
            match event.type:
                case scheduler_pb2.Event.UPDATE:
                    self.updated(event.update.status, answers)
                case scheduler_pb2.Event.OFFERS:
                    self.offered(event.offers.offers, answers)
                case scheduler_pb2.Event.SUBSCRIBED:
                    self.world.subscribed += 1
                case scheduler_pb2.Event.HEARTBEAT | scheduler_pb2.Event.RESCIND:
                    pass
                case scheduler_pb2.Event.GUARANTEE:
                    pass
                case _:
                    self.world.complain(f"a framework got {event}")
        if answers.calls:
            self.say(answers)

    def ended(self) -> None:
        self.world.complain("the master ended the stream of a framework")

    def updated(self, status: pb.TaskStatus, answers: scheduler_pb2.Calls) -> None:
        if status.state not in (TASK_RUNNING, TASK_FINISHED):
            self.world.complain(f"a task ended so: {status}")
            return
        call = answers.calls.add(type=scheduler_pb2.Call.ACKNOWLEDGE)
        acknowledge = call.acknowledge
        acknowledge.agent_id.value = status.agent_id.value
        acknowledge.task_id.value = status.task_id.value
        acknowledge.uuid = status.uuid

    def offered(self, offers: Any, answers: scheduler_pb2.Calls) -> None:
        for offer in offers:
            cpus = next(r.scalar.value for r in offer.resources if r.name == "cpus")
            lengths = [self._task_s() for _ in range(int(cpus))]
            launch_on(self.world, offer, lengths, answers)

    def _task_s(self) -> float:
        load, chance = self.world.load, self.world.chance
        seconds = max(LEAST_S, chance.gauss(load.task_s, load.task_sd_s))
        if self._early > 0:
            self._early -= 1
            seconds *= chance.random()
        return seconds


def launch_on(
    world: World, offer: pb.Offer, lengths: list[float], answers: scheduler_pb2.Calls
) -> str:
    """Accept the offer with a task of each length; the last one's id."""
    accept = answers.calls.add(type=scheduler_pb2.Call.ACCEPT).accept
    accept.offer_ids.add(value=offer.id.value)
    tasks = accept.operations.add(type=pb.Offer.Operation.LAUNCH).launch.task_infos
    agent_id, task_id = offer.agent_id.value, ""
    for seconds in lengths:
        task = tasks.add()
        task.CopyFrom(_TASK)
        task.task_id.value = task_id = f"task-{next(world.task_ids)}"
        task.agent_id.value = agent_id
        task.command.value = f"sleep {seconds:.2f}"
    world.launched += len(lengths)
    return task_id


class Probe(Framework):
    """Wants one task at a time, and notes how long that takes."""

    def __init__(self, world: World, wire: Connection) -> None:
        super().__init__(world, "probe", PROBE_ROLE, wire)
        self._task_id = ""
        self._wanted_s: float | None = None
        self.marks: dict[str, float] = {}
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, seconds: float, within_s: float) -> dict[str, float]:
        """Run one task; when it was offered, RUNNING and FINISHED, in seconds from now.

        Raises TimeoutError."""
        self._wanted_s, self.marks = seconds, {}
        self._over = asyncio.get_running_loop().create_future()
        began_s = time.monotonic()
        self.say(scheduler_pb2.Calls(calls=[scheduler_pb2.Call(type=scheduler_pb2.Call.REVIVE)]))
        async with asyncio.timeout(seconds + within_s):
            await self._over
        return {name: moment - began_s for name, moment in self.marks.items()}

    def offered(self, offers: Any, answers: scheduler_pb2.Calls) -> None:
        rest = list(offers)
        if self._wanted_s is not None:
            self.marks["offered"] = time.monotonic()
            self._task_id = launch_on(self.world, rest.pop(), [self._wanted_s], answers)
            self._wanted_s = None
            answers.calls.add(type=scheduler_pb2.Call.SUPPRESS)
        if rest:
            decline = answers.calls.add(type=scheduler_pb2.Call.DECLINE).decline
            decline.offer_ids.extend(offer.id for offer in rest)

    def updated(self, status: pb.TaskStatus, answers: scheduler_pb2.Calls) -> None:
        super().updated(status, answers)
        if status.task_id.value == self._task_id:
            name = {TASK_RUNNING: "running", TASK_FINISHED: "finished"}[status.state]
            self.marks[name] = time.monotonic()
            if status.state == TASK_FINISHED and not self._over.done():
                self._over.set_result(None)
