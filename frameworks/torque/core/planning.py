"""Which nodes to start for the jobs that wait.

The batch server places its jobs itself; this only foresees it.  Jobs are taken in their order,
each all or nothing: on nodes that are there or on their way, then on what is offered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from frameworks.torque.core.records import Job, Size, size_of

# Of one array so many are looked at in a round; the rest is for the next one.
MOST_OF_ARRAY = 1000


@dataclass(frozen=True, slots=True)
class Room:
    """What is offered on one agent.  most_s: how long a node may live there; None: for ever."""

    offer_id: str
    agent_id: str
    hostname: str
    size: Size
    most_s: float | None = None


@dataclass(slots=True)
class Start:
    """A node to be started in a room; its size as jobs see it."""

    room: Room
    size: Size


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """
    nodes: so many may be started.
    size: all of them together are not to be larger, overhead included.
    overhead: what a node takes beside what jobs have of it.
    one_per_agent: on an agent only one node can be, so it takes all that is offered there.
    """

    nodes: int
    size: Size
    overhead: Size
    one_per_agent: bool


@dataclass(slots=True)
class Plan:
    """
    starts: nodes to be started.
    used: nodes that are there, and jobs wait for.
    unplaced: jobs for which there is no room.
    """

    starts: list[Start] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    unplaced: list[Job] = field(default_factory=list)


def plan(
    jobs: Iterable[Job], nodes: dict[str, Size], rooms: Sequence[Room], limits: Limits
) -> Plan:
    """jobs: those that wait, the first ones first.  nodes: what is free on nodes, by name, as it
    will be when those that are starting have started.  rooms: of one agent at most one."""
    planner = _Planner(nodes, rooms, limits)
    # What did not fit does not fit later either: there is only less and less.
    hopeless: set[tuple[int, Size, float | None]] = set()
    for job in jobs:
        shape = (job.nodes, size_of(job), job.walltime_s)
        for _ in range(min(job.count, MOST_OF_ARRAY)):
            if shape in hopeless or not planner.place(job):
                hopeless.add(shape)
                planner.result.unplaced.append(job)
                break
    if limits.one_per_agent:
        planner.take_the_rest()
    return planner.result


class _Planner:
    def __init__(self, nodes: dict[str, Size], rooms: Sequence[Room], limits: Limits) -> None:
        self.result = Plan()
        self._free = dict(nodes)
        self._rooms = {room.offer_id: room for room in rooms}
        self._left = {room.offer_id: room.size for room in rooms}
        self._share = limits.size
        self._limits = limits

    def place(self, job: Job) -> bool:
        """All of its nodes, or nothing is changed."""
        need = size_of(job)
        names = [name for name, free in self._free.items() if free.holds(need)][: job.nodes]
        lacking = job.nodes - len(names)
        grown: list[int] = []
        share = self._share
        left = dict(self._left)
        for index, start in enumerate(self.result.starts):
            if len(grown) == lacking:
                break
            if _lasts(start.room, job) and _take(left, start.room, share, need):
                share -= need
                grown.append(index)
        opened: list[Room] = []
        for room in self._open(lacking - len(grown), need, job, left, share):
            opened.append(room)
            share -= need + self._limits.overhead
        if len(grown) + len(opened) < lacking:
            return False
        self._settle(need, names, grown, opened)
        self._share, self._left = share, left
        return True

    def _open(
        self, count: int, need: Size, job: Job, left: dict[str, Size], share: Size
    ) -> list[Room]:
        """Where to start others: as many on each agent as have to be, agent by agent."""
        taken: list[Room] = []
        allowed = min(count, self._limits.nodes - len(self.result.starts))
        begun = {start.room.offer_id for start in self.result.starts}
        while len(taken) < allowed:
            before = len(taken)
            for room in self._rooms.values():
                if len(taken) == allowed:
                    break
                if self._limits.one_per_agent and room.offer_id in begun:
                    continue
                whole = need + self._limits.overhead
                if _lasts(room, job) and _take(left, room, share, whole):
                    share -= whole
                    begun.add(room.offer_id)
                    taken.append(room)
            if len(taken) == before:
                break
        return taken

    def _settle(self, need: Size, names: list[str], grown: list[int], opened: list[Room]) -> None:
        for name in names:
            self._free[name] -= need
            self.result.used.add(name)
        for index in grown:
            self.result.starts[index].size += need
        self.result.starts.extend(Start(room, need) for room in opened)

    def take_the_rest(self) -> None:
        """Of each room in which a node is to be started, within the share."""
        for start in self.result.starts:
            left = self._left[start.room.offer_id]
            rest = Size(
                max(0, min(left.cpus, self._share.cpus)),
                max(0, min(left.mem_mb, self._share.mem_mb)),
            )
            start.size += rest
            self._share -= rest
            self._left[start.room.offer_id] -= rest


def _take(left: dict[str, Size], room: Room, share: Size, need: Size) -> bool:
    if not left[room.offer_id].holds(need) or not share.holds(need):
        return False
    left[room.offer_id] -= need
    return True


def _lasts(room: Room, job: Job) -> bool:
    """Whether the job is over before a node there has to be."""
    if room.most_s is None:
        return True
    return job.walltime_s is not None and job.walltime_s <= room.most_s


__all__ = ["Limits", "Plan", "Room", "Start", "plan"]
