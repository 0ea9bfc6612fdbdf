"""Offers: made from grants, and all the ways in which one ends without being accepted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from master.allocator import base as alloc
from master.core import offer_numbers
from master.core.cluster import Cluster
from master.core.patience import Patience
from master.core.records import Framework, Offer
from master.core.takings import Place
from mesos_py.clock import Now
from mesos_py.errors import InvalidValue, MesosPyError
from mesos_py.reserved import put_older_form
from mesos_py.resources import Resources
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

# How long an offer waits whose answer may have come and is not read yet.
POSTPONED_S: Final = 0.25


def make_offers(c: Cluster, grants: Iterable[alloc.Grant], now: Now) -> int:
    """Turn grants into offers; all of one framework go out as one event.

    A grant that no longer holds is dropped, counted, and its agent looked at again.
    """
    batches: dict[str, list[pb.Offer]] = {}
    made = 0
    for grant in grants:
        framework = c.frameworks.get(grant.framework_id)
        agent = c.agents.get(grant.agent_id)
        if (
            framework is None
            or agent is None
            or not framework.connected
            or not agent.connected
            or grant.role not in framework.roles
            or not grant.resources
            or not _is_time(grant.max_task_s)
        ):
            c.drop("grant-stale", framework=grant.framework_id, agent=grant.agent_id)
            c.freed(grant.agent_id, now)
            continue
        try:
            offer = _book(c, grant, now)
        except MesosPyError as error:
            c.drop("grant-refused", agent=grant.agent_id, why=error.message)
            c.freed(grant.agent_id, now)
            continue
        framework.offers.add(offer.offer_id)
        agent.offers.add(offer.offer_id)
        _set_timeout(c, framework, offer, now)
        offer_numbers.sent(c, framework, offer)
        batches.setdefault(grant.framework_id, []).append(offer_message(c, framework, offer))
        made += 1
    for framework_id, offers in batches.items():
        framework = c.frameworks[framework_id]
        framework.offers_sent += len(offers)
        framework.last_offer_wall_s = now.wall_s
        event = sched.Event(type=sched.Event.OFFERS, offers=sched.Event.Offers(offers=offers))
        c.to_framework(framework, event)
    c.counters["offers_sent"] += made
    return made


def _book(c: Cluster, grant: alloc.Grant, now: Now) -> Offer:
    """Move what is granted from what is free into an offer.  Raises what the ledger does,
    and nothing has changed then."""
    offer = Offer(
        c.ids.offer_id(),
        grant.framework_id,
        grant.role,
        grant.agent_id,
        grant.resources,
        max_task_s=grant.max_task_s,
        made_s=now.monotonic_s,
    )
    c.ledger.offer(
        offer.agent_id,
        offer.offer_id,
        offer.framework_id,
        offer.role,
        offer.resources,
        short=offer.max_task_s is not None,
        since_s=now.monotonic_s,
    )
    c.offers[offer.offer_id] = offer
    if c.revoking.accounts:
        place = Place(offer.agent_id, offer.framework_id, offer.role)
        c.revoking.granted(place, offer.resources.scalars)
    return offer


def _is_time(max_task_s: float | None) -> bool:
    """Whether tasks can be told to end by then: it fits the wire (292 years)."""
    return max_task_s is None or 0 < max_task_s < 2**63 / 1e9


def _set_timeout(c: Cluster, framework: Framework, offer: Offer, now: Now) -> None:
    if framework.patience is None:
        options = c.options
        framework.patience = Patience(options.first_offer_timeout_s, options.offer_timeout_s)
    offer.timeout_s = framework.patience.timeout_s
    if offer.timeout_s > 0:
        c.timers.set("offer", offer.offer_id, now.monotonic_s + offer.timeout_s)


def offer_message(c: Cluster, framework: Framework, offer: Offer) -> pb.Offer:
    """The offer as the framework sees it."""
    agent = c.agents[offer.agent_id]
    executor_ids = [
        pb.ExecutorID(value=executor_id)
        for framework_id, executor_id in sorted(agent.executors)
        if framework_id == framework.framework_id
    ]
    message = pb.Offer(
        id=pb.OfferID(value=offer.offer_id),
        framework_id=pb.FrameworkID(value=framework.framework_id),
        agent_id=pb.AgentID(value=agent.agent_id),
        hostname=agent.info.hostname,
        resources=offer.resources.to_proto(),
        attributes=agent.info.attributes,
        executor_ids=executor_ids,
    )
    if agent.info.HasField("domain"):
        message.domain.CopyFrom(agent.info.domain)
    if agent.unavailability is not None:
        message.unavailability.CopyFrom(agent.unavailability)
    if offer.max_task_s is not None:
        message.max_task_duration.nanoseconds = int(offer.max_task_s * 1e9)
    if framework.multi_role:
        message.allocation_info.role = offer.role
        for resource in message.resources:
            resource.allocation_info.role = offer.role
    if offer.resources.has_reserved and not framework.refines:
        for resource in message.resources:
            put_older_form(resource)
    return message


def forget(c: Cluster, offer: Offer, why: str) -> None:
    """Drop the master's record of an offer whose resources went elsewhere."""
    del c.offers[offer.offer_id]
    c.timers.cancel("offer", offer.offer_id)
    # Neither goes before its offers have.
    c.frameworks[offer.framework_id].offers.discard(offer.offer_id)
    c.agents[offer.agent_id].offers.discard(offer.offer_id)
    c.remember_offer(offer.offer_id, why)


