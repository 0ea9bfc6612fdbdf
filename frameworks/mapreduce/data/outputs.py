"""What a reduce knows of map outputs: which there are, which it has, and when to try which.

It does nothing itself; time is an argument (seconds, monotonic).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Final
from urllib.parse import urlsplit

from frameworks.mapreduce.messages import MapOutput, Maps
from frameworks.runtime.fetching import Blame
from mesos_py.errors import InvalidValue

# After so many failures in a row an output counts as lost.
TRIES: Final = 4
RETRY_S: Final = 1.0
MAX_RETRY_S: Final = 30.0


@dataclass(slots=True)
class _Map:
    output: MapOutput | None = None
    fetching: bool = False
    done: bool = False
    tries: int = 0


@dataclass(slots=True)
class _Host:
    """waiting: (when, a number drawn, map, attempt), a heap; entries may have been overtaken.
    active: how many are being fetched from it.  failures: in a row, all of its outputs."""

    waiting: list[tuple[float, float, int, str]] = field(default_factory=list)
    active: int = 0
    failures: int = 0
    due_s: float = 0.0


class Outputs:
    """Outputs of `maps` maps.  What is fetched comes from the host of which least is fetched
    now, in an order that is drawn, so that reduces do not all go to one host at once.

    A host that fails is left alone for a while (RETRY_S, each time twice as long up to
    MAX_RETRY_S, give or take a half that is drawn), and then tried by one fetch at a time.  An
    output that nobody has is reported as lost and tried on, ever less often, until the tracker
    names another: it may have been the network only.
    """

    def __init__(self, maps: int, dice: Random, retry_s: float = RETRY_S) -> None:
        self._maps = [_Map() for _ in range(maps)]
        self._hosts: dict[str, _Host] = {}
        self._dice = dice
        self._retry_s = retry_s
        self._lost: set[int] = set()
        self._known = 0
        self.since = 0
        self.done_count = 0

    @property
    def complete(self) -> bool:
        return self.done_count == len(self._maps)

    @property
    def wanting(self) -> bool:
        """Whether there is something that only the tracker can tell."""
        return self._known < len(self._maps) or bool(self._lost)

    def learn(self, maps: Maps, now_s: float) -> bool:
        """What the tracker says; whether there was news in it.  What has come before, and what
        comes before its turn, is left out.  Raises InvalidValue for maps that there are not."""
        if maps.since > self.since:
            return False
        fresh = maps.outputs[self.since - maps.since :]
        for output in fresh:
            if not 0 <= output.map < len(self._maps):
                reason = f"the job has {len(self._maps)} maps"
                raise InvalidValue("Maps.outputs.map", output.map, reason)
        self.since += len(fresh)
        return sum([self._learn(output, now_s) for output in fresh]) > 0

    def again(self) -> None:
        """Hear everything again from the start: a tracker that took over may count otherwise."""
        self.since = 0

    def _learn(self, output: MapOutput, now_s: float) -> bool:
        entry = self._maps[output.map]
        if entry.done or (entry.output and entry.output.attempt == output.attempt):
            return False
        self._known += entry.output is None
        entry.output = output
        entry.tries = 0
        self._lost.discard(output.map)
        if not entry.fetching:
            self._wait(entry, output, now_s)
        return True

    def _finish(self, entry: _Map) -> None:
        if not entry.done:
            entry.done = True
            self.done_count += 1

    def _wait(self, entry: _Map, output: MapOutput, due_s: float) -> None:
        if not output.segment.length:
            self._finish(entry)
            return
        waiting = (due_s, self._dice.random(), output.map, output.attempt)
        heapq.heappush(self._host(output).waiting, waiting)

    def _host(self, output: MapOutput) -> _Host:
        return self._hosts.setdefault(urlsplit(output.url).netloc, _Host())

    def take(self, now_s: float) -> MapOutput | None:
        """An output to fetch now; `done` or `failed` are to be told of it."""
        best: _Host | None = None
        for host in self._hosts.values():
            due_s = self._due(host)
            if due_s is not None and due_s <= now_s and (not best or host.active < best.active):
                best = host
        if best is None:
            return None
        number = heapq.heappop(best.waiting)[2]
        entry = self._maps[number]
        entry.fetching = True
        best.active += 1
        return entry.output

    def next_due_s(self) -> float | None:
        """When `take` has something next, if nothing else happens."""
        due = [self._due(host) for host in self._hosts.values()]
        return min((due_s for due_s in due if due_s is not None), default=None)

    def _due(self, host: _Host) -> float | None:
        while host.waiting and self._overtaken(host.waiting[0]):
            heapq.heappop(host.waiting)
        if not host.waiting or (host.failures and host.active):
            return None
        return max(host.due_s, host.waiting[0][0])

    def _overtaken(self, waiting: tuple[float, float, int, str]) -> bool:
        entry = self._maps[waiting[2]]
        current = entry.output is not None and entry.output.attempt == waiting[3]
        return entry.done or entry.fetching or not current

    def done(self, output: MapOutput) -> None:
        """It was fetched, and is whole."""
        host = self._host(output)
        host.active -= 1
        host.failures = 0
        host.due_s = 0.0
        self._maps[output.map].fetching = False
        self._lost.discard(output.map)
        self._finish(self._maps[output.map])

    def failed(self, output: MapOutput, blame: Blame, now_s: float) -> tuple[str, ...]:
        """It could not be fetched.  Returns attempts whose outputs are to be reported as lost."""
        host = self._host(output)
        host.active -= 1
        if blame is not Blame.HOST:
            host.failures = 0
        elif now_s >= host.due_s:
            # Once for all that break at the same time.
            host.failures += 1
            host.due_s = now_s + self._pause(host.failures)
        entry = self._maps[output.map]
        entry.fetching = False
        if entry.done or entry.output is None:
            return ()
        if entry.output.attempt != output.attempt:
            self._wait(entry, entry.output, now_s)
            return ()
        entry.tries += 1
        self._wait(entry, output, now_s + self._pause(entry.tries))
        lost = {output.map} if blame is Blame.GONE or entry.tries >= TRIES else set()
        if host.failures >= TRIES:
            lost |= {each[2] for each in host.waiting if not self._overtaken(each)}
        self._lost |= lost
        return tuple(self._attempts(sorted(lost)))

    def _attempts(self, maps: Iterable[int]) -> Iterable[str]:
        for number in maps:
            output = self._maps[number].output
            if output is not None:
                yield output.attempt

    def _pause(self, failures: int) -> float:
        doubled = self._retry_s * 2.0 ** min(failures - 1, 30)
        return min(doubled, MAX_RETRY_S) * (0.5 + self._dice.random())
