"""What clients of Mesos find in events, and our own peers do without.

Offers say where the agent's HTTP is, and that resources belong to the role `*`, in the way of
schedulers that do not know of refined reservations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

# The agents' path of Mesos, which clients put in front of what they ask for.
AGENT_PATH = "/slave(1)"


def refined(info: pb.FrameworkInfo) -> bool:
    """Whether the framework reads resources in the newer form."""
    newer = pb.FrameworkInfo.Capability.RESERVATION_REFINEMENT
    return any(capability.type == newer for capability in info.capabilities)


def dressed(
    event: sched.Event,
    agent_of: Callable[[str], pb.AgentInfo | None],
    *,
    newer_resources: bool,
    ours: bool,
) -> sched.Event | None:
    """The event for a client of HTTP; None if there is nothing in it for this one."""
    if event.type == sched.Event.OFFERS:
        made = sched.Event()
        made.CopyFrom(event)
        for offer in made.offers.offers:
            _put_url(offer, agent_of(offer.agent_id.value))
            if not newer_resources:
                _put_roles(offer.resources)
        return made
    if event.type == sched.Event.INVERSE_OFFERS:
        return _inverse(event, agent_of, newer_resources=newer_resources, ours=ours)
    return event


def _inverse(
    event: sched.Event,
    agent_of: Callable[[str], pb.AgentInfo | None],
    *,
    newer_resources: bool,
    ours: bool,
) -> sched.Event | None:
    made = sched.Event(type=sched.Event.INVERSE_OFFERS)
    for offer in event.inverse_offers.inverse_offers:
        # Without a time of absence it asks for resources back, which Mesos does not know:
        # what is not answered is decided by the master.
        if ours or offer.HasField("unavailability"):
            kept = made.inverse_offers.inverse_offers.add()
            kept.CopyFrom(offer)
            _put_url(kept, agent_of(offer.agent_id.value))
            if not newer_resources:
                _put_roles(kept.resources)
    return made if made.inverse_offers.inverse_offers else None


def _put_url(offer: pb.Offer | pb.InverseOffer, agent: pb.AgentInfo | None) -> None:
    if agent is None or not agent.http_port:
        return
    url = offer.url
    url.scheme = "http"
    url.address.hostname = agent.hostname
    if agent.ip:
        url.address.ip = agent.ip
    url.address.port = agent.http_port
    url.path = AGENT_PATH


def _put_roles(resources: Iterable[pb.Resource]) -> None:
    for resource in resources:
        if not resource.reservations and not resource.HasField("role"):
            resource.role = "*"


__all__ = ["AGENT_PATH", "dressed", "refined"]
