"""Hashes of keys that are the same in every process, whatever its PYTHONHASHSEED.

Keys that are equal have equal hashes: 1, 1.0, True, Decimal(1) and numpy.int64(1) go together.
All NaN have one hash, and all NaT.  Python's own hash is taken for numbers only, where it
depends on the value alone.
"""

from __future__ import annotations

import copy
import datetime
import math
import numbers
import operator
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum, Flag
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import PurePath
from typing import Any
from uuid import UUID
from zlib import crc32

from frameworks.rdd.errors import Unstable
from mesos_py.errors import shown

_MASK = 0x7FFF_FFFF_FFFF_FFFF
_WORD = 0xFFFF_FFFF_FFFF_FFFF
_FIRST = 0xBF58_476D_1CE4_E5B9
_SECOND = 0x94D0_49BB_1331_11EB
_NAN = 0x7FF8
_TEXT, _BYTES, _TUPLE, _SET = 0x5D1F, 0xB17E, 0x345678, 0x05E7
_PLAIN = frozenset({str, int, bool, bytes, type(None)})
NAN = math.nan


def portable_hash(key: Any) -> int:
    """A number of 64 bits at most, maybe negative.

    Raises Unstable, naming the key and its type, if there is no hash that lasts: for what
    Python cannot hash (lists, dicts, sets, numpy arrays) and for objects that are hashed by
    where they lie in memory.
    """
    kind = type(key)
    if kind is str:
        return _text(key)
    if kind is int or kind is bool:
        return hash(key)
    if key is None:
        return 0
    if kind is tuple:
        return _of_sequence(key)
    if kind is bytes:
        return _mixed(crc32(key), _BYTES)
    if kind is float:
        return hash(key) if key == key else _NAN  # noqa: PLR0124
    return _of_object(key)


def portable_places(keys: Sequence[Any], partitions: int) -> list[int]:
    """[portable_hash(key) % partitions for key in keys], in a fraction of the time where all
    are texts, or all numbers of the plainest kind."""
    kinds = set(map(type, keys))
    if kinds == {str}:
        try:
            return [(crc32(key.encode()) ^ _TEXT) % partitions for key in keys]
        except UnicodeEncodeError:
            pass
    if kinds <= {int, bool}:
        return [hash(key) % partitions for key in keys]
    return [portable_hash(key) % partitions for key in keys]


def one_nan(key: Any) -> Any:
    """The key as dicts are to have it: NAN instead of any number (of Python, numpy or decimal)
    that is not one, and one NaT instead of any of its type; also within tuples, named ones,
    frozen sets and dataclasses.

    NaN equals nothing, itself included; a dict finds it only if it is the same object.  Where
    keys are brought together every NaN is to be this one.
    Raises Unstable, naming the key and its type, for what cannot be hashed.
    """
    kind = type(key)
    if kind in _PLAIN:
        return key
    if isinstance(key, float):
        return key if key == key else NAN  # noqa: PLR0124
    try:
        hash(key)
    except (TypeError, ValueError):
        raise _unstable(key) from None
    if kind is tuple:
        return key if _PLAIN.issuperset(map(type, key)) else tuple(map(one_nan, key))
    if _is_moment(key):
        return key if key == key else _NATS.setdefault(kind, key)  # noqa: PLR0124
    if isinstance(key, numbers.Number):
        return key if key == key else NAN  # noqa: PLR0124
    if isinstance(key, tuple) and hasattr(kind, "_make"):
        return _rebuilt(key, kind._make)
    if kind is frozenset:
        return _rebuilt(key, frozenset)
    if is_dataclass(key) and not isinstance(key, type):
        return _with_one_nan(key)
    return key


# The first of each type that was met.
_NATS: dict[type, Any] = {}


def _rebuilt(key: Any, make: Callable[[Any], Any]) -> Any:
    parts = list(map(one_nan, key))
    return key if all(map(operator.is_, key, parts)) else make(parts)


def _with_one_nan(key: Any) -> Any:
    """A dataclass."""
    made = key
    for name in (each.name for each in fields(key) if each.compare):
        value = getattr(key, name)
        if (one := one_nan(value)) is not value:
            if made is key:
                made = copy.copy(key)
            object.__setattr__(made, name, one)
    return made


def _mixed(value: int, salt: int) -> int:
    """Spreads 32 bits over 63, in the manner of splitmix64's finaliser."""
    value = (value ^ (salt << 20)) * _FIRST & _WORD
    return (value ^ value >> 27) * _SECOND >> 1 & _MASK


def _of_sequence(key: Any) -> int:
    total = _TUPLE
    for each in key:
        total = (total ^ portable_hash(each)) * 1_000_003 & _MASK
    return total ^ len(key)


