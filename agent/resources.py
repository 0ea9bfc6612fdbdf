"""What this machine has to offer: detected, overridden by text; and its attributes."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Final

import psutil

from mesos_py import logs, ranges
from mesos_py.errors import InvalidResources, InvalidValue
from mesos_py.http import jsonpb
from mesos_py.ranges import Ranges
from mesos_py.reserved import key_from, plain_name, role_of, stack_of
from mesos_py.resources import MILLI, Resources, checked_ranges, is_nothing
from mesos_py.v1 import types_pb2 as pb

log = logs.get("agent")

MB: Final = 1024 * 1024
# Clear of 32768-60999, from which the kernel picks ports by itself.
DEFAULT_PORTS: Final = ((31000, 32000),)
MAX_TEXT: Final = 100_000


def usable_mb(total_mb: int, kept_mb: int) -> int:
    """What is left for tasks when the system keeps `kept_mb`, or half if that is less."""
    return total_mb - kept_mb if total_mb >= 2 * kept_mb else total_mb // 2


def detect(work_dir: Path) -> Resources:
    """Cores, memory but 1 GB, the work directory's file system but 5 GB, ports (Mesos)."""
    scalars = {
        "cpus": psutil.cpu_count() or 1,
        "mem": usable_mb(psutil.virtual_memory().total // MB, 1024),
        "disk": usable_mb(psutil.disk_usage(str(work_dir)).total // MB, 5 * 1024),
    }
    return Resources(
        {name: amount * MILLI for name, amount in scalars.items() if amount},
        {"ports": DEFAULT_PORTS},
    )


def offered(text: str, work_dir: Path) -> Resources:
    """What the agent offers: what `text` says, and for the rest what is detected.

    "cpus:4;mem:1024;ports:[31000-31099]", "cpus(ads):2" for what is reserved for the role
    ads, or JSON, a list of resources in the form of Mesos.  An amount of 0, or no range or
    item, offers none of it, reserved or not.
    Raises InvalidResources.
    """
    if text.lstrip().startswith("["):
        absent, named = _of_json(text)
    else:
        absent, given = _without_nothing(text)
        named = Resources.parse_reserved(given, "resources") if given else Resources()
    found = detect(work_dir)
    names = {*map(plain_name, named.names()), *absent}
    merged = Resources(
        {**{n: a for n, a in found.scalars.items() if n not in names}, **named.scalars},
        {**{n: r for n, r in found.ranges.items() if n not in names}, **named.ranges},
        named.sets,
    )
    _check(merged)
    if not merged:
        raise InvalidResources("resources", text, "leaves nothing to offer")
    return merged


def _check(merged: Resources) -> None:
    for key in merged.names():
        name = plain_name(key)
        if name in ("cpus", "mem", "disk") and key not in merged.scalars:
            raise InvalidResources(f"resources.{name}", name, "must be a number")
        if name == "ports" and key not in merged.ranges:
            reason = "must be ranges, such as [31000-32000]"
            raise InvalidResources("resources.ports", "ports", reason)
        if any(each.kind != "static" for each in stack_of(key)):
            reason = "what an agent reserves by itself is static"
            raise InvalidResources(f"resources.{name}", role_of(key), reason)
    spans: Ranges = ()
    for key, some in merged.ranges.items():
        if plain_name(key) == "ports":
            if ranges.intersects(spans, some):
                reason = f"overlaps {ranges.text(spans)}"
                raise InvalidResources("resources.ports", ranges.text(some), reason)
            spans = ranges.union(spans, some)


def _of_json(text: str) -> tuple[set[str], Resources]:
    """Of a list as JSON: the names that are given as nothing, and the rest.

    Raises InvalidResources.
    """
    try:
        listed = jsonpb.loads(
            pb.Request, b'{"resources":' + text.encode(errors="surrogateescape") + b"}", "resources"
        )
    except InvalidValue as error:
        raise InvalidResources(error.field, error.value, error.reason) from None
    absent = {each.name for each in listed.resources if is_nothing(each)}
    some = [each for each in listed.resources if not is_nothing(each)]
    return absent, Resources.from_proto("resources", some)


def taken_ports(offered: Ranges, kernels_own: str, reserved: str) -> Ranges:
    """Those of the offered ports that the kernel gives to whoever asks for any port.

    The texts are those of the settings net.ipv4.ip_local_port_range ("32768 60999") and
    ip_local_reserved_ports ("8080,31000-31999"), which are left out of it.
    """
    first, last = (int(word) for word in kernels_own.split())
    spared = []
    for item in filter(None, reserved.strip().split(",")):
        begin, _, end = item.partition("-")
        spared.append((int(begin), int(end or begin)))
    given = ranges.difference(((first, last),), ranges.normalised(spared))
    return ranges.difference(offered, ranges.difference(offered, given))


# Greedy: the role may hold parentheses.
_NOTHING = re.compile(
    r"\s*(?P<name>[A-Za-z][A-Za-z0-9_.-]*)\s*(\((?P<role>.*)\))?\s*:\s*"
    r"(0+(\.0*)?|\[\s*\]|\{\s*\})\s*"
)


def _without_nothing(text: str) -> tuple[set[str], str]:
    """The names of what is given as nothing, and the rest of the text."""
    absent: set[str] = set()
    kept: list[str] = []
    for item in text.split(";"):
        match = _NOTHING.fullmatch(item)
        if match is None:
            kept.append(item)
            continue
        name, role = match["name"], match["role"]
        key = name
        if role is not None:
            key = key_from(f"resources.{name}", pb.Resource(name=name, role=role))
        if key in absent:
            raise InvalidResources("resources", key, "is given twice")
        absent.add(key)
    rest = ";".join(kept)
    return {plain_name(key) for key in absent}, rest if rest.strip(" ;") else ""


# ---- Attributes ---------------------------------------------------------------------

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,62}")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)")
_RANGE = re.compile(r"(\d{1,19})\s*-\s*(\d{1,19})")


