"""What the core knows: executors, jobs, their stages, and the attempts that run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from frameworks.common.blame import Blame
from frameworks.common.delay import Delay
from frameworks.common.fairness import Turns
from frameworks.rdd.core.effects import Effect, Failure, Send
from frameworks.rdd.core.kept import Kept
from frameworks.rdd.core.outputs import Outputs
from frameworks.rdd.core.pending import Pending
from frameworks.rdd.core.rules import EVEN, Rules
from frameworks.rdd.core.stages import Plan
from frameworks.rdd.core.views import JobView, StageView
from frameworks.rdd.messages import BlockId, FromDriver, Raised
from frameworks.rdd.nodes import ShuffleDependency

# Of jobs and stages that have ended so many are remembered, for people.
REMEMBERED: Final = 200

# Makes the blob of a stage: (plan, the shuffle that it feeds, the function of the action).
Pack = Callable[[Plan, ShuffleDependency | None, Any], bytes]


@dataclass(slots=True, eq=False)
class Executor:
    """running: task ids, cancelled ones too until they end; each holds a slot.
    told: keys of the stages that it knows, each with the `Outputs.at` of what it was told.
    idle_since_s: None while it runs something.
    """

    id: str
    host: str
    agent_id: str
    address: str
    slots: int
    idle_since_s: float | None
    running: set[int] = field(default_factory=set)
    told: dict[str, int] = field(default_factory=dict)
    leaving: bool = False
    dropped: bool = False
    memory_bytes: int = 0
    disk_bytes: int = 0

    @property
    def free(self) -> int:
        return 0 if self.leaving or self.dropped else self.slots - len(self.running)


@dataclass(slots=True, eq=False)
class Part:
    """What is remembered of a partition's attempts once there has been one.

    raised: the first failure of all.  others: how later ones differed, in a line each.
    unfetched: how often its result was there, and could not be had.
    """

    attempts: int = 0
    failures: int = 0
    failed_on: set[str] = field(default_factory=set)
    raised: Raised | None = None
    where: str = ""
    others: list[str] = field(default_factory=list)
    counted: bool = False
    unfetched: int = 0


@dataclass(slots=True, eq=False)
class Attempt:
    """at: the outputs that it reads were those of `Outputs.at`.  elements: as it last said;
    moved_s: when that last grew."""

    task_id: int
    stage: Stage
    index: int
    number: int
    executor: Executor
    try_: int
    at: int
    began_s: float
    moved_s: float
    elements: int = 0
    cancelled: str = ""


@dataclass(slots=True, eq=False)
class Stage:
    """One for each shuffle that somebody needs, and one for each job's action.

    splits: the partition of each index.  undone: indexes without a result.
    jobs: who needs it, the oldest first.  waits: shuffles that must be made before.
    tries: how often it was begun, with new outputs to read; names the key.
    distrust: what is kept does not hide what it is made of: it was gone when it was needed.
    whole: no payload is left out: one was needed.
    twins: those of which a second attempt is wanted.
    avoids: until when an index is not to run where it has failed, if there are others.
    blamed: executors whose outputs were gone, with the tries in which that was found.
    pool: who shares with others in a fair order: a pool of the user's, or its first job.
    """

    id: int
    plan: Plan
    splits: Sequence[int]
    shuffle: ShuffleDependency | None = None
    function: Any = None
    blob: bytes | None = None
    name: str = ""
    jobs: list[int] = field(default_factory=list)
    undone: set[int] = field(default_factory=set)
    pending: Pending = field(default_factory=Pending)
    running: dict[int, list[Attempt]] = field(default_factory=dict)
    parts: dict[int, Part] = field(default_factory=dict)
    twins: dict[int, None] = field(default_factory=dict)
    avoids: dict[int, float] = field(default_factory=dict)
    fetching: set[int] = field(default_factory=set)
    waits: set[int] = field(default_factory=set)
    delay: Delay | None = None
    active: bool = False
    tries: int = 0
    losses: int = 0
    fetch_failures: int = 0
    blamed: dict[str, set[int]] = field(default_factory=dict)
    distrust: bool = False
    whole: bool = False
    failed_tasks: int = 0
    began_s: float | None = None
    ended_s: float | None = None
    took: list[tuple[str, float]] = field(default_factory=list)
    records: list[int] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    turn: int = 0
    pool: str = ""
    read_bytes: int = 0
    written_bytes: int = 0
    spilled_bytes: int = 0

    @property
    def key(self) -> str:
        return f"{self.id}.{self.tries}"

    def part(self, index: int) -> Part:
        found = self.parts.get(index)
        if found is None:
            found = self.parts[index] = Part()
        return found


@dataclass(frozen=True, slots=True)
class Coming:
    """A big result that an executor has, and which is to be fetched."""

    stage: Stage
    index: int
    executor_id: str
    address: str
    block: BlockId
    size_bytes: int


@dataclass(slots=True, eq=False)
class JobState:
    """stages: all that were begun for it, in order.  result_bytes: of what was delivered, and
    of what is to be fetched."""

    number: int
    final: Stage
    action: str
    place: str
    group: str
    description: str
    properties: dict[str, str]
    began_s: float
    stages: dict[int, Stage] = field(default_factory=dict)
    result_bytes: int = 0


class State:
    """All of it.  Nothing here decides."""

    def __init__(self, rules: Rules, pack: Pack) -> None:
        self.rules = rules
        self.pack = pack
        self.executors: dict[str, Executor] = {}
        # Those with a free slot, who has waited longest first.
        self.free: dict[str, Executor] = {}
        self.slots = 0
        self.hosts: dict[str, int] = {}
        self.outputs = Outputs()
        self.kept = Kept()
        self.jobs: dict[int, JobState] = {}
        self.stages: dict[int, Stage] = {}
        self.by_shuffle: dict[int, Stage] = {}
        self.tasks: dict[int, Attempt] = {}
        # By the tasks that have made them: what is fetched, or waits for that.
        self.fetching: dict[int, Coming] = {}
        self.unfetched: deque[int] = deque()
        # Also those whose jobs have ended meanwhile.
        self.under_way: set[int] = set()
        self.turns = Turns("fair" if rules.fair else "fifo")
        self.by_turn: dict[int, Stage] = {}
        self.held: dict[str, int] = {}
        self._pools = {pool_key(name): pool for name, pool in rules.pools.items()}
        self.blame = Blame(rules.exclude_failures, rules.exclude_s)
        self.effects: list[Effect] = []
        self.ended_jobs: deque[JobView] = deque(maxlen=REMEMBERED)
        self.ended_stages: deque[StageView] = deque(maxlen=REMEMBERED)
        self.refused: Failure | None = None
        self.last_stage = 0
        self.last_task = 0

    def send(self, executor_id: str, message: FromDriver) -> None:
        self.effects.append(Send(executor_id, message))

    # ---- Executors' slots ------------------------------------------------------------------

    def join(self, executor: Executor) -> None:
        self.executors[executor.id] = executor
        self.slots += executor.slots
        self.hosts[executor.host] = self.hosts.get(executor.host, 0) + 1
        self.refresh(executor)

    def part_with(self, executor: Executor) -> None:
        del self.executors[executor.id]
        self.free.pop(executor.id, None)
        self.slots -= executor.slots
        self.hosts[executor.host] -= 1
        if not self.hosts[executor.host]:
            del self.hosts[executor.host]

    def refresh(self, executor: Executor) -> None:
        """After its slots have changed."""
        if executor.free > 0:
            self.free.setdefault(executor.id, executor)
        else:
            self.free.pop(executor.id, None)

    def begin(self, attempt: Attempt) -> None:
        """It holds a slot from now on."""
        executor = attempt.executor
        self.tasks[attempt.task_id] = attempt
        attempt.stage.running.setdefault(attempt.index, []).append(attempt)
        executor.running.add(attempt.task_id)
        executor.idle_since_s = None
        # Behind the others, so that tasks are spread.
        self.free.pop(executor.id, None)
        self.refresh(executor)
        self.hold(attempt.stage, 1)

    def end(self, task_id: int, now_s: float) -> Attempt | None:
        """Its slot is free.  Who it was; None if it is not known."""
        attempt = self.tasks.pop(task_id, None)
        if attempt is None:
            return None
        executor = attempt.executor
        executor.running.discard(task_id)
        if not executor.running:
            executor.idle_since_s = now_s
        if executor.id in self.executors:
            self.refresh(executor)
        running = attempt.stage.running
        running[attempt.index].remove(attempt)
        if not running[attempt.index]:
            del running[attempt.index]
        self.hold(attempt.stage, -1)
        return attempt

    # ---- Turns -----------------------------------------------------------------------------

    def queue(self, stage: Stage) -> None:
        """It has tasks to be placed; nothing if that is known."""
        if stage.turn:
            return
        stage.turn = stage.jobs[0] << 32 | stage.id
        self.by_turn[stage.turn] = stage
        self._take_turn(stage)

    def unqueue(self, stage: Stage) -> None:
        if stage.turn:
            self.turns.remove(stage.turn)
            del self.by_turn[stage.turn]
            stage.turn = 0

    def turn_again(self, stage: Stage) -> None:
        """Who needs it has changed: its turn is that of the oldest."""
        if stage.turn:
            self.unqueue(stage)
            self.queue(stage)

    def hold(self, stage: Stage, change: int) -> None:
        """That many more slots are held by the stage's pool."""
        if not self.rules.fair:
            return
        pool = stage.pool
        self.held[pool] = self.held.get(pool, 0) + change
        if not self.held[pool]:
            del self.held[pool]
        for each in self.by_turn.values():
            if each.pool == pool:
                self.turns.remove(each.turn)
                self._take_turn(each)

    def _take_turn(self, stage: Stage) -> None:
        pool = self._pools.get(stage.pool, EVEN)
        within = sum(map(len, stage.running.values())) if pool.fair else 0
        self.turns.add(stage.turn, "normal", pool.standing(self.held.get(stage.pool, 0)), within)


def pool_key(name: str) -> str:
    """What `Stage.pool` is for a pool of that name, beside the pools of single jobs."""
    return f"pool {name}"


__all__ = [
    "REMEMBERED",
    "Attempt",
    "Coming",
    "Executor",
    "JobState",
    "Pack",
    "Part",
    "Stage",
    "State",
    "pool_key",
]
