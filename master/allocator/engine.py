"""What all allocators of ours share: what changed is looked at, and nothing else.

What can make an agent usable for somebody is noted when it is told: an agent on
which something changed is looked at for everybody (`_dirty`), a framework that
wants something new is looked at on all agents with something left (`_awake` and
`_open`), a pair whose refusal ended is looked at by itself.  Whatever else was
looked at before and not granted still cannot be, so a cycle costs what changed.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final, Protocol, TypeAlias

from master.allocator.contest import Contest, Outcome
from master.allocator.explain import Explainer
from master.allocator.failures import Failures
from master.allocator.filters import Filters
from master.allocator.ranking import OnFailure, Order, Shares
from master.allocator.revocation.guarantees import Guarantees
from master.allocator.revocation.revoker import Revoker
from master.allocator.roles import Contender, Roster, Shift
from master.allocator.room import Room
from master.allocator.standings import Amounts, Entitled, from_policies, standings
from mesos_py.allocation import (
    AgentChanged,
    AgentRemoved,
    AgentRow,
    Allocator,
    AllocatorOptions,
    ClusterView,
    Event,
    Failure,
    FrameworkChanged,
    FrameworkRemoved,
    FrameworkRow,
    Freed,
    Grant,
    PassedOver,
    PolicyChanged,
    Refusal,
    Revived,
    Revocation,
    RevocationEnded,
    Skip,
    Standing,
)

# Agents to look at, each with those who may use it now (None: everybody).
Candidates: TypeAlias = dict[str, Collection[Contender] | None]

# So many agents are looked at in one cycle; what else has changed is for the next ones.
# A cycle over all agents of a large cluster, with an offer for each, takes seconds, in
# which nobody is heard.
MAX_AGENTS: Final = 200
# When to look again at an agent of which only a part was granted (`max_offer`).
NEXT_PART_S: Final = 0.02


class Seat(Protocol):
    """One framework in one of its roles: a Contender, or whoever holds a Tenant."""

    @property
    def framework_id(self) -> str: ...

    @property
    def role(self) -> str: ...


class Engine(Allocator):
    """All of an allocator but the order in which frameworks are asked.

    A subclass says who comes first (`make_ranking`).  The first in order who can use an
    agent is granted all that `Room` lets him have there, then the next.
    """

    def __init__(self, options: AllocatorOptions | None = None) -> None:
        self.options = options if options is not None else AllocatorOptions()
        self.roster = Roster(self.options)
        self._agents: dict[str, AgentRow] = {}
        # Agents with something left that nobody could use when last looked at.
        self._open: dict[str, None] = {}
        self.revoker = Revoker(self.options, self.roster, self._agents, self._open)
        self._room = Room(
            self.options, self.roster, self._agents, holds=self.revoker.progress.holds
        )
        self._filters = Filters()
        self._failures = Failures()
        # Since the last cycle.  Dicts keep the order of events, which sets do not.
        self._dirty: dict[str, None] = {}
        self._awake: dict[Contender, None] = {}
        # What was too much for the last cycle.
        self._later: Candidates = {}
        # (framework, role, agent) that nothing keeps apart any more: a refusal that ended,
        # or the cycle in which the framework got a part of the agent.
        self._loose: dict[tuple[str, str, str], None] = {}
        self._next_part_s: float | None = None
        self._cycles = 0
        self._grants = 0

    @abstractmethod
    def make_ranking(self, view: ClusterView, grants_made: int, on_failure: OnFailure) -> Order:
        """The order of one cycle, from what the view shows now.  Changes nothing: it is
        asked for explanations as well."""

    def outranks(self, one: Seat, other: Seat) -> bool:
        """Whether what `other` holds may be taken back for the good of `one`, in whatever
        amount, with `AllocatorOptions.preempt`: by priority, not by what they hold.

        Never for both ways round, nor for one against itself.  Either may have left
        meanwhile.  Changes nothing.  Nobody outranks anybody by default.
        """
        return False

    def entitled(self, view: ClusterView) -> Entitled:
        """What a Standing says of the guarantee, the limit and the lack of each."""
        said, guarantees = from_policies(self.roster), self.revoker.guarantees(view)

        def entitled(role: str, framework_id: str) -> Amounts:
            if not framework_id:
                return said(role, "")._replace(guarantee=_some(guarantees.of_role(role)))
            guarantee = _some(guarantees.of(framework_id, role))
            lacking = self.revoker.lacks(framework_id, role, view)
            return Amounts(guarantee=guarantee, lacking=lacking)

        return entitled

    # ---- What happens ---------------------------------------------------

    def tell(self, event: Event) -> None:
        match event:
            case Freed(agent_id):
                if agent_id in self._agents:
                    self._dirty[agent_id] = None
            case Refusal():
                self._refused(event)
            case AgentChanged(agent, attributes_changed):
                self._agent_changed(agent, attributes_changed)
            case AgentRemoved(agent_id):
                self._agent_removed(agent_id)
            case FrameworkChanged(framework):
                self._framework_changed(framework)
            case FrameworkRemoved(framework_id):
                self._apply(self.roster.remove(framework_id))
                self.revoker.forget(framework_id)
                self._failures.forget(framework_id)
                self._room.admission.forget(framework_id)
            case Revived(framework_id, roles):
                self._revived(framework_id, roles)
            case PolicyChanged(role, policy):
                self.roster.rule(role, policy)
                self._room.follow_policies()
                self._look_everywhere()
            case RevocationEnded(revocation, freed):
                self.revoker.progress.ended(revocation, freed)

    def _refused(self, refusal: Refusal) -> None:
        contender = self.roster.contender(refusal.framework_id, refusal.role)
        if (
            contender is None
            # Coming back clears its refusals: before, they block nothing.
            or not contender.contending
            or refusal.agent_id not in self._agents
            or math.isnan(refusal.until_s)
        ):
            return
        granted = contender.granted_for(refusal.max_task_s).get(refusal.agent_id)
        contender.declined = granted is None or refusal.resources.contains(granted)
        self.revoker.refused(refusal)
        if self._filters.add(contender.refusals, refusal):
            self._loose[_pair(refusal)] = None

    def _agent_changed(self, agent: AgentRow, attributes_changed: bool) -> None:
        known = self._agents.get(agent.agent_id)
        self._agents[agent.agent_id] = agent
        if known is None or replace(known, why_inactive=agent.why_inactive) != agent:
            self._room.admission.touch()
        if attributes_changed:
            self._forget_refusals(agent.agent_id)
        self._dirty[agent.agent_id] = None

    def _agent_removed(self, agent_id: str) -> None:
        if self._agents.pop(agent_id, None) is None:
            return
        self._open.pop(agent_id, None)
        self._dirty.pop(agent_id, None)
        self._later.pop(agent_id, None)
        self._forget_refusals(agent_id)
        self.revoker.progress.forget_agent(agent_id)
        self._failures.forget(agent_id)
        self._room.remove_agent(agent_id)
        for contender in self.roster.everybody():
            contender.forget_agent(agent_id)

    def _forget_refusals(self, agent_id: str) -> None:
        books = (contender.refusals for contender in self.roster.everybody())
        self._filters.drop_agent(agent_id, books)

    def _framework_changed(self, row: FrameworkRow) -> None:
        try:
            shift = self.roster.change(row)
            self._room.admission.follow(row)
            restated = self.revoker.follow(row)
        except Exception as error:
            # Out until the next change: nothing half taken over may compete.
            self._failures.note(row.framework_id, error)
            shift = self.roster.remove(row.framework_id)
            self._room.admission.forget(row.framework_id)
            self.revoker.forget(row.framework_id)
            restated = False
        self._apply(shift)
        if restated:
            # Whoever says what he needs wants to be asked, whatever he refused before.
            self._revived(row.framework_id, tuple({need.role: None for need in row.needs}))

    def _apply(self, shift: Shift) -> None:
        for contender in shift.silenced:
            self._filters.clear(contender.refusals)
        for contender in shift.woken:
            self._awake[contender] = None

    def _revived(self, framework_id: str, roles: tuple[str, ...]) -> None:
        for role in roles:
            contender = self.roster.contender(framework_id, role)
            if contender is not None and contender.contending:
                self._filters.clear(contender.refusals)
                contender.declined = False
                self._awake[contender] = None

    def _look_everywhere(self) -> None:
        """What was no use to anybody may be now."""
        self._dirty.update(self._open)

    # ---- What to do about it --------------------------------------------

    def allocate(self, view: ClusterView, now_s: float) -> list[Grant]:
        self._next_part_s = None
        for agent_id in self.revoker.look(view, now_s, self._failures.note):
            self._dirty[agent_id] = None
        for contender in self.revoker.bereft:
            self._awake[contender] = None
        self._room.begin(view, self._dirty)
        self._room.wanted = self.revoker.wanted
        for framework_id in self._room.admission.refresh():
            self._awake.update(dict.fromkeys(self.roster.contenders_of(framework_id)))
        candidates = self._candidates(now_s)
        self._add_grown(candidates)
        if not candidates:
            return []
        failed: dict[str, Exception] = {}
        contest = Contest(
            view,
            self.make_ranking(view, self._grants, failed.__setitem__),
            self._room,
            now_s,
            failed.__setitem__,
            piecewise=bool(self.options.max_offer),
            counted=True,
        )
        grants: dict[tuple[str, str, str, float | None], Grant] = {}
        while candidates:
            agents = [(self._agents[agent_id], who) for agent_id, who in self._rotated(candidates)]
            for outcome in contest.over(agents):
                if outcome.winner is not None:
                    self._granted(outcome.winner, outcome, grants)
                else:
                    self._settle(outcome, now_s)
            # A grant may have given somebody more room than he had before.
            candidates = {}
            self._add_grown(candidates)
        if self.options.max_offer:
            self._loosen_parts(grants.values(), now_s)
        self.revoker.progress.granted(grants.values())
        for framework_id, error in failed.items():
            self._failures.note(framework_id, error)
            self._failures.retry_later(self.roster.contenders_of(framework_id), now_s)
        return list(grants.values())

    def revocations(self, view: ClusterView, now_s: float) -> list[Revocation]:
        return self.revoker.plan(
            view,
            now_s,
            lambda: self.make_ranking(view, self._grants, self._failures.note),
            lambda: self._room.planning(view),
            lambda one, other: self.options.preempt and self.outranks(one, other),
            self._failures.note,
        )

    def called_off(self) -> list[Revocation]:
        return self.revoker.progress.called_off()

    def guarantees(self, view: ClusterView) -> Mapping[str, Mapping[str, int]]:
        return self.guaranteed(view).by_framework()

    def guaranteed(self, view: ClusterView) -> Guarantees:
        """What roles and frameworks are guaranteed now."""
        return self.revoker.guarantees(view, self._failures.note)

    def next_wake_s(self) -> float | None:
        if self._later:
            return -math.inf
        wakes = (
            self._filters.next_end_s(),
            self._failures.retry_s(),
            self._next_part_s,
            self.revoker.next_wake_s(),
        )
        return min((wake for wake in wakes if wake is not None), default=None)

    def failures(self) -> Mapping[str, Failure]:
        return self._failures.all()

    def passed_over(self, framework_id: str) -> list[PassedOver]:
        return [
            PassedOver(contender.role, code, told.count, told.last_s, told.agent_id)
            for contender in self.roster.contenders_of(framework_id)
            for code, told in contender.passed.items()
        ]

    def explain(self, framework_id: str, view: ClusterView, now_s: float) -> list[Skip]:
        return Explainer(
            roster=self.roster,
            agents=self._agents,
            failures=self._failures,
            shares=self.shares_now(view),
            view=view,
            ranking=lambda on_failure: self.make_ranking(view, self._grants, on_failure),
            room=lambda: self._room.rehearsal(view),
            piecewise=bool(self.options.max_offer),
            now_s=now_s,
        ).skips(framework_id)

    def standings(self, view: ClusterView) -> Sequence[Standing]:
        order = self.make_ranking(view, self._grants, _passed_over)
        shares = self.shares_now(view)
        return standings(self.roster, order.positions(), shares, view, self.entitled(view))

    def shares(self, view: ClusterView) -> Mapping[str, float]:
        shares = self.shares_now(view)
        return {
            role.name: shares.of(view.held_under(role.name), role.weight)
            for role in self.roster.roles.values()
        }

    def waiting(self) -> Mapping[str, str]:
        return dict(self._room.admission.waiting)

    def _candidates(self, now_s: float) -> Candidates:
        found = self._later
        found.update(dict.fromkeys(self._dirty))
        awake = frozenset(
            contender
            for contender in (*self._awake, *self._failures.due(now_s))
            if contender.contending
        )
        loose, self._loose = self._loose, {}
        loose.update((_pair(refusal), None) for refusal in self._filters.due(now_s))
        self._dirty = {}
        self._awake = {}
        if awake:
            for agent_id in self._open:
                # If it waits for somebody already, it is for everybody now: a set of its
                # own for each agent would cost more than to ask those in between.
                found[agent_id] = None if agent_id in found else awake
        for framework_id, role, agent_id in loose:
            loosened = self.roster.contender(framework_id, role)
            who = found.get(agent_id, ())
            if agent_id in self._open and loosened is not None and who is not None:
                found[agent_id] = {*who, loosened}
        if len(found) <= MAX_AGENTS:
            self._later = {}
            return found
        self._later = found
        return {agent_id: found.pop(agent_id) for agent_id in list(islice(found, MAX_AGENTS))}

    def _add_grown(self, candidates: Candidates) -> None:
        """Those whom a guarantee or a limit held back and does no more, where it did."""
        grown = frozenset(self._room.grown())
        if not grown:
            return
        for agent_id in self._room.held_back():
            if agent_id not in self._open:
                continue
            chosen = candidates
            if agent_id not in candidates and len(candidates) >= MAX_AGENTS:
                chosen = self._later
            who = chosen.get(agent_id, ())
            if who is not None:
                chosen[agent_id] = grown if grown.issuperset(who) else grown.union(who)

    def _loosen_parts(self, grants: Iterable[Grant], now_s: float) -> None:
        """Who got a part of an agent may get another one in the next cycle."""
        for grant in grants:
            if grant.agent_id not in self._open:
                continue
            for contender in self.roster.contenders_of(grant.framework_id):
                self._loose[contender.framework_id, contender.role, grant.agent_id] = None
            self._next_part_s = now_s + NEXT_PART_S

    def _rotated(self, candidates: Candidates) -> list[tuple[str, Collection[Contender] | None]]:
        """From another agent on in each cycle: among equals the first agent goes to
        the one who waited longest, and should not always be the same machine."""
        items = list(candidates.items())
        self._cycles += 1
        start = (((self.options.seed + self._cycles) * 2654435761) >> 16) % len(items)
        return items[start:] + items[:start]

    def shares_now(self, view: ClusterView) -> Shares:
        return Shares(view.cluster_total(), self.options.unfair)

    def _granted(
        self,
        winner: Contender,
        outcome: Outcome,
        grants: dict[tuple[str, str, str, float | None], Grant],
    ) -> None:
        """Book what the winner has there now in all: one grant, even if it took stages."""
        agent_id = outcome.agent.agent_id
        self._grants += 1
        self.roster.granted(winner, self._grants)
        part = outcome.part
        winner.was_granted(agent_id, part.whole, part.max_task_s)
        key = winner.framework_id, winner.role, agent_id, part.max_task_s
        grants.pop(key, None)
        grants[key] = Grant(*key[:3], part.whole, part.max_task_s)

    def _settle(self, outcome: Outcome, now_s: float) -> None:
        agent_id = outcome.agent.agent_id
        if outcome.failed is not None:
            self._failures.note(agent_id, outcome.failed)
            self._failures.retry_later((), now_s)
            self._dirty[agent_id] = None
        elif outcome.free:
            self._open[agent_id] = None
        else:
            self._open.pop(agent_id, None)


def _pair(refusal: Refusal) -> tuple[str, str, str]:
    return refusal.framework_id, refusal.role, refusal.agent_id


def _passed_over(framework_id: str, error: Exception) -> None:
    """Whoever cannot be told of has no position; the next cycle counts the failure."""


def _some(amounts: Mapping[str, int]) -> dict[str, int]:
    return {name: milli for name, milli in amounts.items() if milli}
