"""The rules of operators in their plainest form, to check allocators against.

Everything is worked out from scratch each time, by trying: slow, and meant to be
obviously right.  What the rules are is said in `mesos_py.allocation` and
`mesos_py.policy`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from mesos_py.allocation import AgentRow, AllocatorOptions, ClusterView
from mesos_py.policy import RolePolicy, ancestors
from mesos_py.reserved import before_all, plain_name, role_of, stack_of
from mesos_py.resources import EMPTY, MILLI, WHOLE_ONLY, Resources

_ancestors = lru_cache(maxsize=1000)(ancestors)
# No task runs without: where a rule lets a role have no more of one, it is offered
# nothing at all.
_ESSENTIAL = ("cpus", "mem")


@dataclass(frozen=True)
class Rules:
    """What may be granted, as things stand now: made anew for each question."""

    options: AllocatorOptions
    policies: Mapping[str, RolePolicy]
    cluster: ClusterView
    agents: Mapping[str, AgentRow]

    def may_use(self, role: str, agent: AgentRow) -> bool:
        owners = self.owners(agent)
        return not owners or any(owner in ancestors(role) for owner in owners)

    def is_enough(self, agent: AgentRow, free: Resources) -> bool:
        """Whether so much is free there of what nobody has reserved that it may be offered."""
        share = self.options.min_offer_share
        total, free = agent.total.unreserved.scalars, free.unreserved
        return all(free.scalars.get(name, 0) >= share * total.get(name, 0) for name in _ESSENTIAL)

    def bundles(
        self, role: str, agent: AgentRow, refines: bool = False
    ) -> Iterator[tuple[Resources, float | None]]:
        """The most that the role may have there: for any task, and for short ones."""
        own = self.reserved(role, agent, refines)
        if not self.options.short_share:
            free = self.cluster.free(agent.agent_id).unreserved
            yield self.bundle(role, agent, free) + own, None
            return
        yield self.bundle(role, agent, self.for_long(agent)) + own, None
        yield self.bundle(role, agent, self.for_short(agent)), self.options.short_max_s

    def bundle(self, role: str, agent: AgentRow, free: Resources) -> Resources:
        """The most of `free` that the role may be granted at once."""
        if not self.may_use(role, agent):
            return EMPTY
        most = {name: self.most(name, role, agent) for name in self._ruled_names()}
        if any(most.get(name) == 0 for name in _ESSENTIAL):
            return EMPTY
        piece = self.options.max_offer.scalars
        return _cut(_cut(free, most), piece)

    # ---- Short tasks ------------------------------------------------------

    def for_long(self, agent: AgentRow) -> Resources:
        """What of what is free there is for tasks of any length."""
        return _cut(self.cluster.free(agent.agent_id).unreserved, self._long_room(agent))

    def for_short(self, agent: AgentRow) -> Resources:
        """What of what is free there is for short tasks only."""
        free, room = self.cluster.free(agent.agent_id).unreserved, self._long_room(agent)
        return _cut(free, {name: max(free.scalars[name] - room[name], 0) for name in free.scalars})

    def _long_room(self, agent: AgentRow) -> dict[str, int]:
        held = self.cluster.held_for_long(agent.agent_id)
        # A share of what is there, whatever was reserved of it while the agent ran.
        shared = agent.total.renamed(before_all).scalars
        room = {}
        for name, total in agent.total.scalars.items():
            kept = int(shared.get(name, 0) * self.options.short_share)
            if name in WHOLE_ONLY:
                kept = kept // MILLI * MILLI
            room[name] = max(total - kept - held.get(name, 0), 0)
        return room

    # ---- Reservations -----------------------------------------------------

    def reserved(self, role: str, agent: AgentRow, refines: bool) -> Resources:
        """What is reserved there for the role, or one above it, and free: all of it may be
        granted for any task."""
        if not self.may_use(role, agent):
            return EMPTY
        stacks = {name: stack_of(name) for name in self.cluster.free(agent.agent_id).names()}
        return self.cluster.free(agent.agent_id).only(
            lambda name: (
                len(stacks[name]) in ((1,) if not refines else range(1, 99))
                and stacks[name][-1].role in ancestors(role)
            )
        )

    @cached_property
    def _reserved_free(self) -> dict[tuple[str, str], int]:
        """(role, resource) -> reserved for the role or one below it, and free on active
        agents: that counts as had."""
        found: dict[tuple[str, str], int] = {}
        for agent in self.agents.values():
            free = self.cluster.free(agent.agent_id) if agent.active else EMPTY
            for name, milli in free.scalars.items():
                for role in ancestors(role_of(name)):
                    key = role, plain_name(name)
                    found[key] = found.get(key, 0) + milli
        return found

    def owners(self, agent: AgentRow) -> list[str]:
        names = {agent.agent_id, agent.host.hostname}
        named = [role for role, policy in self.policies.items() if policy.agents & names]
        # Of two roles one of which is above the other it is the lower one's.
        return [role for role in named if not any(one.startswith(f"{role}/") for one in named)]

    @cached_property
    def _own_free(self) -> dict[tuple[str, str], int]:
        """(role, resource) -> free on active agents that only the role, or one below it,
        may use; for everybody under the role ""."""
        found: dict[tuple[str, str], int] = {}
        for agent in self.agents.values():
            owners = self.owners(agent)
            if not agent.active or len(owners) > 1:
                continue
            for role in ancestors(owners[0]) if owners else ("",):
                for name, milli in self.cluster.free(agent.agent_id).scalars.items():
                    found[role, name] = found.get((role, name), 0) + milli
        return found

    # ---- Guarantees and limits --------------------------------------------

    def most(self, name: str, role: str, agent: AgentRow) -> int:
        """The largest amount that breaks no limit and touches nothing that is promised."""
        key = name, role, bool(self.owners(agent))
        if key not in self._most:
            self._most[key] = self._try_most(*key)
        return self._most[key]

    @cached_property
    def _most(self) -> dict[tuple[str, str, bool], int]:
        return {}

    def _try_most(self, name: str, role: str, own: bool) -> int:
        low, high = 0, 1 + sum(one.total.plain.scalars.get(name, 0) for one in self.agents.values())
        while low + 1 < high:
            middle = (low + high) // 2
            if self._allowed(name, middle, role, own):
                low = middle
            else:
                high = middle
        return low

    def _allowed(self, name: str, amount: int, role: str, own: bool) -> bool:
        """Whether the role may have so much more of it (`own`: on agents of its own)."""
        for above in _ancestors(role):
            policy = self.policies.get(above)
            if policy is None or name not in policy.limit:
                continue
            left = policy.limit[name] - self._held(above, name)
            before = self._needed_below(above, name, role, 0)
            after = self._needed_below(above, name, role, amount)
            if amount > left or amount > before - after + max(left - before, 0):
                return False
        if own or not any(name in one.guarantee for one in self.policies.values()):
            return True
        before = self._needed_below("", name, role, 0)
        after = self._needed_below("", name, role, amount)
        return amount <= before - after + max(self._own_free.get(("", name), 0) - before, 0)

    def lacking(self, role: str, name: str) -> int:
        """What the role lacks of its own guarantee."""
        policy = self.policies[role]
        return max(policy.guarantee.get(name, 0) - self._held(role, name), 0)

    def _ruled_names(self) -> Collection[str]:
        return {
            name for policy in self.policies.values() for name in (*policy.limit, *policy.guarantee)
        }

    def _held(self, role: str, name: str) -> int:
        held = self.cluster.held_under(role).get(name, 0)
        return held + self._reserved_free.get((role, name), 0)

    def _needed_below(self, role: str, name: str, taker: str, amount: int) -> int:
        """What has to be kept for the roles below (of "": for all), if the taker had so
        much more."""
        return sum(self._needed(one, name, taker, amount) for one in self._below.get(role, ()))

    @cached_property
    def _below(self) -> dict[str, list[str]]:
        """Roles with a policy, by the nearest one above that has one ("": none)."""
        found: dict[str, list[str]] = {}
        for role in self.policies:
            above = next((one for one in ancestors(role)[1:] if one in self.policies), "")
            found.setdefault(above, []).append(role)
        return found

    def _needed(self, role: str, name: str, taker: str, amount: int) -> int:
        policy = self.policies[role]
        held = self._held(role, name) + (amount if role in _ancestors(taker) else 0)
        lacking = max(policy.guarantee.get(name, 0) - held - self._own_free.get((role, name), 0), 0)
        needed = max(lacking, self._needed_below(role, name, taker, amount))
        limit = policy.limit.get(name)
        return needed if limit is None else min(needed, max(limit - held, 0))


def _cut(free: Resources, most: Mapping[str, int]) -> Resources:
    scalars = {name: min(milli, most.get(name, milli)) for name, milli in free.scalars.items()}
    if scalars == free.scalars:
        return free
    for name in WHOLE_ONLY & set(scalars):
        scalars[name] -= scalars[name] % MILLI
    scalars = {name: milli for name, milli in scalars.items() if milli}
    return Resources(scalars, free.ranges, free.sets) if scalars else EMPTY
