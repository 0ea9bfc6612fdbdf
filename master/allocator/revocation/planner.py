"""One round: what is taken back from whom, for those that lack what they need.

For each claim, in the order in which frameworks are asked, first what is free (or will
be, when what is in progress is done) is counted: R_a.  Only for bundles that fit nowhere
tasks are looked for, on one agent for each bundle, the cheapest set of all agents first.
Whatever a claim uses is there no more for the claims behind it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from master.allocator.filters import blocked_until
from master.allocator.revocation.amounts import (
    add,
    common,
    covers,
    keep_back,
    less,
    repeated,
    times,
)
from master.allocator.revocation.choice import Choice, Chooser, OnFailure
from master.allocator.revocation.guarantees import Guarantees
from master.allocator.revocation.holds import Holds
from master.allocator.revocation.needs import Bundle, Demand
from master.allocator.revocation.spare import Spare
from master.allocator.roles import Contender
from master.allocator.room import Room
from mesos_py.allocation import AgentRow, ClusterView, Tenant
from mesos_py.resources import EMPTY, Resources

# Sets of tasks looked at in one round: about a tenth of a second.
_LOOKS: Final = 500
# Agents gone through in one round, bundle by bundle: about as long.
_STEPS: Final = 25_000
# Agents on which a bundle could be made to fit are looked for until there are so many, and
# two for each that is needed.
_ENOUGH: Final = 100
# By cost: agents, each by its number, once; how many bundles had been found then.
_Queue: TypeAlias = list[tuple[float, int, int, int, Choice]]


@dataclass(slots=True)
class Claim:
    """What a framework needs in a role.

    `patient`: what others have on offer may come back by itself, and is waited for.
    """

    contender: Contender
    demand: Demand
    patient: bool = False


@dataclass(slots=True)
class Taking:
    """What is to end on one agent for one claim, and the bundles that fit there then."""

    contender: Contender
    agent: AgentRow
    bundles: list[Bundle] = field(default_factory=list)
    victims: list[tuple[float, Tenant]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Rules:
    """What the round asks of whoever knows.

    `room`: what operators' rules let somebody have.
    `strict(contender, tenant)`: whether it may take the tenant only from above needs and
    guarantee (for what is beyond its own guarantee), or always (True) or never (False).
    `old_enough(tenant)`: whether an offer has been out so long that it is rescinded.
    """

    room: Room
    strict: Callable[[Contender, Tenant, bool], bool]
    old_enough: Callable[[Tenant], bool]
    cap: float


@dataclass(frozen=True, slots=True)
class Scene:
    """What a round is about: the cluster, and `agents`, those that are looked at."""

    view: ClusterView
    agents: Sequence[AgentRow]
    guarantees: Guarantees
    holds: Holds


@dataclass(slots=True)
class _Place:
    """One agent during the round.

    `room`: what nobody has a claim on, or will have when what was chosen has ended.
    `own`: what the framework whose claim is served has on offer there itself.
    """

    agent: AgentRow
    room: Resources
    own: Resources = EMPTY
    taken: set[str] = field(default_factory=set)
    offers_taken: set[tuple[str, str]] = field(default_factory=set)

    def in_all(self) -> Resources:
        return self.room + self.own if self.own else self.room

    def use(self, resources: Resources) -> None:
        """For the claim; of its own offers first."""
        left = self.in_all() - resources
        self.own = common(self.own, left)
        self.room = left - self.own


class Round:
    """Made for one round.  `takings` are what it comes to.

    `exhausted`: it has looked at so many sets of tasks, or agents, that it is over,
    whoever still lacks something.
    """

    def __init__(
        self, scene: Scene, spare: Spare, chooser: Chooser, rules: Rules, on_failure: OnFailure
    ) -> None:
        self._view = scene.view
        self._agents = scene.agents
        self._by_id = {agent.agent_id: agent for agent in scene.agents}
        self._guarantees = scene.guarantees
        self._holds = scene.holds
        self._spare = spare
        self._chooser = chooser
        self._rules = rules
        self._on_failure = on_failure
        self._places: dict[str, _Place | None] = {}
        for hold in scene.holds:
            spare.use(hold.left())
            agent = self._by_id.get(hold.agent_id)
            if agent is not None:
                rules.room.assume(hold.role, agent, hold.left())
        self._spent = 0.0
        self._looks = self._steps = 0
        self.takings: list[Taking] = []

    @property
    def exhausted(self) -> bool:
        return self._looks >= _LOOKS or self._steps >= _STEPS

    def in_progress(self, agent_id: str, tenant: Tenant, task_ids: Iterable[str]) -> None:
        """That will be free there, and is gone for its framework."""
        self._spare.take(tenant)
        place = self._place(agent_id)
        if place is not None:
            self._assume(place.agent, [tenant], -1)
            self._mark(place, tenant, task_ids)

    def _mark(self, place: _Place, tenant: Tenant, task_ids: Iterable[str]) -> None:
        place.taken.update(task_ids)
        if not task_ids:
            place.offers_taken.add((tenant.framework_id, tenant.role))

    def serve(self, claim: Claim, held: Mapping[str, int]) -> bool:
        """Plan for one claim.  False if it lacks something that nothing is done about."""
        mine = self._with_own_offers(claim.contender)
        self._spare.use(mine, -1)
        try:
            return self._serve(claim, less(held, mine))
        finally:
            self._spare.use(mine)
            for place in self._places.values():
                if place is not None:
                    place.own = EMPTY

    def _with_own_offers(self, contender: Contender) -> dict[str, int]:
        """Offers that it has are room for it, wherever something fits in; in all they are
        so much."""
        mine: dict[str, int] = {}
        for agent in self._agents:
            place = self._place(agent.agent_id)
            if place is None:
                continue
            for offer in self._view.on_offer(agent.agent_id):
                if (offer.framework_id, offer.role) == (contender.framework_id, contender.role):
                    place.own = place.own + offer.resources
                    add(mine, offer.resources.scalars)
        return mine

    def _serve(self, claim: Claim, has: dict[str, int]) -> bool:
        lacking = dict(claim.demand.lacking(has))
        for hold in self._holds:
            if hold.is_for(claim.contender):
                add(has, hold.left())
                for bundle in hold.bundles:
                    lacking[bundle] = lacking.get(bundle, 0) - 1
        here: dict[str, Taking] = {}
        served = True
        for bundle, count in lacking.items():
            if count <= 0:
                continue
            if self.exhausted:
                served = False
                break
            able = self._able(claim.contender, bundle)
            left = count - self._from_free(claim.contender, able, bundle, count, here)
            add(has, bundle.resources.scalars, count - left)
            if left:
                left -= self._from_others(claim, able, bundle, left, has, here)
            served = served and not left
        for taking in here.values():
            self._tighten(taking)
            if taking.victims:
                self.takings.append(taking)
        return served

    def _able(self, contender: Contender, bundle: Bundle) -> list[AgentRow]:
        """Agents that would do if nothing was on them."""
        self._steps += 1 if bundle.agent_id else len(self._agents)
        if bundle.agent_id:
            agent = self._by_id.get(bundle.agent_id)
            return [agent] if agent is not None and _suits(contender, agent, bundle) else []
        return [agent for agent in self._agents if _suits(contender, agent, bundle)]

    # ---- What is free -----------------------------------------------------

    def _from_free(
        self,
        contender: Contender,
        agents: Iterable[AgentRow],
        bundle: Bundle,
        count: int,
        here: dict[str, Taking],
    ) -> int:
        """Set aside what is free for so many of them; how many that was.  It is kept where
        something else is taken back, too."""
        found = 0
        for agent in agents:
            place = self._place(agent.agent_id)
            if found == count:
                break
            room = place.in_all() if place is not None else EMPTY
            if place is None or not room.contains(bundle.resources):
                continue
            usable = self._usable(contender, agent, room)
            fitting = min(count - found, times(usable, bundle.resources))
            if fitting:
                amounts = repeated(bundle.resources, fitting).scalars
                self._spare.use(amounts)
                if not self._spare.keeps_promises():
                    self._spare.use(amounts, -1)
                    continue
                place.use(repeated(bundle.resources, fitting))
                self._rules.room.assume(contender.role, agent, amounts)
                found += fitting
                taking = here.setdefault(agent.agent_id, Taking(contender, agent))
                taking.bundles += [bundle] * fitting
        return found

    # ---- What others have ---------------------------------------------------

    def _from_others(
        self,
        claim: Claim,
        agents: Sequence[AgentRow],
        bundle: Bundle,
        count: int,
        has: dict[str, int],
        here: dict[str, Taking],
    ) -> int:
        """Choose who has to go for up to so many of them; for how many that helps."""
        contender = claim.contender
        if not self._spare.is_any_above(contender.framework_id, bundle.resources.scalars):
            return 0
        if claim.patient and any(self._may_come_back(contender, one, bundle) for one in agents):
            return 0
        found = 0
        entitled: bool | None = None
        queue: _Queue = []
        while found < count:
            if entitled != (entitled := self._is_entitled(contender, bundle, has)):
                queue = []
                # Half of the looks are for what was found: each victim changes the rest.
                enough = min(_ENOUGH + 2 * (count - found), (_LOOKS - self._looks) // 2)
                for number, agent in enumerate(agents):
                    if queue and len(queue) >= enough:
                        break
                    self._queue(queue, contender, agent, bundle, number, found, entitled)
            best = self._best(queue, contender, agents, bundle, found, entitled)
            if best is None:
                break
            number, choice = best
            share = sum(self._chooser.share(one) for one in choice.victims if one.task_id)
            if self._spent and self._spent + share > self._rules.cap:
                break
            self._spent += share
            self._take(contender, agents[number], bundle, choice, here)
            add(has, bundle.resources.scalars)
            found += 1
            self._queue(queue, contender, agents[number], bundle, number, found, entitled)
        return found

    def _best(
        self,
        queue: _Queue,
        contender: Contender,
        agents: Sequence[AgentRow],
        bundle: Bundle,
        found: int,
        entitled: bool,
    ) -> tuple[int, Choice] | None:
        """The cheapest agent.  What was reckoned before others were chosen is reckoned
        again: it can only have become dearer."""
        while queue:
            _, _, number, seen, choice = heapq.heappop(queue)
            if seen == found:
                return number, choice
            self._queue(queue, contender, agents[number], bundle, number, found, entitled)
        return None

    def _queue(
        self,
        queue: _Queue,
        contender: Contender,
        agent: AgentRow,
        bundle: Bundle,
        number: int,
        found: int,
        entitled: bool,
    ) -> None:
        choice = self._choice(contender, agent, bundle, entitled)
        if choice is not None:
            heapq.heappush(queue, (choice.cost, len(choice.victims), number, found, choice))

    def _choice(
        self, contender: Contender, agent: AgentRow, bundle: Bundle, entitled: bool
    ) -> Choice | None:
        place = self._place(agent.agent_id)
        if place is None or self.exhausted:
            return None
        self._looks += 1
        # What it will use is free for nobody else.
        self._spare.use(bundle.resources.scalars)
        try:
            found = self._chooser.choose(
                bundle.resources,
                place.in_all(),
                self._candidates(contender, place),
                lambda tenant: self._rules.strict(contender, tenant, entitled),
            )
            if found is None:
                return None
            if not self._spare.keeps_promises(found.victims):
                return None
            room = place.in_all()
            for tenant in found.victims:
                room = room + tenant.resources
            self._assume(agent, found.victims, -1)
            try:
                usable = self._usable(contender, agent, room)
            finally:
                self._assume(agent, found.victims, 1)
            if not usable.contains(bundle.resources):
                return None
        except Exception as error:
            self._on_failure(agent.agent_id, error)
            return None
        finally:
            self._spare.use(bundle.resources.scalars, -1)
        refusals = contender.refusals.get(agent.agent_id)
        if refusals and blocked_until(refusals, room, self._chooser.now_s) is not None:
            return None
        return found

    def _candidates(self, contender: Contender, place: _Place) -> Iterable[Tenant]:
        agent_id = place.agent.agent_id
        for tenant in self._view.on_offer(agent_id):
            holder = tenant.framework_id, tenant.role
            if (
                tenant.framework_id != contender.framework_id
                and holder not in place.offers_taken
                and self._rules.old_enough(tenant)
            ):
                yield tenant
        for tenant in self._view.tenants(agent_id):
            if tenant.framework_id != contender.framework_id and tenant.task_id not in place.taken:
                yield tenant

    def _may_come_back(self, contender: Contender, agent: AgentRow, bundle: Bundle) -> bool:
        """Whether it would fit there if what was offered a moment ago came back."""
        place = self._place(agent.agent_id)
        young = [
            one
            for one in self._view.on_offer(agent.agent_id)
            if one.framework_id != contender.framework_id and not self._rules.old_enough(one)
        ]
        if place is None or not young:
            return False
        room = place.in_all()
        for one in young:
            room = room + one.resources
        return room.contains(bundle.resources)

    def _take(
        self,
        contender: Contender,
        agent: AgentRow,
        bundle: Bundle,
        choice: Choice,
        here: dict[str, Taking],
    ) -> None:
        place = self._place(agent.agent_id)
        assert place is not None, "chosen on an agent that there is not"
        taking = here.setdefault(agent.agent_id, Taking(contender, agent))
        taking.bundles.append(bundle)
        for tenant in choice.victims:
            self._spare.take(tenant)
            taking.victims.append((self._chooser.cost(tenant) or 0.0, tenant))
            self._mark(place, tenant, [tenant.task_id] if tenant.task_id else [])
            place.room = place.room + tenant.resources
        place.use(bundle.resources)
        self._spare.use(bundle.resources.scalars)
        self._assume(agent, choice.victims, -1)
        self._rules.room.assume(contender.role, agent, bundle.resources.scalars)

    def _assume(self, agent: AgentRow, tenants: Iterable[Tenant], sign: int) -> None:
        for tenant in tenants:
            self._rules.room.assume(tenant.role, agent, tenant.resources.scalars, sign)

    def _usable(self, contender: Contender, agent: AgentRow, room: Resources) -> Resources:
        """What it could be offered of it."""
        rules = self._rules.room
        enough = rules.is_enough(agent, room)
        usable = rules.part(contender, agent, room, enough=enough).resources
        wanted = not contender.min_free or any(map(usable.contains, contender.min_free))
        return usable if wanted else EMPTY

    def _tighten(self, taking: Taking) -> None:
        """Spare victims that later ones on the agent have made needless, the dearest first."""
        place = self._place(taking.agent.agent_id)
        assert place is not None, "chosen on an agent that there is not"
        for item in sorted(
            taking.victims, key=lambda one: (-one[0], one[1].since_s, one[1].task_id)
        ):
            tenant = item[1]
            if place.room.contains(tenant.resources):
                place.room = place.room - tenant.resources
                taking.victims.remove(item)
                self._spare.take(tenant, -1)
                self._assume(taking.agent, [tenant], 1)
                place.taken.discard(tenant.task_id)
                self._spent -= self._chooser.share(tenant) if tenant.task_id else 0.0

    def _is_entitled(self, contender: Contender, bundle: Bundle, has: Mapping[str, int]) -> bool:
        """Whether it is guaranteed one more of them."""
        guarantee = self._guarantees.of(contender.framework_id, contender.role)
        concerned = [name for name in bundle.resources.scalars if name in guarantee]
        return bool(concerned) and all(
            has.get(name, 0) + bundle.resources.scalars[name] <= guarantee[name]
            for name in concerned
        )

    # ---- Agents ----------------------------------------------------------------

    def _place(self, agent_id: str) -> _Place | None:
        """None: nothing can be planned there."""
        if agent_id not in self._places:
            self._places[agent_id] = self._opened(agent_id)
        return self._places[agent_id]

    def _opened(self, agent_id: str) -> _Place | None:
        agent = self._by_id.get(agent_id)
        if agent is None:
            return None
        try:
            room = self._view.free(agent_id)
            for hold in self._holds.on(agent_id):
                for one in hold.in_progress:
                    room = room + one.resources
        except Exception as error:
            self._on_failure(agent_id, error)
            return None
        kept = self._holds.kept(agent_id)
        if not covers(room.scalars, kept):
            return None
        return _Place(agent, keep_back(room, kept))


def _suits(contender: Contender, agent: AgentRow, bundle: Bundle) -> bool:
    """Whether an agent with nothing on it would do."""
    return (
        agent.active
        and agent.total.contains(bundle.resources)
        and (contender.gpu_capable or "gpus" not in agent.total.plain.scalars)
        and contender.allows(agent.agent_id, agent.host)
    )
