"""The master's core alone: a world of fake streams, with time that stands still.

world = World()
agent = world.agent(cpus=4)
framework = world.framework("a")
offer = framework.offers()[0]        # allocates when the window has passed
framework.launch(offer, world.task("t1", cpus=1))
agent.report("t1", TASK_RUNNING)
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from master.allocator.base import Allocator, AllocatorOptions
from master.allocator.drf import DrfAllocator
from master.core.cluster import Options
from master.core.invariants import check
from master.core.master import Master
from mesos_py.clock import ManualClock
from mesos_py.ids import MasterIds
from mesos_py.resources import Resources
from mesos_py.states import TaskState
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

FCall = sched.Call
ACall = agent_pb2.Call


@dataclass
class RecordingOutbox:
    """Keeps what the core sends, by link, until somebody takes it."""

    to: dict[int, list[Any]] = field(default_factory=dict)
    closed: dict[int, str] = field(default_factory=dict)
    drops: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    newer_epochs: list[int] = field(default_factory=list)
    # Writes to the registry that have not been confirmed (`World.stored`).
    writes: list[tuple[int, Mapping[str, bytes | None]]] = field(default_factory=list)

    def to_framework(self, link: int, event: sched.Event) -> None:
        self.to.setdefault(link, []).append(event)

    def to_agent(self, link: int, event: agent_pb2.Event) -> None:
        self.to.setdefault(link, []).append(event)

    def close(self, link: int, reason: str) -> None:
        self.closed[link] = reason

    def store(self, number: int, changes: Mapping[str, bytes | None]) -> None:
        self.writes.append((number, changes))

    def newer_epoch(self, epoch: int) -> None:
        self.newer_epochs.append(epoch)

    def dropped(self, reason: str, **ids: object) -> None:
        self.drops.append((reason, ids))

    def take(self, link: int) -> list[Any]:
        return self.to.pop(link, [])


class World:
    """One core and everybody around it.  `check()` proves the invariants."""

    def __init__(
        self,
        options: Options | None = None,
        allocator: Allocator | None = None,
        outbox: RecordingOutbox | None = None,
        epoch: int = 0,
    ) -> None:
        self.clock = ManualClock()
        self.outbox = outbox if outbox is not None else RecordingOutbox()
        self._uuids = itertools.count(1)
        self._links = itertools.count(1)
        self.core = Master(
            options or Options(),
            pb.MasterInfo(id="m", hostname="master", port=5050),
            MasterIds(f"m{epoch or ''}", self.uuid),
            self.outbox,
            allocator or DrfAllocator(AllocatorOptions()),
            epoch,
        )
        self.cluster = self.core.cluster
        # What a successor would find (with Options(durable=True)).
        self.records: dict[str, bytes] = {}

    def stored(self, count: int | None = None) -> None:
        """The storage has taken all that the core has written so far (or so many writes)."""
        while self.outbox.writes and count != 0:
            count = None if count is None else count - 1
            number, changes = self.outbox.writes.pop(0)
            for key, value in changes.items():
                if value is None:
                    del self.records[key]
                else:
                    self.records[key] = value
            self.core.stored(number, self.clock.now())

    def successor(
        self,
        unconfirmed: int = 0,
        options: Options | None = None,
        outbox: RecordingOutbox | None = None,
    ) -> World:
        """The next leader, which has recovered.  Of the writes that were not confirmed
        the first `unconfirmed` have been stored all the same."""
        records = dict(self.records)
        for _, changes in self.outbox.writes[:unconfirmed]:
            for key, value in changes.items():
                if value is None:
                    records.pop(key, None)
                else:
                    records[key] = value
        epoch = self.cluster.epoch + 1
        old = self.cluster.allocator
        allocator = DrfAllocator(old.options) if isinstance(old, DrfAllocator) else None
        made = World(options or self.cluster.options, allocator, outbox, epoch)
        made.clock = ManualClock(self.clock.monotonic_s, self.clock.wall_s)
        made.records = records
        made._uuids = self._uuids
        made.core.recover(records, made.clock.now())
        return made

    def uuid(self) -> bytes:
        return next(self._uuids).to_bytes(16, "big")

    def link(self) -> int:
        return next(self._links)

    def agent(
        self, hostname: str = "", resources: str = "cpus:4;mem:4096", **attributes: str
    ) -> FakeAgent:
        """A registered agent."""
        agent = FakeAgent(self, hostname or f"host{next(self._links)}", resources, attributes)
        agent.register()
        if not agent.id:
            self.stored()
            agent.greeted()
        return agent

    def framework(self, name: str = "f", **info: Any) -> FakeFramework:
        """A subscribed framework.  `info`: fields of FrameworkInfo."""
        framework = FakeFramework(self, pb.FrameworkInfo(name=name, user="nobody", **info))
        framework.subscribe()
        return framework

    def settle(self) -> None:
        """Let the window pass, so that what is wanted has been allocated."""
        self.advance(self.cluster.options.allocation_window_s)

    def advance(self, seconds: float) -> None:
        """Move time on, waking the core at each of its deadlines on the way."""
        until = self.clock.monotonic_s + seconds
        for _ in range(100_000):
            deadline = self.core.next_deadline_s()
            if deadline is None or deadline > until:
                break
            self.clock.advance(max(0.0, deadline - self.clock.monotonic_s))
            # The sum may fall short of the deadline by its rounding.
            self.clock.monotonic_s = max(self.clock.monotonic_s, deadline)
            self.core.tick(self.clock.now())
        else:
            raise AssertionError("the core asks to be woken without end")
        self.clock.advance(until - self.clock.monotonic_s)

    def check(self) -> None:
        check(self.cluster)

    def task(
        self, task_id: str, agent: str = "", text: str = "cpus:1;mem:32", **scalars: Any
    ) -> pb.TaskInfo:
        """A command task that asks for `scalars`, or for the resources `text`; the
        agent is filled in when it is launched."""
        resources = Resources.of(**scalars) if scalars else Resources.parse_reserved(text)
        return pb.TaskInfo(
            name=task_id,
            task_id=pb.TaskID(value=task_id),
            agent_id=pb.AgentID(value=agent),
            resources=resources.to_proto(),
            command=pb.CommandInfo(value="true"),
        )

    def custom_task(
        self,
        task_id: str,
        executor_id: str = "e1",
        text: str = "cpus:1;mem:32",
        own: str = "cpus:0.5",
    ) -> pb.TaskInfo:
        """A task for a custom executor, which needs `own` for itself ("": nothing)."""
        task = self.task(task_id, text=text)
        task.ClearField("command")
        task.executor.executor_id.value = executor_id
        task.executor.command.value = "run"
        if own:
            task.executor.resources.extend(Resources.parse(own).to_proto())
        return task


class FakeAgent:
    """An agent's side of its stream."""

    def __init__(
        self, world: World, hostname: str, resources: str, attributes: dict[str, str]
    ) -> None:
        self.world = world
        self.info = pb.AgentInfo(
            hostname=hostname,
            ip="127.0.0.1",
            port=next(world._links) + 10_000,
            resources=Resources.parse_reserved(resources).to_proto(),
            attributes=[
                pb.Attribute(name=name, type=pb.Value.TEXT, text=pb.Value.Text(value=text))
                for name, text in attributes.items()
            ],
        )
        self.link = 0
        self.capabilities = [
            pb.AgentInfo.Capability.AGENT_DRAINING,
            pb.AgentInfo.Capability.AGENT_OPERATION_FEEDBACK,
            pb.AgentInfo.Capability.RESIZE_VOLUME,
        ]
        self.draining = False

    @property
    def id(self) -> str:
        return self.info.id.value

    def register(
        self, tasks: Any = (), executors: Any = (), frameworks: Any = (), **fields: Any
    ) -> list[Any]:
        """Register on a new stream; the events that come back (REGISTERED first)."""
        self.link = self.world.link()
        call = ACall(
            type=ACall.REGISTER,
            register=ACall.Register(
                agent_info=self.info,
                tasks=tasks,
                executors=executors,
                frameworks=frameworks,
                version="0.1.0",
                protocol_version=1,
                capabilities=[pb.AgentInfo.Capability(type=each) for each in self.capabilities],
                draining=self.draining,
                **fields,
            ),
        )
        self.world.core.agent_call(self.link, call, self.world.clock.now())
        return self.greeted()

    def greeted(self) -> list[Any]:
        """What has come; if REGISTERED is the first of it, the agent has its id from it."""
        events = self.take()
        if events and events[0].type == agent_pb2.Event.REGISTERED:
            self.info.id.CopyFrom(events[0].registered.agent_id)
        return events

    def call(self, **fields: Any) -> None:
        self.world.core.agent_call(self.link, ACall(**fields), self.world.clock.now())

    def disconnect(self) -> None:
        self.world.core.agent_disconnected(self.link, self.world.clock.now())

    def take(self, kind: agent_pb2.Event.Type.ValueType | None = None) -> list[Any]:
        """What the master sent since the last time; of one kind, if it is given."""
        events = self.world.outbox.take(self.link)
        return [event for event in events if kind is None or event.type == kind]

    def orders(self) -> list[str]:
        """The kinds of what the master sent since the last time, by name, without pings."""
        events = [event for event in self.take() if event.type != agent_pb2.Event.PING]
        return [agent_pb2.Event.Type.Name(event.type) for event in events]

    def pong(self) -> None:
        self.call(type=ACall.PONG)

    def task(
        self,
        task_id: str,
        framework: FakeFramework | str,
        state: TaskState.ValueType,
        resources: str = "cpus:1;mem:32",
        **fields: Any,
    ) -> pb.Task:
        """A task as the agent names it when it registers."""
        return pb.Task(
            name=task_id,
            task_id=pb.TaskID(value=task_id),
            framework_id=pb.FrameworkID(value=_id_of(framework)),
            agent_id=pb.AgentID(value=self.id),
            state=state,
            resources=Resources.parse_reserved(resources).to_proto(),
            **fields,
        )

    def executor_exited(self, executor_id: str, framework: FakeFramework | str, status: int = 0):
        exited = ACall.ExecutorExited(
            framework_id=pb.FrameworkID(value=_id_of(framework)),
            executor_id=pb.ExecutorID(value=executor_id),
            status=status,
        )
        self.call(type=ACall.EXECUTOR_EXITED, executor_exited=exited)

    def report(
        self,
        task_id: str,
        state: TaskState.ValueType,
        framework: FakeFramework | str,
        uuid: bytes | None = None,
        latest: TaskState.ValueType | None = None,
        **fields: Any,
    ) -> bytes:
        """Send a status update; its uuid."""
        framework_id = _id_of(framework)
        uuid = self.world.uuid() if uuid is None else uuid
        status = pb.TaskStatus(
            task_id=pb.TaskID(value=task_id),
            agent_id=pb.AgentID(value=self.id),
            state=state,
            source=pb.TaskStatus.SOURCE_AGENT,
            uuid=uuid,
            timestamp=self.world.clock.wall_s,
            **fields,
        )
        update = ACall.Update(
            framework_id=pb.FrameworkID(value=framework_id),
            status=status,
            latest_state=state if latest is None else latest,
        )
        self.call(type=ACall.UPDATE, update=update)
        return uuid


