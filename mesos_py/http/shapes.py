"""The objects that pages of master and agents have in common.

Names, nesting and the choice of what is always there are those of Apache Mesos 1.11 (reference,
section 2.6; its own answers where that is silent).  Pure.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from google.protobuf.message import Message

from mesos_py import ranges as rng
from mesos_py.reserved import is_reserved, put_both_forms, role_of
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb

Shape: TypeAlias = dict[str, Any]
# A message as values of JSON.
AsJson: TypeAlias = Callable[[Message], Any]

# What clients rely on finding, of whatever there is nothing.
_ALWAYS: Final = {"cpus": 0.0, "gpus": 0.0, "mem": 0.0, "disk": 0.0}


# ---- Amounts ---------------------------------------------------------------------


def amounts(*bundles: Resources) -> Shape:
    """The sum of `bundles`, reserved or not: scalars as numbers, the rest as text.

    Ranges and sets are united: those of several agents may be the same.
    """
    scalars = dict.fromkeys(_ALWAYS, 0)
    spans: dict[str, rng.Ranges] = {}
    items: dict[str, frozenset[str]] = {}
    # Thousands of tasks share a few bundles.
    counts = Counter(map(id, bundles))
    for bundle in {id(each): each for each in bundles}.values():
        count, each = counts[id(bundle)], bundle.plain
        for name, milli in each.scalars.items():
            scalars[name] = scalars.get(name, 0) + milli * count
        for name, some in each.ranges.items():
            spans[name] = rng.union(spans.get(name, ()), some)
        for name, members in each.sets.items():
            items[name] = items.get(name, frozenset()) | members
    return Resources(scalars, spans, items).to_json() | {
        name: 0.0 for name in _ALWAYS if not scalars[name]
    }


def reserved_amounts(*bundles: Resources) -> Shape:
    """What of `bundles` is reserved, by role."""
    found: dict[str, list[Resources]] = {}
    for each in bundles:
        for role, bundle in reserved_by_role(each).items():
            found.setdefault(role, []).append(bundle)
    return {role: amounts(*parts) for role, parts in found.items()}


def reserved_by_role(bundle: Resources) -> dict[str, Resources]:
    if not bundle.has_reserved:
        return {}
    roles = dict.fromkeys(map(role_of, filter(is_reserved, bundle.names())))
    return {role: bundle.only(partial(_is_of, role)) for role in sorted(roles)}


def _is_of(role: str, name: str) -> bool:
    return is_reserved(name) and role_of(name) == role


def in_full(bundle: Resources, as_json: AsJson) -> list[Any]:
    """As messages, in both forms that there are for reservations."""
    found = []
    for each in bundle.to_proto():
        shown = pb.Resource()
        shown.CopyFrom(each)
        put_both_forms(shown)
        found.append(as_json(shown))
    return found


def attributes(given: Iterable[pb.Attribute]) -> Shape:
    """By name: a number for a scalar, else text."""
    return {each.name: _attribute(each) for each in given}


def _attribute(attribute: pb.Attribute) -> float | str:
    if attribute.type == pb.Value.SCALAR:
        return attribute.scalar.value
    if attribute.type == pb.Value.RANGES:
        return rng.text(tuple((each.begin, each.end) for each in attribute.ranges.range))
    if attribute.type == pb.Value.SET:
        return "{" + ", ".join(attribute.set.item) + "}"
    return attribute.text.value


def labels(given: pb.Labels) -> list[Shape]:
    return [
        {"key": each.key, "value": each.value} if each.HasField("value") else {"key": each.key}
        for each in given.labels
    ]


def status(given: pb.TaskStatus, as_json: AsJson) -> Shape:
    """Without message and reason, as Mesos has it."""
    shape: Shape = {"state": pb.TaskState.Name(given.state), "timestamp": given.timestamp}
    if given.HasField("labels"):
        shape["labels"] = labels(given.labels)
    if given.HasField("container_status"):
        shape["container_status"] = container = as_json(given.container_status)
        # Only /containers tells the process.
        container.pop("executor_pid", None)
    if given.HasField("healthy"):
        shape["healthy"] = given.healthy
    return shape


def agent_pid(info: pb.AgentInfo) -> str:
    """The name under which libprocess would know it."""
    return f"slave(1)@{info.ip or info.hostname}:{http_port(info)}"


def http_port(info: pb.AgentInfo) -> int:
    """Where its pages are."""
    return info.http_port if info.HasField("http_port") else info.port


# ---- Text ---------------------------------------------------------------------------


def text(shape: Any) -> str:
    """In ASCII, on one line."""
    return json.dumps(shape, separators=(",", ":"))


def joined(head: Shape, lists: Mapping[str, Iterable[str]]) -> str:
    """One object of the members of `head` and of lists whose entries are text already."""
    return "".join(pieces(head, lists))


def pieces(head: Shape, lists: Mapping[str, Iterable[str | list[str]]]) -> list[str]:
    """The same in pieces, for an object that is long; an entry may be in pieces itself."""
    found = ["{"]
    if head:
        found.append(text(head)[1:-1])
    for name, entries in lists.items():
        found.append(f'{"," if len(found) > 1 else ""}"{name}":[')
        between = False
        for entry in entries:
            if between:
                found.append(",")
            between = True
            if isinstance(entry, str):
                found.append(entry)
            else:
                found += entry
        found.append("]")
    found.append("}")
    return found


__all__ = [
    "AsJson",
    "Shape",
    "agent_pid",
    "amounts",
    "attributes",
    "http_port",
    "in_full",
    "joined",
    "labels",
    "pieces",
    "reserved_amounts",
    "reserved_by_role",
    "status",
    "text",
]
