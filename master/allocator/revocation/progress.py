"""What is being taken back, and what is kept of it for whom."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from master.allocator.revocation.choice import OnFailure
from master.allocator.revocation.holds import Hold, Holds
from master.allocator.revocation.needs import Bundle
from master.allocator.revocation.planner import Taking
from mesos_py.allocation import (
    AllocatorOptions,
    ClusterView,
    Grant,
    Refusal,
    Revocation,
    Tenant,
)
from mesos_py.resources import Resources

K = TypeVar("K")
V = TypeVar("V")
Pair: TypeAlias = tuple[str, str]

# What is not answered for so long, in times for which room is kept, is believed to be lost.
_FORGET: Final = 10.0
_LEAST_FORGET_S: Final = 600.0


@dataclass(slots=True)
class _Entry:
    """`hold` is None when it was called off."""

    hold: Hold | None
    since_s: float


class Progress:
    """From a revocation's beginning until what it freed was granted, or is kept no more.

    `released` are agents to be looked at again, since something is kept there no more.
    """

    def __init__(self, options: AllocatorOptions) -> None:
        self._patience_s = options.revocation_patience_s
        self._hold_s = options.revocation_hold_s
        self.holds = Holds()
        self.released: dict[str, None] = {}
        self._entries: dict[Revocation, _Entry] = {}
        self._called_off: list[Revocation] = []
        # Who lost something to whom, and until when he may not just take it back.
        self._lost: dict[Pair, float] = {}
        # What was granted of what was kept, by framework, role and agent.
        self._fed: dict[tuple[str, str, str], Resources] = {}

    def __iter__(self) -> Iterator[Revocation]:
        """What the master has not answered yet, also if it was called off."""
        return iter(self._entries)

    def __bool__(self) -> bool:
        return bool(self._entries or self.holds)

    # ---- What happens -------------------------------------------------------

    def begin(self, taking: Taking, now_s: float) -> list[Revocation]:
        """From now on it is in progress, and what becomes free is kept."""
        contender, agent_id = taking.contender, taking.agent.agent_id
        by_holder: dict[tuple[str, str, bool], list[Tenant]] = {}
        for _, tenant in taking.victims:
            key = tenant.framework_id, tenant.role, not tenant.task_id
            by_holder.setdefault(key, []).append(tenant)
        reason = f"for framework {contender.name!r} ({contender.framework_id}), "
        reason += "which has less than it needs"
        found: dict[Revocation, None] = {}
        for (framework_id, role, _), tenants in by_holder.items():
            resources = tenants[0].resources
            for tenant in tenants[1:]:
                resources = resources + tenant.resources
            task_ids = tuple(tenant.task_id for tenant in tenants if tenant.task_id)
            beneficiary = contender.framework_id
            revocation = Revocation(
                framework_id, role, agent_id, resources, task_ids, beneficiary, reason
            )
            found[revocation] = None
            self._lost[framework_id, beneficiary] = now_s + self._hold_s
        hold = self.holds.add(
            Hold(contender.framework_id, contender.role, agent_id, taking.bundles, found)
        )
        self._entries.update((one, _Entry(hold, now_s)) for one in found)
        return list(found)

    def ended(self, revocation: Revocation, freed: bool) -> None:
        """The master does no more about it.  Harmless when it is not known (any more)."""
        entry = self._entries.pop(revocation, None)
        if entry is not None and entry.hold is not None:
            entry.hold.in_progress.pop(revocation, None)
            entry.hold.freed = entry.hold.freed or freed
            self.released[revocation.agent_id] = None

    def granted(self, grants: Collection[Grant]) -> None:
        for grant in grants if self._fed else ():
            # What is refused from now on is this, not what was freed for it before.
            self._fed.pop((grant.framework_id, grant.role, grant.agent_id), None)
        for grant in grants:
            for hold in list(self.holds.on(grant.agent_id)):
                if (hold.framework_id, hold.role) == (grant.framework_id, grant.role):
                    hold.take(grant.resources)
                    self._fed[grant.framework_id, grant.role, grant.agent_id] = grant.resources
                    if not hold.bundles:
                        self._release(hold)

    def refused(self, refusal: Refusal) -> bool:
        """True if it hands back untouched what was freed for it."""
        key = refusal.framework_id, refusal.role, refusal.agent_id
        fed = self._fed.pop(key, None)
        if fed is None or not refusal.resources.contains(fed):
            return False
        for hold in list(self.holds.on(refusal.agent_id)):
            if (hold.framework_id, hold.role) == key[:2]:
                self._release(hold)
        return True

    def forget_framework(self, framework_id: str) -> None:
        """It is gone: what is in progress for it is called off."""
        for hold in self.holds:
            if hold.framework_id == framework_id:
                self._release(hold)
        drop(self._fed, lambda key: key[0] == framework_id)
        drop(self._lost, lambda pair: framework_id in pair)

    def forget_agent(self, agent_id: str) -> None:
        drop(self._entries, lambda revocation: revocation.agent_id == agent_id)
        for hold in list(self.holds.on(agent_id)):
            self.holds.drop(hold)
        drop(self._fed, lambda key: key[2] == agent_id)

    def has_lost(self, loser: str, winner: str, now_s: float) -> bool:
        """Whether that one has just lost something to the other."""
        # `tidy` may not have come since: there is none while nothing is in progress.
        return self._lost.get((loser, winner), -math.inf) > now_s

    def called_off(self) -> list[Revocation]:
        """What is not needed, after all; each once."""
        found, self._called_off = self._called_off, []
        return found

    def moments_s(self) -> Iterator[float]:
        """When holds end, or shrink."""
        for hold in self.holds:
            if hold.until_s is not None:
                yield hold.until_s
            if hold.idle_since_s is not None:
                yield hold.idle_since_s + self._patience_s

    # ---- A cycle begins -------------------------------------------------------

    def tidy(
        self,
        view: ClusterView,
        now_s: float,
        lacking: Mapping[Pair, Mapping[Bundle, int]],
        restated: Iterable[str],
        on_failure: OnFailure,
    ) -> list[Pair]:
        """Keep nothing too long, or for nothing.  `restated` are frameworks whose needs
        have changed.  Returns those for whom something was kept in vain."""
        lost_s = max(_LEAST_FORGET_S, _FORGET * self._hold_s)
        for revocation, entry in list(self._entries.items()):
            if entry.since_s + lost_s <= now_s:
                self.ended(revocation, freed=False)
        drop(self._lost, lambda pair: self._lost[pair] <= now_s)
        wanted = {key: dict(what) for key, what in lacking.items()}
        late: list[Pair] = []
        for hold in self.holds:
            key = hold.framework_id, hold.role
            patience_s = 0.0 if hold.framework_id in restated else self._patience_s
            try:
                self._fit(view, now_s, hold, wanted.setdefault(key, {}), patience_s)
                if self._is_over(view, now_s, hold):
                    self._release(hold)
                    if now_s >= (math.inf if hold.until_s is None else hold.until_s):
                        late.append(key)
            except Exception as error:
                self._release(hold)
                on_failure(hold.agent_id, error)
        return late

    def _is_over(self, view: ClusterView, now_s: float, hold: Hold) -> bool:
        if hold.in_progress or not hold.bundles:
            return False
        if hold.until_s is None:
            hold.until_s = now_s + self._hold_s
        if not hold.freed and not hold.is_ready(view.free(hold.agent_id)):
            # It was all called off, or the agent has lost it otherwise.
            hold.until_s = math.inf
            return True
        return hold.until_s <= now_s

    def _fit(
        self,
        view: ClusterView,
        now_s: float,
        hold: Hold,
        wanted: dict[Bundle, int],
        patience_s: float,
    ) -> None:
        """Keep no more than is wanted.

        If it is its needs that shrank, at once; if it has got something elsewhere, only
        after a while: that may be an offer that it does not take.
        """
        needless = []
        for bundle in hold.bundles:
            if wanted.get(bundle, 0) > 0:
                wanted[bundle] -= 1
            else:
                needless.append(bundle)
        if not needless:
            hold.idle_since_s = None
            return
        if hold.idle_since_s is None:
            hold.idle_since_s = now_s
        if now_s - hold.idle_since_s >= patience_s:
            for bundle in needless:
                hold.bundles.remove(bundle)
            hold.idle_since_s = None
            self.released[hold.agent_id] = None
            self._call_off_needless(view, hold)

    def _call_off_needless(self, view: ClusterView, hold: Hold) -> None:
        if not hold.bundles:
            self._release(hold)
            return
        room = view.free(hold.agent_id)
        for one in hold.in_progress:
            room = room + one.resources
        for one in list(hold.in_progress):
            rest = room - one.resources
            if _fits_all(rest, hold.bundles):
                room = rest
                self._call_off(hold, one)

    def _release(self, hold: Hold) -> None:
        for revocation in list(hold.in_progress):
            self._call_off(hold, revocation)
        self.holds.drop(hold)
        self.released[hold.agent_id] = None

    def _call_off(self, hold: Hold, revocation: Revocation) -> None:
        """It counts as taken until the master answers: it may be too late."""
        hold.in_progress.pop(revocation, None)
        entry = self._entries.get(revocation)
        if entry is not None:
            entry.hold = None
            self._called_off.append(revocation)


def drop(known: MutableMapping[K, V], over: Callable[[K], bool]) -> None:
    for key in [key for key in known if over(key)]:
        del known[key]


def _fits_all(room: Resources, bundles: Iterable[Bundle]) -> bool:
    for bundle in bundles:
        if not room.contains(bundle.resources):
            return False
        room = room - bundle.resources
    return True