def withdraw(c: Cluster, offer: Offer, why: str, now: Now) -> None:
    """End an offer: what it held is free again.  Says nothing to the framework."""
    c.ledger.withdraw(offer.agent_id, offer.offer_id)
    forget(c, offer, why)
    c.freed(offer.agent_id, now)


def rescind(c: Cluster, offer: Offer, why: str, now: Now) -> None:
    """End an offer and tell its framework."""
    offer_numbers.ended(c, offer, "rescinded", now)
    withdraw(c, offer, why, now)
    c.counters["offers_rescinded"] += 1
    framework = c.frameworks[offer.framework_id]
    c.tally(framework, "rescinded", f"offer rescinded: {why}", now, offer.agent_id)
    c.to_framework(
        framework,
        sched.Event(
            type=sched.Event.RESCIND,
            rescind=sched.Event.Rescind(offer_id=pb.OfferID(value=offer.offer_id)),
        ),
    )


def postpone(c: Cluster, offer_id: str, now: Now) -> bool:
    """The offer's time is up, and its answer may be among what was not handed in yet: give
    it a moment more.  False if it had as much as the longest offer beside its time."""
    offer = c.offers[offer_id]
    if now.monotonic_s >= offer.made_s + offer.timeout_s + c.options.offer_timeout_s:
        return False
    c.timers.set("offer", offer_id, now.monotonic_s + POSTPONED_S)
    return True


def expire(c: Cluster, offer_id: str, now: Now) -> None:
    """The offer's time is up: its framework did not answer."""
    offer = c.offers[offer_id]
    c.counters["offers_expired"] += 1
    offer_numbers.ended(c, offer, "expired", now)
    rescind(c, offer, f"not answered within {offer.timeout_s:g} s", now)
    framework = c.frameworks[offer.framework_id]
    was_silent, until_s = framework.silent, None
    if framework.patience is not None:
        until_s = framework.patience.expired(offer.timeout_s, offer.made_s, now.monotonic_s)
    if until_s is None:
        seconds = max(c.options.refuse_s, 2 * offer.timeout_s)
        note_refusal(c, offer, offer.resources, seconds, now)
        return
    # It blocks nothing, but others come first now.
    note_refusal(c, offer, offer.resources, 0.0, now)
    c.timers.set("silent", framework.framework_id, until_s)
    if not was_silent:
        c.tell_framework(framework, now)


def heard(c: Cluster, framework: Framework, now: Now) -> None:
    """The framework has answered, or says what it wants: if it is offered nothing since it
    was silent, that is over."""
    if framework.patience is not None and framework.patience.heard():
        c.timers.cancel("silent", framework.framework_id)
        c.tell_framework(framework, now)


def try_again(c: Cluster, framework_id: str, now: Now) -> None:
    """It has been left alone for long enough."""
    heard(c, c.frameworks[framework_id], now)


def answered(c: Cluster, offer: Offer, now: Now) -> None:
    """The framework has accepted or declined it."""
    patience = c.frameworks[offer.framework_id].patience
    if patience is not None:
        took_s = now.monotonic_s - offer.made_s
        patience.answered(offer.timeout_s, took_s, now.monotonic_s)


def refuse_seconds(c: Cluster, filters: pb.Filters | None) -> float:
    """How long a refusal holds.  Mesos: 5 s if not given or no number, at most a year."""
    if filters is None or not filters.HasField("refuse_seconds"):
        return c.options.refuse_s
    seconds = filters.refuse_seconds
    if not seconds >= 0:  # negative or NaN
        return c.options.refuse_s
    return min(seconds, c.options.max_refuse_s)


def note_refusal(c: Cluster, offer: Offer, resources: Resources, seconds: float, now: Now) -> None:
    """The framework does not want these resources of that agent for `seconds`, or just
    did not take them (0)."""
    c.allocator.tell(
        alloc.Refusal(
            offer.framework_id,
            offer.role,
            offer.agent_id,
            resources,
            now.monotonic_s + seconds,
            offer.max_task_s,
        )
    )


def decline(c: Cluster, framework: Framework, call: sched.Call.Decline, now: Now) -> None:
    """DECLINE: ends offers with a filter.  Offers that are gone are ignored, as in Mesos."""
    seconds = refuse_seconds(c, call.filters if call.HasField("filters") else None)
    if call.HasField("filters") and call.filters.HasField("refuse_seconds"):
        given = call.filters.refuse_seconds
        if not given >= 0:
            error = InvalidValue("filters.refuse_seconds", given, f"not usable, took {seconds:g}")
            c.refuse_call(framework, sched.Call.DECLINE, error, now)
    for item in call.offer_ids:
        offer = c.offers.get(item.value)
        if offer is None or offer.framework_id != framework.framework_id:
            c.drop("decline-unknown-offer", offer=item.value, framework=framework.framework_id)
            continue
        offer_numbers.ended(c, offer, "declined", now)
        answered(c, offer, now)
        c.ledger.withdraw(offer.agent_id, offer.offer_id)
        forget(c, offer, "declined by the framework")
        note_refusal(c, offer, offer.resources, seconds, now)
        c.freed(offer.agent_id, now)
        c.counters["offers_declined"] += 1
        c.tally(
            framework,
            "declined",
            f"declined by the framework itself for {seconds:g} s",
            now,
            offer.agent_id,
        )


def drop_all(c: Cluster, offer_ids: Iterable[str], why: str, now: Now, tell: bool) -> None:
    """End many offers; `tell`: send RESCIND for each."""
    end = rescind if tell else withdraw
    for offer_id in sorted(offer_ids):
        end(c, c.offers[offer_id], why, now)
