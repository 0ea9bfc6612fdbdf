"""Exact arithmetic on what a machine has to give.

A `Resources` value holds scalars (cpus, mem, disk, gpus ...), ranges (ports) and
sets, each by name.  Scalars are whole thousandths, as in Mesos (three decimals,
src/common/values.cpp), so that adding and subtracting never drifts: 4.1 - 1.1 is
3.0, and ten times 0.1 is 1.0.  Values are immutable; zero amounts are not stored.

`mem` and `disk` are in MB, `cpus` in cores.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

from mesos_py import ranges as rng
from mesos_py.enums import name_of
from mesos_py.errors import InsufficientResources, InvalidResources
from mesos_py.ranges import Ranges
from mesos_py.special_resources import refuse_special
from mesos_py.v1 import types_pb2 as pb

MILLI: Final = 1000
# Far above any machine and any cluster, far below where doubles on the wire
# lose thousandths (2**53 / 1000).
MAX_SCALAR: Final = 10**12
MAX_RANGE_VALUE: Final = 2**63 - 1
MAX_RANGES: Final = 10_000
MAX_TEXT: Final = 100_000
WHOLE_ONLY: Final = frozenset({"gpus"})


def to_milli(field: str, value: float | int | Decimal) -> int:
    """Thousandths of `value`, rounded half away from zero; refuses what is no amount.

    Raises InvalidResources for NaN, infinities, amounts that are not above zero,
    below 0.001 after rounding, or over MAX_SCALAR.
    """
    if type(value) is float and 0 < value <= MAX_SCALAR:
        # Nearly all amounts: far enough from a half that rounding is no question.
        milli = int(value * MILLI + 0.5)
        if milli and abs(value * MILLI - milli) < 0.25 and field not in WHOLE_ONLY:
            return milli
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise InvalidResources(field, value, "must be a number")
    # Numbers of other packages (numpy) are floats too, with a text of their own.
    exact = Decimal(repr(float(value))) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite():
        raise InvalidResources(field, value, "must be a finite number")
    if exact <= 0:
        raise InvalidResources(field, value, "must be above zero")
    if exact > MAX_SCALAR:
        raise InvalidResources(field, value, f"must be at most {MAX_SCALAR}")
    milli = int((exact * MILLI).to_integral_value(rounding=ROUND_HALF_UP))
    if milli == 0:
        raise InvalidResources(field, value, "is below 0.001, the smallest amount")
    if field in WHOLE_ONLY and milli % MILLI:
        raise InvalidResources(field, value, "must be a whole number")
    return milli


def milli_text(milli: int) -> str:
    """`milli` thousandths as people write them: 1500 -> "1.5", 2000 -> "2"."""
    sign = "-" if milli < 0 else ""
    whole, rest = divmod(abs(milli), MILLI)
    return f"{sign}{whole}" if not rest else f"{sign}{whole}.{rest:03d}".rstrip("0")


class Resources:
    """An immutable bundle of amounts; see the module's docstring.

    Build one with `Resources.of(cpus=1, mem=128)`, `Resources.parse(text)` or
    `Resources.from_proto(field, messages)`.  `+` adds, `-` takes away and raises
    InsufficientResources where there is less than asked, `contains` compares.
    """

    __slots__ = ("_proto", "ranges", "scalars", "sets")

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
        return _parse(text, field)

    @classmethod
    def from_proto(cls, field: str, messages: Iterable[pb.Resource]) -> Resources:
        """From wire messages; items of one name are added up.

        Raises InvalidResources for a name that is none, wrong amounts, a type that
        does not fit, and for reserved or revocable resources, which are not offered
        yet.
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
            name = message.name
            if not _NAME.fullmatch(name):
                raise InvalidResources(f"{field}.name", name, "is no resource name")
            where = f"{field}.{name}"
            refuse_special(where, message)
            _refuse_other_type(where, message, types.setdefault(name, message.type))
            if message.type == pb.Value.SCALAR:
                try:
                    milli = to_milli(name, message.scalar.value)
                except InvalidResources as error:
                    raise error.under(field) from None
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
            {name: checked_ranges(f"{field}.{name}", pairs) for name, pairs in spans.items()},
            {name: _checked_set(f"{field}.{name}", items) for name, items in sets.items()},
        )

    def to_proto(self) -> tuple[pb.Resource, ...]:
        """The wire form, made once and shared: callers must not change it."""
        if self._proto is None:
            self._proto = tuple(self._messages())
        return self._proto

    def _messages(self) -> Iterable[pb.Resource]:
        for name, milli in self.scalars.items():
            yield pb.Resource(
                name=name, type=pb.Value.SCALAR, scalar=pb.Value.Scalar(value=milli / MILLI)
            )
        for name, spans in self.ranges.items():
            yield pb.Resource(
                name=name,
                type=pb.Value.RANGES,
                ranges=pb.Value.Ranges(range=[pb.Value.Range(begin=b, end=e) for b, e in spans]),
            )
        for name, items in self.sets.items():
            yield pb.Resource(name=name, type=pb.Value.SET, set=pb.Value.Set(item=sorted(items)))

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

    def contains(self, other: Resources) -> bool:
        """Whether all of `other` could be taken from this."""
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
        return True

    def shortfalls(self, wanted: Resources) -> list[tuple[str, str, str]]:
        """What keeps `wanted` from fitting: (name, wanted, what there is), as texts."""
        found: list[tuple[str, str, str]] = []
        for name, milli in wanted.scalars.items():
            if self.scalars.get(name, 0) < milli:
                found.append((name, milli_text(milli), milli_text(self.scalars.get(name, 0))))
        for name, spans in wanted.ranges.items():
            mine = self.ranges.get(name, ())
            if not rng.contains(mine, spans):
                found.append((name, rng.text(spans), rng.text(mine)))
        for name, items in wanted.sets.items():
            have = self.sets.get(name, frozenset())
            if not items <= have:
                found.append((name, _set_text(items), _set_text(have)))
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
                    raise InvalidResources(name, _set_text(items), "is there already in part")
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
        parts += [f"{name}:{_set_text(items)}" for name, items in self.sets.items()]
        return ";".join(parts)

    def __repr__(self) -> str:
        return f"Resources({str(self)!r})"

    def to_json(self) -> dict[str, float | str]:
        """`{"cpus": 0.5, "mem": 64.0, "ports": "[31000-31005]"}`."""
        shown: dict[str, float | str] = {n: m / MILLI for n, m in self.scalars.items()}
        shown.update({name: rng.text(spans) for name, spans in self.ranges.items()})
        shown.update({name: _set_text(items) for name, items in self.sets.items()})
        return shown


