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
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from master.allocator.contest import Outcome, contest
from master.allocator.explain import Explainer
from master.allocator.failures import Failures
from master.allocator.filters import Filters
from master.allocator.ranking import OnFailure, Order, Shares
from master.allocator.roles import Contender, Roster, Shift
from master.allocator.room import Room
from master.allocator.standings import Entitled, from_policies, standings
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
    PolicyChanged,
    Refusal,
    Revived,
    RevocationEnded,
    Skip,
    Standing,
)


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
        self._room = Room(self.options, self.roster, self._agents)
        self._filters = Filters()
        self._failures = Failures()
        # Agents with something left that nobody could use when last looked at.
        self._open: dict[str, None] = {}
        # Since the last cycle.  Dicts keep the order of events, which sets do not.
        self._dirty: dict[str, None] = {}
        self._awake: dict[Contender, None] = {}
        # (framework, role, agent) of refusals that block no more.
        self._loose: dict[tuple[str, str, str], None] = {}
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
        return from_policies(self.roster)

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
                self._failures.forget(framework_id)
            case Revived(framework_id, roles):
                self._revived(framework_id, roles)
            case PolicyChanged(role, policy):
                self.roster.rule(role, policy)
                self._look_everywhere()
            case RevocationEnded():
                pass

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
        granted = contender.granted.get(refusal.agent_id)
        contender.declined = granted is None or refusal.resources.contains(granted)
        if self._filters.add(contender.refusals, refusal):
            self._loose[_pair(refusal)] = None

    def _agent_changed(self, agent: AgentRow, attributes_changed: bool) -> None:
        self._agents[agent.agent_id] = agent
        if attributes_changed:
            self._forget_refusals(agent.agent_id)
        self._dirty[agent.agent_id] = None

    def _agent_removed(self, agent_id: str) -> None:
        if self._agents.pop(agent_id, None) is None:
            return
        self._open.pop(agent_id, None)
        self._dirty.pop(agent_id, None)
        self._forget_refusals(agent_id)
        self._failures.forget(agent_id)
        for contender in self.roster.everybody():
            contender.forget_agent(agent_id)

    def _forget_refusals(self, agent_id: str) -> None:
        books = (contender.refusals for contender in self.roster.everybody())
        self._filters.drop_agent(agent_id, books)

    def _framework_changed(self, row: FrameworkRow) -> None:
        try:
            shift = self.roster.change(row)
        except Exception as error:
            # Out until the next change: nothing half taken over may compete.
            self._failures.note(row.framework_id, error)
            shift = self.roster.remove(row.framework_id)
        self._apply(shift)

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
        candidates = self._candidates(now_s)
        grants: list[Grant] = []
        if not candidates:
            return grants
        failed: dict[str, Exception] = {}
        outcomes = contest(
            [(self._agents[agent_id], who) for agent_id, who in self._rotated(candidates)],
            view,
            self.make_ranking(view, self._grants, failed.__setitem__),
            self._room,
            now_s,
            failed.__setitem__,
        )
        for outcome in outcomes:
            if outcome.winner is not None:
                grants.append(self._granted(outcome.winner, outcome))
            else:
                self._settle(outcome, now_s)
        for framework_id, error in failed.items():
            self._failures.note(framework_id, error)
            self._failures.retry_later(self.roster.contenders_of(framework_id), now_s)
        return grants

    def next_wake_s(self) -> float | None:
        end, retry = self._filters.next_end_s(), self._failures.retry_s()
        if end is None or retry is None:
            return retry if end is None else end
        return min(end, retry)

    def failures(self) -> Mapping[str, Failure]:
        return self._failures.all()

    def explain(self, framework_id: str, view: ClusterView, now_s: float) -> list[Skip]:
        return Explainer(
            roster=self.roster,
            agents=self._agents,
            failures=self._failures,
            shares=self.shares_now(view),
            view=view,
            ranking=lambda on_failure: self.make_ranking(view, self._grants, on_failure),
            room=Room(self.options, self.roster, self._agents),
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

    def _candidates(self, now_s: float) -> dict[str, Collection[Contender] | None]:
        """Agents to look at, each with those who may use it now (None: everybody)."""
        found: dict[str, Collection[Contender] | None] = dict.fromkeys(self._dirty)
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
                found.setdefault(agent_id, awake)
        for framework_id, role, agent_id in loose:
            loosened = self.roster.contender(framework_id, role)
            who = found.get(agent_id, ())
            if agent_id in self._open and loosened is not None and who is not None:
                found[agent_id] = {*who, loosened}
        return found

    def _rotated(
        self, candidates: dict[str, Collection[Contender] | None]
    ) -> list[tuple[str, Collection[Contender] | None]]:
        """From another agent on in each cycle: among equals the first agent goes to
        the one who waited longest, and should not always be the same machine."""
        items = list(candidates.items())
        self._cycles += 1
        start = (((self.options.seed + self._cycles) * 2654435761) >> 16) % len(items)
        return items[start:] + items[:start]

    def shares_now(self, view: ClusterView) -> Shares:
        return Shares(view.cluster_total(), self.options.unfair)

    def _granted(self, winner: Contender, outcome: Outcome) -> Grant:
        agent_id = outcome.agent.agent_id
        self._grants += 1
        self.roster.granted(winner, self._grants)
        part = outcome.part
        winner.granted[agent_id] = part.resources
        return Grant(winner.framework_id, winner.role, agent_id, part.resources, part.max_task_s)

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
