"""Inverse offers: whoever has something on a machine that is to go is asked to leave.

Looked after at the end of each allocation, like offers, where something may have changed
(`Inverse.agents`).  An inverse offer belongs to one stream of its framework: another
stream starts without any and without filters, as it does with offers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from master.core import revoking
from master.core.cluster import Cluster
from master.core.offers import refuse_seconds
from master.core.records import Agent, Framework, InverseFilter, InverseOffer
from mesos_py.clock import Now
from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import maintenance_pb2 as mt
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

Status = mt.InverseOfferStatus
# A framework that wants to be asked again at once is asked once in this time.
LEAST_PAUSE_S: Final = 1.0


def look_after(c: Cluster, now: Now) -> None:
    """Ask those that have something on such a machine and have not been asked."""
    book = c.inverse
    _sweep(c)
    looked_at, book.agents = sorted(book.agents), set()
    asked = {(each.agent_id, each.framework_id) for each in book.offers.values()}
    batches: dict[str, list[pb.InverseOffer]] = {}
    for agent_id in looked_at:
        agent = c.agents.get(agent_id)
        if agent is None or agent.unavailability is None or not agent.connected:
            continue
        for framework_id, held in sorted(_held(c, agent).items()):
            framework = c.frameworks.get(framework_id)
            if framework is None or framework.link is None:
                continue
            key = (agent_id, framework_id)
            if key not in asked and not _is_filtered(c, key, framework.link, now):
                offer = _make(c, framework.link, key, held, now)
                batches.setdefault(framework_id, []).append(message(c, offer))
    for framework_id, offers in batches.items():
        event = sched.Event(type=sched.Event.INVERSE_OFFERS)
        event.inverse_offers.inverse_offers.extend(offers)
        c.to_framework(c.frameworks[framework_id], event)
        c.counters["inverse_offers_sent"] += len(offers)


def _sweep(c: Cluster) -> None:
    """What is of a stream that has ended is void; nobody is told, since nobody is there."""
    book = c.inverse
    for offer in list(book.offers.values()):
        framework = c.frameworks.get(offer.framework_id)
        if framework is None or framework.link != offer.link:
            _forget(c, offer)
    for key in [key for key in book.statuses if key[1] not in c.frameworks]:
        del book.statuses[key]
        book.filters.pop(key, None)


def _held(c: Cluster, agent: Agent) -> dict[str, Resources]:
    """What each framework has there."""
    held: dict[str, Resources] = {}
    for holder, amount in c.ledger.allocations(agent.agent_id).items():
        held[holder.framework_id] = held.get(holder.framework_id, EMPTY) + amount
    return held


def _is_filtered(c: Cluster, key: tuple[str, str], link: int, now: Now) -> bool:
    given = c.inverse.filters.get(key)
    return given is not None and given.link == link and given.until_s > now.monotonic_s


def _make(c: Cluster, link: int, key: tuple[str, str], held: Resources, now: Now) -> InverseOffer:
    agent_id, framework_id = key
    offer = InverseOffer(c.ids.offer_id(), framework_id, agent_id, held, link)
    c.inverse.offers[offer.offer_id] = offer
    if key not in c.inverse.statuses:
        _note(c, key, Status.UNKNOWN, now)
    if c.options.offer_timeout_s > 0:
        c.timers.set("inverse", offer.offer_id, now.monotonic_s + c.options.offer_timeout_s)
    return offer


def message(c: Cluster, offer: InverseOffer) -> pb.InverseOffer:
    """The inverse offer as the framework sees it."""
    return pb.InverseOffer(
        id=pb.OfferID(value=offer.offer_id),
        framework_id=pb.FrameworkID(value=offer.framework_id),
        agent_id=pb.AgentID(value=offer.agent_id),
        unavailability=c.agents[offer.agent_id].unavailability,
        resources=offer.resources.to_proto(),
    )


# ---- Answers -------------------------------------------------------------------------


def accept(
    c: Cluster, framework: Framework, call: sched.Call.AcceptInverseOffers, now: Now
) -> None:
    """ACCEPT_INVERSE_OFFERS: it will have left in time."""
    filters = call.filters if call.HasField("filters") else None
    _answer(c, framework, call.inverse_offer_ids, Status.ACCEPT, filters, now)


def decline(
    c: Cluster, framework: Framework, call: sched.Call.DeclineInverseOffers, now: Now
) -> None:
    """DECLINE_INVERSE_OFFERS: it will not."""
    filters = call.filters if call.HasField("filters") else None
    _answer(c, framework, call.inverse_offer_ids, Status.DECLINE, filters, now)


def _answer(
    c: Cluster,
    framework: Framework,
    ids: Iterable[pb.OfferID],
    status: Status.Status.ValueType,
    filters: pb.Filters | None,
    now: Now,
) -> None:
    seconds = refuse_seconds(c, filters)
    for item in ids:
        if revoking.answered(c, framework, item.value, status == Status.ACCEPT):
            continue
        offer = c.inverse.offers.get(item.value)
        if offer is None or offer.framework_id != framework.framework_id:
            c.drop("inverse-offer-unknown", offer=item.value, framework=framework.framework_id)
            continue
        _forget(c, offer)
        _note(c, (offer.agent_id, offer.framework_id), status, now)
        _filter(c, offer, seconds, now)
        c.counters[f"inverse_offers/{Status.Status.Name(status)}"] += 1


def _note(c: Cluster, key: tuple[str, str], status: Status.Status.ValueType, now: Now) -> None:
    c.inverse.statuses[key] = Status(
        status=status,
        framework_id=pb.FrameworkID(value=key[1]),
        timestamp=pb.TimeInfo(nanoseconds=int(now.wall_s * 1e9)),
    )


def _filter(c: Cluster, offer: InverseOffer, seconds: float, now: Now) -> None:
    until_s = now.monotonic_s + max(seconds, LEAST_PAUSE_S)
    c.inverse.filters[offer.agent_id, offer.framework_id] = InverseFilter(offer.link, until_s)
    c.timers.set("inverse-again", f"{offer.agent_id}/{offer.framework_id}", until_s)


def ask_again(c: Cluster, name: str, now: Now) -> None:
    """A filter is over."""
    agent_id, _, framework_id = name.partition("/")
    c.inverse.filters.pop((agent_id, framework_id), None)
    c.inverse.agents.add(agent_id)
    c.want_allocation(now)


def revived(c: Cluster, framework: Framework, now: Now) -> None:
    """The framework wants to be asked anything again."""
    for key in [key for key in c.inverse.filters if key[1] == framework.framework_id]:
        c.timers.cancel("inverse-again", f"{key[0]}/{key[1]}")
        ask_again(c, f"{key[0]}/{key[1]}", now)


# ---- Ends ------------------------------------------------------------------------------


def _forget(c: Cluster, offer: InverseOffer) -> None:
    del c.inverse.offers[offer.offer_id]
    c.timers.cancel("inverse", offer.offer_id)


def _rescind(c: Cluster, offer: InverseOffer) -> None:
    _forget(c, offer)
    framework = c.frameworks.get(offer.framework_id)
    if framework is None or framework.link != offer.link:
        return
    c.counters["inverse_offers_rescinded"] += 1
    event = sched.Event(type=sched.Event.RESCIND_INVERSE_OFFER)
    event.rescind_inverse_offer.inverse_offer_id.value = offer.offer_id
    c.to_framework(framework, event)


def expire(c: Cluster, offer_id: str, now: Now) -> None:
    """It was not answered in time; the framework is asked again, but not at once."""
    offer = c.inverse.offers[offer_id]
    _rescind(c, offer)
    _filter(c, offer, c.options.refuse_s, now)


def rescind_of(c: Cluster, agent_id: str) -> None:
    """The agent is away."""
    for offer in list(c.inverse.offers.values()):
        if offer.agent_id == agent_id:
            _rescind(c, offer)


def forget_agent(c: Cluster, agent_id: str) -> None:
    """Its machine's absence is another one now, or none; or the agent is no more: nothing
    holds that was asked and said."""
    rescind_of(c, agent_id)
    book = c.inverse
    for key in [key for key in (*book.filters, *book.statuses) if key[0] == agent_id]:
        book.filters.pop(key, None)
        book.statuses.pop(key, None)
        c.timers.cancel("inverse-again", f"{key[0]}/{key[1]}")
    book.agents.add(agent_id)


def statuses(c: Cluster) -> dict[str, list[mt.InverseOfferStatus]]:
    """By agent: what the frameworks there have answered."""
    found: dict[str, list[mt.InverseOfferStatus]] = {}
    for (agent_id, framework_id), status in sorted(c.inverse.statuses.items(), key=lambda i: i[0]):
        if framework_id in c.frameworks:
            found.setdefault(agent_id, []).append(status)
    return found
