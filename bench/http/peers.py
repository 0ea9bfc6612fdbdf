"""Emulated agents, and schedulers that do the same whatever they speak."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

from bench.http.forms import GrpcLine, HttpLine, Line, Shape, call_of
from bench.scale.connection import Connection
from bench.scale.peers import Agent, Wheel, World
from mesos_py.address import Address
from mesos_py.http.media import Media
from mesos_py.states import TASK_FINISHED, TASK_RUNNING
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb

# Tasks that are asked for at once in a RECONCILE.
ASKED_FOR: Final = 100
_UNKNOWN: Final = "unknown-"
_TASK_RESOURCES: Final = [
    {"name": "cpus", "type": "SCALAR", "scalar": {"value": 1.0}},
    {"name": "mem", "type": "SCALAR", "scalar": {"value": 128.0}},
]


class Host(Agent):
    """An agent whose tasks run until they are told to end."""

    def __init__(self, world: World, number: int, wire: Connection) -> None:
        super().__init__(world, Wheel(), number, wire)
        # By task: its framework.
        self.tasks: dict[str, str] = {}

    def info(self) -> pb.AgentInfo:
        """With HTTP, which offers over HTTP tell of."""
        made = super().info()
        made.http_port = made.port
        return made

    def received(self, message: bytes) -> None:
        for event in agent_pb2.Events.FromString(message).events:
            match event.type:
                case agent_pb2.Event.RUN_TASKS:
                    order = event.run_tasks
                    for task in order.tasks:
                        self.tasks[task.task_id.value] = order.framework_info.id.value
                        self._update(
                            order.framework_info.id.value, task.task_id.value, TASK_RUNNING
                        )
                case agent_pb2.Event.ACKNOWLEDGE:
                    self.acknowledged(event.acknowledge.task_id.value)
                case agent_pb2.Event.PING:
                    pong = agent_pb2.Call.Pong(sequence=event.ping.sequence)
                    self._say(agent_pb2.Call(type=agent_pb2.Call.PONG, pong=pong))
                case agent_pb2.Event.REGISTERED:
                    self._id = event.registered.agent_id.value
                    self._world.registered += 1
                case agent_pb2.Event.SHUTDOWN_FRAMEWORK | agent_pb2.Event.RECONCILE:
                    pass
                case _:
                    self._world.complain(f"an agent got {event}")

    def acknowledged(self, task_id: str) -> None:
        """The master has the acknowledgement of the task's last update."""

    @property
    def agent_id(self) -> str:
        return self._id

    def end(self, task_id: str) -> None:
        self._update(self.tasks.pop(task_id), task_id, TASK_FINISHED)


class Teller(Host):
    """Tells of its tasks over and over while `telling` says so: once an update is acknowledged
    comes the next one.  Then they end."""

    def __init__(
        self, world: World, number: int, wire: Connection, telling: Callable[[], bool]
    ) -> None:
        super().__init__(world, number, wire)
        self._telling = telling

    def acknowledged(self, task_id: str) -> None:
        framework_id = self.tasks.get(task_id)
        if framework_id is None:
            return
        if self._telling():
            self._update(framework_id, task_id, TASK_RUNNING)
        else:
            self.end(task_id)


