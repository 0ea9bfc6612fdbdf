"""When something is taken back, and what is kept of it meanwhile.

The planner says what a round would take; this keeps what has to be known from one
round to the next: since when somebody lacks what he needs, what is in progress, what
is kept for whom, who lost something to whom.  Without needs it costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeAlias

from master.allocator.ranking import OnFailure, Order
from master.allocator.revocation.amounts import Amounts, add, covers, less
from master.allocator.revocation.choice import Chooser
from master.allocator.revocation.guarantees import Guarantees
from master.allocator.revocation.needs import Bundle, Demand, Lacking, demands
from master.allocator.revocation.planner import Claim, Round, Rules, Scene
from master.allocator.revocation.progress import Pair, Progress, drop
from master.allocator.revocation.spare import Spare
from master.allocator.roles import Contender, Roster
from master.allocator.room import Room
from master.allocator.sums import reserved_scalars
from mesos_py.allocation import (
    AgentRow,
    AllocatorOptions,
    ClusterView,
    FrameworkRow,
    Refusal,
    Revocation,
    Tenant,
)
from mesos_py.errors import InvalidValue
from mesos_py.resources import Resources
from mesos_py.victims import OFF, POLICIES, VictimPolicy

# Whether what the second has may be taken for the first whatever the second needs.
Outranks: TypeAlias = Callable[[Contender, Tenant], bool]

# Agents looked at in one round at most; the next one goes on behind them.
_AT_ONCE: Final = 500
# Agents with something left that are searched for room outside of these, for so many kinds
# of what is needed.
_OPEN: Final = 10_000
_KINDS: Final = 20
# A round that found nothing is repeated after the interval, twice it, ... so many times it.
_BACK_OFF: Final = 8.0
# No round follows another sooner, whatever the options say.
_LEAST_S: Final = 0.05
# A postponed framework waits so long at most.
_LONGEST_WAIT_S: Final = 600.0
# Roles that it has left are remembered, so many.
_FORMER_ROLES: Final = 32
# So many frameworks are served in a round, those behind them in the next.
_CLAIMS: Final = 20
_NOTHING: Amounts = {}


@dataclass(slots=True)
class _Lack:
    """Since when a framework has lacked something of what it needs in a role."""

    since_s: float
    next_s: float
    wait_s: float


def policy_of(options: AllocatorOptions) -> VictimPolicy | None:
    """None: nothing is ever taken back.  Raises InvalidValue for a name without a policy."""
    if options.victims == OFF:
        return None
    policy = options.victim_policy or POLICIES.get(options.victims)
    if policy is None:
        known = ", ".join(sorted({*POLICIES, OFF}))
        raise InvalidValue("victims", options.victims, f"is not known; built in are: {known}")
    return policy


class Revoker:
    """See the module's docstring.

    `look` opens each cycle, `granted` tells what came of it, `plan` follows it; the
    other methods tell what happens between cycles.
    """

    def __init__(
        self,
        options: AllocatorOptions,
        roster: Roster,
        agents: Mapping[str, AgentRow],
        open_agents: Collection[str] = (),
    ) -> None:
        """`open_agents`: those, of all, on which nobody has taken what is free."""
        self._options = options
        self._policy = policy_of(options)
        self._interval_s = max(_LEAST_S, options.revocation_interval_s)
        self._roster = roster
        self._agents = agents
        self._open = open_agents
        self.progress = Progress(options)
        # What frameworks need, by framework and role.
        self._demands: dict[str, dict[str, Demand]] = {}
        # The roles of each, former ones too: it may have tasks under them.
        self._roles: dict[str, dict[str, None]] = {}
        self._lacks: dict[Pair, _Lack] = {}
        # Who did not take what was freed for him: how long he waits for more.
        self._waits: dict[Pair, tuple[float, float]] = {}
        # Whose needs have changed since the last look.
        self._restated: set[str] = set()
        # Those who lacked something in the last round, which was over before their turn.
        self._left_over: set[Pair] = set()
        # Who lacked how many bundles when last looked at, and who refused something since.
        self._lacked: dict[Pair, int] = {}
        self._refused: set[Pair] = set()
        # Who lacks something since tasks of its own have ended, and has refused nothing since.
        self._anew: set[Pair] = set()
        # What those lack who compete, now; and who lacks more than before.
        self.wanted: dict[Contender, Lacking] = {}
        self.bereft: list[Contender] = []
        self._round_s = -math.inf
        self._now_s = -math.inf
        self._cursor = 0

    # ---- What happens -------------------------------------------------------

    def follow(self, row: FrameworkRow) -> bool:
        """Take over its needs; true if they have changed."""
        found = demands(row)
        before = self._demands.get(row.framework_id, {})
        former = self._roles.setdefault(row.framework_id, {})
        former.update(dict.fromkeys(row.roles))
        while len(former) > max(_FORMER_ROLES, len(row.roles)):
            del former[next(role for role in former if role not in row.roles)]
        for role in row.roles:
            lack = self._lacks.get((row.framework_id, role))
            if lack is not None:
                lack.next_s, lack.wait_s = -math.inf, self._interval_s
        if found:
            self._demands[row.framework_id] = found
        else:
            self._demands.pop(row.framework_id, None)
        if found == before:
            return False
        self._restated.add(row.framework_id)
        for role in row.roles:
            self._waits.pop((row.framework_id, role), None)
        return True

    def forget(self, framework_id: str) -> None:
        """It is gone: what is in progress for it is called off."""
        self._demands.pop(framework_id, None)
        self._roles.pop(framework_id, None)
        self._restated.discard(framework_id)
        self.progress.forget_framework(framework_id)
        drop(self._lacks, lambda key: key[0] == framework_id)
        drop(self._lacked, lambda key: key[0] == framework_id)
        drop(self._waits, lambda key: key[0] == framework_id)
        self._left_over = {key for key in self._left_over if key[0] != framework_id}

    def refused(self, refusal: Refusal) -> None:
        """Whoever does not take what was freed for him is not freed more at once."""
        self._refused.add((refusal.framework_id, refusal.role))
        if self.progress.refused(refusal):
            self._postpone((refusal.framework_id, refusal.role))

    # ---- A cycle begins -------------------------------------------------------

    def look(self, view: ClusterView, now_s: float, on_failure: OnFailure) -> list[str]:
        """What was kept too long, or for nothing, is kept no more; the agents on which
        something has changed by that."""
        self._now_s = now_s
        lacking = self._lacking(view, now_s, on_failure)
        self._follow_lacks(lacking)
        self.wanted = self._entitled_to(view, lacking, on_failure) if lacking else {}
        progress = self.progress
        if progress:
            wanted = {(one.framework_id, one.role): what for one, what in lacking.items()}
            for key in progress.tidy(view, now_s, wanted, self._restated, on_failure):
                self._postpone(key)
        self._restated.clear()
        released, progress.released = progress.released, {}
        return [agent_id for agent_id in released if agent_id in self._agents]

    def _follow_lacks(self, lacking: Mapping[Contender, Mapping[Bundle, int]]) -> None:
        """Who lacks more than before, and has not refused anything meanwhile, has lost what
        he had.  What he refused when he lacked less says nothing of what he wants now."""
        counts = {(one.framework_id, one.role): sum(what.values()) for one, what in lacking.items()}
        self.bereft = [
            one
            for one in lacking
            if (key := (one.framework_id, one.role)) not in self._refused
            and counts[key] > self._lacked.get(key, 0)
        ]
        self._anew |= {(one.framework_id, one.role) for one in self.bereft}
        self._anew &= counts.keys() - self._refused
        self._lacked = counts
        self._refused.clear()

    def _entitled_to(
        self,
        view: ClusterView,
        lacking: Mapping[Contender, Mapping[Bundle, int]],
        on_failure: OnFailure,
    ) -> dict[Contender, Lacking]:
        """What of it they are guaranteed."""
        guarantees = self.guarantees(view, on_failure)
        found = {}
        for one, what in lacking.items():
            try:
                held = view.held(one.framework_id, one.role)
            except Exception as error:
                on_failure(one.framework_id, error)
                continue
            left = less(guarantees.of(one.framework_id, one.role), held)
            most: dict[str, int] = {}
            for bundle, count in what.items():
                add(most, bundle.resources.scalars, count)
            most = {name: min(milli, left.get(name, 0)) for name, milli in most.items()}
            bundles = [bundle for bundle in what if covers(most, bundle.resources.scalars)]
            if bundles:
                anew = (one.framework_id, one.role) in self._anew
                found[one] = Lacking(bundles, most, anew)
        return found

    def _lacking(
        self, view: ClusterView, now_s: float, on_failure: OnFailure
    ) -> dict[Contender, Mapping[Bundle, int]]:
        """What those who compete lack, and since when."""
        found: dict[Contender, Mapping[Bundle, int]] = {}
        for framework_id, by_role in self._demands.items() if self._policy else ():
            for role, demand in by_role.items():
                contender = self._roster.contender(framework_id, role)
                if contender is None or not contender.contending:
                    continue
                try:
                    lacking = demand.lacking(view.held(framework_id, role))
                except Exception as error:
                    on_failure(framework_id, error)
                    continue
                if lacking:
                    found[contender] = lacking
        keys = {(one.framework_id, one.role): None for one in found}
        drop(self._lacks, lambda key: key not in keys)
        for key in keys:
            if key not in self._lacks:
                self._lacks[key] = _Lack(now_s, -math.inf, self._interval_s)
        return found

    def _postpone(self, key: Pair) -> None:
        """Each time twice as long, to a maximum, until its needs change."""
        wait_s = self._waits.get(key, (0.0, self._interval_s))[1]
        wait_s = max(wait_s, self._options.revocation_hold_s)
        self._waits[key] = self._now_s + wait_s, min(2 * wait_s, _LONGEST_WAIT_S)

    # ---- A cycle is over ------------------------------------------------------

    def next_wake_s(self) -> float | None:
        """When a hold ends, or a round may be due."""
        moments = list(self.progress.moments_s())
        moments += [self._due_s(key, lack) for key, lack in self._lacks.items()]
        # What was due in this cycle was looked at, or nobody asks.
        after = [at_s if at_s > self._now_s else self._now_s + self._interval_s for at_s in moments]
        return min(after, default=None)

    def _due_s(self, key: Pair, lack: _Lack) -> float:
        return max(
            lack.since_s + self._options.revocation_patience_s,
            lack.next_s,
            self._round_s + self._interval_s,
            self._waits.get(key, (-math.inf, 0.0))[0],
        )

    def plan(
        self,
        view: ClusterView,
        now_s: float,
        order: Callable[[], Order],
        room: Callable[[], Room],
        outranks: Outranks,
        on_failure: OnFailure,
    ) -> list[Revocation]:
        """What to take back now."""
        self._now_s = now_s
        if self._policy is None or not self._demands:
            return []
        lacking = self._lacking(view, now_s, on_failure)
        ripe = {
            one
            for one, what in lacking.items()
            if self._is_ripe(one, now_s) and not self._is_coming(one, what)
        }
        if not ripe:
            return []
        wanted = dict.fromkeys(bundle for one in ripe for bundle in lacking[one])
        window = self._window(view, [one.resources for one in islice(wanted, _KINDS)])
        planned = self._round(window, view, now_s, room(), outranks, on_failure)
        # Whom the last round did not come to comes first, else he might never be.
        turns = [one for one in order().walk(frozenset(lacking)) if one in ripe]
        turns.sort(key=lambda one: (one.framework_id, one.role) not in self._left_over)
        served = 0
        for contender in turns[:_CLAIMS]:
            if planned.exhausted:
                break
            served += 1
            self._serve(planned, contender, view, now_s, on_failure)
        self._left_over = {(one.framework_id, one.role) for one in turns[served:]}
        found = [one for taking in planned.takings for one in self.progress.begin(taking, now_s)]
        if found:
            self._round_s = now_s
        return found

    def _serve(
        self,
        planned: Round,
        contender: Contender,
        view: ClusterView,
        now_s: float,
        on_failure: OnFailure,
    ) -> None:
        lack = self._lacks[contender.framework_id, contender.role]
        patient = now_s - lack.since_s < 2 * self._options.revocation_patience_s
        demand = self._demands[contender.framework_id][contender.role]
        served = False
        try:
            held = view.held(contender.framework_id, contender.role)
            served = planned.serve(Claim(contender, demand, patient), held)
        except Exception as error:
            on_failure(contender.framework_id, error)
        if served:
            lack.wait_s = self._interval_s
        lack.next_s = now_s + lack.wait_s
        if not served and not planned.exhausted:
            lack.wait_s = min(2 * lack.wait_s, _BACK_OFF * self._interval_s)

    def roles(self, framework_id: str) -> Iterable[str]:
        """In which it may hold something."""
        return self._roles.get(framework_id, ())

    def guarantees(self, view: ClusterView, on_failure: OnFailure = lambda *_: None) -> Guarantees:
        reserved: dict[str, int] = {}
        for agent in self._agents.values():
            if agent.active and agent.total.has_reserved:
                for amounts in reserved_scalars(agent.total).values():
                    add(reserved, amounts)
        return Guarantees(
            self._roster, view, self._options, self._states_needs, on_failure, reserved
        )

    def total(self, framework_id: str, role: str) -> Amounts:
        """All that the framework needs in the role."""
        demand = self._demands.get(framework_id, {}).get(role)
        return demand.total if demand is not None else _NOTHING

    def lacks(self, framework_id: str, role: str, view: ClusterView) -> Amounts:
        """What it lacks of that."""
        held = view.held(framework_id, role)
        wanted = self.total(framework_id, role).items()
        return {name: m - held.get(name, 0) for name, m in wanted if m > held.get(name, 0)}

    def _states_needs(self, framework_id: str, role: str) -> bool:
        return role in self._demands.get(framework_id, ())

    def _is_coming(self, contender: Contender, lacking: Mapping[Bundle, int]) -> bool:
        """Whether room is kept, or being made, for all that it lacks."""
        kept: dict[Bundle, int] = {}
        for hold in self.progress.holds:
            if hold.is_for(contender):
                for bundle in hold.bundles:
                    kept[bundle] = kept.get(bundle, 0) + 1
        return all(kept.get(bundle, 0) >= count for bundle, count in lacking.items())

    def _is_ripe(self, contender: Contender, now_s: float) -> bool:
        key = contender.framework_id, contender.role
        return self._due_s(key, self._lacks[key]) <= now_s

    def _round(
        self,
        window: Sequence[AgentRow],
        view: ClusterView,
        now_s: float,
        room: Room,
        outranks: Outranks,
        on_failure: OnFailure,
    ) -> Round:
        assert self._policy is not None
        guarantees = self.guarantees(view, on_failure)
        spare = Spare(list(self._roles), view, guarantees, self)
        patience_s = self._options.revocation_patience_s

        def strict(contender: Contender, tenant: Tenant, entitled: bool) -> bool:
            if outranks(contender, tenant):
                return False
            return not entitled or self.progress.has_lost(
                contender.framework_id, tenant.framework_id, now_s
            )

        planned = Round(
            Scene(view, window, guarantees, self.progress.holds),
            spare,
            Chooser(view, spare, self._policy, now_s, on_failure),
            Rules(
                room,
                strict,
                lambda tenant: now_s - tenant.since_s >= patience_s,
                self._options.revocation_cap,
            ),
            on_failure,
        )
        for one in self.progress:
            tenant = Tenant(one.framework_id, one.role, "", one.resources, now_s)
            planned.in_progress(one.agent_id, tenant, one.task_ids)
        return planned

    def _window(self, view: ClusterView, wanted: Sequence[Resources]) -> list[AgentRow]:
        """The agents of this round: all of a small cluster; those that are named, those
        with room for something that is wanted, and some of a large one, others each time."""
        agents = self._agents
        if len(agents) <= _AT_ONCE:
            return list(agents.values())
        named = {
            bundle.agent_id
            for by_role in self._demands.values()
            for demand in by_role.values()
            for bundle in demand.bundles
        }
        named.update(hold.agent_id for hold in self.progress.holds)
        start = self._cursor % len(agents)
        self._cursor = start + _AT_ONCE
        ring = [*islice(agents, start, start + _AT_ONCE)]
        ring += islice(agents, _AT_ONCE - len(ring))
        roomy = islice(self._roomy(view, wanted), _AT_ONCE)
        return [agents[one] for one in dict.fromkeys((*named, *roomy, *ring)) if one in agents]

    def _roomy(self, view: ClusterView, wanted: Sequence[Resources]) -> Iterator[str]:
        """Nobody has to go for what is free, and was refused, outside of the window."""
        for agent_id in islice(self._open, _OPEN):
            try:
                free = view.free(agent_id)
            except Exception:  # it is told of when it is its turn
                continue
            if any(map(free.contains, wanted)):
                yield agent_id
