"""The rules of offers, seen from outside: who may be sent one, and who must be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from master.allocator.drf import DrfAllocator
from master.core.cluster import Cluster
from master.core.records import Framework, Offer
from mesos_py.allocation import AllocatorOptions, fits_any
from mesos_py.clock import Now
from mesos_py.resources import EMPTY, Resources, total
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.property.model_scheduler import Broken

Call = sched.Call
_DEFAULT_MIN = AllocatorOptions().min_offer


@dataclass(frozen=True, slots=True)
class Refused:
    role: str
    agent_id: str
    resources: Resources
    until_s: float


@dataclass(slots=True)
class Before:
    framework: Framework | None
    suppressed: frozenset[str]
    # The live ones that the call names.
    offers: list[Offer] = field(default_factory=list)
    allocated: Resources = EMPTY
    # False: it names another framework, and is refused.
    taken: bool = True


class OfferRules:
    """Follows the calls as the master takes them."""

    def __init__(self, cluster: Cluster) -> None:
        self._c = cluster
        # By framework id.  Dropped with everything that ends filters.
        self._refused: dict[str, list[Refused]] = {}
        self._checked: tuple[int, float] = (-1, -1.0)
        # Offers that were sent and not seen to have ended, and when each framework last
        # answered one.
        self._out: dict[str, Offer] = {}
        self._answered: dict[str, float] = {}

    # ---- What the master is told -------------------------------------------------

    def ended(self, link: int) -> None:
        """The framework's stream ends, and with it all that it has refused."""
        self._forget(self._c.framework_of_link.get(link))

    def before(self, link: int, call: sched.Call) -> Before:
        """How things are before the master takes the call."""
        c = self._c
        framework_id = c.framework_of_link.get(link)
        framework = c.frameworks.get(framework_id) if framework_id is not None else None
        if call.framework_id.value not in ("", framework_id) and call.type != Call.SUBSCRIBE:
            return Before(framework, frozenset(), taken=False)
        if framework is None or call.type not in (Call.ACCEPT, Call.DECLINE):
            return Before(framework, framework.suppressed if framework else frozenset())
        accept = call.type == Call.ACCEPT
        ids = [item.value for item in (call.accept if accept else call.decline).offer_ids]
        offers = [c.offers[offer_id] for offer_id in ids if offer_id in framework.offers]
        before = Before(framework, framework.suppressed, offers)
        if accept:
            places = {(offer.role, offer.agent_id) for offer in offers}
            if len(offers) != len(ids) or len(set(ids)) != len(ids) or len(places) != 1:
                before.offers = []  # the call is void
            else:
                before.allocated = c.ledger.allocated(offers[0].agent_id)
        return before

    def after(self, link: int, call: sched.Call, before: Before, now: Now) -> None:
        kind = call.type
        framework = before.framework
        if not before.taken:
            return
        if framework is not None and before.offers:
            self._answered[framework.framework_id] = now.monotonic_s
        if framework is None:
            # A subscription that was taken starts anew; nothing else is taken here.
            self._forget(self._c.framework_of_link.get(link))
        elif kind == Call.ACCEPT and before.offers:
            agent_id = before.offers[0].agent_id
            claimed = self._c.ledger.allocated(agent_id) - before.allocated
            left = total(offer.resources for offer in before.offers) - claimed
            self._refuse(framework, before.offers[0], left, call.accept.filters, now)
        elif kind == Call.DECLINE:
            for offer in before.offers:
                self._refuse(framework, offer, offer.resources, call.decline.filters, now)
        elif kind == Call.REVIVE and set(call.revive.roles) <= set(framework.roles):
            self._forget(framework.framework_id, call.revive.roles or framework.roles)
        elif kind == Call.UPDATE_FRAMEWORK:
            self._forget(framework.framework_id, before.suppressed - framework.suppressed)

    def _refuse(
        self,
        framework: Framework,
        offer: Offer,
        resources: Resources,
        filters: pb.Filters,
        now: Now,
    ) -> None:
        seconds = filters.refuse_seconds if filters.HasField("refuse_seconds") else 5.0
        if not seconds >= 0:
            seconds = 5.0
        self._refused.setdefault(framework.framework_id, []).append(
            Refused(offer.role, offer.agent_id, resources, now.monotonic_s + seconds)
        )

    def _forget(self, framework_id: str | None, roles: Iterable[str] | None = None) -> None:
        """What the framework has refused (in these roles) counts no more."""
        if not framework_id:
            return
        refused = self._refused.pop(framework_id, [])
        if roles is not None:
            gone = set(roles)
            self._refused[framework_id] = [item for item in refused if item.role not in gone]

    # ---- Who may be sent an offer ----------------------------------------------------

    def sent(self, link: int, offers: Iterable[pb.Offer], now: Now) -> None:
        c = self._c
        framework = c.frameworks[c.framework_of_link[link]]
        for offer in offers:
            self._out[offer.id.value] = c.offers[offer.id.value]
            role = c.offers[offer.id.value].role
            agent = c.agents[offer.agent_id.value]
            if framework.link != link or agent.why_inactive:
                raise Broken(
                    f"{offer.id.value} goes to or from somebody who is away or out of service"
                )
            if framework.silent:
                raise Broken(f"{offer.id.value} goes to somebody who is left alone")
            if c.recovery.held:
                raise Broken(f"{offer.id.value} is made before most agents are back")
            if role not in framework.roles or role in framework.suppressed:
                raise Broken(f"{offer.id.value} of role {role}, which is not wanted")
            resources = Resources.from_proto("offer", offer.resources)
            if not resources or not self._wants(framework, role, agent.agent_id, resources):
                raise Broken(f"{offer.id.value} holds {resources}, which is not wanted")

    # ---- Who must be ---------------------------------------------------------------------

    def check(self, now: Now) -> None:
        """When no cycle is due: nobody wants what is free, or has refused it himself."""
        c = self._c
        self._follow_expired(now)
        moment = (c.counters["allocation_cycles"], now.monotonic_s)
        if c.allocation.wanted_since_s is not None or moment == self._checked:
            return
        self._checked = moment
        kept = any(each.guarantee or each.limit or each.agents for each in c.policies.values())
        if kept or (isinstance(c.allocator, DrfAllocator) and c.allocator.options.short_share):
            return  # what is free may be kept for others, by rules that are not these
        for agent in c.agents.values():
            free = c.ledger.free(agent.agent_id)
            if agent.why_inactive or not free:
                continue
            for framework in c.frameworks.values():
                if not framework.connected or self._is_left_alone(framework, now):
                    continue
                for role in framework.roles:
                    if (
                        role not in framework.suppressed
                        and self._wants(framework, role, agent.agent_id, free)
                        and not self._refuses(framework, role, agent.agent_id, free, now)
                    ):
                        raise Broken(
                            f"{free} of {agent.agent_id} is offered to nobody: "
                            f"{framework.framework_id} wants it in role {role}"
                        )

    def _follow_expired(self, now: Now) -> None:
        """Of somebody who has answered others since, an offer that expires is declined."""
        for offer_id in [offer_id for offer_id in self._out if offer_id not in self._c.offers]:
            offer = self._out.pop(offer_id)
            why = self._c.ended_offers.get(offer_id, "")
            answered_s = self._answered.get(offer.framework_id, -1.0)
            if why.startswith("not answered within") and answered_s >= offer.made_s:
                until_s = now.monotonic_s + max(5.0, 2 * offer.timeout_s)
                self._refused.setdefault(offer.framework_id, []).append(
                    Refused(offer.role, offer.agent_id, offer.resources, until_s)
                )

    def _is_left_alone(self, framework: Framework, now: Now) -> bool:
        """It left an offer unanswered, and has neither said anything since nor waited."""
        if framework.patience is None or framework.patience.silent_until_s is None:
            return False
        if framework.patience.silent_until_s <= now.monotonic_s:
            raise Broken(f"{framework.framework_id} is left alone for too long")
        return True

    def _wants(self, framework: Framework, role: str, agent_id: str, free: Resources) -> bool:
        host = self._c.agents[agent_id].host
        constraint = framework.constraints.get(role)
        if constraint is not None and not constraint.allows(host):
            return False
        return fits_any(free, framework.min_free.get(role, _DEFAULT_MIN))

    def _refuses(
        self, framework: Framework, role: str, agent_id: str, free: Resources, now: Now
    ) -> bool:
        refused = self._refused.get(framework.framework_id)
        if not refused:
            return False
        live = [item for item in refused if item.until_s > now.monotonic_s]
        self._refused[framework.framework_id] = live
        return any(
            (item.role, item.agent_id) == (role, agent_id) and item.resources.contains(free)
            for item in live
        )
