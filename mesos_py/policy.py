"""What operators say of a role: weight, priority, guarantee, limits, agents of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from mesos_py.errors import InvalidResources, InvalidValue
from mesos_py.resources import MAX_SCALAR, MILLI, Resources
from mesos_py.v1 import types_pb2 as pb

_MAX_HOST_CHARS: Final = 255


@dataclass(frozen=True, slots=True)
class RolePolicy:
    """Amounts are scalars in thousandths; a name that is absent says nothing of it.

    `weight`: roles with one parent share in this proportion.  `priority`: the highest
    comes first, with an allocator that knows priorities.  `guarantee`: what the role,
    with the roles below it, gets whenever it wants it.  `limit`: what it never gets
    more of.  `need_limit`: the most that one framework of the role may state as its
    needs.  `agents`: host names or agent ids that are offered to this role, and those
    below it, only.
    """

    weight: float = 1.0
    priority: int = 0
    guarantee: Mapping[str, int] = field(default_factory=dict)
    limit: Mapping[str, int] = field(default_factory=dict)
    need_limit: Mapping[str, int] = field(default_factory=dict)
    agents: frozenset[str] = frozenset()

    def check(self, role: str) -> None:
        """Raises InvalidValue, naming the role and the field, for what cannot be."""
        check_weight(role, self.weight)
        if not -(2**31) <= self.priority < 2**31:
            raise InvalidValue(f"roles[{role}].priority", self.priority, "must be a 32-bit number")
        for what in ("guarantee", "limit", "need_limit"):
            for name, milli in getattr(self, what).items():
                if not 0 <= milli <= MAX_SCALAR * MILLI:
                    text = f"roles[{role}].{what}.{name}"
                    raise InvalidValue(text, milli / MILLI, f"must be from 0 to {MAX_SCALAR}")
        for name, milli in self.guarantee.items():
            most = self.limit.get(name)
            if most is not None and most < milli:
                text = f"roles[{role}].guarantee.{name}"
                raise InvalidValue(text, milli / MILLI, f"is above the limit, {most / MILLI:g}")

    @property
    def is_default(self) -> bool:
        """Whether it says nothing."""
        return self == DEFAULT_POLICY


DEFAULT_POLICY: Final = RolePolicy()


def check_weight(role: str, weight: float) -> None:
    """Raises InvalidValue for a weight that is not a finite number above zero."""
    if not 0 < weight < math.inf:
        raise InvalidValue(f"weights[{role}]", weight, "must be a finite number above zero")


def ancestors(role: str) -> tuple[str, ...]:
    """The role itself and those above it, the nearest first: a/b/c, a/b, a."""
    found = [role]
    while "/" in role:
        role = role.rpartition("/")[0]
        found.append(role)
    return tuple(found)


def is_under(role: str, above: str) -> bool:
    """Whether `role` is `above`, or below it in the tree of roles."""
    return role == above or role.startswith(f"{above}/")


# ---- The wire --------------------------------------------------------------------------


def policy_from_proto(field: str, message: pb.RolePolicy) -> RolePolicy:
    """From the wire.  Raises InvalidValue, naming a part of `field`, for names and amounts
    that are none; what does not go together is for RolePolicy.check."""
    for host in message.agents:
        odd = any(char.isspace() or not char.isprintable() for char in host)
        if not host or odd or len(host) > _MAX_HOST_CHARS:
            raise InvalidValue(f"{field}.agents", host, "must be a host name or an agent id")
    return RolePolicy(
        weight=message.weight if message.HasField("weight") else DEFAULT_POLICY.weight,
        priority=message.priority,
        # A guarantee of nothing says nothing; a limit of nothing says a lot.
        guarantee={
            name: milli
            for name, milli in _amounts(f"{field}.guarantees", message.guarantees).items()
            if milli
        },
        limit=_amounts(f"{field}.limits", message.limits),
        need_limit=_amounts(f"{field}.need_limits", message.need_limits),
        agents=frozenset(message.agents),
    )


def _amounts(field: str, scalars: Mapping[str, pb.Value.Scalar]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in sorted(scalars):
        value = scalars[name].value
        # Resources know what is a name and an amount, and leave out what is nothing.
        sample = pb.Value.Scalar(value=value or 1.0)
        item = pb.Resource(name=name, type=pb.Value.SCALAR, scalar=sample)
        milli = Resources.from_proto(field, [item]).scalars.get(name, 0)
        if value and not milli:
            raise InvalidResources(f"{field}.{name}", value, "is below 0.001, the smallest amount")
        found[name] = milli if value else 0
    return found


def policy_to_proto(policy: RolePolicy) -> pb.RolePolicy:
    """For the wire; the weight and the priority are always said."""
    message = pb.RolePolicy(
        weight=policy.weight, priority=policy.priority, agents=sorted(policy.agents)
    )
    for scalars, amounts in (
        (message.guarantees, policy.guarantee),
        (message.limits, policy.limit),
        (message.need_limits, policy.need_limit),
    ):
        for name, milli in amounts.items():
            scalars[name].value = milli / MILLI
    return message


def parse_amounts(field: str, text: str) -> dict[str, int]:
    """Scalars, in thousandths, from a text such as "cpus:10;mem:2048"; zero is an amount.

    Raises InvalidResources naming the item."""
    found: dict[str, int] = {}
    for item in filter(None, (part.strip() for part in text.split(";"))):
        name, _, value = (part.strip() for part in item.partition(":"))
        zero = bool(value) and not value.strip("0.") and value.count(".") < 2 and "0" in value
        made = Resources.parse(f"{name}:1" if zero else item, field)
        if name not in made.scalars:
            raise InvalidResources(f"{field}.{name}", value, "must be a number")
        if name in found:
            raise InvalidResources(field, name, "is given twice")
        found[name] = 0 if zero else made.scalars[name]
    if not found:
        raise InvalidResources(field, text, "names no resource")
    return found