class FakeFramework:
    """A scheduler's side of its stream."""

    def __init__(self, world: World, info: pb.FrameworkInfo) -> None:
        self.world = world
        self.info = info
        self.link = 0

    @property
    def id(self) -> str:
        return self.info.id.value

    def subscribe(self, **fields: Any) -> list[Any]:
        """Subscribe on a new stream; the events that come back (SUBSCRIBED first)."""
        self.link = self.world.link()
        call = FCall(
            type=FCall.SUBSCRIBE,
            framework_id=self.info.id if self.info.HasField("id") else None,
            subscribe=FCall.Subscribe(framework_info=self.info, **fields),
        )
        self.world.core.framework_call(self.link, call, self.world.clock.now())
        events = self.take()
        if events and events[0].type == sched.Event.SUBSCRIBED:
            self.info.id.CopyFrom(events[0].subscribed.framework_id)
        return events

    def call(self, **fields: Any) -> None:
        self.world.core.framework_call(self.link, FCall(**fields), self.world.clock.now())

    def disconnect(self) -> None:
        self.world.core.framework_disconnected(self.link, self.world.clock.now())

    def take(self) -> list[Any]:
        """What the master sent since the last time, heartbeats left out."""
        events = self.world.outbox.take(self.link)
        return [event for event in events if event.type != sched.Event.HEARTBEAT]

    def offers(self) -> list[pb.Offer]:
        """Settle, and the offers that have come since the last `take`."""
        self.world.settle()
        return [
            offer
            for event in self.take()
            if event.type == sched.Event.OFFERS
            for offer in event.offers.offers
        ]

    def updates(self) -> list[pb.TaskStatus]:
        return [e.update.status for e in self.take() if e.type == sched.Event.UPDATE]

    def refusals(self) -> list[sched.Event.Refused]:
        return [e.refused for e in self.take() if e.type == sched.Event.REFUSED]

    def kinds(self) -> list[str]:
        """The kinds of what has come since the last time, by name."""
        return [sched.Event.Type.Name(event.type) for event in self.take()]

    def accept(
        self, offers: list[pb.Offer], operations: list[Any], refuse_s: float | None = None
    ) -> None:
        accept = FCall.Accept(offer_ids=[offer.id for offer in offers], operations=operations)
        if refuse_s is not None:
            accept.filters.refuse_seconds = refuse_s
        self.call(type=FCall.ACCEPT, accept=accept)

    def launch(self, offer: pb.Offer, *tasks: pb.TaskInfo, refuse_s: float = 0.0) -> None:
        """Accept the offer with a LAUNCH; the tasks' agent is the offer's."""
        for task in tasks:
            task.agent_id.CopyFrom(offer.agent_id)
        launch = pb.Offer.Operation.Launch(task_infos=tasks)
        operation = pb.Offer.Operation(type=pb.Offer.Operation.LAUNCH, launch=launch)
        self.accept([offer], [operation], refuse_s)

    def decline(self, *offers: pb.Offer, refuse_s: float | None = None) -> None:
        decline = FCall.Decline(offer_ids=[offer.id for offer in offers])
        if refuse_s is not None:
            decline.filters.refuse_seconds = refuse_s
        self.call(type=FCall.DECLINE, decline=decline)

    def acknowledge(self, agent: FakeAgent, task_id: str, uuid: bytes) -> None:
        self.call(
            type=FCall.ACKNOWLEDGE,
            acknowledge=FCall.Acknowledge(
                agent_id=pb.AgentID(value=agent.id), task_id=pb.TaskID(value=task_id), uuid=uuid
            ),
        )

    def kill(self, task_id: str, agent_id: str = "", grace_s: float | None = None) -> None:
        kill = FCall.Kill(task_id=pb.TaskID(value=task_id))
        if agent_id:
            kill.agent_id.value = agent_id
        if grace_s is not None:
            kill.kill_policy.grace_period.nanoseconds = int(grace_s * 1e9)
        self.call(type=FCall.KILL, kill=kill)

    def reconcile(self, *tasks: tuple[str, str]) -> list[pb.TaskStatus]:
        """Ask about tasks, as (task id, agent id or ""), or about all; the answers."""
        asked = FCall.Reconcile()
        for task_id, agent_id in tasks:
            item = asked.tasks.add(task_id=pb.TaskID(value=task_id))
            if agent_id:
                item.agent_id.value = agent_id
        self.take()
        self.call(type=FCall.RECONCILE, reconcile=asked)
        return self.updates()

    def start(self, *task_ids: str, text: str = "cpus:1;mem:32") -> pb.Offer:
        """Launch tasks on the next offer that comes; the offer."""
        offer = self.offers()[0]
        self.launch(offer, *(self.world.task(task_id, text=text) for task_id in task_ids))
        return offer


def _id_of(framework: FakeFramework | str) -> str:
    return framework if isinstance(framework, str) else framework.id
