"""What clients of Mesos find in events beside what the core says."""

from master.api.http.dressing import dressed, refined
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

AGENT = pb.AgentInfo(hostname="h", ip="10.0.0.1", port=5061, http_port=5051)
Capability = pb.FrameworkInfo.Capability


def offers() -> sched.Event:
    event = sched.Event(type=sched.Event.OFFERS)
    offer = event.offers.offers.add(agent_id=pb.AgentID(value="a"))
    offer.resources.add(name="cpus")
    offer.resources.add(name="mem").reservations.add(role="r")
    return event


def dress(
    event: sched.Event,
    agent: pb.AgentInfo | None = AGENT,
    *,
    newer_resources: bool = False,
    ours: bool = False,
) -> sched.Event | None:
    return dressed(event, {"a": agent}.get, newer_resources=newer_resources, ours=ours)


def test_an_offer_says_where_the_agents_http_is() -> None:
    event = offers()
    told = dress(event)
    assert told is not None
    assert told.offers.offers[0].url == pb.URL(
        scheme="http",
        address=pb.Address(hostname="h", ip="10.0.0.1", port=5051),
        path="/slave(1)",
    )
    # The event of the core is not changed: others may be told of it as well.
    assert event == offers()


def test_of_an_agent_without_http_it_says_nothing() -> None:
    for agent in (None, pb.AgentInfo(hostname="h")):
        told = dress(offers(), agent)
        assert told is not None
        assert not told.offers.offers[0].HasField("url")


def test_resources_that_are_not_reserved_have_the_role_star() -> None:
    told = dress(offers())
    assert told is not None
    assert [r.role for r in told.offers.offers[0].resources] == ["*", ""]


def test_for_who_knows_refined_reservations_they_have_none() -> None:
    told = dress(offers(), newer_resources=True)
    assert told is not None
    assert not any(r.HasField("role") for r in told.offers.offers[0].resources)


def test_who_knows_refined_reservations() -> None:
    assert not refined(pb.FrameworkInfo())
    capability = Capability(type=Capability.RESERVATION_REFINEMENT)
    assert refined(pb.FrameworkInfo(capabilities=[capability]))


def inverse(*, leaves: bool) -> sched.Event:
    event = sched.Event(type=sched.Event.INVERSE_OFFERS)
    offer = event.inverse_offers.inverse_offers.add(agent_id=pb.AgentID(value="a"))
    offer.resources.add(name="cpus")
    if leaves:
        offer.unavailability.start.nanoseconds = 1
    else:
        offer.revocation.reason = "for another one"
    return event


def test_a_request_to_leave_an_agent_is_told_to_all() -> None:
    told = dress(inverse(leaves=True))
    assert told is not None
    (offer,) = told.inverse_offers.inverse_offers
    assert (offer.url.address.port, offer.resources[0].role) == (5051, "*")


def test_a_revocation_is_told_to_those_who_know_of_it() -> None:
    assert dress(inverse(leaves=False)) is None
    assert dress(inverse(leaves=False), ours=True) is not None


def test_all_else_is_as_it_is() -> None:
    event = sched.Event(type=sched.Event.RESCIND)
    assert dress(event) is event