def _text(text: str) -> int:
    """The checksum has no patterns that a number of partitions could meet."""
    try:
        return crc32(text.encode()) ^ _TEXT
    except UnicodeEncodeError:  # half a pair of surrogates
        return crc32(text.encode("utf-8", "surrogatepass")) ^ _TEXT


def _of_object(key: Any) -> int:
    """Whatever is rarer than texts, numbers and tuples of them."""
    kind = type(key)
    if isinstance(key, Enum):
        # Some equal their value, all others only themselves.
        if issubclass(kind, int | str | float | Flag):
            return portable_hash(key.value)
        return portable_hash((kind.__qualname__, key.name))
    if _is_moment(key):
        return _of_moment(key)
    if isinstance(key, numbers.Number):
        return _of_number(key)
    for types, of in _KINDS:
        if isinstance(key, types):
            return of(key)
    if is_dataclass(key) and _is_made(kind, "__eq__") and kind.__hash__ not in _NO_HASHES:
        named = (f for f in fields(key) if (f.compare if f.hash is None else f.hash))
        return _of_sequence([getattr(key, each.name) for each in named])
    if kind.__module__ == "numpy" and hasattr(key, "dtype") and key.dtype.kind == "b":
        return int(key)
    raise _unstable(key)


_NO_HASHES: tuple[Any, ...] = (None, object.__hash__)


def _is_made(kind: type, method: str) -> bool:
    """Whether dataclass() has written the method, and not the user."""
    code = getattr(getattr(kind, method, None), "__code__", None)
    return getattr(code, "co_qualname", "").startswith("__create_fn__")


def _of_number(key: Any) -> int:
    try:
        return hash(key) if key == key else _NAN  # noqa: PLR0124
    except (ArithmeticError, TypeError):  # a signalling NaN
        raise _unstable(key) from None


def _is_moment(key: Any) -> bool:
    """Whether it is one of numpy's, or a time between two."""
    kind = type(key)
    return kind.__module__ == "numpy" and kind.__name__ in ("datetime64", "timedelta64")


def _of_moment(key: Any) -> int:
    """Equal whatever their units are, and to those of Python."""
    if key != key:  # noqa: PLR0124
        return _NAN
    unit = key.dtype.str[3:]
    if unit == "" and key.dtype.kind == "m":
        raise _unstable(key)
    if unit in ("[Y]", "[M]") and key.dtype.kind == "m":
        # They are no number of seconds.
        return int(key.astype("m8[M]").astype("int64"))
    plain = key.astype(f"{key.dtype.kind}8[us]").item()
    return hash(plain) if isinstance(plain, int) else portable_hash(plain)


def _of_datetime(key: datetime.datetime) -> int:
    offset = key.utcoffset()
    moment = key.replace(tzinfo=None, fold=0)
    if offset is not None:
        # Equal if it is the same moment, in whatever zone.
        moment -= offset
    return _text(f"{moment.isoformat()} {offset is None}")


def _of_time(key: datetime.time) -> int:
    offset = key.utcoffset()
    moment = datetime.timedelta(
        hours=key.hour, minutes=key.minute, seconds=key.second, microseconds=key.microsecond
    )
    return _of_delta(moment - (offset or datetime.timedelta()))


def _of_delta(key: datetime.timedelta) -> int:
    return _of_sequence((key.days, key.seconds, key.microseconds))


def _of_range(key: range) -> int:
    return _of_sequence((len(key), key[0], key[-1]) if key else (0,))


# In this order: a datetime is a date as well.
_KINDS: tuple[tuple[Any, Callable[[Any], int]], ...] = (
    (str, lambda key: _text(str(key))),
    (bytes | memoryview, lambda key: _mixed(crc32(key), _BYTES)),
    (tuple, _of_sequence),
    (
        frozenset,
        lambda key: _mixed(sum(portable_hash(each) & 0xFFFF_FFFF for each in key), _SET),
    ),
    (datetime.datetime, _of_datetime),
    (datetime.date, lambda key: _text(key.isoformat())),
    (datetime.time, _of_time),
    (datetime.timedelta, _of_delta),
    (datetime.tzinfo, lambda key: _text(str(key))),
    (range, _of_range),
    (type, lambda key: _text(f"{key.__module__}.{key.__qualname__}")),
    (
        PurePath | UUID | IPv4Address | IPv6Address | IPv4Network | IPv6Network,
        lambda key: _text(str(key)),
    ),
)


def _unstable(key: Any) -> Unstable:
    kind = f"{type(key).__module__}.{type(key).__qualname__}"
    try:
        hash(key)
    except (TypeError, ValueError):
        why = "it cannot be hashed; a tuple or a frozenset can"
    else:
        why = (
            "its hash is not the same in every process; use texts, numbers, tuples, "
            "frozen sets, enums or frozen dataclasses"
        )
    return Unstable(f"key {shown(key)} of type {kind}: {why}", key=shown(key), kind=kind)
