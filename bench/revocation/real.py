"""The scenarios with a master, an agent and two frameworks, in less time.

All times are divided by `scale`, also those of the master's flags.  Tasks are `sleep`.
"""

from __future__ import annotations

import asyncio
import itertools
from abc import abstractmethod
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from bench.processes import BenchFailed, Processes
from bench.revocation.scenario import GREEDY_S, REACTIVE_S, SLOTS, Ran, Reading, Story
from mesos_py.resources import Resources
from mesos_py.scheduler.aio import SchedulerClient
from mesos_py.scheduler.needs import Need
from mesos_py.states import TASK_FINISHED, TASK_KILLED, is_terminal
from mesos_py.tasks import command_task
from mesos_py.v1 import types_pb2 as pb
from mesos_py.v1.scheduler_pb2 import Event

SLOT: Final = Resources.of(cpus=1, mem=64)
AGENT: Final = f"cpus:{SLOTS};mem:{64 * SLOTS}"
# What a lack has to last, and how long what was freed is kept, unscaled.
PATIENCE_S: Final = 1.0
HOLD_S: Final = 30.0
CONNECT_S: Final = 20.0
# What it takes to start a task, to end it and to tell of it, unscaled by nature.  Tasks sleep
# so much less: the reactive framework's load is all that its slots can do, and tasks that
# took longer than they should would pile up.
LAUNCH_S: Final = 0.075


@dataclass(frozen=True)
class Kind:
    """`revocation`: it is switched on, and needs are stated.  `greedy`: it is there."""

    name: str
    revocation: bool
    greedy: bool


KINDS: Final = (
    Kind("with revocation", True, True),
    Kind("without", False, True),
    Kind("alone", True, False),
)


def start(running: Processes, name: str, kind: Kind, scale: float) -> str:
    """A master and its agent; the master's address."""
    _, address = running.daemon(
        f"master-{name}",
        f"--revocation={'youngest' if kind.revocation else 'off'}",
        "--revocation-grace=0s",
        f"--revocation-patience={PATIENCE_S / scale:g}s",
        f"--revocation-interval={PATIENCE_S / scale:g}s",
        f"--revocation-hold={HOLD_S / scale:g}s",
    )
    running.daemon(
        f"agent-{name}", "--master", address, "--resources", AGENT, "--tasks-on-exit=end"
    )
    return address


@dataclass
class _Run:
    """The clock of one run, and what happened.  It begins when `began_s` is set."""

    scale: float
    story: Story = field(default_factory=Story)
    began_s: float | None = None
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self) -> None:
        if self.began_s is None:
            self.began_s = asyncio.get_running_loop().time()
            self.begun.set()

    def now_s(self) -> float:
        assert self.began_s is not None, "it has not begun"
        return (asyncio.get_running_loop().time() - self.began_s) * self.scale

    async def until(self, at_s: float) -> None:
        await asyncio.sleep(max(0.0, (at_s - self.now_s()) / self.scale))


class _Framework:
    """Launches tasks of one length on what it is offered."""

    def __init__(self, run: _Run, client: SchedulerClient, name: str, takes_s: float) -> None:
        self.run = run
        self.client = client
        self.name = name
        self._argv = ["/bin/sleep", f"{takes_s / run.scale - LAUNCH_S:g}"]
        self._numbers = itertools.count(1)
        # By task id: wanted since, started.
        self.running: dict[str, tuple[float, float]] = {}

    async def serve(self) -> None:
        async for event in self.client:
            if event.type == Event.OFFERS:
                for offer in event.offers.offers:
                    self.offered(offer)
            elif event.type == Event.RESCIND:
                self.rescinded(event.rescind.offer_id.value)
            elif event.type == Event.UPDATE and is_terminal(event.update.status.state):
                self._ended(event.update.status)

    def offered(self, offer: pb.Offer) -> None:
        amounts = {item.name: item.scalar.value for item in offer.resources}
        slots = int(min(amounts.get("cpus", 0) / 1, amounts.get("mem", 0) / 64))
        tasks = []
        for wanted_s in self.takes(slots):
            name = f"{self.name}-{next(self._numbers)}"
            tasks.append(command_task(self.name, name, offer, self._argv, resources=SLOT))
            self.running[name] = wanted_s, self.run.now_s()
        self.client.launch_tasks(offer, tasks, filters=5.0 / self.run.scale)

    def _ended(self, status: pb.TaskStatus) -> None:
        wanted_s, start_s = self.running.pop(status.task_id.value)
        if status.reason == pb.TaskStatus.REASON_INVALID_OFFERS:
            # Its offer was taken back at that moment.
            self.missed(wanted_s)
            return
        killed = status.state == TASK_KILLED
        if not killed and status.state != TASK_FINISHED:
            raise BenchFailed(f"a task ended with {status}")
        if killed and status.reason != pb.TaskStatus.REASON_CONTAINER_PREEMPTED:
            raise BenchFailed(f"a task was killed, and not preempted: {status}")
        self.run.story.ran.append(Ran(self.name, wanted_s, start_s, self.run.now_s(), killed))
        self.ended()

    def rescinded(self, offer_id: str) -> None:
        """An offer is gone."""

    @abstractmethod
    def takes(self, slots: int) -> Iterable[float]:
        """Of so many slots those that it uses: since when each task was wanted."""

    def ended(self) -> None:
        """One of its tasks has."""

    def missed(self, wanted_s: float) -> None:
        """A task could not be launched."""


