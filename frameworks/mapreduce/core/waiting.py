"""Tasks that wait, found by where their input lies.

One may be in several queues: what is taken from one stays in the others, and is passed over
there when its turn comes.  A waiting task costs a byte, and eight more per queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Final

from frameworks.common.delay import LEVELS, Level

# Of those that failed before, so many are looked at per offer.
_LOOK: Final = 64


class Waiting:
    """Numbers of tasks.  hosts(task): names of hosts or agents that have its input."""

    def __init__(self, count: int, hosts: Callable[[int], Sequence[str]]) -> None:
        self._hosts = hosts
        self._waits = bytearray(count)
        self.count = 0
        self._all: deque[int] = deque()
        self._anywhere: deque[int] = deque()
        self._by_host: dict[str, deque[int]] = {}
        # Those that have failed somewhere: first to be served, and choosy about where.
        self._again: dict[int, None] = {}

    def add(self, task: int, first: bool = False) -> None:
        """first: before those that wait.  Nothing if it waits already."""
        if self._waits[task]:
            return
        self._waits[task] = 1
        self.count += 1
        hosts = self._hosts(task)
        queues = [self._by_host.setdefault(host, deque()) for host in hosts]
        queues.append(self._all if hosts else self._anywhere)
        for queue in queues:
            if first:
                queue.appendleft(task)
            else:
                queue.append(task)

    def add_again(self, task: int) -> None:
        """One that has failed.  Nothing if it waits already."""
        if not self._waits[task]:
            self._waits[task] = 1
            self.count += 1
            self._again[task] = None

    def take(self, task: int) -> None:
        """It waits no more.  Nothing if it does not wait."""
        if self._waits[task]:
            self._waits[task] = 0
            self.count -= 1
            self._again.pop(task, None)

    def drain(self) -> list[int]:
        """All that wait, which then wait no more."""
        found = [task for task, waits in enumerate(self._waits) if waits]
        self.clear()
        return found

    def clear(self) -> None:
        self.count = 0
        self._waits = bytearray(len(self._waits))
        self._all.clear()
        self._anywhere.clear()
        self._by_host.clear()
        self._again.clear()

    def again(self, fits: Callable[[int], bool]) -> int | None:
        """One that has failed before, and may be tried here."""
        for task in list(self._again)[:_LOOK]:
            if fits(task):
                return task
        return None

    def choosy(self) -> bool:
        """Whether all that wait are tasks that have failed before."""
        return 0 < self.count == len(self._again)

    @property
    def only_near(self) -> bool:
        """Whether no task is at home everywhere, or has failed before (which are not choosy)."""
        return not self._again and self._head(self._anywhere) is None

    def hosts_among(self, agent_of: Mapping[str, str]) -> set[str]:
        """Of these names, those with input of tasks, as what they stand for."""
        mine = self._by_host
        if len(mine) < len(agent_of):
            return {agent_of[name] for name in mine if name in agent_of}
        return {agent_id for name, agent_id in agent_of.items() if name in mine}

    def find(
        self, names: Iterable[str], rack: Set[str], allowed: Level
    ) -> tuple[int, Level] | None:
        """The next one for a host with these `names`, in a `rack` of these hosts; no farther
        from its input than `allowed`.  Tasks without places are at home everywhere."""
        for name in names:
            task = self._head(self._by_host.get(name))
            if task is not None:
                return task, "host"
        task = self._head(self._anywhere)
        if task is not None:
            return task, "any"
        farthest = LEVELS.index(allowed)
        if farthest >= 1 and rack:
            for name in self._of(rack):
                task = self._head(self._by_host.get(name))
                if task is not None:
                    return task, "rack"
        if farthest == 2:
            task = self._head(self._all)
            if task is not None:
                return task, "any"
        return None

    def _of(self, rack: Set[str]) -> list[str]:
        """Names in a rack that have input, sorted: the same choice on every run."""
        mine = self._by_host
        if len(mine) < len(rack):
            return sorted(name for name in mine if name in rack)
        return sorted(name for name in rack if name in mine)

    def _head(self, queue: deque[int] | None) -> int | None:
        while queue:
            if self._waits[queue[0]] and queue[0] not in self._again:
                return queue[0]
            queue.popleft()
        return None


def level_of(
    hosts: Sequence[str], names: Iterable[str], rack: str, racks: Mapping[str, str]
) -> Level:
    """How near a host with these `names`, in `rack`, is to an input on `hosts`."""
    if any(name in hosts for name in names):
        return "host"
    if rack and any(racks.get(host) == rack for host in hosts):
        return "rack"
    return "any"
