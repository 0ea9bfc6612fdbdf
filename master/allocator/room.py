"""How much of what is free on an agent may go to one framework."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal, TypeAlias

from master.allocator.admission import Admission
from master.allocator.backlog import Backlog
from master.allocator.quota import Quota
from master.allocator.reservations import Reservations, may_use, shared_scalars
from master.allocator.revocation.holds import HeldBack, Holds
from master.allocator.revocation.needs import Lacking
from master.allocator.roles import Contender, Roster
from master.allocator.sums import SHARED, UNCOUNTED, FreeSums, ReservedSums, reserved_scalars
from mesos_py.allocation import AgentRow, AllocatorOptions, ClusterView
from mesos_py.policy import RolePolicy
from mesos_py.reserved import is_for, is_refined, is_reserved, none_made
from mesos_py.resources import EMPTY, MILLI, WHOLE_ONLY, Resources

# In this order an agent is dealt out: what roles lack of their guarantees, what frameworks
# lack of their needs within theirs, what is free for tasks of any length, what is kept for
# short ones.
Stage: TypeAlias = Literal["owed", "needed", "long", "short"]

Wanted: TypeAlias = dict[Contender, Lacking]

# Where none of these may be given, nothing is: no task runs without.
ESSENTIAL: Final = ("cpus", "mem")


@dataclass(frozen=True, slots=True)
class Part:
    """`resources` may be granted, for tasks of at most `max_task_s` (None: any).

    `whole` is all that the framework is granted there in this cycle then.  Where that
    is not enough `code` says what keeps the rest: one of SKIP_CODES, or "".
    """

    resources: Resources
    code: str = ""
    max_task_s: float | None = None
    whole: Resources = EMPTY


NOTHING = Part(EMPTY)
_OTHERS = Part(EMPTY, "reserved")
_TOO_LITTLE = Part(EMPTY, "too-small")


class Room:
    """The rules of operators: what is free is not free for everybody.

    `begin` opens a cycle and takes what it needs from the view; `charge` tells of each
    grant made in it, which the view does not show yet; `grown` names whom a rule held
    back that gives way now.
    """

    def __init__(
        self,
        options: AllocatorOptions,
        roster: Roster,
        agents: Mapping[str, AgentRow],
        admission: Admission | None = None,
        holds: Holds | None = None,
    ) -> None:
        self.options = options
        self._roster = roster
        self._agents = agents
        self._holds = holds if holds is not None else Holds()
        self.held = HeldBack(self._holds)
        # What frameworks lack of what they need, and are guaranteed.
        self.wanted: Wanted = {}
        # Of what is free, what is kept for whom: by agent, framework and role.
        self._aside: dict[tuple[str, str, str], dict[str, int]] = {}
        self._aside_on: set[str] = set()
        self._sums = FreeSums()
        self._reserved = ReservedSums()
        self._piece = dict(options.max_offer.scalars)
        self.admission = admission if admission is not None else Admission(roster, agents)
        # Agents on which a guarantee or a limit held somebody back, and whom.
        self._short_of: dict[str, None] = {}
        self._backlog = Backlog()
        # Scalars granted in this cycle for tasks of any length, by agent.
        self._long: dict[str, dict[str, int]] = {}
        # Roles that can be given nothing more in this cycle, but on agents of their own:
        # of many agents most are looked at when limits are used up already.
        self._gone: set[str] = set()
        self._all_gone = False
        # What tasks of one length may have of one agent: asked for everybody in a row.
        self._of_length_last: tuple[str, Stage, Resources, dict[str, int], Resources] | None = None
        self.follow_policies()

    # ---- What happens ---------------------------------------------------

    def follow_policies(self) -> None:
        """The policies of roles have changed."""
        policies: dict[str, RolePolicy] = {
            role.name: role.policy
            for role in self._roster.roles.values()
            if not role.policy.is_default
        }
        self.reservations = Reservations(policies)
        self.quota = Quota(policies)
        self.admission.rule(policies, self.reservations)
        self._sums = FreeSums()
        self._reserved = ReservedSums()
        self._all_unknown = True
        self._short_of.clear()
        self._backlog.clear()

    def remove_agent(self, agent_id: str) -> None:
        self._sums.drop(agent_id)
        self._reserved.put(agent_id, EMPTY)
        self._short_of.pop(agent_id, None)
        self.admission.touch()

    # ---- One cycle ------------------------------------------------------

    def begin(self, view: ClusterView, changed: Iterable[str]) -> None:
        """A cycle begins; on the `changed` agents something else may be free now."""
        self._view = view
        self._long.clear()
        self._of_length_last = None
        self._hope_again()
        self.held = HeldBack(self._holds)
        if self.quota.guarantees or (self.quota and not none_made()):
            for agent_id in self._agents if self._all_unknown else changed:
                self._look(agent_id)
            self._all_unknown = False
        if self.quota:
            self.quota.begin(view, self._sums.pools(), self._reserved.by_role())
        self._set_aside()

    def _set_aside(self) -> None:
        """For guarantees and limits what is kept for somebody is his already: else others
        are given, on other agents, all that the rules leave for both."""
        self._aside.clear()
        self._aside_on.clear()
        if not self.quota and not self.options.short_share:
            return
        for hold in self._holds:
            agent = self._agents.get(hold.agent_id)
            try:
                free = self._view.free(hold.agent_id).scalars
            except Exception:  # noted when it is its turn
                continue
            amounts = {name: min(m, free.get(name, 0)) for name, m in hold.left().items()}
            # What is free on an agent that is away is in no sum of what is free.
            if agent is not None and agent.active:
                self._aside[hold.agent_id, hold.framework_id, hold.role] = amounts
                self._aside_on.add(hold.agent_id)
                self.assume(hold.role, agent, amounts)

    def rehearsal(self, view: ClusterView) -> Room:
        """The same at the beginning of a cycle now, to be played with."""
        admission = self.admission.copy()
        room = Room(self.options, self._roster, self._agents, admission, self._holds)
        room.begin(view, ())
        return room

    def planning(self, view: ClusterView) -> Room:
        """The same to `assume` things with: all that may be had of an agent in the end, in
        however many parts, and nothing is kept back for whom it was freed."""
        options = replace(self.options, max_offer=EMPTY)
        room = Room(options, self._roster, self._agents, self.admission.copy())
        room.begin(view, ())
        return room

    def assume(self, role: str, agent: AgentRow, amounts: Mapping[str, int], sign: int = 1) -> None:
        """As if the role held so much more of the agent, for tasks of any length, or
        less."""
        changed = {name: sign * milli for name, milli in amounts.items()}
        if self.options.short_share:
            self._of_length_last = None
            long = self._long.setdefault(agent.agent_id, {})
            for name, milli in changed.items():
                long[name] = long.get(name, 0) + milli
        if self.quota:
            self.quota.charge(role, changed, self._pool(agent))

    def grown(self) -> list[Contender]:
        """Who could be given more now than when a guarantee or a limit held him back;
        `held_back` are the agents where that was."""
        roles = self._backlog.grown(self.quota)
        if roles:
            self._hope_again()
        known = (self._roster.roles.get(role) for role in roles)
        return [one for role in known if role is not None for one in role.contending.values()]

    def _hope_again(self) -> None:
        self._gone.clear()
        self._all_gone = False

    def held_back(self) -> Collection[str]:
        return self._short_of

    def ask_all(self, agent_id: str) -> None:
        """Everybody is about to be asked there: whom a rule held back shows anew."""
        self._short_of.pop(agent_id, None)

    def stages(self, free: Resources, enough: bool) -> tuple[Stage, ...]:
        """How what is free there is dealt out; () if it is too little for anybody.  `enough`:
        as `is_enough` says."""
        if not enough:
            return ("long",) if free.has_reserved else ()
        first: tuple[Stage, ...] = ("owed",) if self.quota.owes else ()
        if self.wanted:
            first += ("needed",)
        return first + self.lengths()

    def lengths(self) -> tuple[Stage, ...]:
        """The stages in which anybody may be granted something."""
        return ("long", "short") if self.options.short_share else ("long",)

    def wanting(
        self, agent: AgentRow, free: Resources, who: Collection[Contender] | None
    ) -> list[Contender]:
        """Those of them (None: everybody) for whom there is something in stage "needed"."""
        return [
            one
            for one, lacking in self.wanted.items()
            if (who is None or one in who) and lacking.of(agent.agent_id, free)
        ]

    def length_s(self, stage: Stage) -> float | None:
        """How long tasks on what is granted then may run; None: any time."""
        return self.options.short_max_s if stage == "short" else None

    def is_enough(self, agent: AgentRow, free: Resources) -> bool:
        """Whether as much of the agent is free as the operator wants offered
        (`min_offer_share`), of what nobody has reserved: the rest is its role's in any case,
        and is neither kept from it in small pieces nor a reason to keep these from others."""
        share = self.options.min_offer_share
        if not share:
            return True
        there, whole = free.unreserved.scalars, agent.total.unreserved.scalars
        return all(there.get(name, 0) >= share * whole.get(name, 0) for name in ESSENTIAL)

    def gone(self, agent: AgentRow) -> Collection[str]:
        """Roles that can be given nothing there, since in this cycle a guarantee or a
        limit showed to be used up; noted as held back there."""
        if not self._gone or self.reservations.owners(agent) or agent.total.has_reserved:
            return ()
        if agent.agent_id in self._aside_on:
            # It may be his there for whom it is kept, and who counts as having it.
            return ()
        self._short_of[agent.agent_id] = None
        return self._gone

    def leaves_something(self, agent: AgentRow, free: Resources, stage: Stage) -> bool:
        """Whether anybody can be granted something in that stage."""
        if self._all_gone and self.gone(agent):
            return False
        if not self.options.short_share or (stage == "long" and free.has_reserved):
            return True
        rest = free.unreserved
        return bool(self._of_length(agent, rest, stage, rest))

    def part(
        self,
        contender: Contender,
        agent: AgentRow,
        free: Resources,
        stage: Stage = "long",
        taken: Resources = EMPTY,
        *,
        enough: bool = True,
    ) -> Part:
        """What of `free` the contender may have there, after what he has `taken` in this
        cycle already; if that was not `enough`, what is reserved for him.  Raises what the
        view raised for his role."""
        if contender.framework_id in self.admission.waiting:
            return Part(EMPTY, "not-admitted")
        owners = self.reservations.owners(agent)
        if owners and not may_use(contender.role, owners):
            return Part(EMPTY, "reserved")
        if not free.has_reserved:
            return self._ruled(contender, agent, free, stage, taken) if enough else _TOO_LITTLE
        own = EMPTY
        if stage == "long":
            # What is reserved for it is under no rule.
            own = free.only(partial(_is_reserved_for, contender))
        rest = free.unreserved
        if not enough:
            part = _TOO_LITTLE
        else:
            part = self._ruled(contender, agent, rest, stage, taken) if rest else _OTHERS
        if not own:
            return part
        whole = (part.whole if part.resources else taken) + own
        return Part(part.resources + own, part.code, part.max_task_s, whole)

    def _ruled(
        self,
        contender: Contender,
        agent: AgentRow,
        free: Resources,
        stage: Stage,
        taken: Resources,
    ) -> Part:
        """What of it the rules leave for the contender."""
        aside = self._aside.get(_key(contender, agent))
        if not aside:
            return self._part(contender, agent, free, stage, taken)
        self.assume(contender.role, agent, aside, -1)
        try:
            return self._part(contender, agent, free, stage, taken)
        finally:
            self.assume(contender.role, agent, aside)

    def _part(
        self,
        contender: Contender,
        agent: AgentRow,
        free: Resources,
        stage: Stage,
        taken: Resources,
    ) -> Part:
        rest, max_task_s = self.held.left_to(contender, agent, free), None
        if not rest:
            return Part(EMPTY, "held")
        code = "held" if rest is not free else ""
        if self.options.short_share:
            long = self._of_length(agent, free, stage, rest)
            code = "short-only" if long is not rest else code
            rest = long
            max_task_s = self.length_s(stage)
        if self.quota:
            own = bool(self.reservations.owners(agent))
            rest, code = self._within_caps(contender.role, agent, rest, stage, own, code)
        if stage == "needed":
            lacking = self.wanted.get(contender)
            rest = lacking.of(agent.agent_id, rest) if lacking is not None else EMPTY
        elif self._piece:
            rest = self._one_piece(rest, taken)
        if not rest:
            return Part(EMPTY, code)
        return Part(rest, code, max_task_s, taken + rest if taken else rest)

    def charge(self, contender: Contender, agent: AgentRow, part: Part, left: Resources) -> None:
        """It was granted; `left` is still free there."""
        self.held.charge(contender, agent, part.resources)
        if contender in self.wanted and not self.wanted[contender].take(part.resources):
            del self.wanted[contender]
        aside = self._aside.get(_key(contender, agent))
        if aside:
            used = {n: min(m, part.resources.scalars.get(n, 0)) for n, m in aside.items()}
            self.assume(contender.role, agent, used, -1)
            for name, milli in used.items():
                aside[name] -= milli
        if part.max_task_s is None and self.options.short_share:
            long = self._long.setdefault(agent.agent_id, {})
            for name, milli in part.resources.scalars.items():
                long[name] = long.get(name, 0) + milli
        if self.quota:
            pool = self._pool(agent)
            # Where it is not of what all share, as much of that is free as before, and the
            # role lacks less of it.
            if pool != SHARED and self.quota.owes:
                self._backlog.follow(self.quota)
            self.quota.charge(contender.role, part.resources.scalars, pool)
            if self.quota.guarantees:
                self._sums.put(agent.agent_id, pool, left.scalars)
            if agent.total.has_reserved:
                for owner, amounts in reserved_scalars(part.resources).items():
                    if self.quota.owes:
                        self._backlog.follow(self.quota)
                    self.quota.charge_reserved(contender.role, owner, amounts)
                self._reserved.put(agent.agent_id, left)

    # ---- The rules ------------------------------------------------------

    def long_room(self, agent: AgentRow) -> dict[str, int]:
        """What tasks of any length may still have there, whether or not it is free."""
        held = self._view.held_for_long(agent.agent_id)
        granted = self._long.get(agent.agent_id, {})
        whole = shared_scalars(agent.total)
        return {
            name: max(milli - self._kept(name, whole) - held.get(name, 0) - granted.get(name, 0), 0)
            for name, milli in agent.total.scalars.items()
        }

    def _kept(self, name: str, whole: Mapping[str, int]) -> int:
        """For short tasks; of what comes in whole pieces, whole pieces."""
        kept = int(whole.get(name, 0) * self.options.short_share)
        return kept - kept % MILLI if name in WHOLE_ONLY else kept

    def _of_length(
        self, agent: AgentRow, free: Resources, stage: Stage, rest: Resources
    ) -> Resources:
        """What of `rest`, a part of what is free, is for tasks of the stage's length."""
        last = self._of_length_last
        known = last is not None and last[2] is free and last[:2] == (agent.agent_id, stage)
        if last is None or not known:
            most = self.long_room(agent)
            if stage == "short":
                # What is free for tasks of any length is offered as such only.
                most = {name: max(milli - most[name], 0) for name, milli in free.scalars.items()}
            last = (agent.agent_id, stage, free, most, shrunk(free, most))
            self._of_length_last = last
        return last[4] if rest is free else shrunk(rest, last[3])

    def _within_caps(
        self, role: str, agent: AgentRow, rest: Resources, stage: Stage, own: bool, code: str
    ) -> tuple[Resources, str]:
        caps = self.quota.caps(role, own)
        owed = self.quota.owed(role) if stage == "owed" else {}
        if stage == "owed" and not any(name in rest.scalars for name in owed):
            return EMPTY, "quota"
        most = {}
        gone = False
        for name, cap in caps.items():
            amount = cap.most
            if name in owed:
                # Beyond that it comes after those who have no guarantee.
                amount = min(amount, owed[name])
            nothing = not amount and name in ESSENTIAL
            gone = gone or nothing
            if nothing or amount < rest.scalars.get(name, 0):
                most[name] = amount
                if nothing or stage != "owed":
                    code = cap.code
                    self._note_back(role, own, agent.agent_id, name, amount)
        if gone:
            if not own:
                self._give_up(role)
            return EMPTY, code
        return (shrunk(rest, most) if most else rest), code

    def _give_up(self, role: str) -> None:
        self._gone.add(role)
        self._all_gone = all(
            one.name in self._gone for one in self._roster.roles.values() if one.contending
        )

    def _one_piece(self, rest: Resources, taken: Resources) -> Resources:
        most = {
            name: max(milli - taken.scalars.get(name, 0), 0) for name, milli in self._piece.items()
        }
        return shrunk(rest, most)

    def _note_back(self, role: str, own: bool, agent_id: str, name: str, most: int) -> None:
        self._short_of[agent_id] = None
        self._backlog.note(role, own, name, most)

    # ---- What is free in all --------------------------------------------

    def _look(self, agent_id: str) -> None:
        agent = self._agents.get(agent_id)
        if agent is None:
            return
        try:
            free = self._view.free(agent_id) if agent.active else EMPTY
        except Exception:  # noted when it is its turn
            free = EMPTY
        self._sums.put(agent_id, self._pool(agent), free.scalars)
        self._reserved.put(agent_id, free)

    def _pool(self, agent: AgentRow) -> str | None:
        owners = self.reservations.owners(agent)
        if not owners:
            return SHARED
        return next(iter(owners)) if len(owners) == 1 else UNCOUNTED


def _is_reserved_for(contender: Contender, name: str) -> bool:
    """Whether the amount of that name is reserved, and for the contender's role."""
    return (
        is_reserved(name)
        and is_for(name, contender.role)
        and (contender.refines or not is_refined(name))
    )


def _key(contender: Contender, agent: AgentRow) -> tuple[str, str, str]:
    return agent.agent_id, contender.framework_id, contender.role


def shrunk(resources: Resources, most: Mapping[str, int]) -> Resources:
    """At most so much of the scalars that `most` names; the rest goes along, but not
    without any scalar where there was one.  The same object if nothing is cut."""
    scalars = resources.scalars
    if not any(name in scalars and scalars[name] > amount for name, amount in most.items()):
        return resources
    cut = {}
    for name, milli in scalars.items():
        amount = min(milli, most.get(name, milli))
        if name in WHOLE_ONLY:
            amount -= amount % MILLI
        if amount:
            cut[name] = amount
    return Resources(cut, resources.ranges, resources.sets) if cut else EMPTY