class _Greedy(_Framework):
    def takes(self, slots: int) -> Iterable[float]:
        self.run.begin()
        return [self.run.now_s()] * slots


class _Reactive(_Framework):
    def __init__(
        self, run: _Run, client: SchedulerClient, reading: Reading, scenario: str, needs: bool
    ) -> None:
        super().__init__(run, client, "reactive", REACTIVE_S)
        self._reading = reading
        self._coming = list(reading.arrivals(scenario))
        self._needs = needs
        self._needed = 0
        self._waiting: list[float] = []
        # Offers of slots that it needs, for the tasks that come next.
        self._kept: dict[str, pb.Offer] = {}
        self.done = asyncio.Event()

    def offered(self, offer: pb.Offer) -> None:
        if self._needs and not self._waiting and self._coming and self._lacks():
            self._kept[offer.id.value] = offer
        else:
            super().offered(offer)

    def _lacks(self) -> bool:
        kept = sum(
            item.scalar.value
            for offer in self._kept.values()
            for item in offer.resources
            if item.name == "cpus"
        )
        return len(self.running) + kept < self._needed

    def rescinded(self, offer_id: str) -> None:
        self._kept.pop(offer_id, None)

    async def arrive(self) -> None:
        """Its tasks come."""
        await self.run.begun.wait()
        while self._coming:
            at_s = self._coming[0]
            await self.run.until(at_s)
            while self._coming and self._coming[0] == at_s:
                self._waiting.append(self._coming.pop(0))
            wanted = min(self._reading.need, len(self.running) + len(self._waiting))
            self._state(max(self._needed, wanted))
            kept, self._kept = self._kept, {}
            for offer in kept.values():
                super().offered(offer)
            self.client.set_needs_offers(True)

    def takes(self, slots: int) -> Iterator[float]:
        # More than it is guaranteed might be taken back from it.
        most = int(self.client.guaranteed_share().scalar("cpus")) - len(self.running)
        for _ in range(min(slots, len(self._waiting), max(0, most))):
            yield self._waiting.pop(0)

    def missed(self, wanted_s: float) -> None:
        self._waiting.insert(0, wanted_s)
        self.client.set_needs_offers(True)

    def ended(self) -> None:
        if not self._coming:
            # No more than before, should tasks have piled up.
            self._state(min(self._needed, len(self.running) + len(self._waiting)))
            if not self.running and not self._waiting:
                self.done.set()

    def _state(self, needed: int) -> None:
        self._needed = needed
        if self._needs:
            needs = [Need("tasks that wait", SLOT, needed)] if needed else []
            self.client.request_resources(needs)


@asynccontextmanager
async def _client(name: str, address: str) -> AsyncIterator[SchedulerClient]:
    info = pb.FrameworkInfo(name=name, roles=[name])
    info.capabilities.add(type=pb.FrameworkInfo.Capability.MULTI_ROLE)
    async with SchedulerClient(info, address, connect_timeout_s=CONNECT_S) as client:
        yield client


async def play(address: str, scenario: str, reading: Reading, kind: Kind, scale: float) -> Story:
    """One run against the master there."""
    run = _Run(scale)
    last_s = max(reading.arrivals(scenario))
    async with (
        asyncio.timeout((last_s + 20 * REACTIVE_S + GREEDY_S) / scale + CONNECT_S),
        _client("reactive", address) as reactive_client,
        _client("greedy", address) as greedy_client,
    ):
        reactive = _Reactive(run, reactive_client, reading, scenario, kind.revocation)
        greedy = _Greedy(run, greedy_client, "greedy", GREEDY_S)
        if not kind.greedy:
            greedy_client.set_needs_offers(False)
            run.begin()
        async with asyncio.TaskGroup() as group:
            parts = [group.create_task(reactive.serve()), group.create_task(reactive.arrive())]
            if kind.greedy:
                parts.append(group.create_task(greedy.serve()))
            await reactive.done.wait()
            for part in parts:
                part.cancel()
    return run.story
