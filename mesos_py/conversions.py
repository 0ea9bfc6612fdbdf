"""Operations that change how amounts are reserved, and what of them are volumes: what they
take, and what it becomes.

`Resources` keeps reserved amounts under names of their own (`mesos_py.reserved`), so an
operation is a pair of bundles: `consumed` goes, `converted` comes in its place, and by
plain names both are the same.  Master and agent read it from the same message here.

What was reserved while an agent ran (`dynamic`), and the volumes that were made, are a part
of what the agent has; the rest is as its operator said.  `with_reserved` puts the two
together, `reserved_part` divides them again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from mesos_py import persistent, reserved
from mesos_py.amounts import to_milli
from mesos_py.enums import name_of
from mesos_py.errors import InvalidResources, InvalidValue
from mesos_py.ranges import Ranges, normalised, overlap, text
from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import types_pb2 as pb

Operation = pb.Offer.Operation
_ID: Final = "disk.persistence.id"


class Conversion(NamedTuple):
    """`consumed` becomes `converted`."""

    consumed: Resources
    converted: Resources

    def apply(self, resources: Resources) -> Resources:
        """What `resources` are then, all that an agent has.

        Raises InsufficientResources where something that is consumed is not there, and
        InvalidResources for a second volume of one id and role.
        """
        rest = resources - self.consumed
        before = self.consumed.scalars
        # A volume that has another size now is the one that it was.
        _require_new(rest, [key for key in self.converted.scalars if key not in before])
        return rest + self.converted


def conversion_of(operation: pb.Offer.Operation, known: Resources = EMPTY) -> Conversion:
    """What RESERVE, UNRESERVE, CREATE, DESTROY, GROW_VOLUME or SHRINK_VOLUME does.

    `known`: what there is; volumes are told by their ids, and are named as they are there.

    Raises InvalidValue for any other operation, and InvalidResources for amounts that
    cannot be, are not reserved dynamically, are no volumes, or would be there twice.
    """
    if operation.type == Operation.RESERVE:
        asked = operation.reserve
        converted = _dynamic("reserve.resources", asked.resources)
        if not asked.source:
            return Conversion(_earlier(converted, reserved.before), converted)
        return _moved(_no_volumes("reserve.source", asked.source), converted)
    if operation.type == Operation.UNRESERVE:
        consumed = _dynamic("unreserve.resources", operation.unreserve.resources)
        return Conversion(consumed, _earlier(consumed, reserved.before))
    if operation.type == Operation.CREATE:
        converted = _volumes("create.volumes", operation.create.volumes)
        require_new_volumes(EMPTY, converted, f"create.volumes.{_ID}")
        return Conversion(converted.renamed(reserved.disk_of), converted)
    if operation.type == Operation.DESTROY:
        consumed = _volumes("destroy.volumes", operation.destroy.volumes)
        consumed = with_volumes_as(known, consumed)
        return Conversion(consumed, consumed.renamed(reserved.disk_of))
    if operation.type == Operation.GROW_VOLUME:
        return _grown(operation.grow_volume, known)
    if operation.type == Operation.SHRINK_VOLUME:
        return _shrunk(operation.shrink_volume, known)
    name = name_of(Operation.Type, operation.type)
    raise InvalidValue("operations.type", name, "is not supported")


def _volumes(field: str, messages: Iterable[pb.Resource]) -> Resources:
    resources = Resources.from_proto(field, messages)
    if not resources:
        raise InvalidResources(field, "", "must not be empty")
    for key in resources.names():
        volume = reserved.volume_of(key)
        if volume is None:
            where = f"{field}.{reserved.plain_name(key)}"
            raise InvalidResources(where, key, "is no persistent volume")
        if volume.read_only:
            where = f"{field}.{reserved.plain_name(key)}.volume.mode"
            raise InvalidResources(where, "RO", "must be RW: only its use can be read-only")
    return resources


def _grown(asked: pb.Offer.Operation.GrowVolume, known: Resources) -> Conversion:
    volume = with_volumes_as(known, _volumes("grow_volume.volume", [asked.volume]))
    addition = Resources.from_proto("grow_volume.addition", [asked.addition])
    (key,) = volume.names()
    disk = reserved.disk_of(key)
    if addition.names() != [disk]:
        reason = f"must be an amount of what the volume is made of ({disk})"
        raise InvalidResources("grow_volume.addition", str(addition), reason)
    grown = volume.scalars[key] + addition.scalars[disk]
    return Conversion(volume + addition, Resources({key: grown}))


def _shrunk(asked: pb.Offer.Operation.ShrinkVolume, known: Resources) -> Conversion:
    volume = with_volumes_as(known, _volumes("shrink_volume.volume", [asked.volume]))
    (key,) = volume.names()
    given = asked.subtract.value
    field = "shrink_volume.subtract"
    try:
        milli = to_milli(persistent.RESOURCE, given)
    except InvalidResources as error:
        raise InvalidResources(field, given, error.reason) from None
    left = volume.scalars[key] - milli
    if left <= 0:
        reason = f"must be less than the volume, which has {volume.scalar(key):g}"
        raise InvalidResources(field, given, reason)
    return Conversion(volume, Resources({key: left, reserved.disk_of(key): milli}))


def with_volumes_as(known: Resources, resources: Resources) -> Resources:
    """The same, and volumes have the names that they have in `known`.

    Whoever uses a volume may say anew where it is to be seen, and that it is not to be
    written to; it is the volume of its id nevertheless.  Raises InvalidResources for what is
    one volume twice.
    """
    if not resources.has_volumes:
        return resources
    scalars: dict[str, int] = {}
    for key, milli in resources.scalars.items():
        name = _name_there(known, key) if reserved.is_volume(key) else key
        if name in scalars:
            raise InvalidResources(_ID, _identity(key)[1], "is there twice")
        scalars[name] = milli
    return Resources(scalars, resources.ranges, resources.sets)


def _name_there(known: Resources, key: str) -> str:
    """The name of that volume among those that are known; its own if it is none of them."""
    if key in known.scalars:
        return key
    own = _identity(key)
    return next((name for name in _of_id(known, own[1]) if _identity(name) == own), key)


def _of_id(known: Resources, volume_id: str) -> Iterator[str]:
    """The names of volumes of that id, whosever.  There may be a thousand others, and a call
    may be about a thousand volumes."""
    mark = reserved.volume_mark(volume_id)
    return (name for name in known.scalars if mark in name and reserved.is_volume(name))


def _identity(key: str) -> tuple[str, str]:
    """What it is made of, and its id."""
    volume = reserved.volume_of(key)
    assert volume is not None
    return reserved.disk_of(key), volume.volume_id


def require_new_volumes(known: Resources, made: Resources, field: str = _ID) -> None:
    """Raises InvalidResources where a role would have two volumes of one id on an agent that
    has `known` and gets `made` (as in Mesos, whoever makes it)."""
    _require_new(known, made.scalars, field)


def _require_new(known: Resources, names: Iterable[str], field: str = _ID) -> None:
    found: set[tuple[str, str]] = set()
    for key in filter(reserved.is_volume, names):
        role, volume_id = named = _role_and_id(key)
        there = any(_role_and_id(name) == named for name in _of_id(known, volume_id))
        if there or named in found:
            reason = f"the role {role} has a volume of that id there already"
            raise InvalidResources(field, volume_id, reason)
        found.add(named)


def _role_and_id(key: str) -> tuple[str, str]:
    volume = reserved.volume_of(key)
    assert volume is not None
    return reserved.role_of(key), volume.volume_id


def _dynamic(field: str, messages: Iterable[pb.Resource]) -> Resources:
    resources = _no_volumes(field, messages)
    if not resources:
        raise InvalidResources(field, "", "must not be empty")
    for key in resources.names():
        if not reserved.is_dynamic(key):
            where = f"{field}.{reserved.plain_name(key)}"
            raise InvalidResources(where, key, "is not dynamically reserved")
    return resources


def _no_volumes(field: str, messages: Iterable[pb.Resource]) -> Resources:
    resources = Resources.from_proto(field, messages)
    for key in filter(reserved.is_volume, resources.scalars):
        where = f"{field}.{reserved.plain_name(key)}"
        raise InvalidResources(where, key, "is a volume, which has to be destroyed first")
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
    """What of it has been reserved, or made a volume, while the agent ran."""
    return resources.only(reserved.is_kept) if resources.has_reserved else EMPTY


def with_reserved(configured: Resources, dynamic: Resources) -> Resources:
    """What an agent has that offers `configured`, and of it `dynamic` is reserved.

    Raises InvalidResources where something is reserved in no such way, or twice, and
    InsufficientResources where the agent does not have that much of something (any more).
    """
    if not dynamic:
        return configured
    for key in dynamic.names():
        if not reserved.is_kept(key):
            raise InvalidResources("reserved", key, "is not dynamically reserved")
    require_new_volumes(EMPTY, dynamic)
    return configured - _earlier(dynamic, reserved.before_all) + dynamic


__all__ = [
    "Conversion",
    "conversion_of",
    "require_new_volumes",
    "reserved_part",
    "with_reserved",
    "with_volumes_as",
]
