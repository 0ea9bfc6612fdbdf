"""Messages as JSON, by the conventions of Mesos (not those of protobuf itself).

Out: proto names, 64-bit integers as numbers, bytes in base64, enums by name, what Mesos
requires or has a default for always there, all on one line and in ASCII.  In: the same,
with what its clients were seen to send: null as unset, text for numbers and booleans,
exponents, one element where a list is expected; unknown members are ignored.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from mesos_py.errors import InvalidValue
from mesos_py.http.fields import OURS, Field, fields_of
from mesos_py.http.jsontext import text_of

M = TypeVar("M", bound=Message)

MAX_DEPTH: Final = 64
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?", re.ASCII)
_INFINITE: Final = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
_FLOATS: Final = frozenset({FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT})


# ---- Out ---------------------------------------------------------------------------


def dumps(message: Message, *, ours: bool = False) -> bytes:
    """The message on one line.  Fields that only we know are left out, unless `ours`."""
    return text_of(message, ours=ours).encode()


def as_object(message: Message, *, ours: bool = False) -> dict[str, Any]:
    """The message as what `json` writes, for who puts it into something larger."""
    return _written(message, _plan(message.DESCRIPTOR, ours))


class _Plan:
    """How messages of one kind are written.  Made once: an offer has twenty of them."""

    __slots__ = ("always", "writers")

    def __init__(self) -> None:
        # By number: the member's name, and how its value is written (None: as it is).
        self.writers: dict[int, tuple[str, Callable[[Any], Any] | None]] = {}
        # What is there also when it is not set.
        self.always: list[tuple[str, Any]] = []


_PLANS: Final[dict[tuple[Any, bool], _Plan]] = {}


def _plan(descriptor: Any, ours: bool) -> _Plan:
    plan = _PLANS.get((descriptor, ours))
    if plan is None:
        # Known before it is complete: a message may have others of its kind in it.
        plan = _PLANS[descriptor, ours] = _Plan()
        fields = fields_of(descriptor)
        for of in fields.by_number.values():
            if ours or of.number < OURS:
                plan.writers[of.number] = of.name, _writer(of, ours)
        for of, value in fields.written:
            write = _single(of, ours)
            plan.always.append((of.name, value if write is None else write(value)))
    return plan


def _written(message: Message, plan: _Plan) -> dict[str, Any]:
    writers = plan.writers
    made: dict[str, Any] = {}
    for descriptor, value in message.ListFields():
        known = writers.get(descriptor.number)
        if known is not None:
            name, write = known
            made[name] = value if write is None else write(value)
    for name, value in plan.always:
        if name not in made:
            made[name] = value
    return made


def _writer(of: Field, ours: bool) -> Callable[[Any], Any] | None:
    write = _single(of, ours)
    if of.repeated:
        return list if write is None else lambda items: [write(item) for item in items]
    if of.key is not None:
        if write is None:
            return lambda items: {str(key): items[key] for key in items}
        return lambda items: {str(key): write(items[key]) for key in items}
    return write


def _single(of: Field, ours: bool) -> Callable[[Any], Any] | None:
    """How one value of the field is written; None: as it is."""
    if of.message is not None:
        plan = _plan(of.message, ours)
        return lambda message: _written(message, plan)
    match of.type:
        case FieldDescriptor.TYPE_ENUM:
            names = of.enum_names
            # A number that has no name here came from a peer that is newer.
            return lambda number: names.get(number, number)
        case FieldDescriptor.TYPE_BYTES:
            return lambda data: base64.b64encode(data).decode()
        case FieldDescriptor.TYPE_DOUBLE | FieldDescriptor.TYPE_FLOAT:
            return _double
    return None


def _double(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


# ---- In ----------------------------------------------------------------------------


def loads(kind: type[M], text: bytes, where: str = "body") -> M:
    """The message of a JSON text.  Raises InvalidValue naming the field and its value."""
    return from_object(kind, parsed(text, where), where)


def parsed(text: bytes, where: str = "body") -> dict[str, Any]:
    """A JSON text that holds an object.  Raises InvalidValue."""
    try:
        content = _DECODER.decode(text.decode())
    except RecursionError:
        raise InvalidValue(where, text[:40], "is nested too deep") from None
    except ValueError as error:
        raise InvalidValue(where, text[:100], f"is no JSON: {error}") from None
    if not isinstance(content, dict):
        raise InvalidValue(where, text[:100], "must be a JSON object")
    return content


def from_object(kind: type[M], content: dict[str, Any], where: str = "body") -> M:
    """The message of what `json` has read.  Raises InvalidValue."""
    message = kind()
    _fill(message, content, "", 1, where)
    return message


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON; as text it is a number")


# `json.loads` makes one for each text.
_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant)


def _fill(message: Message, content: dict[str, Any], prefix: str, depth: int, where: str) -> None:
    if depth > MAX_DEPTH:
        raise InvalidValue(where, prefix, f"is nested deeper than {MAX_DEPTH}")
    fields = fields_of(message.DESCRIPTOR)
    given: set[str] = set()
    for name, value in content.items():
        of = fields.by_name.get(name)
        if of is None or value is None:
            continue
        if _take(message, of, value, prefix + name, depth, where):
            given.add(name)
    for name in fields.required:
        if name not in given:
            raise InvalidValue(prefix + name, "", "is missing")


def _take(message: Message, of: Field, value: Any, path: str, depth: int, where: str) -> bool:
    """Take a member over into `message`; False if it says nothing."""
    if of.key is not None:
        if not isinstance(value, dict):
            raise InvalidValue(path, value, "must be an object")
        _take_map(getattr(message, of.name), of, value, path, depth, where)
    elif of.repeated:
        items = value if isinstance(value, list) else [value]
        _take_all(getattr(message, of.name), of, items, path, depth, where)
    elif of.message is not None:
        child = getattr(message, of.name)
        child.SetInParent()
        _fill(child, _object(value, path), f"{path}.", depth + 1, where)
    else:
        read = _in(of, value, path)
        if read is None:
            return False
        _set(message, of.name, read, path)
    return True


def _take_all(to: Any, of: Field, items: list[Any], path: str, depth: int, where: str) -> None:
    for at, item in enumerate(items):
        if item is None:
            continue
        here = f"{path}[{at}]"
        if of.message is not None:
            _fill(to.add(), _object(item, here), f"{here}.", depth + 1, where)
        elif (read := _in(of, item, here)) is not None:
            try:
                to.append(read)
            except ValueError as error:
                raise InvalidValue(here, item, str(error)) from None


def _take_map(
    to: Any, of: Field, members: dict[str, Any], path: str, depth: int, where: str
) -> None:
    assert of.key is not None
    for name, item in members.items():
        if item is None:
            continue
        here = f"{path}[{name}]"
        try:
            key = of.key(name)
            if of.message is not None:
                child = to[key]
                child.SetInParent()
                _fill(child, _object(item, here), f"{here}.", depth + 1, where)
            elif (read := _in(of, item, here)) is not None:
                to[key] = read
        except (ValueError, UnicodeError) as error:
            raise InvalidValue(here, item, str(error)) from None


def _object(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidValue(path, value, "must be an object")
    return value


def _set(message: Message, name: str, value: Any, path: str) -> None:
    try:
        setattr(message, name, value)
    except ValueError as error:
        # Text with half of a surrogate pair, which has no form in UTF-8.
        raise InvalidValue(path, value, str(error)) from None


def _in(of: Field, value: Any, path: str) -> Any:
    """The value in Python; None for a name that an optional enum does not have."""
    if of.bounds is not None:
        return _integer(value, path, of.bounds)
    if of.type in _FLOATS:
        return _number(value, path)
    if of.type == FieldDescriptor.TYPE_BOOL:
        return _boolean(value, path)
    if not isinstance(value, str):
        what = "the name of a value" if of.type == FieldDescriptor.TYPE_ENUM else "text"
        raise InvalidValue(path, value, f"must be {what}")
    if of.type == FieldDescriptor.TYPE_ENUM:
        number = of.enum_numbers.get(value)
        if number is None and of.required:
            raise InvalidValue(path, value, f"is none of {', '.join(of.enum_numbers)}")
        return number
    return _bytes(value, path) if of.type == FieldDescriptor.TYPE_BYTES else value


def _boolean(value: Any, path: str) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "false") and isinstance(value, str):
        return value == "true"
    raise InvalidValue(path, value, "must be true or false")


def _number(value: Any, path: str) -> float:
    if isinstance(value, str):
        if value in _INFINITE:
            return _INFINITE[value]
        if not _NUMBER.fullmatch(value):
            raise InvalidValue(path, value, "is no number")
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidValue(path, value, "must be a number")
    try:
        return float(value)
    except OverflowError:
        raise InvalidValue(path, value, "is too large") from None


def _integer(value: Any, path: str, bounds: tuple[int, int]) -> int:
    """Of a number with a fraction its whole part, as Mesos takes it."""
    if isinstance(value, str) and value.removeprefix("-").isdecimal() and len(value) < 40:
        number = int(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    else:
        inexact = _number(value, path)
        if not math.isfinite(inexact):
            raise InvalidValue(path, value, "is too large")
        number = int(inexact)
    low, high = bounds
    if not low <= number <= high:
        raise InvalidValue(path, value, f"must be from {low} to {high}")
    return number


def _bytes(value: str, path: str) -> bytes:
    # As Mesos reads it: some write it in lines, some without the padding, which ends it.
    digits = "".join(value.split()).partition("=")[0]
    try:
        return base64.b64decode(digits + "=" * (-len(digits) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidValue(path, value, f"is no base64: {error}") from None


__all__ = ["MAX_DEPTH", "as_object", "dumps", "from_object", "loads", "parsed"]
