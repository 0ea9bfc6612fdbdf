"""Agents and frameworks that exist only as streams: as little work as a peer can do."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import grpc.aio

from bench.master_cpu.recording import AGENT, FRAMEWORK, Script
from mesos_py import rpc
from mesos_py.resources import Resources
from mesos_py.states import TASK_FINISHED, TASK_RUNNING, TASK_STARTING, TaskState
from mesos_py.v1 import agent_pb2, agent_pb2_grpc, scheduler_pb2, scheduler_pb2_grpc
from mesos_py.v1 import types_pb2 as pb

# What an agent answers after each acknowledgement.
NEXT: Final[dict[int, TaskState.ValueType]] = {
    TASK_STARTING: TASK_RUNNING,
    TASK_RUNNING: TASK_FINISHED,
}
UPDATES: Final = 3
TASK: Final = Resources.of(cpus=1, mem=128)


@dataclass(frozen=True)
class Load:
    """The cluster that is played, and for how long."""

    agents: int = 500
    frameworks: int = 20
    roles: int = 5
    # Tasks that an agent has room for.
    slots: int = 4
    warm_up_s: float = 6.0
    window_s: float = 5.0
    runs: int = 5


@dataclass
class World:
    """What all peers of one load generator share."""

    master: str
    uuids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    task_ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    # Updates that a framework has acknowledged; each task has UPDATES of them.
    acknowledged: int = 0
    recording: bool = False
    # The master answered something that no sound run has.
    complaints: list[str] = field(default_factory=list)

    def uuid(self) -> bytes:
        """16 bytes of an RFC 4122 uuid (version 4), the same in every run."""
        low = 0x8000_0000_0000_0000 | next(self.uuids)
        return (0x4000 << 64 | low).to_bytes(16, "big")


class Peer:
    """One stream, and what went over it while the world was recording."""

    kind = ""

    def __init__(self, world: World) -> None:
        self.world = world
        self.script = Script(self.kind)
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def calls(self, events: Any) -> Any:
        """What to answer, None for nothing."""
        raise NotImplementedError

    async def pause(self) -> None:
        """Called before each answer."""

    async def talk(self, call: grpc.aio.StreamStreamCall[Any, Any], opening: Any) -> None:
        await call.write(opening)
        async for events in call:
            if self.world.recording:
                self.script.entries.append((False, events))
            answer = self.calls(events)
            if answer is not None:
                await self.pause()
                if self.world.recording:
                    self.script.entries.append((True, answer))
                await call.write(answer)
        if not self.world.complaints:
            self.world.complaints.append(f"the master ended the stream of a {self.kind}")

    async def run(self) -> None:
        raise NotImplementedError


class Agent(Peer):
    kind = AGENT

    def __init__(self, world: World, number: int, slots: int, delay_s: float) -> None:
        super().__init__(world)
        self._number = number
        self._slots = slots
        self._id = pb.AgentID()
        self._framework_of: dict[str, tuple[pb.FrameworkID, TaskState.ValueType]] = {}
        self._late_s = delay_s

    async def pause(self) -> None:
        # Once: else all agents would go in step for ever, having begun together.
        delay_s, self._late_s = self._late_s, 0.0
        if delay_s:
            await asyncio.sleep(delay_s)

    async def run(self) -> None:
        ports = [(31000, 31999)]
        amount = Resources.of(cpus=self._slots, mem=128 * self._slots, ports=ports)
        info = pb.AgentInfo(
            hostname=f"host-{self._number}",
            ip="127.0.0.1",
            port=10_000 + self._number,
            resources=amount.to_proto(),
            attributes=[
                pb.Attribute(name="rack", type=pb.Value.TEXT, text=pb.Value.Text(value="r1"))
            ],
        )
        opening = agent_pb2.Call(
            type=agent_pb2.Call.REGISTER,
            register=agent_pb2.Call.Register(
                agent_info=info, version="bench", protocol_version=rpc.PROTOCOL_VERSION
            ),
        )
        async with rpc.open_channel(self.world.master) as channel:
            call = agent_pb2_grpc.AgentServiceStub(channel).Connect()
            await self.talk(call, agent_pb2.Calls(calls=[opening]))

    def calls(self, events: agent_pb2.Events) -> agent_pb2.Calls | None:
        answers = []
        for event in events.events:
            match event.type:
                case agent_pb2.Event.RUN_TASKS:
                    framework_id = event.run_tasks.framework_info.id
                    for task in event.run_tasks.tasks:
                        answers.append(self._update(framework_id, task.task_id, TASK_STARTING))
                case agent_pb2.Event.ACKNOWLEDGE:
                    task_id = event.acknowledge.task_id
                    framework_id, state = self._framework_of.pop(task_id.value)
                    if state in NEXT:
                        answers.append(self._update(framework_id, task_id, NEXT[state]))
                case agent_pb2.Event.PING:
                    pong = agent_pb2.Call.Pong(sequence=event.ping.sequence)
                    answers.append(agent_pb2.Call(type=agent_pb2.Call.PONG, pong=pong))
                case agent_pb2.Event.REGISTERED:
                    self._id.CopyFrom(event.registered.agent_id)
                    self.ready.set_result(None)
                case _:
                    self.world.complaints.append(f"an agent got {event}")
        return agent_pb2.Calls(calls=answers) if answers else None

    def _update(
        self, framework_id: pb.FrameworkID, task_id: pb.TaskID, state: TaskState.ValueType
    ) -> agent_pb2.Call:
        self._framework_of[task_id.value] = (framework_id, state)
        status = pb.TaskStatus(
            task_id=task_id,
            state=state,
            source=pb.TaskStatus.SOURCE_EXECUTOR,
            agent_id=self._id,
            timestamp=time.time(),
            uuid=self.world.uuid(),
        )
        if state == TASK_RUNNING:
            status.container_status.executor_pid = 4711
        elif state == TASK_FINISHED:
            status.message = "Command exited with status 0"
            status.exit_status.exit_code = 0
        update = agent_pb2.Call.Update(framework_id=framework_id, status=status, latest_state=state)
        return agent_pb2.Call(type=agent_pb2.Call.UPDATE, update=update)


class Framework(Peer):
    kind = FRAMEWORK

    def __init__(self, world: World, number: int, roles: int) -> None:
        super().__init__(world)
        self._number = number
        self._role = f"role-{number % roles}"
        self._id = pb.FrameworkID()

    async def run(self) -> None:
        info = pb.FrameworkInfo(
            user="nobody", name=f"framework-{self._number}", role=self._role, failover_timeout=60
        )
        opening = scheduler_pb2.Call(
            type=scheduler_pb2.Call.SUBSCRIBE,
            subscribe=scheduler_pb2.Call.Subscribe(framework_info=info, client="bench"),
        )
        async with rpc.open_channel(self.world.master) as channel:
            call = scheduler_pb2_grpc.SchedulerServiceStub(channel).Subscribe()
            await self.talk(call, scheduler_pb2.Calls(calls=[opening]))

    def calls(self, events: scheduler_pb2.Events) -> scheduler_pb2.Calls | None:
        answers = []
        for event in events.events:
            match event.type:
                case scheduler_pb2.Event.UPDATE:
                    if event.update.status.uuid:  # else the master's own word, for a late accept
                        answers.append(self._acknowledge(event.update.status))
                case scheduler_pb2.Event.OFFERS:
                    answers.extend(map(self._accept, event.offers.offers))
                case scheduler_pb2.Event.SUBSCRIBED:
                    self._id.CopyFrom(event.subscribed.framework_id)
                    self.ready.set_result(None)
                # What may come at any time and need not be answered, on a slow machine most of
                # all: a guarantee that grew while others were joining, an offer timed out.
                case (
                    scheduler_pb2.Event.HEARTBEAT
                    | scheduler_pb2.Event.RESCIND
                    | scheduler_pb2.Event.GUARANTEE
                ):
                    pass
                case _:
                    self.world.complaints.append(f"a framework got {event}")
        return scheduler_pb2.Calls(calls=answers) if answers else None

    def _acknowledge(self, status: pb.TaskStatus) -> scheduler_pb2.Call:
        self.world.acknowledged += 1
        return scheduler_pb2.Call(
            framework_id=self._id,
            type=scheduler_pb2.Call.ACKNOWLEDGE,
            acknowledge=scheduler_pb2.Call.Acknowledge(
                agent_id=status.agent_id, task_id=status.task_id, uuid=status.uuid
            ),
        )

    def _accept(self, offer: pb.Offer) -> scheduler_pb2.Call:
        """Launch all that fits into the offer; what is left (the ports) is refused for 5 s."""
        cpus = sum(r.scalar.value for r in offer.resources if r.name == "cpus")
        tasks = []
        for _ in range(int(cpus)):
            task_id = f"task-{next(self.world.task_ids)}"
            tasks.append(
                pb.TaskInfo(
                    name="bench",
                    task_id=pb.TaskID(value=task_id),
                    agent_id=offer.agent_id,
                    resources=TASK.to_proto(),
                    command=pb.CommandInfo(value="true"),
                )
            )
        launch = pb.Offer.Operation(
            type=pb.Offer.Operation.LAUNCH,
            launch=pb.Offer.Operation.Launch(task_infos=tasks),
        )
        return scheduler_pb2.Call(
            framework_id=self._id,
            type=scheduler_pb2.Call.ACCEPT,
            accept=scheduler_pb2.Call.Accept(offer_ids=[offer.id], operations=[launch]),
        )


Body = Callable[[], Awaitable[None]]


async def while_running(groups: Sequence[Sequence[Peer]], body: Body) -> None:
    """Start one group of peers after the other, run `body`, end them all.

    Raises when one of them ends before.
    """
    tasks: list[asyncio.Task[None]] = []
    try:
        for group in groups:
            tasks += [asyncio.create_task(peer.run()) for peer in group]
            await _until(asyncio.gather(*(peer.ready for peer in group)), tasks)
        await _until(asyncio.ensure_future(body()), tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _until(main: asyncio.Future[Any], tasks: Sequence[asyncio.Task[None]]) -> None:
    done, _ = await asyncio.wait([main, *tasks], return_when=asyncio.FIRST_COMPLETED)
    if main in done:
        await main
        return
    main.cancel()
    for task in done:
        await task
    raise RuntimeError("a peer has ended")