class Scheduler:
    """Declines all offers at once while it has no tasks to launch; acknowledges updates."""

    def __init__(self, name: str, tasks_per_offer: int, *, revives: bool = False) -> None:
        """`revives`: after each decline, for masters that wait otherwise."""
        self.name = name
        self.launching = False
        self._per_offer = tasks_per_offer
        self._revives = revives
        self._line: Line | None = None
        # What is to be sent once there is a line.
        self._early: list[Shape] = []
        self._task_numbers = itertools.count(1)
        self._asked_for = 0
        self.framework_id = ""
        self.offers = self.offer_events = self.updates = self.finished = self.launched = 0
        # The longest record of each type, for who has to say the same.
        self.records: dict[str, bytes] = {}
        self.complaints: list[str] = []

    async def subscribe(
        self, to: Address, media: Media | None, *, role: str = "*", suppressed: bool = False
    ) -> None:
        """With a form of HTTP, or (None) over gRPC."""
        info = {"user": "nobody", "name": self.name, "failover_timeout": 600.0}
        info |= {"roles": [role], "capabilities": [{"type": "MULTI_ROLE"}]}
        asked: Shape = {"framework_info": info}
        if suppressed:
            asked["suppressed_roles"] = [role]
        await self.open(to, media, call_of({"type": "SUBSCRIBE", "subscribe": asked}, media))

    async def open(self, to: Address, media: Media | None, opening: bytes) -> None:
        """Begin a stream by this body of a request."""
        line: Line
        if media is None:
            line = await GrpcLine.open(to, opening, self.received)
        else:
            line = await HttpLine.open(to, media, opening, self.received)
        self._line = line
        line.send(self._early)
        self._early = []

    def close(self) -> None:
        if self._line is not None:
            self._line.close()

    def trouble(self) -> str:
        """What no sound run has, or nothing."""
        return next(iter(self.complaints), "") or (self._line.trouble() if self._line else "")

    def say(self, kind: str, **parts: Shape) -> None:
        """Send one call."""
        self._send([self._call(kind, **parts)])

    def reconcile(self) -> None:
        """Ask for tasks that nobody has heard of: each is answered by an update."""
        self._asked_for = ASKED_FOR
        tasks = [{"task_id": {"value": f"{_UNKNOWN}{n}"}} for n in range(ASKED_FOR)]
        self.say("RECONCILE", reconcile={"tasks": tasks})

    def stop_asking(self) -> None:
        self._asked_for = 0

    # ---- Events ------------------------------------------------------------------

    def received(self, record: bytes, events: Sequence[Shape]) -> None:
        answers: list[Shape] = []
        for event in events:
            kind = event["type"]
            if kind == "UPDATE":
                self._updated(event["update"]["status"], answers)
            elif kind == "OFFERS":
                self._offered(event["offers"]["offers"], answers)
            elif kind == "SUBSCRIBED":
                self.framework_id = event["subscribed"]["framework_id"]["value"]
            elif kind not in ("HEARTBEAT", "RESCIND", "GUARANTEE"):
                self.complaints.append(f"a scheduler got {event}")
            if len(record) > len(self.records.get(kind, b"")):
                self.records[kind] = record
        if answers:
            self._send(answers)

    def _offered(self, offers: list[Shape], answers: list[Shape]) -> None:
        self.offers += len(offers)
        self.offer_events += 1
        if self.launching:
            answers += [self.accept(offer) for offer in offers]
            return
        ids = [offer["id"] for offer in offers]
        filters = {"refuse_seconds": 0.0}
        answers.append(self._call("DECLINE", decline={"offer_ids": ids, "filters": filters}))
        if self._revives:
            answers.append(self._call("REVIVE"))

    def accept(self, offer: Shape) -> Shape:
        """Launch on an offer as many tasks as each is to have."""
        tasks = []
        for _ in range(self._per_offer):
            task_id = f"{self.name}-{next(self._task_numbers)}"
            command = {"value": "sleep 100000"}
            task = {"name": "bench", "task_id": {"value": task_id}, "agent_id": offer["agent_id"]}
            tasks.append({**task, "resources": _TASK_RESOURCES, "command": command})
        self.launched += len(tasks)
        operation = {"type": "LAUNCH", "launch": {"task_infos": tasks}}
        accept: Shape = {"offer_ids": [offer["id"]], "operations": [operation]}
        return self._call("ACCEPT", accept=accept)

    def _updated(self, status: Shape, answers: list[Shape]) -> None:
        self.updates += 1
        task_id = status["task_id"]["value"]
        if status["state"] == "TASK_FINISHED":
            self.finished += 1
        elif status["state"] != "TASK_RUNNING" and not task_id.startswith(_UNKNOWN):
            self.complaints.append(f"a task ended so: {status}")
        if "uuid" in status:
            told = {name: status[name] for name in ("agent_id", "task_id", "uuid")}
            answers.append(self._call("ACKNOWLEDGE", acknowledge=told))
        elif self._asked_for:
            self._asked_for -= 1
            if not self._asked_for:
                self.reconcile()
        self.updated(status)

    def updated(self, status: Shape) -> None:
        """An update has come, and its acknowledgement is about to go."""

    # ---- Calls -------------------------------------------------------------------

    def _call(self, kind: str, **parts: Shape) -> Shape:
        return {"framework_id": {"value": self.framework_id}, "type": kind, **parts}

    def _send(self, calls: Sequence[Shape]) -> None:
        if self._line is None:
            self._early += calls
        else:
            self._line.send(calls)


def ready_made(first: bytes, record: bytes, at_once: int) -> bytes:
    """What to ask the floor for; see floor.py."""
    asked: dict[str, Any] = {"at_once": at_once}
    asked["first"] = base64.b64encode(first).decode()
    asked["record"] = base64.b64encode(record).decode()
    return call_of(asked, Media.JSON)


async def register(
    world: World, master: Address, made: Callable[[int, Connection], Host]
) -> list[Host]:
    """All agents of the load, over connections that they share; none is registered yet."""
    import asyncio

    hosts = []
    for number in range(world.load.agents):
        if number % world.load.together == 0:
            loop = asyncio.get_running_loop()
            _, wire = await loop.create_connection(
                lambda: Connection(str(master)), master.host, master.port
            )
        host = made(number, wire)
        host.register()
        hosts.append(host)
    return hosts


__all__ = ["ASKED_FOR", "Host", "Scheduler", "Teller", "ready_made", "register"]
