"""The farm: which instances there are, which site they have, and what is to be done next.  Pure.

The shell tells what happens (offers, statuses, readings of the balancer) and carries out the
orders.  Orders follow from how things are, not from what was ordered before: one that was not
carried out, or whose doer died, is given again in the next round.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from frameworks.common.pool import Member, Phase, Pool, PoolRules
from frameworks.webfarm.core.balancer import Mode, Reading, Slot
from frameworks.webfarm.core.rollout import Rollout
from mesos_py import Resources

# Which of a list of ports an instance gets: other ones with each try.
_STEP: Final = 7
# A kill that nothing came of is said again.
_KILL_AGAIN_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Instance:
    """A server, as it is written down.  version: of the site that it has."""

    task_id: str
    agent_id: str
    hostname: str
    address: str
    port: int
    version: int

    @property
    def at(self) -> str:
        return f"{self.address}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FarmRules:
    """
    most: instances that take load.
    batch: so many are replaced at a time by a deployment.
    each: what an instance takes, beside its port.
    start_s: an instance that does not serve so long after its start has failed.
    drain_s: an instance that is drained has so long for the sessions it has.
    """

    most: int
    batch: int = 1
    each: Resources
    start_s: float = 120.0
    drain_s: float = 30.0
    backoff_first_s: float = 2.0


@dataclass(frozen=True, slots=True)
class Order:
    """Something to be done with a slot of the balancer (`put`: `instance` into it), or, with
    `kill`, with an instance.  idle: nothing is open there, it may end at once."""

    what: Literal["put", "open", "hold", "free", "kill"]
    slot: str = ""
    instance: Instance | None = None
    idle: bool = False


class Farm:
    """Times are seconds of a clock that does not go back."""

    def __init__(self, rules: FarmRules, rollout: Rollout, wanted: int) -> None:
        self.rules = rules
        self.rollout = rollout
        # How many are to take load.
        self.wanted = wanted
        # Two of one version are never on an agent; of two versions, while one replaces the other.
        self.pool = Pool(
            PoolRules(
                most=rules.most + rules.batch,
                start_s=rules.start_s,
                backoff_first_s=rules.backoff_first_s,
            )
        )
        self._instances: dict[str, Instance] = {}
        self._running: set[str] = set()
        # Places that the balancer may still send something to.
        self._taken: set[str] = set()
        self._begun = 0
        # When each was told to end, and whether it was idle then.
        self._killed: dict[str, tuple[float, bool]] = {}
        # Who has to go whatever the load, and when at last.
        self._leaving: dict[str, float] = {}

    # ---- Who is there ------------------------------------------------------------

    @property
    def instances(self) -> list[Instance]:
        return list(self._instances.values())

    def __contains__(self, task_id: object) -> bool:
        return task_id in self._instances

    def phase(self, instance: Instance) -> Phase:
        member = self.pool.get(instance.task_id)
        return member.phase if member is not None else Phase.ENDING

    @property
    def is_settled(self) -> bool:
        """Nobody comes or goes."""
        serving = self.pool.count(Phase.SERVING)
        return serving == len(self.pool) and not self.rollout.active

    def adopt(self, instance: Instance, now_s: float) -> None:
        """One of a predecessor; whether it runs is asked of the cluster, whether it is in use
        of the balancer."""
        self._instances[instance.task_id] = instance
        self.pool.adopt(
            Member(
                instance.task_id,
                instance.agent_id,
                instance.hostname,
                self.rules.each,
                phase=Phase.STARTING,
                since_s=now_s,
            )
        )

    # ---- More --------------------------------------------------------------------

    def to_start(self, now_s: float) -> int:
        """How many instances may be launched now."""
        wanted = self.wanted + len(self._going())
        if not self.rollout.active:
            return self.pool.missing(wanted, now_s)
        new = [m for m in self._staying() if self._is_new(m)]
        starting = sum(member.phase == Phase.STARTING for member in new)
        room = min(self.rules.batch - starting, self.wanted - len(new))
        if any(member.phase == Phase.SERVING for member in new):
            # The site is known to work: what is missing comes at once.
            room = max(room, self.pool.missing(wanted, now_s))
        if self.pool.paused_until_s(now_s) > now_s:
            return 0
        return max(0, min(room, self.pool.rules.most - len(self.pool)))

    def refusal_s(self, agent_id: str, now_s: float) -> float | None:
        """None: an instance may be launched there; infinity: not while ours is there; else
        the seconds for which that agent is left alone, since instances fail on it."""
        version = self.rollout.version
        if any(
            each.agent_id == agent_id and each.version == version
            for each in self._instances.values()
        ):
            return float("inf")
        if not self.pool.allows(agent_id, now_s):
            return self.rules.backoff_first_s
        return None

    def is_used(self, agent_id: str) -> bool:
        """Whether one of ours is there: others are taken first."""
        return any(each.agent_id == agent_id for each in self._instances.values())

    def port_of(self, address: str, ports: Iterator[int] | Iterable[int]) -> int | None:
        """One of the ports that nothing of ours is or was just at; None: there is none."""
        used = self._taken | {each.at for each in self._instances.values()}
        free = [port for port in ports if f"{address}:{port}" not in used]
        return free[self._begun * _STEP % len(free)] if free else None

    def begin(self, instance: Instance, now_s: float) -> None:
        """It is being launched, with the site of `rollout.version`."""
        self._begun += 1
        self._instances[instance.task_id] = instance
        self.pool.begin(
            instance.task_id, instance.agent_id, instance.hostname, self.rules.each, now_s
        )

    # ---- What happens ------------------------------------------------------------

    def running(self, task_id: str) -> bool:
        """The cluster says that it runs: whether that is news."""
        news = task_id not in self._running
        self._running.add(task_id)
        return news

    def ended(
        self, task_id: str, now_s: float, *, fault: bool, why: str, site: bool = True
    ) -> Instance | None:
        """It is gone.  fault: by its own doing, as far as is known.  site: perhaps by that of
        the site which it had; else it says nothing about a deployment, and is tried again.
        Returns who it was."""
        member = self.pool.ended(task_id, now_s, fault=fault)
        instance = self._instances.pop(task_id, None)
        self._running.discard(task_id)
        self._killed.pop(task_id, None)
        self._leaving.pop(task_id, None)
        unasked = member is not None and member.phase < Phase.ENDING
        if instance is not None and unasked and fault and site:
            self._failed(instance, why)
        return instance

    def leave(self, task_ids: Iterable[str], now_s: float, within_s: float = 0.0) -> bool:
        """These have to go, whatever the load: others are launched in their place.  Whether
        that is news of any of them.

        One that serves is drained when another one serves in its place, or after `within_s`;
        the last that serves stays until there is another, or until it is ended by others.
        """
        news = False
        for task_id in task_ids:
            member = self.pool.get(task_id)
            if member is None or member.phase > Phase.SERVING:
                continue
            news = news or task_id not in self._leaving
            at_s = now_s + within_s
            self._leaving[task_id] = min(at_s, self._leaving.get(task_id, at_s))
        return news

    def _going(self) -> list[Member]:
        """Who serves or is about to, and has to go; who has the least time first."""
        going = [m for m in self.pool if m.phase <= Phase.SERVING and m.task_id in self._leaving]
        return sorted(going, key=lambda member: self._leaving[member.task_id])

    def _staying(self) -> list[Member]:
        there = [m for m in self.pool if m.phase <= Phase.SERVING]
        return [member for member in there if member.task_id not in self._leaving]

    # ---- A round -----------------------------------------------------------------

    def round(self, now_s: float, reading: Reading) -> list[Order]:
        """What is to be done now, in this order."""
        slots = {slot.at: slot for slot in reading.slots if slot.mode is not Mode.FREE}
        self._taken = set(slots)
        free = [slot for slot in reading.slots if slot.mode is Mode.FREE]
        ready = self._serve(now_s, slots)
        self._relieve(now_s, slots)
        self._shrink(now_s, slots)
        orders = [
            *self._late(now_s),
            *ready,
            *self._slots(slots, free),
            *self._drained(now_s, slots),
            *self._strays(reading),
        ]
        self._settle()
        return orders

    def _serve(self, now_s: float, slots: dict[str, Slot]) -> list[Order]:
        """Who is well in the balancer gets sessions."""
        orders = []
        for instance in self.instances:
            slot = slots.get(instance.at)
            if slot is None or not slot.well or self.phase(instance) > Phase.SERVING:
                continue
            # One that gets sessions and is well serves, though the cluster may not know of it.
            if instance.task_id not in self._running and slot.mode is not Mode.OPEN:
                continue
            self.pool.works(instance.task_id, slot.sessions > 0, now_s)
            if slot.mode is Mode.HELD:
                orders.append(Order("open", slot.name, instance))
            self.pool.serves(instance.task_id, now_s)
        return orders

    def _slots(self, slots: dict[str, Slot], free: list[Slot]) -> Iterator[Order]:
        """Each that runs is in a slot; who is drained gets nothing new."""
        for instance in self.instances:
            slot, phase = slots.get(instance.at), self.phase(instance)
            if slot is None and phase <= Phase.SERVING and free:
                if instance.task_id in self._running:
                    yield Order("put", free.pop(0).name, instance)
            elif slot is not None and slot.mode is Mode.OPEN and phase > Phase.SERVING:
                yield Order("hold", slot.name, instance)

    def _serving(self, slots: dict[str, Slot]) -> list[Member]:
        """Who gets sessions, and is well."""
        return [m for m in self.pool if m.phase == Phase.SERVING and self._well(m, slots)]

    def _relieve(self, now_s: float, slots: dict[str, Slot]) -> None:
        """Who has to go does, as soon as that leaves enough."""
        left = len(self._serving(slots))
        for member in self._going():
            if member.phase == Phase.SERVING:
                well = self._well(member, slots)
                late = now_s >= self._leaving[member.task_id]
                others = left - well
                if others < (1 if late or not well else self.wanted):
                    continue
                left = others
            self._drain(member, now_s)

    def _shrink(self, now_s: float, slots: dict[str, Slot]) -> None:
        """Too many: drain; while a site is being deployed the old ones, as new ones serve."""
        if not self.rollout.active:
            for member in self.pool.surplus(self.wanted + len(self._going())):
                self._drain(member, now_s)
            return
        serving = self._serving(slots)
        old = [member for member in serving if not self._is_new(member)]
        # Those first whose agent has a new one already.
        agents = {member.agent_id for member in self.pool if self._is_new(member)}
        old.sort(key=lambda member: member.agent_id not in agents)
        for member in old[: max(0, len(serving) - self.wanted)]:
            self._drain(member, now_s)
        if not any(self._is_new(member) for member in serving):
            return
        # The new site is known to work.  Old ones that do not serve, or that the balancer takes
        # for ill, are of no use to anybody.
        for member in self.pool:
            old_one = member.phase <= Phase.SERVING and not self._is_new(member)
            if old_one and not self._well(member, slots):
                self._drain(member, now_s)

    def _drain(self, member: Member, now_s: float) -> None:
        if not self.pool.drain(member.task_id, now_s):
            # Has never served.
            self.pool.ending(member.task_id, now_s)

    def _drained(self, now_s: float, slots: dict[str, Slot]) -> Iterator[Order]:
        """Who has nothing left to do, or no time, ends; said again until it has."""
        for instance in self.instances:
            member = self.pool.get(instance.task_id)
            if member is None or member.phase < Phase.DRAINING:
                continue
            slot = slots.get(instance.at)
            # A look after it was held: what was open then has shown itself.
            idle = slot is None or (slot.mode is Mode.HELD and slot.sessions == 0)
            if member.phase == Phase.DRAINING:
                over = now_s >= member.since_s + self.rules.drain_s
                if not (over or idle):
                    continue
                self.pool.ending(instance.task_id, now_s)
            if slot is not None:
                yield Order("free", slot.name, instance)
            yield from self._kill(instance, now_s, idle)

    def _kill(self, instance: Instance, now_s: float, idle: bool) -> list[Order]:
        before_s, was_idle = self._killed.get(instance.task_id, (-_KILL_AGAIN_S, idle))
        if now_s < before_s + _KILL_AGAIN_S:
            return []
        # Out of the balancer it looks idle, whatever it has still open.
        self._killed[instance.task_id] = now_s, was_idle
        return [Order("kill", instance=instance, idle=was_idle)]

    def _late(self, now_s: float) -> Iterator[Order]:
        for member in self.pool.overdue(now_s):
            instance = self._instances[member.task_id]
            self.pool.give_up(member.task_id, now_s)
            self._failed(instance, f"it does not serve within {self.rules.start_s:g} s")
            yield from self._kill(instance, now_s, idle=True)

    def _strays(self, reading: Reading) -> Iterator[Order]:
        """Slots of servers that are gone, and second ones of a server."""
        known = {each.at for each in self._instances.values()}
        for slot in reading.slots:
            if slot.mode is Mode.FREE:
                continue
            if slot.at not in known:
                yield Order("free", slot.name)
            known.discard(slot.at)

    def _settle(self) -> None:
        """A deployment is over when nothing old is left."""
        over = self.pool.count(Phase.SERVING) and all(self._is_new(each) for each in self.pool)
        if self.rollout.active and over:
            self.rollout.done()

    def _failed(self, instance: Instance, why: str) -> None:
        if self.rollout.active and instance.version == self.rollout.version:
            self.rollout.failed(f"{instance.task_id} on {instance.hostname}: {why}")

    def _is_new(self, member: Member) -> bool:
        return self._instances[member.task_id].version == self.rollout.version

    def _well(self, member: Member, slots: dict[str, Slot]) -> bool:
        slot = slots.get(self._instances[member.task_id].at)
        return slot is not None and slot.mode is Mode.OPEN and slot.well


__all__ = ["Farm", "FarmRules", "Instance", "Order"]
