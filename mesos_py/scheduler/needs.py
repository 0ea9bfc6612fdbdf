"""What a framework needs or waits for, and what it is asked to give back.  Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from mesos_py.errors import InvalidValue
from mesos_py.ids import check_id
from mesos_py.resources import Resources
from mesos_py.v1.types_pb2 import InverseOffer, Request

# What the master takes of REQUEST (master.core.needs), needs and what waits together.
MAX_NEEDS: Final = 1000
MAX_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Need:
    """`count` times `resources`, each on one agent: on `agent_id`, or on any ("").

    `name` says in words what for.  `role`: one of the framework's ("": its first).
    `mandatory`: the framework is of no use with less, and is to be offered nothing before
    all of its mandatory needs can be met.
    """

    name: str
    resources: Resources
    count: int = 1
    role: str = ""
    agent_id: str = ""
    mandatory: bool = False


# (what for, what one of them needs, how many) will do.
NeedLike: TypeAlias = Need | tuple[str, Resources, int]


def requests_of(needs: Iterable[NeedLike], *, waiting: bool = False) -> list[Request]:
    """The wire form.  `waiting`: they only explain.  Raises InvalidValue."""
    requests = []
    for item in needs:
        need = item if isinstance(item, Need) else Need(*item)
        if type(need.count) is not int or not 0 < need.count < 2**32:
            raise InvalidValue("count", need.count, "must be a whole number above zero")
        if not waiting and not need.resources:
            raise InvalidValue("resources", "", f"need {need.name!r} must be of something")
        request = Request(name=need.name, resources=need.resources.to_proto(), count=need.count)
        if need.role:
            request.role = need.role
        if need.agent_id:
            request.agent_id.value = check_id("agent_id", need.agent_id)
        if need.mandatory:
            request.mandatory = True
        if waiting:
            request.waiting = True
        requests.append(request)
    if len(requests) > MAX_NEEDS:
        raise InvalidValue("needs", len(requests), f"must be at most {MAX_NEEDS}")
    return requests


@dataclass(frozen=True, slots=True)
class AskedBack:
    """An inverse offer that asks for resources, not for the absence of a machine.

    Until `deadline_s` (seconds since the epoch) the framework may end tasks of its choice
    on the agent, launched in `role` ("": it has one only); then those of `task_ids` that
    still run are killed, as many as it takes.
    """

    offer_id: str
    agent_id: str
    resources: Resources
    task_ids: tuple[str, ...]
    deadline_s: float
    reason: str
    role: str = ""


def asked_back(offer: InverseOffer) -> AskedBack | None:
    """What an inverse offer asks to be given back; None for one about maintenance."""
    if not offer.HasField("revocation"):
        return None
    return AskedBack(
        offer.id.value,
        offer.agent_id.value,
        Resources.from_proto("inverse_offer.resources", offer.resources),
        tuple(item.value for item in offer.revocation.task_ids),
        offer.revocation.deadline.nanoseconds / 1e9,
        offer.revocation.reason,
        next((each.allocation_info.role for each in offer.resources), ""),
    )


__all__ = ["MAX_NEEDS", "AskedBack", "Need", "NeedLike", "asked_back", "requests_of"]
