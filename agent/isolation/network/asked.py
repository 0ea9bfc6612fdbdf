"""What a container asks of the network: `ContainerInfo.network_infos`, checked.  Pure."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from mesos_py import ranges
from mesos_py.errors import InvalidValue
from mesos_py.resources import MILLI, Resources
from mesos_py.v1 import types_pb2 as pb

FIELD: Final = "container.network_infos"
# The network with a bridge; also that of who names none.
BRIDGED: Final = "mesos-py"
MAX_PORT: Final = 65535
# In thousandths of Mbit/s, the unit of the resource `network_bandwidth`.
BANDWIDTH: Final = "network_bandwidth"
MIN_RATE: Final = 8_000
MAX_RATE: Final = 32_000_000_000


class Kind(enum.Enum):
    """Which network a container is in."""

    HOST = "host"
    BRIDGED = BRIDGED
    # A namespace with nothing but the loopback device.
    NONE = "none"


class PortMapping(NamedTuple):
    """Who connects to `host_port` of this machine reaches `container_port`."""

    protocol: str
    host_port: int
    container_port: int


@dataclass(frozen=True)
class Asked:
    """All that is asked.

    mappings: None for the default: each port that it was given, to the same number.
    Rates in bits per second, None without a limit.
    """

    kind: Kind
    mappings: tuple[PortMapping, ...] | None = None
    egress: int | None = None
    ingress: int | None = None


HOST: Final = Asked(Kind.HOST)


def parse(info: pb.ContainerInfo | None) -> Asked:
    """Raises InvalidValue naming field and value."""
    if info is None or not info.network_infos:
        return HOST
    if len(info.network_infos) > 1:
        names = ", ".join(each.name or BRIDGED for each in info.network_infos)
        raise InvalidValue(FIELD, names, "a container can be in one network only")
    network = info.network_infos[0]
    try:
        kind = Kind(network.name or BRIDGED)
    except ValueError:
        known = ", ".join(each.value for each in Kind)
        raise InvalidValue(
            f"{FIELD}.name", network.name, f"is no network of this agent; there are: {known}"
        ) from None
    if network.groups:
        raise InvalidValue(f"{FIELD}.groups", network.groups[0], "there are no groups here")
    if any(each.HasField("ip_address") for each in network.ip_addresses):
        wanted = next(each.ip_address for each in network.ip_addresses if each.ip_address)
        reason = "addresses are chosen by the agent"
        raise InvalidValue(f"{FIELD}.ip_addresses", wanted, reason)
    mappings = _mappings(network.port_mappings)
    rates = _rates(network.labels)
    if kind is not Kind.BRIDGED and (mappings or rates):
        reason = f"the network {kind.value!r} has neither port mappings nor rates"
        raise InvalidValue(f"{FIELD}.name", kind.value, reason)
    return Asked(kind, mappings, rates.get("egress"), rates.get("ingress"))


def _mappings(given: Iterable[pb.NetworkInfo.PortMapping]) -> tuple[PortMapping, ...] | None:
    found: dict[tuple[str, int], PortMapping] = {}
    for each in given:
        where = f"{FIELD}.port_mappings"
        protocol = (each.protocol or "tcp").lower()
        if protocol not in ("tcp", "udp"):
            raise InvalidValue(f"{where}.protocol", each.protocol, "must be tcp or udp")
        for name, port in (
            ("host_port", each.host_port),
            ("container_port", each.container_port),
        ):
            if not 1 <= port <= MAX_PORT:
                raise InvalidValue(f"{where}.{name}", port, f"must be 1 to {MAX_PORT}")
        key = (protocol, each.host_port)
        if key in found:
            text = f"{each.host_port}/{protocol}"
            raise InvalidValue(f"{where}.host_port", text, "is mapped twice")
        found[key] = PortMapping(protocol, each.host_port, each.container_port)
    return tuple(found.values()) or None


def _rates(labels: pb.Labels) -> dict[str, int]:
    found: dict[str, int] = {}
    for label in labels.labels:
        if label.key in ("egress", "ingress"):
            found[label.key] = rate(f"{FIELD}.labels.{label.key}", label.value)
    return found


_RATE: Final = re.compile(
    r"(\d{1,15}(?:\.\d{1,6})?)\s*([kmg]?)bit(?:/s)?", re.IGNORECASE | re.ASCII
)
_UNITS: Final[Mapping[str, int]] = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


def rate(field: str, text: str) -> int:
    """Bits per second of "10mbit", "2.5gbit", "800kbit/s".  Raises InvalidValue."""
    match = _RATE.fullmatch(text.strip())
    if match is None:
        raise InvalidValue(field, text, "must be a number of kbit, mbit or gbit, such as 10mbit")
    whole, _, fraction = match[1].partition(".")
    digits = int(whole + fraction.ljust(6, "0")) * _UNITS[match[2].lower()]
    return _in_bounds(field, text, digits // 10**6)


def _in_bounds(field: str, shown: object, bits: int) -> int:
    if not MIN_RATE <= bits <= MAX_RATE:
        raise InvalidValue(field, shown, "must be 8kbit to 32gbit per second")
    return bits


def mappings_of(asked: Asked, resources: Resources) -> tuple[PortMapping, ...]:
    """Which ports lead into the container: only ones that it was given.

    Raises InvalidValue for a mapping of somebody else's port.
    """
    given = resources.ranges.get("ports", ())
    if asked.mappings is None:
        return tuple(
            PortMapping(protocol, port, port)
            for port in ranges.numbers(given)
            for protocol in ("tcp", "udp")
        )
    for each in asked.mappings:
        if not ranges.contains(given, ((each.host_port, each.host_port),)):
            reason = f"is not among the ports that the task was given: {ranges.text(given)}"
            raise InvalidValue(f"{FIELD}.port_mappings.host_port", each.host_port, reason)
    return asked.mappings


def rates_of(asked: Asked, resources: Resources) -> tuple[int | None, int | None]:
    """Egress and ingress in bits per second.

    The resource `network_bandwidth`, in Mbit/s, limits each of them; labels may limit
    them further.  Raises InvalidValue for a label that goes beyond the resource.
    """
    milli = resources.scalars.get(BANDWIDTH)
    if milli is None:
        return asked.egress, asked.ingress
    most = _in_bounds(f"resources.{BANDWIDTH}", milli / MILLI, milli * 10**6 // MILLI)
    for name, wanted in (("egress", asked.egress), ("ingress", asked.ingress)):
        if wanted is not None and wanted > most:
            reason = f"is more than the {milli / MILLI:g} Mbit/s of {BANDWIDTH}"
            raise InvalidValue(f"{FIELD}.labels.{name}", wanted, reason)
    return asked.egress or most, asked.ingress or most
