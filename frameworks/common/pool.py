"""An elastic set of daemons that run as tasks: who is there, who may be started, who goes.

It decides nothing about how many are wanted; whoever knows that asks `missing` and `surplus`.
A member goes STARTING, SERVING, DRAINING, ENDING and is gone; what comes late or twice changes
nothing, and from DRAINING it may be taken back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from mesos_py import InvalidValue, Resources


class Phase(IntEnum):
    """In their order."""

    STARTING = 0
    SERVING = 1
    # Gets no new work.
    DRAINING = 2
    # Was told to end, and has not.
    ENDING = 3


@dataclass(slots=True)
class Member:
    """since_s: when its phase began.  served_s: when it first served; None: not yet.
    idle_since_s: since when it serves and has nothing to do; None: it has."""

    task_id: str
    agent_id: str
    hostname: str
    size: Resources
    phase: Phase
    since_s: float
    served_s: float | None = None
    idle_since_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRules:
    """
    least, most: of members; those that are ending count towards `most`, they hold room.
    start_s: a member that does not serve so long after its start has failed.
    idle_s: a member without work for so long is not needed.
    one_per_agent: never two on an agent.
    backoff_first_s, backoff_cap_s: pause after a failure, doubled with each one that follows.
    settled_s: a member that served so long was no failed start, however it ends.
    """

    least: int = 0
    most: int
    start_s: float = 60.0
    idle_s: float = 60.0
    one_per_agent: bool = False
    backoff_first_s: float = 2.0
    backoff_cap_s: float = 120.0
    settled_s: float = 30.0

    def __post_init__(self) -> None:
        """Raises InvalidValue."""
        if not 0 <= self.least <= self.most:
            raise InvalidValue("least", self.least, f"must be from 0 to {self.most} (most)")
        for name in ("start_s", "idle_s", "backoff_first_s", "backoff_cap_s", "settled_s"):
            if not 0 <= getattr(self, name) < 2**33:
                raise InvalidValue(name, getattr(self, name), "must be zero or more seconds")


class Backoff:
    """Failures in a row, and the pause after them."""

    __slots__ = ("_cap_s", "_first_s", "failures", "until_s")

    def __init__(self, first_s: float, cap_s: float) -> None:
        self._first_s = first_s
        self._cap_s = cap_s
        self.failures = 0
        self.until_s = 0.0

    def failed(self, now_s: float) -> None:
        """One that comes long after the last pause begins a new row."""
        if now_s > self.until_s + self._cap_s:
            self.failures = 0
        # Beyond that many the cap has been reached, and floats have an end.
        pause_s = min(self._first_s * 2 ** min(self.failures, 60), self._cap_s)
        self.failures += 1
        self.until_s = now_s + pause_s


class Pool:
    """Times are seconds of any clock that does not go back, the same in all calls."""

    def __init__(self, rules: PoolRules) -> None:
        self.rules = rules
        self._members: dict[str, Member] = {}
        self._agents: dict[str, Backoff] = {}
        self._all = Backoff(rules.backoff_first_s, rules.backoff_cap_s)

    # ---- Who is there ----------------------------------------------------------

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Member]:
        """In the order of their starts; members may be changed and ended meanwhile."""
        return iter(list(self._members.values()))

    def __contains__(self, task_id: object) -> bool:
        return task_id in self._members

    def get(self, task_id: str) -> Member | None:
        return self._members.get(task_id)

    def count(self, *phases: Phase) -> int:
        return sum(member.phase in phases for member in self._members.values())

    # ---- What happens to them ----------------------------------------------------

    def begin(
        self, task_id: str, agent_id: str, hostname: str, size: Resources, now_s: float
    ) -> Member:
        """It is being launched.  Raises InvalidValue for an id that is there."""
        return self.adopt(
            Member(task_id, agent_id, hostname, size, phase=Phase.STARTING, since_s=now_s)
        )

    def adopt(self, member: Member) -> Member:
        """It was begun by a predecessor of ours, whatever the rules say now: times in it are
        of this clock, so one that is STARTING has its whole time again."""
        if member.task_id in self._members:
            raise InvalidValue("task_id", member.task_id, "is in the pool")
        self._members[member.task_id] = member
        return member

    def serves(self, task_id: str, now_s: float) -> bool:
        """It is ready.  Whether that is news."""
        member = self._members.get(task_id)
        if member is None or member.phase != Phase.STARTING:
            return False
        member.served_s = now_s
        member.idle_since_s = now_s
        self._to(member, Phase.SERVING, now_s)
        return True

    def works(self, task_id: str, busy: bool, now_s: float) -> None:
        """Whether it has something to do at this moment."""
        member = self._members.get(task_id)
        if member is None or member.phase == Phase.STARTING:
            return
        if busy:
            member.idle_since_s = None
        elif member.idle_since_s is None:
            member.idle_since_s = now_s

    def drain(self, task_id: str, now_s: float) -> bool:
        """It is to get no new work.  Whether that is news; one that has not served yet has
        nothing to finish: `ending` is for it."""
        return self._step(task_id, (Phase.SERVING,), Phase.DRAINING, now_s)

    def resume(self, task_id: str, now_s: float) -> bool:
        """One that was drained is needed after all.  Whether that is news."""
        if not self._step(task_id, (Phase.DRAINING,), Phase.SERVING, now_s):
            return False
        member = self._members[task_id]
        if member.idle_since_s is not None:
            member.idle_since_s = now_s
        return True

    def ending(self, task_id: str, now_s: float) -> bool:
        """It was told to end.  Whether that is news."""
        before = (Phase.STARTING, Phase.SERVING, Phase.DRAINING)
        return self._step(task_id, before, Phase.ENDING, now_s)

    def ended(self, task_id: str, now_s: float, fault: bool = True) -> Member | None:
        """It is gone: who it was, as it was; None if it is not in the pool.

        fault: whether an end that nobody asked for may be its own doing or its agent's; not
        with an agent that was lost, or room that was taken back.
        """
        member = self._members.pop(task_id, None)
        if member is not None and fault and member.phase < Phase.ENDING:
            self._blame(member, now_s)
        return member

    def overdue(self, now_s: float) -> list[Member]:
        """Those that should serve by now: they are to be ended, and count as failed
        (`give_up`)."""
        return [
            member
            for member in self._members.values()
            if member.phase == Phase.STARTING and now_s >= member.since_s + self.rules.start_s
        ]

    def give_up(self, task_id: str, now_s: float) -> bool:
        """As `ending`, for one that has failed without ending."""
        member = self._members.get(task_id)
        if member is None or not self.ending(task_id, now_s):
            return False
        self._blame(member, now_s)
        return True

    # ---- How many ----------------------------------------------------------------

    def wanted(self, count: int) -> int:
        """Within the rules."""
        return max(self.rules.least, min(count, self.rules.most))

    def missing(self, count: int, now_s: float) -> int:
        """How many may be begun now for `count` that serve or are about to."""
        if self.paused_until_s(now_s) > now_s:
            return 0
        there = self.count(Phase.STARTING, Phase.SERVING)
        return max(0, min(self.wanted(count) - there, self.rules.most - len(self)))

    def surplus(self, count: int) -> list[Member]:
        """Who is to go so that `count` serve or are about to, first things first: what has not
        served, the youngest first; what has been idle, longest first; the youngest."""
        there = [m for m in self._members.values() if m.phase <= Phase.SERVING]
        over = len(there) - self.wanted(count)
        return sorted(there, key=_how_needed)[: max(0, over)]

    def unneeded(self, now_s: float) -> list[Member]:
        """Those that have been idle for the time of the rules, longest first, as long as the
        least number remains."""
        until_s = now_s - self.rules.idle_s
        idle = [
            member
            for member in self._members.values()
            if member.phase == Phase.SERVING
            and member.idle_since_s is not None
            and member.idle_since_s <= until_s
        ]
        spare = self.count(Phase.STARTING, Phase.SERVING) - self.rules.least
        return sorted(idle, key=_how_needed)[: max(0, spare)]

    # ---- Where and when ------------------------------------------------------------

    def allows(self, agent_id: str, now_s: float) -> bool:
        """Whether one may be begun on that agent now; `missing` says whether at all."""
        backoff = self._agents.get(agent_id)
        if backoff is not None and now_s < backoff.until_s:
            return False
        if not self.rules.one_per_agent:
            return True
        return all(member.agent_id != agent_id for member in self._members.values())

    def paused_until_s(self, now_s: float) -> float:
        """Until when none is begun anywhere; not after `now_s`: there is no pause.

        While one has served for a time, failures are their agents'.
        """
        settled = any(
            member.served_s is not None and now_s - member.served_s >= self.rules.settled_s
            for member in self._members.values()
        )
        return now_s if settled else max(now_s, self._all.until_s)

    def failures(self, agent_id: str) -> int:
        """In a row there."""
        backoff = self._agents.get(agent_id)
        return backoff.failures if backoff is not None else 0

    def wake_s(self, now_s: float) -> float | None:
        """When time alone changes an answer, next; None: never."""
        rules = self.rules
        times = [self._all.until_s, *(each.until_s for each in self._agents.values())]
        for member in self._members.values():
            if member.phase == Phase.STARTING:
                times.append(member.since_s + rules.start_s)
            elif member.phase == Phase.SERVING and member.idle_since_s is not None:
                times.append(member.idle_since_s + rules.idle_s)
        return min((at_s for at_s in times if at_s > now_s), default=None)

    # ---- Its own -------------------------------------------------------------------

    def _step(self, task_id: str, before: tuple[Phase, ...], phase: Phase, now_s: float) -> bool:
        member = self._members.get(task_id)
        if member is None or member.phase not in before:
            return False
        self._to(member, phase, now_s)
        return True

    @staticmethod
    def _to(member: Member, phase: Phase, now_s: float) -> None:
        member.phase = phase
        member.since_s = now_s

    def _blame(self, member: Member, now_s: float) -> None:
        rules = self.rules
        if member.served_s is not None and now_s - member.served_s >= rules.settled_s:
            return
        backoff = self._agents.get(member.agent_id)
        if backoff is None:
            backoff = Backoff(rules.backoff_first_s, rules.backoff_cap_s)
            self._agents[member.agent_id] = backoff
        backoff.failed(now_s)
        self._all.failed(now_s)
        # Agents come and go for ever; what is long over is of no more use.
        over = [
            agent_id
            for agent_id, each in self._agents.items()
            if now_s > each.until_s + rules.backoff_cap_s
        ]
        for agent_id in over:
            del self._agents[agent_id]


def _how_needed(member: Member) -> tuple[int, float]:
    if member.phase == Phase.STARTING:
        return 0, -member.since_s
    if member.idle_since_s is not None:
        return 1, member.idle_since_s
    return 2, -member.since_s


__all__ = ["Backoff", "Member", "Phase", "Pool", "PoolRules"]
