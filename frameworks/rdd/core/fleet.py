"""The executors of a driver as tasks of the cluster: how many, where, and what becomes of them.

It is told of offers, statuses and joins, and gives orders; times are of any clock that does
not go back.  Whether an executor has work, and which is to go, the engine decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from frameworks.common.endings import AGENT_LOST, has_ended, is_fault, words_of
from frameworks.common.pool import Member, Phase, Pool, PoolRules
from mesos_py import (
    AskedBack,
    InvalidResources,
    Offer,
    Resources,
    TaskStatus,
    resources_of,
)

# What was of no use is not offered again for so long, unless more is wanted meanwhile.
REFUSE_S: Final = 5.0
# So often in a row executors were started and have ended before they could work, and none ever
# has: something is wrong with the program or the machines, and waiting longer is of no use.
# Those that were there together count once: they may be one machine's.
MOST_FAILED_STARTS: Final = 3


@dataclass(frozen=True, slots=True)
class Shape:
    """Of every executor: so many tasks at once, the memory of all of them together, and
    what the executor itself needs besides."""

    slots: int
    mem_mb: int
    overhead_mb: int

    @property
    def resources(self) -> Resources:
        return Resources.of(cpus=self.slots, mem=self.mem_mb + self.overhead_mb)


@dataclass(frozen=True, slots=True)
class Start:
    """Launch this executor on the offer."""

    executor_id: str
    offer: Offer


@dataclass(frozen=True, slots=True)
class Gone:
    """An executor has ended, or its agent is away.

    outputs_lost: what it has written cannot be read any more.  blame: it may be its own
    doing, or its host's.
    """

    executor_id: str
    reason: str
    outputs_lost: bool
    blame: bool


@dataclass(slots=True)
class Orders:
    """What is to be done, in this order; `needs_offers` None: as before."""

    gone: list[Gone] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    declined: list[str] = field(default_factory=list)
    kills: list[tuple[str, str]] = field(default_factory=list)
    leaving: list[str] = field(default_factory=list)
    needs_offers: bool | None = None
    given_up: str = ""


class Fleet:
    """Of one driver.  `name` begins the ids of its executors."""

    def __init__(self, name: str, shape: Shape, rules: PoolRules) -> None:
        self.shape = shape
        self._name = name
        self._pool = Pool(rules)
        self._last = 0
        self._wanted = rules.least
        self._needs_offers: bool | None = None
        self._offers: dict[str, Offer] = {}
        self._failed_starts = 0
        # After how many of these each was begun that has not joined yet.
        self._begun_after: dict[str, int] = {}
        self._joined = False
        self._last_failure = ""
        self._leaving: set[str] = set()

    # ---- What happens ----------------------------------------------------------------

    def want(self, slots: int) -> None:
        """So many tasks could run at once now, those that run included."""
        self._wanted = -(-slots // self.shape.slots)

    def offered(self, offers: Iterable[Offer]) -> None:
        self._offers.update((offer.id.value, offer) for offer in offers)

    def rescinded(self, offer_id: str) -> None:
        self._offers.pop(offer_id, None)

    def unlinked(self) -> None:
        """There is no master: what was offered is dead, and asked for anew afterwards."""
        self._offers.clear()
        self._needs_offers = None

    def joined(self, executor_id: str, now_s: float) -> bool:
        """It has said hello.  False for one that is not ours, or was told to end."""
        member = self._pool.get(executor_id)
        if member is None or member.phase == Phase.ENDING:
            return False
        self._joined = True
        self._failed_starts = 0
        self._begun_after.pop(executor_id, None)
        self._pool.serves(executor_id, now_s)
        return True

    def status(self, status: TaskStatus, now_s: float) -> Orders:
        """May come twice, late, and of what was forgotten."""
        orders = Orders()
        task_id = status.task_id.value
        if not has_ended(status):
            if task_id not in self._pool:
                # Its agent was taken for lost and is back, or a kill was.
                orders.kills.append((task_id, status.agent_id.value))
            return orders
        fault = is_fault(status)
        member = self._pool.ended(task_id, now_s, fault=fault)
        if member is None:
            return orders
        self._leaving.discard(task_id)
        asked = member.phase == Phase.ENDING
        reason = f"{task_id} on {member.hostname}: {words_of(status)}"
        if asked:
            reason = "was told to leave"
        lost = status.state in AGENT_LOST
        orders.gone.append(Gone(task_id, reason, outputs_lost=lost, blame=fault and not asked))
        if fault and not asked and member.served_s is None:
            orders.given_up = self._failed_start(member, reason, now_s)
        self._begun_after.pop(task_id, None)
        return orders

    def asked_back(self, asked: AskedBack) -> Orders:
        """Room is wanted back: those that were chosen get no more work, and end at the
        deadline if they have not before."""
        orders = Orders()
        for task_id in asked.task_ids:
            if task_id in self._pool and task_id not in self._leaving:
                self._leaving.add(task_id)
                orders.leaving.append(task_id)
        return orders

    def drop(self, executor_id: str, now_s: float) -> Orders:
        """The engine does not need it any more, or has lost its link."""
        orders = Orders()
        member = self._pool.get(executor_id)
        if member is not None and self._pool.ending(executor_id, now_s):
            orders.kills.append((executor_id, member.agent_id))
        return orders

    # ---- What to do about it -----------------------------------------------------------

    def look(self, now_s: float) -> Orders:
        """To be called after anything has happened, and at `wake_s`."""
        orders = Orders()
        for member in self._pool.overdue(now_s):
            if self._pool.give_up(member.task_id, now_s):
                start_s = self._pool.rules.start_s
                reason = f"{member.task_id} on {member.hostname} has not called in {start_s:g} s"
                orders.given_up = self._failed_start(member, reason, now_s)
                orders.kills.append((member.task_id, member.agent_id))
        missing = self._pool.missing(self._wanted, now_s)
        rooms = {name: _room(offer) for name, offer in self._offers.items()}
        while missing > 0 and (offer := self._next(rooms, now_s)) is not None:
            rooms[offer.id.value] -= self.shape.resources
            orders.starts.append(self._start(offer, now_s))
            missing -= 1
        used = {start.offer.id.value for start in orders.starts}
        orders.declined = [name for name in self._offers if name not in used]
        self._offers.clear()
        if (missing > 0) != self._needs_offers:
            self._needs_offers = orders.needs_offers = missing > 0
        return orders

    def wake_s(self, now_s: float) -> float | None:
        """When time alone asks for another look; None: never."""
        return self._pool.wake_s(now_s)

    def waiting(self, now_s: float) -> str:
        """Why there are fewer executors than wanted, in words; "" if there are not."""
        wanted = self._pool.wanted(self._wanted)
        there = self._pool.count(Phase.SERVING)
        starting = self._pool.count(Phase.STARTING)
        if there >= wanted:
            return ""
        if self._pool.paused_until_s(now_s) > now_s:
            return self._last_failure
        if there + starting >= wanted:
            return f"{starting} executors are starting"
        shape = self.shape
        return (
            f"{wanted - there - starting} more executors could work, each with {shape.slots} cpus "
            f"and {shape.mem_mb + shape.overhead_mb} MB: no offer has that"
        )

    @property
    def asks(self) -> bool:
        """Whether offers are wanted now."""
        return bool(self._needs_offers)

    @property
    def missing_executors(self) -> int:
        """How many more could work, whatever keeps them from starting."""
        there = self._pool.count(Phase.STARTING, Phase.SERVING)
        return max(0, self._pool.wanted(self._wanted) - there)

    def __contains__(self, executor_id: object) -> bool:
        return executor_id in self._pool

    # ---- Its own -----------------------------------------------------------------------

    def _next(self, rooms: dict[str, Resources], now_s: float) -> Offer | None:
        """Where the next one is started: among agents that have room, where fewest are."""
        there = Counter(member.agent_id for member in self._pool)
        fitting = [
            offer
            for name, offer in self._offers.items()
            if rooms[name].contains(self.shape.resources)
            and self._pool.allows(offer.agent_id.value, now_s)
        ]
        return min(fitting, key=lambda offer: there[offer.agent_id.value], default=None)

    def _failed_start(self, member: Member, reason: str, now_s: float) -> str:
        """Another one that has ended, or hangs, before it could work; why to give up, or ""."""
        if self._begun_after.pop(member.task_id, -1) == self._failed_starts:
            self._failed_starts += 1
        pause_s = self._pool.paused_until_s(now_s) - now_s
        self._last_failure = f"{reason}; the next one is started {pause_s:.0f} s later"
        if self._joined or self._failed_starts < MOST_FAILED_STARTS:
            return ""
        return (
            f"{self._failed_starts} times executors have failed before they could work; the last: "
            f"{reason} (`mesos-py logs {member.task_id}` shows what it wrote)"
        )

    def _start(self, offer: Offer, now_s: float) -> Start:
        self._last += 1
        executor_id = f"{self._name}-{self._last}"
        self._begun_after[executor_id] = self._failed_starts
        size = self.shape.resources
        self._pool.begin(executor_id, offer.agent_id.value, offer.hostname, size, now_s)
        return Start(executor_id, offer)


def _room(offer: Offer) -> Resources:
    """What is offered; nothing, if it is for short tasks or not understood."""
    if offer.HasField("max_task_duration"):
        return Resources()
    try:
        return resources_of(offer)
    except InvalidResources:
        return Resources()


__all__ = ["MOST_FAILED_STARTS", "REFUSE_S", "Fleet", "Gone", "Orders", "Shape", "Start"]
