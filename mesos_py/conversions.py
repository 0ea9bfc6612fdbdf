"""Operations that change how amounts are reserved: what they take, and what it becomes.

`Resources` keeps reserved amounts under names of their own (`mesos_py.reserved`), so an
operation is a pair of bundles: `consumed` goes, `converted` comes in its place, and by
plain names both are the same.  Master and agent read it from the same message here.

What was reserved while an agent ran (`dynamic`) is a part of what the agent has; the rest
is as its operator said.  `with_reserved` puts the two together, `reserved_part` divides
them again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from mesos_py import reserved
from mesos_py.enums import name_of
from mesos_py.errors import InvalidResources, InvalidValue
from mesos_py.ranges import Ranges, normalised, overlap, text
from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import types_pb2 as pb

Operation = pb.Offer.Operation


class Conversion(NamedTuple):
    """`consumed` becomes `converted`."""

    consumed: Resources
    converted: Resources

    def apply(self, resources: Resources) -> Resources:
        """What `resources` are then.  Raises InsufficientResources where something that is
        consumed is not there."""
        return resources - self.consumed + self.converted


def conversion_of(operation: pb.Offer.Operation) -> Conversion:
    """What RESERVE or UNRESERVE does.

    Raises InvalidValue for any other operation, and InvalidResources for amounts that
    cannot be, are not reserved dynamically, or would be there twice.
    """
    if operation.type == Operation.RESERVE:
        asked = operation.reserve
        converted = _dynamic("reserve.resources", asked.resources)
        if not asked.source:
            return Conversion(_earlier(converted, reserved.before), converted)
        return _moved(Resources.from_proto("reserve.source", asked.source), converted)
    if operation.type == Operation.UNRESERVE:
        consumed = _dynamic("unreserve.resources", operation.unreserve.resources)
        return Conversion(consumed, _earlier(consumed, reserved.before))
    name = name_of(Operation.Type, operation.type)
    raise InvalidValue("operations.type", name, "is not supported")


def _dynamic(field: str, messages: Iterable[pb.Resource]) -> Resources:
    resources = Resources.from_proto(field, messages)
    if not resources:
        raise InvalidResources(field, "", "must not be empty")
    for key in resources.names():
        if not reserved.is_dynamic(key):
            where = f"{field}.{reserved.plain_name(key)}"
            raise InvalidResources(where, key, "is not dynamically reserved")
    return resources


def _moved(source: Resources, converted: Resources) -> Conversion:
    """Reserved in another way than it is now: of each amount the reservations that were
    made while the agent ran may all be others."""
    given = _earlier(source, reserved.before_all)
    wanted = _earlier(converted, reserved.before_all)
    if given != wanted:
        reason = f"must be the same amounts as the resources are made of ({wanted})"
        raise InvalidResources("reserve.source", str(given), reason)
    return Conversion(source, converted)


def _earlier(resources: Resources, name_before: Callable[[str], str]) -> Resources:
    """By earlier names.  Raises InvalidResources for what would be there twice: ports that
    are reserved in two ways have not been there before."""
    scalars: defaultdict[str, int] = defaultdict(int)
    spans: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    sets: defaultdict[str, list[str]] = defaultdict(list)
    for key, milli in resources.scalars.items():
        scalars[name_before(key)] += milli
    for key, some in resources.ranges.items():
        spans[name_before(key)] += some
    for key, items in resources.sets.items():
        sets[name_before(key)] += items
    return Resources(
        dict(scalars),
        {name: _disjoint(name, pairs) for name, pairs in spans.items()},
        {name: _distinct(name, items) for name, items in sets.items()},
    )


def _disjoint(name: str, pairs: list[tuple[int, int]]) -> Ranges:
    twice = overlap(pairs)
    if twice is not None:
        raise InvalidResources(name, text((twice,)), "overlaps what is reserved in another way")
    return normalised(pairs)


def _distinct(name: str, items: list[str]) -> frozenset[str]:
    found = frozenset(items)
    if len(found) < len(items):
        twice = next(item for item, times in Counter(items).items() if times > 1)
        raise InvalidResources(name, twice, "is reserved in another way as well")
    return found


def reserved_part(resources: Resources) -> Resources:
    """What of it has been reserved while the agent ran."""
    return resources.only(reserved.is_dynamic) if resources.has_reserved else EMPTY


def with_reserved(configured: Resources, dynamic: Resources) -> Resources:
    """What an agent has that offers `configured`, and of it `dynamic` is reserved.

    Raises InvalidResources where something is reserved in no such way, or twice, and
    InsufficientResources where the agent does not have that much of something (any more).
    """
    if not dynamic:
        return configured
    for key in dynamic.names():
        if not reserved.is_dynamic(key):
            raise InvalidResources("reserved", key, "is not dynamically reserved")
    return configured - _earlier(dynamic, reserved.before_all) + dynamic


__all__ = ["Conversion", "conversion_of", "reserved_part", "with_reserved"]