EMPTY: Final = Resources()

# Valid bundles by their wire form: the tasks of a framework mostly ask for the same.
_SEEN_MAX: Final = 1024
_SEEN_BYTES: Final = 256
_seen: dict[tuple[bytes, ...], Resources] = {}


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


def checked_ranges(field: str, pairs: Iterable[tuple[int, int]]) -> Ranges:
    """Canonical ranges from pairs.

    Raises InvalidResources for none, a reversed pair, numbers out of bounds, an
    overlap, or more than MAX_RANGES pairs.
    """
    items = list(pairs)
    if not items:
        raise InvalidResources(field, "[]", "must have at least one range")
    if len(items) > MAX_RANGES:
        raise InvalidResources(field, len(items), f"must have at most {MAX_RANGES} ranges")
    for begin, end in items:
        if not 0 <= begin <= MAX_RANGE_VALUE or not 0 <= end <= MAX_RANGE_VALUE:
            raise InvalidResources(field, f"{begin}-{end}", "is out of bounds")
        if end < begin:
            raise InvalidResources(field, f"{begin}-{end}", "ends before it begins")
        if field.rpartition(".")[2] == "ports" and end > 65535:
            raise InvalidResources(field, f"{begin}-{end}", "a port is at most 65535")
    clash = rng.overlap(items)
    if clash is not None:
        raise InvalidResources(field, f"{clash[0]}-{clash[1]}", "overlaps another range")
    return rng.normalised(items)


def _checked_set(field: str, items: Iterable[str]) -> frozenset[str]:
    seen: set[str] = set()
    for item in items:
        if not item:
            raise InvalidResources(field, item, "an item must not be empty")
        if item in seen:
            raise InvalidResources(field, item, "is there twice")
        seen.add(item)
    if not seen:
        raise InvalidResources(field, "{}", "must have at least one item")
    return frozenset(seen)


def _set_text(items: Iterable[str]) -> str:
    return "{" + ",".join(sorted(items)) + "}"


def _refuse_other_type(where: str, message: pb.Resource, known: pb.Value.Type.ValueType) -> None:
    if message.type != known:
        raise InvalidResources(
            where, name_of(pb.Value.Type, message.type), "has two types in one bundle"
        )


# ---- The text form -----------------------------------------------------------

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}")
# ASCII: \d alone takes the digits of every script.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_RANGE = re.compile(r"(\d{1,19})(?:\s*-\s*(\d{1,19}))?", re.ASCII)


def _parse(text: str, field: str) -> Resources:
    if len(text) > MAX_TEXT:
        raise InvalidResources(field, text, f"is longer than {MAX_TEXT} characters")
    scalars: dict[str, int] = {}
    spans: dict[str, Ranges] = {}
    sets: dict[str, frozenset[str]] = {}
    for item in filter(None, (part.strip() for part in text.split(";"))):
        name, colon, value = (part.strip() for part in item.partition(":"))
        if not colon or not value:
            raise InvalidResources(field, item, "must be NAME:VALUE, such as cpus:4")
        if not _NAME.fullmatch(name):
            raise InvalidResources(field, name, "is no resource name")
        if name in scalars or name in spans or name in sets:
            raise InvalidResources(field, name, "is given twice")
        where = f"{field}.{name}"
        if value.startswith("["):
            spans[name] = _parsed_ranges(where, value)
        elif value.startswith("{"):
            sets[name] = _parsed_set(where, value)
        else:
            scalars[name] = _parsed_scalar(field, name, value)
    if not (scalars or spans or sets):
        raise InvalidResources(field, text, "names no resource")
    return Resources(scalars, spans, sets)


def _parsed_scalar(field: str, name: str, value: str) -> int:
    if not _NUMBER.fullmatch(value):
        raise InvalidResources(f"{field}.{name}", value, "must be a number, [ranges] or a {set}")
    try:
        return to_milli(name, Decimal(value))
    except InvalidResources as error:
        raise error.under(field) from None


def _parsed_ranges(where: str, value: str) -> Ranges:
    if not value.endswith("]"):
        raise InvalidResources(where, value, "must end with ']'")
    pairs: list[tuple[int, int]] = []
    for part in value[1:-1].split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise InvalidResources(where, part.strip(), "must be BEGIN-END")
        begin = int(match[1])
        pairs.append((begin, int(match[2]) if match[2] is not None else begin))
    return checked_ranges(where, pairs)


def _parsed_set(where: str, value: str) -> frozenset[str]:
    if not value.endswith("}"):
        raise InvalidResources(where, value, "must end with '}'")
    return _checked_set(where, [part.strip() for part in value[1:-1].split(",")])
