"""The scenarios against the allocator alone, in virtual time.

A master of a few lines: offers are taken at once, or `answer_s` later, tasks end on the
second, and what is to be taken back is killed `ask_s` after the allocator said so.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from bench.revocation.scenario import GREEDY_S, REACTIVE_S, SLOTS, Ran, Reading, Story
from mesos_py.allocation import (
    AgentChanged,
    AgentRow,
    Allocator,
    AllocatorOptions,
    FrameworkChanged,
    FrameworkRow,
    Freed,
    Grant,
    Need,
    Refusal,
    Revived,
    Revocation,
    RevocationEnded,
    Tenant,
)
from mesos_py.constraints import Host
from mesos_py.resources import Resources
from mesos_py.testing.allocator_harness import BookedCluster

AGENT: Final = "agent"
SLOT: Final = Resources.of(cpus=1, mem=64)
REFUSE_S: Final = 5.0
# Of what happens in one moment: what comes is known before anything ends.
COMES, ENDS, WAKES = range(3)


def options(*, revocation: bool) -> AllocatorOptions:
    """Of both: as a master has them that was told nothing."""
    return AllocatorOptions(victims="youngest" if revocation else "off")


@dataclass
class _Task:
    grant: Grant
    wanted_s: float
    start_s: float
    ends: bool = True


@dataclass
class Simulation:
    """One run.  `needs`: the reactive framework says what it needs."""

    allocator: Allocator
    needs: bool
    ask_s: float = 0.0
    answer_s: float = 0.0
    now_s: float = 0.0
    story: Story = field(default_factory=Story)

    def __post_init__(self) -> None:
        self.cluster = BookedCluster()
        self._tasks: dict[str, _Task] = {}
        self._names = count(1)
        self._queue: list[tuple[float, int, int, Callable[[], None]]] = []
        self._order = count()
        self._waiting: list[float] = []
        self._needed = 0
        self._last_s = 0.0
        # Offers that are out, and those of slots that the reactive framework needs and has
        # no task for at the moment.
        self._out: list[tuple[Grant, float]] = []
        self._kept: list[Grant] = []
        # Nobody asks for the disk, which goes along with any offer.
        total = Resources.of(cpus=SLOTS, mem=64 * SLOTS, disk=1000)
        self.cluster.add_agent(AGENT, total)
        self.allocator.tell(AgentChanged(AgentRow(AGENT, Host(AGENT, {}), total)))

    def run(self, scenario: str, reading: Reading, *, greedy: bool = True) -> Story:
        if greedy:
            self.allocator.tell(FrameworkChanged(FrameworkRow("greedy", "greedy", ("greedy",))))
        for at_s in reading.arrivals(scenario):
            self._at(at_s, COMES, lambda at_s=at_s: self._wanted(at_s, reading))  # type: ignore[misc]
        last = self._last_s = max(reading.arrivals(scenario))
        self._settle()
        while self._queue and (self.now_s <= last or self._is_busy()):
            # No two things happen at once: what one task leaves is given away before the
            # next one ends.
            self.now_s, _, _, happens = heapq.heappop(self._queue)
            happens()
            self._settle()
        return self.story

    def _is_busy(self) -> bool:
        return bool(self._waiting) or any(
            task.grant.framework_id == "reactive" for task in self._tasks.values()
        )

    def _at(self, at_s: float, kind: int, what: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (at_s, kind, next(self._order), what))

    # ---- The frameworks -----------------------------------------------------

    def _wanted(self, at_s: float, reading: Reading) -> None:
        """A task of the reactive framework has come."""
        self._waiting.append(at_s)
        wanted = min(reading.need, self._running() + len(self._waiting))
        self._state(max(self._needed, wanted))
        kept, self._kept = self._kept, []
        for grant in kept:
            self._answer(grant)
        self.allocator.tell(Revived("reactive", ("reactive",)))

    def _running(self) -> int:
        return sum(one.grant.framework_id == "reactive" for one in self._tasks.values())

    def _state(self, needed: int) -> None:
        """It says that it needs so many slots."""
        self._needed = needed
        needs = (Need("reactive", SLOT, needed),) if self.needs and needed else ()
        row = FrameworkRow("reactive", "reactive", ("reactive",), needs=needs)
        self.allocator.tell(FrameworkChanged(row))

    def _offered(self, grant: Grant) -> None:
        self._out.append((grant, self.now_s))
        if self.answer_s:
            self._at(self.now_s + self.answer_s, ENDS, lambda: self._answer(grant))
        else:
            self._answer(grant)

    def _answer(self, grant: Grant) -> None:
        """Take what is of use and decline the rest, or keep it for the tasks that come next."""
        if all(one is not grant for one, _ in self._out):
            return  # taken back
        if grant.framework_id == "reactive" and self._lacks():
            self._kept.append(grant)
            return
        self._out = [item for item in self._out if item[0] is not grant]
        slots = grant.resources.scalars["cpus"] // 1000
        if grant.framework_id == "reactive":
            slots = min(slots, len(self._waiting))
        self.cluster.release(grant)
        rest = grant.resources
        for _ in range(slots):
            rest = rest - SLOT
            self._launch(Grant(grant.framework_id, grant.role, AGENT, SLOT))
        if rest:
            until_s = self.now_s + REFUSE_S
            self.allocator.tell(Refusal(grant.framework_id, grant.role, AGENT, rest, until_s))
            self.allocator.tell(Freed(AGENT))

    def _lacks(self) -> bool:
        """Whether it has no task to launch, and is short of slots that it needs for the next."""
        if not self.needs or self._waiting or self.now_s >= self._last_s:
            return False
        kept = sum(one.resources.scalars["cpus"] // 1000 for one in self._kept)
        return self._running() + kept < self._needed

    def _launch(self, grant: Grant) -> None:
        name = f"task-{next(self._names)}"
        wanted_s = self.now_s
        takes_s = GREEDY_S
        if grant.framework_id == "reactive":
            # Its load is all that its slots can do: tasks that took longer would pile up.
            wanted_s, takes_s = self._waiting.pop(0), REACTIVE_S - self.answer_s
        self._tasks[name] = _Task(grant, wanted_s, self.now_s)
        self.cluster.hold(grant)
        tenant = Tenant(grant.framework_id, grant.role, name, SLOT, self.now_s)
        self.cluster.tasks.setdefault(AGENT, []).append(tenant)
        self._at(self.now_s + takes_s, ENDS, lambda: self._ended(name))

    def _ended(self, name: str, killed: bool = False) -> None:
        task = self._tasks.pop(name, None)
        if task is None:
            return
        self.cluster.release(task.grant)
        kept = [one for one in self.cluster.tasks[AGENT] if one.task_id != name]
        self.cluster.tasks[AGENT] = kept
        self.story.ran.append(
            Ran(task.grant.framework_id, task.wanted_s, task.start_s, self.now_s, killed)
        )
        self.allocator.tell(Freed(AGENT))
        if task.grant.framework_id == "reactive" and self.now_s > self._last_s:
            # Nothing more will come.
            self._state(min(self._needed, self._running() + len(self._waiting)))

    # ---- The master -----------------------------------------------------------

    def _settle(self) -> None:
        """Cycles until nothing more follows at this moment."""
        while True:
            grants = self.allocator.allocate(self.cluster, self.now_s)
            for grant in grants:
                self.cluster.hold(grant)
            self.cluster.offers[AGENT] = [
                Tenant(one.framework_id, one.role, "", one.resources, since_s)
                for one, since_s in (*self._out, *((grant, self.now_s) for grant in grants))
            ]
            revocations = self.allocator.revocations(self.cluster, self.now_s)
            for grant in grants:
                self._offered(grant)
            for revocation in revocations:
                self._revoke(revocation)
            if not grants and not revocations:
                break
        wake_s = self.allocator.next_wake_s()
        if wake_s is not None:
            self._at(wake_s, WAKES, lambda: None)

    def _rescind(self, framework_id: str) -> None:
        for grant, _ in [item for item in self._out if item[0].framework_id == framework_id]:
            self._out = [item for item in self._out if item[0] is not grant]
            self._kept = [one for one in self._kept if one is not grant]
            self.cluster.release(grant)
            self.allocator.tell(Freed(AGENT))

    def _revoke(self, revocation: Revocation) -> None:
        def kill() -> None:
            for name in revocation.task_ids:
                self._ended(name, killed=True)
            if not revocation.task_ids:
                self._rescind(revocation.framework_id)
            self.allocator.tell(RevocationEnded(revocation, freed=True))

        if self.ask_s:
            self._at(self.now_s + self.ask_s, ENDS, kill)
        else:
            kill()
