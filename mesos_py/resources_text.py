"""Amounts as people write them: "cpus:4;mem:1024;ports:[31000-32000];names:{a,b}"."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TypeAlias

from mesos_py.amounts import MAX_TEXT, NAME, checked_ranges, checked_set, to_milli
from mesos_py.errors import InvalidResources
from mesos_py.ranges import Ranges
from mesos_py.reserved import key_from
from mesos_py.v1 import types_pb2 as pb

Parts: TypeAlias = tuple[dict[str, int], dict[str, Ranges], dict[str, frozenset[str]]]

# ASCII: \d alone takes the digits of every script.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
# Greedy: the role may hold parentheses and colons.
_RESERVED = re.compile(r"(?P<name>[^(:]*?)\s*\((?P<role>.*)\)\s*:\s*(?P<value>.*)")
_RANGE = re.compile(r"(\d{1,19})(?:\s*-\s*(\d{1,19}))?", re.ASCII)


def parsed(text: str, field: str, *, reservable: bool) -> Parts:
    """Scalars, ranges and sets by name.  `reservable`: "cpus(ads)" may be one.

    Raises InvalidResources that names `field`, the item at fault and why.
    """
    if len(text) > MAX_TEXT:
        raise InvalidResources(field, text, f"is longer than {MAX_TEXT} characters")
    scalars: dict[str, int] = {}
    spans: dict[str, Ranges] = {}
    sets: dict[str, frozenset[str]] = {}
    for item in filter(None, (part.strip() for part in text.split(";"))):
        plain, name, value = _divided(field, item, reservable)
        if name in scalars or name in spans or name in sets:
            raise InvalidResources(field, name, "is given twice")
        where = f"{field}.{plain}"
        if value.startswith("["):
            spans[name] = _parsed_ranges(where, value)
        elif value.startswith("{"):
            sets[name] = _parsed_set(where, value)
        else:
            scalars[name] = _parsed_scalar(field, plain, value)
    if not (scalars or spans or sets):
        raise InvalidResources(field, text, "names no resource")
    return scalars, spans, sets


def _divided(field: str, item: str, reservable: bool) -> tuple[str, str, str]:
    """The plain name, the name that counts, and the value."""
    match = _RESERVED.fullmatch(item) if reservable else None
    if match is not None:
        name, role, value = match["name"], match["role"], match["value"]
    else:
        name, _, value = (part.strip() for part in item.partition(":"))
        role = "*"
    if not value:
        raise InvalidResources(field, item, "must be NAME:VALUE, such as cpus:4")
    if not NAME.fullmatch(name):
        raise InvalidResources(field, name, "is no resource name")
    if role == "*":
        return name, name, value
    return name, key_from(f"{field}.{name}", pb.Resource(name=name, role=role)), value


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
    return checked_set(where, [part.strip() for part in value[1:-1].split(",")])
