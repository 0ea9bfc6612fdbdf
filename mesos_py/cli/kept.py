"""What is reserved on an agent, and the volumes there: found by what an operator says of it.

Pure: an operator names a role and an amount, an agent has amounts whose names say more than
that (`mesos_py.reserved`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from mesos_py.errors import Conflict, InsufficientResources, InvalidValue, NotFound
from mesos_py.reserved import (
    Reservation,
    Stack,
    is_reserved,
    is_volume,
    key_of,
    plain_name,
    role_of,
    stack_of,
    volume_of,
)
from mesos_py.resources import Resources, total
from mesos_py.v1.operator_pb2 import Response

Label = tuple[str, str | None]
_MAX_LISTED: Final = 8


class Wanted(NamedTuple):
    """What an operator says of a reservation: whose it is, who made it, and some labels."""

    role: str
    principal: str | None = None
    labels: tuple[Label, ...] = ()

    def fits(self, last: Reservation) -> bool:
        return (
            last.role == self.role
            and self.principal in (None, last.principal)
            and set(self.labels) <= set(last.labels or ())
        )


def labels_of(texts: Iterable[str]) -> tuple[Label, ...]:
    """From "KEY=VALUE", or "KEY" for one without a value.  Raises InvalidValue."""
    found: list[Label] = []
    for text in texts:
        key, equals, value = text.partition("=")
        if not key:
            raise InvalidValue("--label", text, "must have a key")
        found.append((key, value if equals else None))
    return tuple(found)


def new_labels(texts: Iterable[str]) -> dict[str, str | None]:
    """Those of a reservation that is to be made.  Raises InvalidValue for a key given twice,
    of which one would be lost."""
    found: dict[str, str | None] = {}
    for text in texts:
        ((key, value),) = labels_of([text])
        if key in found:
            raise InvalidValue("--label", text, f"the key {key!r} is given twice")
        found[key] = value
    return found


def has(agent: Response.GetAgents.Agent) -> Resources:
    """All that the agent has."""
    return Resources.from_proto("total", agent.total_resources)


def by_stack(resources: Resources) -> dict[Stack, Resources]:
    """What is reserved, volumes included, each kind of reservation by itself."""
    stacks = dict.fromkeys(stack_of(key) for key in resources.names() if is_reserved(key))
    return {stack: _of(resources, stack) for stack in stacks}


def _of(resources: Resources, stack: Stack) -> Resources:
    return resources.only(lambda key: stack_of(key) == stack)


def without_volumes(resources: Resources) -> Resources:
    return resources.only(lambda key: not is_volume(key))


def label_text(labels: Iterable[Label]) -> str:
    return ",".join(key if value is None else f"{key}={value}" for key, value in labels)


def described(stack: Stack) -> str:
    """A reservation in a few words, as lists of several show it."""
    last = stack[-1]
    said = [f"principal {last.principal}"] if last.principal is not None else []
    said += [f"labels {label_text(last.labels)}"] if last.labels else []
    if len(stack) > 1:
        said.append(f"within {stack[-2].role}")
    more = f" ({', '.join(said)})" if said else ""
    return f"{last.kind} for {last.role}{more}"


# ---- Reservations ----------------------------------------------------------------------------


def to_unreserve(where: str, resources: Resources, wanted: Wanted, amounts: Resources) -> Resources:
    """Of what an agent has, what is meant by `amounts` (plain names) that were reserved so.

    Raises NotFound if nothing is, InsufficientResources if it is less, and Conflict, listing
    them, where it may be of several reservations.
    """
    found = _dynamic(where, resources, wanted)
    stack = _the_one(where, found, amounts)
    return amounts.renamed(lambda name: key_of(name, stack))


def all_to_unreserve(where: str, resources: Resources, wanted: Wanted) -> Resources:
    """All that was reserved so and is no volume.  Raises NotFound if nothing is."""
    return total(_dynamic(where, resources, wanted).values())


def _dynamic(where: str, resources: Resources, wanted: Wanted) -> dict[Stack, Resources]:
    every = {
        stack: part
        for stack, part in by_stack(resources).items()
        if stack[-1].kind == "dynamic" and wanted.fits(stack[-1])
    }
    found = {stack: rest for stack, part in every.items() if (rest := without_volumes(part))}
    if not found:
        reason = f"nothing on {where} was reserved so while the agent ran"
        if every:
            reason = f"all that is reserved so on {where} are volumes, which have to be destroyed"
        raise NotFound("reservation", _text(wanted), reason)
    return found


def disk_for_volume(where: str, resources: Resources, wanted: Wanted, mb: Resources) -> Resources:
    """The disk on an agent that a volume of that size is to be made of.  Raises as
    `to_unreserve`."""
    found = {
        stack: disks
        for stack, part in by_stack(without_volumes(resources)).items()
        if wanted.fits(stack[-1]) and (disks := part.only(lambda key: plain_name(key) == "disk"))
    }
    if not found:
        raise NotFound("reservation", _text(wanted), f"no disk of {where} is reserved so")
    stack = _the_one(where, found, mb)
    return mb.renamed(lambda name: key_of(name, stack))


def _the_one(where: str, found: dict[Stack, Resources], amounts: Resources) -> Stack:
    enough = [stack for stack, part in found.items() if part.plain.contains(amounts)]
    if len(enough) == 1:
        return enough[0]
    if enough:
        kinds = "; ".join(map(described, enough[:_MAX_LISTED]))
        text = f"{amounts}: {len(enough)} kinds of reservation on {where} have as much: {kinds}"
        raise Conflict(text, field="resources", value=str(amounts))
    most = max(found.values(), key=lambda part: -len(part.plain.shortfalls(amounts)))
    name, asked, there = most.plain.shortfalls(amounts)[0]
    text = f"{name}: {asked} wanted, {there} reserved so on {where}"
    raise InsufficientResources(text, field=name, value=asked)


def _text(wanted: Wanted) -> str:
    said = [wanted.role]
    said += [f"principal {wanted.principal}"] if wanted.principal is not None else []
    said += [f"labels {label_text(wanted.labels)}"] if wanted.labels else []
    return ", ".join(said)


# ---- Volumes ---------------------------------------------------------------------------------


def volumes_of(resources: Resources) -> dict[str, Resources]:
    """The volumes among them, by their names."""
    return {
        key: Resources({key: milli})
        for key, milli in resources.scalars.items()
        if volume_of(key) is not None
    }


def find_volume(where: str, resources: Resources, volume_id: str, role: str | None) -> Resources:
    """The volume of that id on an agent, of one role if that is given.

    Raises NotFound, and Conflict where several roles have one of that id.
    """
    found = {
        role_of(key): part
        for key, part in volumes_of(resources).items()
        if _id(key) == volume_id and role in (None, role_of(key))
    }
    if not found:
        of_role = f" of the role {role}" if role is not None else ""
        raise NotFound("volume", volume_id, f"there is none of that id{of_role} on {where}")
    if len(found) > 1:
        roles = ", ".join(sorted(found))
        text = f"volume {volume_id!r} means {len(found)} on {where}, of the roles {roles}"
        raise Conflict(f"{text}: give --role", kind="volume", name=volume_id)
    return next(iter(found.values()))


def _id(key: str) -> str:
    volume = volume_of(key)
    return volume.volume_id if volume is not None else ""


__all__ = [
    "Label",
    "Wanted",
    "all_to_unreserve",
    "by_stack",
    "described",
    "disk_for_volume",
    "find_volume",
    "has",
    "label_text",
    "labels_of",
    "new_labels",
    "to_unreserve",
    "volumes_of",
    "without_volumes",
]
