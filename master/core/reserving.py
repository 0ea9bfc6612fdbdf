"""Operations on what agents have: RESERVE and UNRESERVE, CREATE and DESTROY, GROW_VOLUME and
SHRINK_VOLUME.  Which of them may be, and what follows from one.

The rules are those of Mesos (src/master/validation.cpp, operation::validate).  What an
operation changes is changed here at once; the agent is told in the same step, before
anything that rests on it.  The agent's word counts: when it registers it says what is
reserved, and that is taken over.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from master.core import offers as offering
from master.core import operations, volume_rules
from master.core.cluster import Cluster
from master.core.records import Agent, Framework, Offer
from mesos_py import reserved
from mesos_py.clock import Now
from mesos_py.conversions import Conversion, conversion_of, reserved_part
from mesos_py.enums import name_of
from mesos_py.errors import Conflict, InvalidValue, NotFound, Refused, TooLarge
from mesos_py.ranges import intersection
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb

Operation = pb.Offer.Operation
# All of it is in each registration of its agent, and each change there is made by name.
MAX_BYTES: Final = 256 * 1024
MAX_NAMES: Final = 1000
# Of all operations of a call: to read one takes a while, in which the master does nothing else.
MAX_NAMED: Final = 10 * MAX_NAMES
_FIELDS: Final = {
    Operation.RESERVE: "reserve",
    Operation.UNRESERVE: "unreserve",
    **volume_rules.FIELDS,
}
_CAPABLE: Final = pb.AgentInfo.Capability.AGENT_OPERATION_FEEDBACK
_HAS_VOLUMES: Final = pb.AgentInfo.Capability.RESIZE_VOLUME


def require_few(operation: pb.Offer.Operation) -> int:
    """How many amounts the operation names.  Raises TooLarge, before one of them is read, for
    more than an agent may have."""
    named = sum(1 for _ in operations.resources_of(operation))
    named = max(named, len(operation.reserve.source))
    if named > MAX_NAMES:
        text = f"an operation that names {named} amounts, at most {MAX_NAMES} are taken"
        raise TooLarge(f"resources: {text}", field="resources")
    return named


def require_capable(agent: Agent, operation: pb.Offer.Operation) -> None:
    """Raises Refused if the agent is of a version that would not know what it is told."""
    if _CAPABLE not in agent.capabilities:
        what = "dynamic reservations"
    elif operation.type in volume_rules.KINDS and _HAS_VOLUMES not in agent.capabilities:
        what = "persistent volumes"
    else:
        return
    text = f"agent {agent.agent_id} (version {agent.version}) has no {what}"
    raise Refused(f"{text}: it is older than this master")


def asked_by_framework(
    framework: Framework,
    agent: Agent,
    role: str,
    operation: pb.Offer.Operation,
    there: Resources,
    left: Resources,
) -> Conversion:
    """What the operation does, on offers of `role` of which so much is `left`, when the agent
    has what is `there`.  Raises MesosPyError if it may not be."""
    _require_kind(operation)
    require_capable(agent, operation)
    _require_role_of_offer(operation, role)
    if operation.reserve.source:
        raise InvalidValue("reserve.source", "", "is for operators only")
    conversion = _conversion(operation, there)
    own = framework.info.principal
    if operation.type == Operation.RESERVE:
        _require_own(conversion, role, own)
    elif operation.type == Operation.CREATE:
        volume_rules.require_principal(conversion.converted, own)
    volume_rules.require_unused(operation, conversion, left)
    return conversion


def _conversion(operation: pb.Offer.Operation, there: Resources) -> Conversion:
    conversion = conversion_of(operation, there)
    if operation.type in volume_rules.KINDS:
        volume_rules.require_sound(operation, conversion, there)
    return conversion


def _require_own(conversion: Conversion, role: str, own: str) -> None:
    for key in conversion.converted.names():
        where = f"reserve.resources.{reserved.plain_name(key)}"
        if reserved.role_of(key) != role:
            reason = f"the offers are of role {role}"
            raise InvalidValue(f"{where}.role", reserved.role_of(key), reason)
        last = reserved.stack_of(key)[-1]
        if own and last.principal != own:
            reason = f"must be the framework's principal, {own!r}"
            raise InvalidValue(f"{where}.principal", last.principal or "", reason)


def _require_kind(operation: pb.Offer.Operation) -> None:
    name = name_of(Operation.Type, operation.type)
    if operation.type not in _FIELDS:
        raise InvalidValue("operations.type", name, "is not supported by this master")
    if _FIELDS[operation.type] not in [field.name for field, _ in operation.ListFields()]:
        raise InvalidValue(f"operations.{name.lower()}", "", "is missing")


def _require_role_of_offer(operation: pb.Offer.Operation, role: str) -> None:
    for resource in operations.resources_of(operation):
        given = resource.allocation_info.role
        if given not in ("", role):
            where = f"resources.{resource.name}.allocation_info.role"
            raise InvalidValue(where, given, f"the offers are of {role}")


class Told(NamedTuple):
    """What an agent has to say of what is reserved on it while it runs: amounts that differ
    in anything but their size, and bytes."""

    names: int
    size_bytes: int


def told(resources: Resources) -> Told:
    part = reserved_part(resources)
    return Told(len(part.names()), sum(each.ByteSize() for each in part.to_proto()))


def require_bounds(known: Told, change: Conversion, before: Resources, then: Resources) -> Told:
    """What an agent has to say when the change has made `then` of `before`, of which it had to
    say `known`.  Raises TooLarge where that is more than it may, and more than it was.

    Looks at nothing but what changes: a call may bring many changes.
    """
    names = {*change.consumed.names(), *change.converted.names()}
    old, new = told(_named(before, names)), told(_named(then, names))
    after = Told(
        known.names - old.names + new.names, known.size_bytes - old.size_bytes + new.size_bytes
    )
    if after.names > max(known.names, MAX_NAMES):
        text = f"the agent would have {after.names} amounts that are reserved in different ways"
        raise TooLarge(f"resources: {text}, at most {MAX_NAMES} are kept", field="resources")
    if after.size_bytes > max(known.size_bytes, MAX_BYTES):
        text = f"what is reserved there would be {after.size_bytes} bytes"
        raise TooLarge(f"resources: {text}, at most {MAX_BYTES} are kept", field="resources")
    return after


def _named(resources: Resources, names: Collection[str]) -> Resources:
    scalars, ranges, sets = resources.scalars, resources.ranges, resources.sets
    return Resources(
        {name: scalars[name] for name in names if name in scalars},
        {name: ranges[name] for name in names if name in ranges},
        {name: sets[name] for name in names if name in sets},
    )


def carry_out(c: Cluster, agent_id: str, operation: pb.Offer.Operation, now: Now) -> None:
    """The same for an operator: of what is free, and of what is on offer, which is rescinded
    as far as it takes.  As in Mesos it is done when this returns, but for the agent.

    Raises NotFound, InvalidValue, TooLarge, Refused if the agent is too old, and Conflict where
    there is not as much that nobody uses; nothing has changed then.
    """
    agent = c.agents.get(agent_id)
    if agent is None or agent.unreachable is not None:
        raise NotFound("agent", agent_id)
    require_few(operation)
    _require_kind(operation)
    require_capable(agent, operation)
    conversion = _conversion(operation, agent.total)
    if not agent.connected:
        raise Conflict("the agent is disconnected", agent=agent_id)
    _require_unused(c, agent, operation, conversion)
    then = conversion.apply(agent.total)
    require_bounds(told(agent.total), conversion, agent.total, then)
    _make_room(c, agent, conversion.consumed, now)
    c.ledger.claim(agent_id, [], conversions=[conversion])
    operations.order(c, agent, None, operation)
    changed(c, agent, now)


def _require_unused(
    c: Cluster, agent: Agent, operation: pb.Offer.Operation, conversion: Conversion
) -> None:
    unused = c.ledger.free(agent.agent_id) + c.ledger.offered(agent.agent_id)
    volume_rules.require_unused(operation, conversion, unused)
    wanted = conversion.consumed
    if not unused.contains(wanted):
        name, asked, there = unused.shortfalls(wanted)[0]
        text = f"{reserved.in_words(name)}: {asked} wanted, {there} there that nobody uses"
        raise Conflict(text, agent=agent.agent_id, field=name, value=asked)


def _make_room(c: Cluster, agent: Agent, wanted: Resources, now: Now) -> None:
    ledger, agent_id = c.ledger, agent.agent_id
    for offer in sorted(map(c.offers.__getitem__, agent.offers), key=_newest):
        lacking = {name for name, _, _ in ledger.free(agent_id).shortfalls(wanted)}
        if lacking.intersection(offer.resources.names()):
            offering.rescind(c, offer, "an operator changes how the agent is reserved", now)
            offering.note_refusal(c, offer, offer.resources, c.options.refuse_s, now)


def _newest(offer: Offer) -> tuple[float, str]:
    return -offer.made_s, offer.offer_id


def changed(c: Cluster, agent: Agent, now: Now) -> None:
    """The ledger has another total of the agent now: everybody else is told of it."""
    agent.total = c.ledger.total(agent.agent_id)
    c.tell_agent(agent, now)


def without_fresh(left: Resources, offered: Resources) -> Resources:
    """Of what a call left, what its framework has not made itself, since it was offered so:
    that alone is refused, and what it has just reserved is offered again at once.  A volume
    is another one when it has another size."""
    scalars = {n: _not_fresh(n, m, offered.scalars.get(n, 0)) for n, m in left.scalars.items()}
    spans = {n: intersection(s, offered.ranges.get(n, ())) for n, s in left.ranges.items()}
    sets = {n: s & offered.sets.get(n, frozenset()) for n, s in left.sets.items()}
    return Resources(
        {name: milli for name, milli in scalars.items() if milli},
        {name: some for name, some in spans.items() if some},
        {name: items for name, items in sets.items() if items},
    )


def _not_fresh(name: str, left: int, offered: int) -> int:
    if reserved.is_volume(name) and left != offered:
        return 0
    return min(left, offered)
