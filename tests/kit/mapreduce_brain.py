"""A cluster in memory around MapReduce's brain: carries its orders out, checks each of them.

Nothing happens by itself but what is ordered: tests say when offers are made, when attempts
end, and when time goes on.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from frameworks.mapreduce.core.brain import Brain
from frameworks.mapreduce.core.journal import CommitChosen, Launched, MapOutputKept, Record
from frameworks.mapreduce.core.options import Options
from frameworks.mapreduce.core.orders import (
    AskOffers,
    Commit,
    Decline,
    Failed,
    Finished,
    FinishJob,
    Journal,
    KillAttempt,
    Killed,
    Launch,
    ReleaseWorker,
    Room,
    Send,
    Start,
    StopOffers,
)
from frameworks.mapreduce.job import JobSpec, Piece, Program, Split
from frameworks.mapreduce.messages import ToWorker
from frameworks.mapreduce.names import parse_attempt
from frameworks.mapreduce.work import Failure, MapDone, ReduceDone, Segment
from mesos_py.resources import EMPTY, Resources

WORKER_NEEDS = Resources.of(cpus=0.1, mem=64)


def options(**changes: Any) -> Options:
    made = Options(worker_needs=WORKER_NEEDS, extension=lambda conf: conf.get("test.ext", ""))
    return replace(made, **changes)


def job_id(number: int = 1) -> str:
    return f"job_1_{number:04}"


def spec(number: int = 1, reduces: int = 1, **conf: str) -> JobSpec:
    """Properties with `__` for each dot."""
    return JobSpec(
        job_id=job_id(number),
        name=f"job {number}",
        user="someone",
        inputs=("/in",),
        output=f"/out/{number}",
        mapper=Program(command="cat"),
        reducer=Program(command="cat") if reduces else None,
        reduces=reduces,
        conf={name.replace("__", "."): value for name, value in conf.items()},
        staging=f"/staging/{number}",
    )


def splits(count: int, hosts: Iterable[tuple[str, ...]] = ()) -> list[Split]:
    places = itertools.chain(hosts, itertools.repeat(()))
    return [
        Split((Piece("/in/a", n * 10, 10),), 10, places_of)
        for n, places_of in zip(range(count), places, strict=False)
    ]


@dataclass
class FakeAgent:
    """refused, refused_until_s: so much, or less, is not offered again until then."""

    agent_id: str
    hostname: str
    rack: str
    total: Resources
    running: dict[str, Start] = field(default_factory=dict)
    workers: set[str] = field(default_factory=set)
    refused_until_s: float = 0.0
    refused: Resources = EMPTY

    @property
    def free(self) -> Resources:
        left = self.total
        for _worker in self.workers:
            left -= WORKER_NEEDS
        for start in self.running.values():
            left -= start.resources
        return left


class Shell:
    """journal: what is durable, as it is read again.  killed: attempts whose kill was ordered
    and that have not ended.  commits, finishes: ordered and not answered."""

    def __init__(self, made: Options | None = None) -> None:
        self.options = made or options()
        self.brain = Brain(self.options)
        self.now_s = 1000.0
        self.agents: dict[str, FakeAgent] = {}
        self.journal: list[bytes] = []
        self.killed: list[str] = []
        self.commits: list[Commit] = []
        self.finishes: list[FinishJob] = []
        self.sent: list[Send] = []
        self.released: list[str] = []
        self.launched: list[str] = []
        self.launch_of: dict[str, Start] = {}
        self.agent_of: dict[str, str] = {}
        self.asks = False
        self.revived = 0
        self._offers: dict[str, Room] = {}
        self._records: list[Record] = []
        self._may_launch: set[str] = set()
        self._may_commit: set[str] = set()
        self._numbers = itertools.count(1)

    # ---- The cluster -----------------------------------------------------------------------

    def agent(self, name: str, cpus: float = 2.1, mem: float = 1088, rack: str = "") -> FakeAgent:
        total = Resources.of(cpus=cpus, mem=mem)
        made = self.agents[name] = FakeAgent(name, f"{name}.example", rack, total)
        return made

    def rooms(self, agents: Iterable[str] | None = None) -> list[Room]:
        """What is free and not refused, as offers."""
        made = []
        for agent in list(self.agents.values()) if agents is None else map(self.agents.get, agents):
            assert agent is not None
            if not self.asks or not agent.free:
                continue
            if agent.refused_until_s > self.now_s and agent.refused.contains(agent.free):
                continue
            offer_id = f"o{next(self._numbers)}"
            made.append(Room(offer_id, agent.agent_id, agent.hostname, agent.rack, agent.free))
        return made

    def offer(self, *rooms: Room) -> None:
        """These offers, or else all that can be made."""
        given = list(rooms) or self.rooms()
        self._offers.update({room.offer_id: room for room in given})
        self.brain.offers(given, self.now_s)
        self.drain()
        assert not self._offers, f"not answered: {sorted(self._offers)}"

    def offer_all(self) -> None:
        """As `offer`, whatever was refused."""
        for agent in self.agents.values():
            agent.refused_until_s = 0.0
        self.offer()

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def tick(self, seconds: float = 0.0) -> float | None:
        self.now_s += seconds
        next_s = self.brain.tick(self.now_s)
        self.drain()
        return next_s

    # ---- What is ordered -------------------------------------------------------------------

    def drain(self) -> None:
        for order in self.brain.take_orders():
            if isinstance(order, Journal):
                self.journal.extend(msgspec.json.encode(record) for record in order.records)
            elif isinstance(order, Launch):
                self._launch(order)
            elif isinstance(order, Decline):
                room = self._offers.pop(order.offer_id)
                self._refuse(room.agent_id, order.refuse_s)
            elif isinstance(order, KillAttempt):
                if order.attempt in self.agent_of and order.attempt not in self.killed:
                    self.killed.append(order.attempt)
            elif isinstance(order, Commit):
                self._commit(order)
            elif isinstance(order, FinishJob):
                self.finishes.append(order)
            elif isinstance(order, Send):
                self.sent.append(order)
            elif isinstance(order, ReleaseWorker):
                self._release(order)
            elif isinstance(order, AskOffers):
                self.asks = True
                self.revived += 1
                for agent in self.agents.values():
                    agent.refused_until_s = 0.0
            else:
                assert isinstance(order, StopOffers)
                self.asks = False

    def _launch(self, order: Launch) -> None:
        assert order.starts, "a launch of nothing"
        agent = self.agents[order.agent_id]
        rooms = [self._offers.pop(offer_id) for offer_id in order.offer_ids]
        assert {room.agent_id for room in rooms} == {order.agent_id}
        offered = sum((room.resources for room in rooms), EMPTY)
        needed = sum((start.resources for start in order.starts), EMPTY)
        if order.worker_id not in agent.workers:
            needed += WORKER_NEEDS
            agent.workers.add(order.worker_id)
        assert offered.contains(needed), f"{needed} on {offered}"
        self.records()
        for start in order.starts:
            assert start.attempt in self._may_launch, "launched before that was kept"
            assert start.attempt not in self.launch_of, "launched twice"
            assert start.work.attempt == start.attempt
            agent.running[start.attempt] = start
            self.launch_of[start.attempt] = start
            self.agent_of[start.attempt] = order.agent_id
            self.launched.append(start.attempt)
        self._refuse(order.agent_id, order.refuse_s)

    def _refuse(self, agent_id: str, seconds: float) -> None:
        agent = self.agents[agent_id]
        agent.refused_until_s, agent.refused = self.now_s + seconds, agent.free

    def _commit(self, order: Commit) -> None:
        self.records()
        assert order.attempt in self._may_commit, "committed before that was kept"
        self.commits.append(order)

    def _release(self, order: ReleaseWorker) -> None:
        agent = self.agents.get(order.agent_id)
        if agent is not None:
            agent.workers.discard(order.worker_id)
        self.released.append(order.worker_id)

    # ---- What happens ----------------------------------------------------------------------

    def submit(self, made: JobSpec, parts: list[Split]) -> str:
        self.brain.submit(made, parts, self.now_s)
        self.drain()
        return made.job_id

    def running(self) -> list[str]:
        return [name for agent in self.agents.values() for name in agent.running]

    def started(self, *attempts: str) -> None:
        for attempt in attempts:
            self.brain.started(attempt, self.now_s)
        self.drain()

    def finish(self, *attempts: str) -> None:
        """They end well."""
        for attempt in attempts:
            self.end(attempt, Finished(self.done(attempt)))

    def fail(self, attempt: str, blame: str = "program", message: str = "exit code 1") -> None:
        failure = Failure(blame=blame, message=message)  # type: ignore[arg-type]
        self.end(attempt, Failed(failure))

    def end(self, attempt: str, how: object) -> None:
        agent = self.agents.get(self.agent_of[attempt])
        if agent is not None:
            agent.running.pop(attempt, None)
        if attempt in self.killed:
            self.killed.remove(attempt)
        self.brain.ended(attempt, how, self.now_s)  # type: ignore[arg-type]
        self.drain()

    def end_killed(self) -> None:
        for attempt in list(self.killed):
            self.end(attempt, Killed("killed"))

    def done(self, attempt: str) -> MapDone | ReduceDone:
        name = parse_attempt(attempt)
        assert name is not None
        if name.kind == "reduce":
            return ReduceDone(part=10, counters={"g": {"reduces": 1}})
        reduces = self.brain.view(name.job_id).reduces.total
        if not reduces:
            return MapDone(part=10, counters={"g": {"maps": 1}})
        segments = tuple(Segment(n * 10, 10, 20, n) for n in range(reduces))
        url = f"http://{self.agent_of[attempt]}/{attempt}"
        return MapDone(url=url, path=f"/{attempt}", segments=segments, counters={"g": {"maps": 1}})

    def lose_agent(self, agent_id: str) -> None:
        del self.agents[agent_id]
        self.brain.agent_lost(agent_id, self.now_s)
        self.drain()

    def commit(self, order: Commit | None = None) -> None:
        """Answer this commit, or all."""
        for one in [order] if order is not None else list(self.commits):
            self.commits.remove(one)
            self.brain.committed(one.job_id, one.kind, one.task, self.now_s)
            self.drain()

    def complete(self) -> None:
        """Finish what is to be finished."""
        while self.finishes:
            self.brain.finished(self.finishes.pop(0).job_id, self.now_s)
            self.drain()

    def run(self, rounds: int = 200) -> None:
        """Offers all the time, and all attempts end well, until nothing happens any more."""
        for _ in range(rounds):
            self.offer()
            self.end_killed()
            self.finish(*self.running())
            self.commit()
            self.complete()
            self.tick(1.0)
            if all(view.state in ENDED for view in self.brain.views()):
                return

    # ---- After a crash ---------------------------------------------------------------------

    def records(self) -> list[Record]:
        """As they are read again."""
        kept = self.journal[len(self._records) :]
        for record in [msgspec.json.decode(line, type=Record) for line in kept]:
            self._records.append(record)
            if isinstance(record, Launched):
                self._may_launch.add(record.attempt)
            elif isinstance(record, CommitChosen):
                self._may_commit.add(record.attempt)
        return self._records[:]

    def restart(self) -> None:
        """Another brain, from the journal; what was ordered and not done is forgotten."""
        self.brain = Brain(self.options)
        self.killed.clear()
        self.commits.clear()
        self.finishes.clear()
        self.asks = False
        self.brain.restore(self.records(), self.now_s)
        self.drain()

    def kept_outputs(self) -> list[str]:
        return [record.attempt for record in self.records() if isinstance(record, MapOutputKept)]

    def messages(self) -> list[ToWorker]:
        return [order.message for order in self.sent]


ENDED = ("succeeded", "failed", "killed")