def parse_attributes(text: str) -> list[pb.Attribute]:
    """Attributes from "rack:r1;cores:8;ports:[1-9];zones:{a,b}": text, scalar, ranges, set.

    Raises InvalidValue that names the item and what is wrong with it.
    """
    if len(text) > MAX_TEXT:
        raise InvalidValue("attributes", text, f"is longer than {MAX_TEXT} characters")
    found: dict[str, pb.Attribute] = {}
    for item in filter(None, (part.strip() for part in text.split(";"))):
        name, colon, value = (part.strip() for part in item.partition(":"))
        if not colon or not value:
            raise InvalidValue("attributes", item, "must be NAME:VALUE, such as rack:r1")
        if not _NAME.fullmatch(name):
            raise InvalidValue("attributes", name, "is no name for an attribute")
        if name in found:
            raise InvalidValue("attributes", name, "is given twice")
        found[name] = _attribute(name, value)
    return list(found.values())


def _attribute(name: str, value: str) -> pb.Attribute:
    where = f"attributes.{name}"
    if value.startswith("["):
        return pb.Attribute(name=name, type=pb.Value.RANGES, ranges=_ranges(where, value))
    if value.startswith("{"):
        if not value.endswith("}"):
            raise InvalidValue(where, value, "must end with '}'")
        items = [item.strip() for item in value[1:-1].split(",")]
        if "" in items or len(set(items)) != len(items):
            raise InvalidValue(where, value, "has an empty item, or one twice")
        return pb.Attribute(name=name, type=pb.Value.SET, set=pb.Value.Set(item=items))
    if _NUMBER.fullmatch(value) and math.isfinite(float(value)):
        scalar = pb.Value.Scalar(value=float(value))
        return pb.Attribute(name=name, type=pb.Value.SCALAR, scalar=scalar)
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in value):
        raise InvalidValue(where, value, "must not contain control characters")
    return pb.Attribute(name=name, type=pb.Value.TEXT, text=pb.Value.Text(value=value))


def _ranges(where: str, value: str) -> pb.Value.Ranges:
    if not value.endswith("]"):
        raise InvalidValue(where, value, "must end with ']'")
    pairs: list[tuple[int, int]] = []
    for part in value[1:-1].split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise InvalidValue(where, part.strip(), "must be BEGIN-END")
        pairs.append((int(match[1]), int(match[2])))
    spans: Ranges = checked_ranges(where, pairs)
    return pb.Value.Ranges(range=[pb.Value.Range(begin=b, end=e) for b, e in spans])


def warn_of_taken_ports(resources: Resources) -> None:
    """Ports that the kernel hands to anybody are bad ones to promise to tasks."""
    settings = Path("/proc/sys/net/ipv4")
    try:
        own = (settings / "ip_local_port_range").read_text()
        reserved = (settings / "ip_local_reserved_ports").read_text()
    except OSError:
        return
    taken = taken_ports(resources.plain.ranges.get("ports", ()), own, reserved)
    if taken:
        log.warning(
            "offered ports are also given to any process that wants one: tasks may find them in "
            "use; offer others, or add them to net.ipv4.ip_local_reserved_ports",
            ports=ranges.text(taken),
            ip_local_port_range=own.strip().replace("\t", "-"),
        )
