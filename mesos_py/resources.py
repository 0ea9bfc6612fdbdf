"""Exact arithmetic on what a machine has to give.

A `Resources` value holds scalars (cpus, mem, disk, gpus ...), ranges (ports) and
sets, each by name.  Scalars are whole thousandths, as in Mesos (three decimals,
src/common/values.cpp), so that adding and subtracting never drifts: 4.1 - 1.1 is
3.0, and ten times 0.1 is 1.0.  Values are immutable; zero amounts are not stored.

`mem` and `disk` are in MB, `cpus` in cores.

What is reserved has names of its own (`mesos_py.reserved`), such as "cpus(ads)": what asks
for "cpus" means those that are not reserved.  `plain` is for who does not care.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Final

from mesos_py import ranges as rng
from mesos_py import reserved
from mesos_py.amounts import (
    MAX_SCALAR,
    MILLI,
    NAME,
    WHOLE_ONLY,
    checked_ranges,
    checked_set,
    milli_text,
    set_text,
    to_milli,
)
from mesos_py.enums import name_of
from mesos_py.errors import InsufficientResources, InvalidResources
from mesos_py.ranges import Ranges
from mesos_py.resources_text import parsed
from mesos_py.v1 import types_pb2 as pb


class Resources:
    """An immutable bundle of amounts; see the module's docstring.

    Build one with `Resources.of(cpus=1, mem=128)`, `Resources.parse(text)` or
    `Resources.from_proto(field, messages)`.  `+` adds, `-` takes away and raises
    InsufficientResources where there is less than asked, `contains` compares.
    """

    __slots__ = ("_plain", "_proto", "ranges", "scalars", "sets")

    # Public for reading only; nothing may change them after construction.
    scalars: dict[str, int]
    ranges: dict[str, Ranges]
    sets: dict[str, frozenset[str]]

    def __init__(
        self,
        scalars: dict[str, int] | None = None,
        ranges: dict[str, Ranges] | None = None,
        sets: dict[str, frozenset[str]] | None = None,
    ) -> None:
        """Takes the dicts over (no copy).  Amounts in thousandths, none of them zero."""
        self.scalars = scalars if scalars is not None else {}
        self.ranges = ranges if ranges is not None else {}
        self.sets = sets if sets is not None else {}
        self._proto: tuple[pb.Resource, ...] | None = None
        self._plain: Resources | None = None

    # ---- Making them ----------------------------------------------------

    @classmethod
    def of(
        cls,
        ports: Iterable[tuple[int, int]] | None = None,
        **scalars: float | int | Decimal,
    ) -> Resources:
        """From amounts by name, and port ranges: `of(cpus=0.5, ports=[(1, 9)])`.

        Raises InvalidResources for an amount that is none (see to_milli).
        """
        amounts = {name: to_milli(name, value) for name, value in scalars.items()}
        spans: dict[str, Ranges] = {}
        if ports is not None:
            spans["ports"] = checked_ranges("ports", ports)
        return cls(amounts, spans)

    @classmethod
    def parse(cls, text: str, field: str = "resources") -> Resources:
        """From a text such as "cpus:4;mem:1024;ports:[31000-32000];names:{a,b}".

        Raises InvalidResources that names `field`, the item at fault and why.
        """
        return cls(*parsed(text, field, reservable=False))

    @classmethod
    def parse_reserved(cls, text: str, field: str = "resources") -> Resources:
        """The same, with amounts that are reserved for roles: "cpus:4;cpus(ads):2"."""
        return cls(*parsed(text, field, reservable=True))

    @classmethod
    def from_proto(cls, field: str, messages: Iterable[pb.Resource]) -> Resources:
        """From wire messages; items of one name are added up, and those of nothing (a scalar
        that is zero in thousandths, no range, no item) left out, as in Mesos.

        Raises InvalidResources for a name that is none, wrong amounts, a type that
        does not fit, reservations that cannot be, and for what is not there (see
        reserved.key_from).
        """
        items = list(messages)
        key = tuple([item.SerializeToString() for item in items]) if len(items) <= 4 else ()
        known = _seen.get(key)
        if known is not None:
            return known
        made = cls._from_proto(field, items)
        if key and sum(map(len, key)) <= _SEEN_BYTES:
            if len(_seen) >= _SEEN_MAX:
                _seen.clear()
            _seen[key] = made
        return made

    @classmethod
    def _from_proto(cls, field: str, messages: Iterable[pb.Resource]) -> Resources:
        scalars: dict[str, int] = {}
        spans: dict[str, list[tuple[int, int]]] = {}
        sets: dict[str, list[str]] = {}
        types: dict[str, pb.Value.Type.ValueType] = {}
        for message in messages:
            if not NAME.fullmatch(message.name):
                raise InvalidResources(f"{field}.name", message.name, "is no resource name")
            where = f"{field}.{message.name}"
            name = reserved.key_from(where, message)
            _refuse_other_type(where, message, types.setdefault(name, message.type))
            if is_nothing(message):
                continue
            if message.type == pb.Value.SCALAR:
                try:
                    milli = to_milli(message.name, message.scalar.value)
                except InvalidResources as error:
                    raise error.under(field) from None
                if name in scalars and reserved.is_volume(name):
                    reason = "is there twice, and a volume is had whole"
                    raise InvalidResources(f"{where}.disk", name, reason)
                scalars[name] = milli = scalars.get(name, 0) + milli
                if milli > MAX_SCALAR * MILLI:
                    raise InvalidResources(
                        where, milli_text(milli), f"must be at most {MAX_SCALAR} in all"
                    )
            elif message.type == pb.Value.RANGES:
                pairs = spans.setdefault(name, [])
                pairs.extend((item.begin, item.end) for item in message.ranges.range)
            elif message.type == pb.Value.SET:
                sets.setdefault(name, []).extend(message.set.item)
            else:
                raise InvalidResources(where, message.type, "must be a scalar, ranges or a set")
        return cls(
            scalars,
            {name: checked_ranges(_under(field, name), pairs) for name, pairs in spans.items()},
            {name: checked_set(_under(field, name), items) for name, items in sets.items()},
        )

    def to_proto(self) -> tuple[pb.Resource, ...]:
        """The wire form, made once and shared: callers must not change it."""
        if self._proto is None:
            self._proto = tuple(self._messages())
        return self._proto

    def _messages(self) -> Iterable[pb.Resource]:
        for name, milli in self.scalars.items():
            yield _message(name, pb.Value.SCALAR, scalar=pb.Value.Scalar(value=milli / MILLI))
        for name, spans in self.ranges.items():
            pairs = [pb.Value.Range(begin=b, end=e) for b, e in spans]
            yield _message(name, pb.Value.RANGES, ranges=pb.Value.Ranges(range=pairs))
        for name, items in self.sets.items():
            yield _message(name, pb.Value.SET, set=pb.Value.Set(item=sorted(items)))

    # ---- Reading them ---------------------------------------------------

    def __bool__(self) -> bool:
        return bool(self.scalars or self.ranges or self.sets)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Resources):
            return NotImplemented
        return (
            self.scalars == other.scalars
            and self.ranges == other.ranges
            and self.sets == other.sets
        )

    def __hash__(self) -> int:
        return hash(
            (
                frozenset(self.scalars.items()),
                frozenset(self.ranges.items()),
                frozenset(self.sets.items()),
            )
        )

    def scalar(self, name: str) -> float:
        """The amount of a scalar in its unit, 0.0 where there is none."""
        return self.scalars.get(name, 0) / MILLI

    def names(self) -> list[str]:
        return [*self.scalars, *self.ranges, *self.sets]

    # ---- What is reserved -----------------------------------------------

    @property
    def has_reserved(self) -> bool:
        return not reserved.none_made() and any(map(reserved.is_reserved, self.names()))

    @property
    def has_volumes(self) -> bool:
        """Whether there are persistent volumes among them."""
        return not reserved.no_volume_made() and any(map(reserved.is_volume, self.scalars))

    @property
    def plain(self) -> Resources:
        """By plain names: what is reserved counts like what is not.  Ports and items that
        are there both ways are there once.  The same object where nothing is reserved."""
        if reserved.none_made():
            return self
        if self._plain is None:
            self._plain = self.renamed(reserved.plain_name) if self.has_reserved else self
        return self._plain

    def renamed(self, name_of: Callable[[str], str]) -> Resources:
        """With the names that `name_of` makes of its own.  What has one name then is added
        up; ports and items that would be there twice are there once."""
        scalars: dict[str, int] = {}
        for key, milli in self.scalars.items():
            name = name_of(key)
            scalars[name] = scalars.get(name, 0) + milli
        spans: dict[str, Ranges] = {}
        for key, some in self.ranges.items():
            name = name_of(key)
            spans[name] = rng.union(spans.get(name, ()), some)
        sets: dict[str, frozenset[str]] = {}
        for key, items in self.sets.items():
            name = name_of(key)
            sets[name] = sets.get(name, frozenset()) | items
        return Resources(scalars, spans, sets)

    def only(self, wanted: Callable[[str], bool]) -> Resources:
        """The part whose names are `wanted`."""
        return Resources(
            {name: milli for name, milli in self.scalars.items() if wanted(name)},
            {name: spans for name, spans in self.ranges.items() if wanted(name)},
            {name: items for name, items in self.sets.items() if wanted(name)},
        )

    @property
    def unreserved(self) -> Resources:
        """Without what is reserved.  The same object where nothing is."""
        if not self.has_reserved:
            return self
        return self.only(lambda name: not reserved.is_reserved(name))

    def require_unreserved(self, field: str) -> Resources:
        """Itself.  Raises InvalidResources where something of it is reserved."""
        if self.has_reserved:
            name = next(filter(reserved.is_reserved, self.names()))
            reason = "what is reserved cannot be named here"
            raise InvalidResources(_under(field, name), reserved.role_of(name), reason)
        return self

    # ---- Comparing ------------------------------------------------------

    def contains(self, other: Resources) -> bool:
        """Whether all of `other` could be taken from this: of a volume the whole."""
        mine = self.scalars
        for name, milli in other.scalars.items():
            if mine.get(name, 0) < milli:
                return False
        for name, spans in other.ranges.items():
            if not rng.contains(self.ranges.get(name, ()), spans):
                return False
        for name, items in other.sets.items():
            if not items <= self.sets.get(name, frozenset()):
                return False
        return not other.has_volumes or self._has_whole_volumes(other)

    def _has_whole_volumes(self, other: Resources) -> bool:
        volumes = filter(reserved.is_volume, other.scalars)
        return all(self.scalars.get(name) == other.scalars[name] for name in volumes)

    def shortfalls(self, wanted: Resources) -> list[tuple[str, str, str]]:
        """What keeps `wanted` from fitting: (name, wanted, what there is), as texts."""
        found: list[tuple[str, str, str]] = []
        for name, milli in wanted.scalars.items():
            there = self.scalars.get(name, 0)
            if there < milli or (there > milli and reserved.is_volume(name)):
                found.append((name, milli_text(milli), milli_text(there)))
        for name, spans in wanted.ranges.items():
            mine = self.ranges.get(name, ())
            if not rng.contains(mine, spans):
                found.append((name, rng.text(spans), rng.text(mine)))
        for name, items in wanted.sets.items():
            have = self.sets.get(name, frozenset())
            if not items <= have:
                found.append((name, set_text(items), set_text(have)))
        return found

    def pick(self, name: str, how_many: int) -> tuple[int, ...]:
        """The lowest `how_many` numbers of the ranges called `name`.

        Raises InsufficientResources when there are fewer.  To pick again, take
        the first picks away from the bundle first.
        """
        spans = self.ranges.get(name, ())
        if rng.count(spans) < how_many:
            raise InsufficientResources(
                f"{how_many} {name} wanted, {rng.count(spans)} there",
                name=name,
                wanted=how_many,
                available=rng.count(spans),
            )
        numbers = rng.numbers(spans)
        return tuple(next(numbers) for _ in range(how_many))

    # ---- Arithmetic -----------------------------------------------------

    def __add__(self, other: Resources) -> Resources:
        """The sum.  Raises InvalidResources where ranges or sets overlap."""
        if not other:
            return self
        if not self:
            return other
        scalars = dict(self.scalars)
        for name, milli in other.scalars.items():
            scalars[name] = scalars.get(name, 0) + milli
        spans = self.ranges
        if other.ranges:
            spans = dict(spans)
            for name, extra in other.ranges.items():
                if name in spans and rng.intersects(spans[name], extra):
                    raise InvalidResources(
                        name, rng.text(extra), f"overlaps {rng.text(spans[name])}"
                    )
                spans[name] = rng.union(spans.get(name, ()), extra)
        sets = self.sets
        if other.sets:
            sets = dict(sets)
            for name, items in other.sets.items():
                if sets.get(name, frozenset()) & items:
                    raise InvalidResources(name, set_text(items), "is there already in part")
                sets[name] = sets.get(name, frozenset()) | items
        return Resources(scalars, spans, sets)

    def __sub__(self, other: Resources) -> Resources:
        """What is left.  Raises InsufficientResources unless `contains(other)`."""
        if not other:
            return self
        if not self.contains(other):
            name, wanted, there = self.shortfalls(other)[0]
            raise InsufficientResources(
                f"{name}: {wanted} wanted, {there} there",
                name=name,
                wanted=wanted,
                available=there,
            )
        scalars = dict(self.scalars)
        for name, milli in other.scalars.items():
            if scalars[name] == milli:
                del scalars[name]
            else:
                scalars[name] -= milli
        spans = self.ranges
        if other.ranges:
            spans = {n: rng.difference(s, other.ranges.get(n, ())) for n, s in spans.items()}
            spans = {n: s for n, s in spans.items() if s}
        sets = self.sets
        if other.sets:
            sets = {n: items - other.sets.get(n, frozenset()) for n, items in sets.items()}
            sets = {n: items for n, items in sets.items() if items}
        return Resources(scalars, spans, sets)

    # ---- Text -----------------------------------------------------------

    def __str__(self) -> str:
        parts = [f"{name}:{milli_text(milli)}" for name, milli in self.scalars.items()]
        parts += [f"{name}:{rng.text(spans)}" for name, spans in self.ranges.items()]
        parts += [f"{name}:{set_text(items)}" for name, items in self.sets.items()]
        return ";".join(parts)

    def __repr__(self) -> str:
        return f"Resources({str(self)!r})"

    def to_json(self) -> dict[str, float | str]:
        """`{"cpus": 0.5, "mem": 64.0, "ports": "[31000-31005]"}`."""
        shown: dict[str, float | str] = {n: m / MILLI for n, m in self.scalars.items()}
        shown.update({name: rng.text(spans) for name, spans in self.ranges.items()})
        shown.update({name: set_text(items) for name, items in self.sets.items()})
        return shown


EMPTY: Final = Resources()

# Valid bundles by their wire form: the tasks of a framework mostly ask for the same.
_SEEN_MAX: Final = 1024
_SEEN_BYTES: Final = 256
_seen: dict[tuple[bytes, ...], Resources] = {}


def is_nothing(message: pb.Resource) -> bool:
    """Whether it says an amount of its type that is none; of a scalar thousandths count."""
    if message.type == pb.Value.SCALAR:
        return message.HasField("scalar") and 0 <= message.scalar.value * MILLI < 0.5
    if message.type == pb.Value.RANGES:
        return message.HasField("ranges") and not message.ranges.range
    return message.type == pb.Value.SET and message.HasField("set") and not message.set.item


def total(bundles: Iterable[Resources]) -> Resources:
    """The sum of many bundles (scalars, ranges and sets must not overlap)."""
    result = EMPTY
    scalars: dict[str, int] = {}
    for bundle in bundles:
        if bundle.ranges or bundle.sets:
            result = result + bundle
        else:
            for name, milli in bundle.scalars.items():
                scalars[name] = scalars.get(name, 0) + milli
    return result + Resources(scalars) if scalars else result


def _refuse_other_type(where: str, message: pb.Resource, known: pb.Value.Type.ValueType) -> None:
    if message.type != known:
        raise InvalidResources(
            where, name_of(pb.Value.Type, message.type), "has two types in one bundle"
        )


def _under(field: str, key: str) -> str:
    return f"{field}.{reserved.plain_name(key)}"


def _message(
    key: str,
    kind: pb.Value.Type.ValueType,
    *,
    scalar: pb.Value.Scalar | None = None,
    ranges: pb.Value.Ranges | None = None,
    set: pb.Value.Set | None = None,
) -> pb.Resource:
    name = reserved.plain_name(key)
    message = pb.Resource(name=name, type=kind, scalar=scalar, ranges=ranges, set=set)
    if name is not key:
        reserved.mark(message, key)
    return message


__all__ = [
    "EMPTY",
    "MAX_SCALAR",
    "MILLI",
    "WHOLE_ONLY",
    "Resources",
    "checked_ranges",
    "is_nothing",
    "milli_text",
    "to_milli",
    "total",
]
