"""What a FrameworkInfo must be like.  Raises InvalidValue naming the field.

Rules: Mesos v1, src/master/validation.cpp.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mesos_py.errors import InvalidResources, InvalidValue
from mesos_py.ids import check_role
from mesos_py.resources import Resources, to_milli
from mesos_py.v1 import types_pb2 as pb

Capability = pb.FrameworkInfo.Capability
MAX_FAILOVER_S = 292 * 365 * 86400.0


def checked_roles(info: pb.FrameworkInfo) -> tuple[str, ...]:
    """The roles, "*" by default.  Raises InvalidValue; MULTI_ROLE decides which field."""
    if any(c.type == Capability.MULTI_ROLE for c in info.capabilities):
        if info.HasField("role"):
            raise InvalidValue("framework_info.role", info.role, "MULTI_ROLE frameworks use roles")
        if len(set(info.roles)) != len(info.roles):
            raise InvalidValue("framework_info.roles", list(info.roles), "has a role twice")
        return tuple(check_role("framework_info.roles", role) for role in info.roles)
    if info.roles:
        raise InvalidValue(
            "framework_info.roles", list(info.roles), "needs the capability MULTI_ROLE"
        )
    return (check_role("framework_info.role", info.role if info.HasField("role") else "*"),)


def check_info(info: pb.FrameworkInfo) -> None:
    timeout = info.failover_timeout
    if not math.isfinite(timeout) or not 0 <= timeout < MAX_FAILOVER_S:
        raise InvalidValue(
            "framework_info.failover_timeout", timeout, "must be seconds, zero or more"
        )
    for text, field in ((info.name, "name"), (info.user, "user")):
        if any(ord(char) < 0x20 for char in text):
            raise InvalidValue(
                f"framework_info.{field}", text, "must not contain control characters"
            )


def checked_suppressed(given: Sequence[str], roles: tuple[str, ...]) -> frozenset[str]:
    for role in given:
        if role not in roles:
            raise InvalidValue("suppressed_roles", role, "is not a role of the framework")
    return frozenset(given)


def checked_min_free(
    info: pb.FrameworkInfo, roles: tuple[str, ...]
) -> dict[str, Sequence[Resources]]:
    result: dict[str, Sequence[Resources]] = {}
    for role, filters in info.offer_filters.items():
        where = f"framework_info.offer_filters[{role}]"
        if role not in roles:
            raise InvalidValue(where, role, "is not a role of the framework")
        if not filters.HasField("min_allocatable_resources"):
            continue
        result[role] = [_quantities(where, q) for q in filters.min_allocatable_resources.quantities]
    return result


def _quantities(where: str, message: pb.OfferFilters.ResourceQuantities) -> Resources:
    try:
        return Resources({n: to_milli(n, item.value) for n, item in message.quantities.items()})
    except InvalidResources as error:
        raise error.under(where) from None
