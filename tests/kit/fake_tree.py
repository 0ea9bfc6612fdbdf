"""A tree of nodes in memory, and connections to it that lose, delay and lag."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from mesos_py.election.zookeeper.steps import Create, Delete, Put, Step
from mesos_py.errors import Conflict, NotFound, Unavailable

Nodes = dict[str, tuple[bytes, int]]


class Fault(Enum):
    """What happens to a request."""

    NONE = "none"
    # It never arrives.
    LOST = "lost"
    # It is done, and its answer lost.
    UNANSWERED = "unanswered"
    # It seems lost, and is done when the test calls `World.arrive`.
    LATE = "late"
    # Whoever asks is killed before, or when it is done; raises Died.
    KILLED_BEFORE = "killed before"
    KILLED_AFTER = "killed after"


class Died(Exception):
    """The end of whoever made the request: what it would do next is not done."""


@dataclass
class World:
    """What the servers have agreed on: all states so far, the newest last."""

    states: list[Nodes] = field(default_factory=lambda: [{}])
    late: list[Callable[[], object]] = field(default_factory=list)
    commits: int = 0
    something_late: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def nodes(self) -> Nodes:
        return self.states[-1]

    def arrive(self) -> None:
        """Requests that were late are done now, as far as they still fit."""
        late, self.late = self.late, []
        for each in late:
            try:
                each()
            except Conflict:
                pass

    def apply(self, steps: Sequence[Step]) -> None:
        nodes = dict(self.nodes)
        for step in steps:
            there = nodes.get(step.path)
            match step:
                case Create(path, data):
                    if there is not None:
                        raise Conflict(f"{path} exists")
                    if path.rpartition("/")[0] not in nodes:
                        raise Conflict(f"{path} has no parent")
                    nodes[path] = (data, 0)
                case Put(path, data, version):
                    if there is None or version not in (None, there[1]):
                        raise Conflict(f"{path} is another one")
                    nodes[path] = (data, there[1] + 1)
                case Delete(path):
                    if there is None:
                        raise Conflict(f"{path} is missing")
                    del nodes[path]
        self.commits += 1
        self.states.append(nodes)


def no_faults(call: str) -> Fault:
    return Fault.NONE


class FakeTree:
    """A connection to a server that sees nothing new unless it has to.

    `fault` is asked at each request, by the name of the call.
    """

    def __init__(self, world: World, fault: Callable[[str], Fault] = no_faults) -> None:
        self.world = world
        self.fault = fault
        self.largest = 0
        self._seen = len(world.states) - 1

    async def make(self, path: str) -> None:
        def make() -> None:
            steps: list[Step] = []
            for at in range(1, len(path) + 1):
                if (at == len(path) or path[at] == "/") and path[:at] not in self.world.nodes:
                    steps.append(Create(path[:at], b""))
            for each in steps:
                self.world.states[-1] = {**self.world.nodes, each.path: (b"", 0)}

        self._request("make", make)

    async def read(self, path: str) -> tuple[bytes, int]:
        self._request("read", lambda: None)
        found = self._state().get(path)
        if found is None:
            raise NotFound("node", path)
        return found

    async def children(self, path: str) -> list[str]:
        self._request("children", lambda: None)
        state = self._state()
        if path not in state:
            raise NotFound("node", path)
        return [name.removeprefix(f"{path}/") for name in state if name.startswith(f"{path}/")]

    async def commit(self, steps: Sequence[Step]) -> None:
        data = [b"" if isinstance(step, Delete) else step.data for step in steps]
        self.largest = max(self.largest, sum(map(len, data)))
        try:
            self._request("commit", lambda: self.world.apply(steps))
        finally:
            if self._answered:
                self._seen = len(self.world.states) - 1

    async def catch_up(self) -> None:
        self._request("catch_up", lambda: None)
        self._seen = len(self.world.states) - 1

    async def close(self) -> None:
        pass

    def _state(self) -> Nodes:
        return self.world.states[self._seen]

    def _request(self, call: str, do: Callable[[], object]) -> None:
        self._answered = False
        fault = self.fault(call)
        if fault is Fault.LATE:
            self.world.late.append(do)
            self.world.something_late.set()
        elif fault not in (Fault.LOST, Fault.KILLED_BEFORE):
            self._answered = fault is Fault.NONE
            try:
                do()
            except Conflict:
                if fault is Fault.NONE:
                    raise
        if fault in (Fault.KILLED_BEFORE, Fault.KILLED_AFTER):
            raise Died(call)
        if fault is not Fault.NONE:
            raise Unavailable(f"{call}: {fault.value}")
