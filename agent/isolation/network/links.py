"""Devices, by netlink: the agent's bridge, the pairs that lead into containers, rates.

Raises OSError with the kernel's number for whatever it refuses, naming what was tried.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from socket import AF_INET
from typing import Any, Final

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.rtnl import TC_H_ROOT

from agent.isolation.network import names, namespaces

# What the container's end of the pair is called inside.
INSIDE: Final = "eth0"
_DEFAULT_MTU: Final = 1500
_ETH_P_ALL: Final = 0x0003
# The queueing discipline that sees what comes in: where its filters hang, and its own place.
_INGRESS: Final = 0xFFFF0000
_AT_INGRESS: Final = 0xFFFFFFF1
# Bytes that may go at once, at least and as time at the rate; and the time to wait at most.
_MIN_BURST: Final = 64 * 1024
_BURST_S: Final = 0.02
_QUEUE: Final = "50ms"


@dataclass(frozen=True)
class Device:
    """A device of this namespace."""

    index: int
    name: str
    alias: str | None
    kind: str | None
    mtu: int


@contextlib.contextmanager
def said(what: str) -> Iterator[None]:
    """Turn what netlink answers into an OSError that says what was tried."""
    try:
        yield
    except NetlinkError as error:
        raise OSError(error.code, f"{what}: {os.strerror(error.code)}") from error


def devices() -> list[Device]:
    with said("list the network devices"), IPRoute() as route:
        return [_device(each) for each in route.get_links()]


def find(name: str) -> Device | None:
    with said(f"look for the device {name}"), IPRoute() as route:
        return _find(route, name)


def addresses() -> list[tuple[str, IPv4Interface]]:
    """Those of all devices of this namespace, with the device's name."""
    with said("list the addresses"), IPRoute() as route:
        by_index = {each["index"]: each.get_attr("IFLA_IFNAME") for each in route.get_links()}
        return [
            (
                by_index.get(each["index"], "?"),
                IPv4Interface((each.get_attr("IFA_ADDRESS"), each["prefixlen"])),
            )
            for each in route.get_addr(family=AF_INET)
        ]


# ---- The bridge -----------------------------------------------------------------------


def make_bridge(name: str, alias: str, gateway: IPv4Address, network: IPv4Network) -> None:
    """Have the bridge, with its address and alias.  What is half made is completed."""
    with said(f"make the bridge {name}"), IPRoute() as route:
        found = _find(route, name)
        if found is None:
            # A hardware address of its own: else it is that of some container, and changes.
            route.link("add", ifname=name, kind="bridge", address=names.mac(gateway))
            found = _find(route, name)
            assert found is not None
        elif found.kind != "bridge" or found.alias not in (None, alias):
            raise OSError(errno.EEXIST, f"the device {name} is there already, and not ours")
        # Set so, it does not follow the devices at the bridge.
        route.link("set", index=found.index, ifalias=alias, mtu=_mtu(route))
        for each in route.get_addr(family=AF_INET, index=found.index):
            if each.get_attr("IFA_ADDRESS") != str(gateway):
                route.addr(
                    "del",
                    index=found.index,
                    address=each.get_attr("IFA_ADDRESS"),
                    prefixlen=each["prefixlen"],
                )
        with _existing():
            route.addr("add", index=found.index, address=str(gateway), prefixlen=network.prefixlen)
        route.link("set", index=found.index, state="up")


def remove(name: str, alias: str) -> None:
    """Remove the device with this name if its alias begins so.  It need not be there."""
    with said(f"remove the device {name}"), IPRoute() as route:
        found = _find(route, name)
        if found is None or not (found.alias or "").startswith(alias):
            return
        try:
            route.link("del", index=found.index)
        except NetlinkError as error:
            if error.code != errno.ENODEV:  # it went with its namespace just now
                raise


# ---- A container's devices --------------------------------------------------------------


def connect(
    namespace: int, name: str, bridge: str, alias: str, address: IPv4Interface, gateway: IPv4Address
) -> None:
    """A pair of devices, one end at the bridge under `name`, one in the namespace."""
    with said(f"connect {name} to {bridge}"), IPRoute() as route:
        master = _find(route, bridge)
        if master is None:
            raise NetlinkError(errno.ENODEV)
        inside = {
            "ifname": INSIDE,
            "net_ns_fd": namespace,
            "address": names.mac(address.ip),
            "mtu": master.mtu,
        }
        route.link("add", ifname=name, kind="veth", mtu=master.mtu, peer=inside)
        index = _found(route, name)
        route.link("set", index=index, ifalias=alias, master=master.index, state="up")
        # For a container that connects to itself by a port of the machine: where bridged
        # packets pass netfilter (br_netfilter), they go back by where they came from.
        route.brport("set", index=index, mode=1)
    namespaces.inside(namespace, lambda: _set_up(address, gateway))


def loopback(namespace: int) -> None:
    """Let the processes of the namespace reach themselves."""
    namespaces.inside(namespace, lambda: _set_up(None, None))


def _set_up(address: IPv4Interface | None, gateway: IPv4Address | None) -> None:
    """In the namespace."""
    with said("set up the container's network"), IPRoute() as route:
        route.link("set", index=_found(route, "lo"), state="up")
        if address is not None:
            index = _found(route, INSIDE)
            route.addr(
                "add", index=index, address=str(address.ip), prefixlen=address.network.prefixlen
            )
            route.link("set", index=index, state="up")
            route.route("add", gateway=str(gateway))


def traffic(name: str) -> dict[str, int] | None:
    """The counters of a device, by its own view of in and out."""
    with said(f"read the counters of {name}"), IPRoute() as route:
        for each in route.link("get", ifname=name):
            counters = each.get_attr("IFLA_STATS64")
            return None if counters is None else {key: int(counters[key]) for key in counters}
    return None


# ---- Rates ------------------------------------------------------------------------------


def limit_ingress(name: str, rate: int | None) -> None:
    """What goes into the container, at the host's end of its pair.  None: no limit."""
    with said(f"limit what {name} sends on"), IPRoute() as route:
        _shape(route, _found(route, name), rate)


def limit_egress(name: str, shaper: str, alias: str, rate: int | None) -> None:
    """What comes out of the container: led through the device `shaper`, which slows it down.

    None: no limit.
    """
    with said(f"limit what {name} receives"), IPRoute() as route:
        index = _found(route, name)
        existing = _find(route, shaper)
        if rate is None:
            if existing is not None:
                with _missing():
                    route.tc("del", index=index, parent=_AT_INGRESS)
                route.link("del", index=existing.index)
            return
        if existing is None:
            _make_shaper(shaper, alias)
        through = _found(route, shaper)
        route.link("set", index=through, state="up")
        _shape(route, through, rate)
        if existing is None:
            route.tc("add", "ingress", index)
            route.tc(
                "add-filter",
                "u32",
                index,
                0,
                parent=_INGRESS,
                prio=1,
                protocol=_ETH_P_ALL,
                target=0x10000,
                keys=["0x0/0x0+0"],
                action={
                    "kind": "mirred",
                    "direction": "egress",
                    "action": "redirect",
                    "ifindex": through,
                },
            )


def _make_shaper(name: str, alias: str) -> None:
    """Make the device in a namespace that goes by itself, should we end here; give it its
    alias; only then take it over: at no moment is there one that is nobody's."""
    here, elsewhere = namespaces.own(), namespaces.create()

    def work() -> None:
        with said(f"make the device {name}"), IPRoute() as route:
            route.link("add", ifname=name, kind="ifb")
            index = _found(route, name)
            route.link("set", index=index, ifalias=alias)
            route.link("set", index=index, net_ns_fd=here)

    try:
        namespaces.inside(elsewhere, work)
    finally:
        os.close(here)
        os.close(elsewhere)


def _shape(route: Any, index: int, rate: int | None) -> None:
    if rate is None:
        with _missing():
            route.tc("del", index=index, parent=TC_H_ROOT)
        return
    bytes_s = rate // 8
    burst = max(_MIN_BURST, int(bytes_s * _BURST_S))
    route.tc("replace", "tbf", index, rate=bytes_s, burst=burst, latency=_QUEUE)


def _mtu(route: Any) -> int:
    """What gets through where this machine's default route leads."""
    indexes = {each.get_attr("RTA_OIF") for each in route.get_default_routes(family=AF_INET)}
    # One by one: a list of all devices is long where there are many containers.
    devices = [each for index in indexes for each in route.link("get", index=index)]
    return min((int(each.get_attr("IFLA_MTU")) for each in devices), default=_DEFAULT_MTU)


# ---- Looking ------------------------------------------------------------------------------


def _device(found: Any) -> Device:
    info = found.get_attr("IFLA_LINKINFO")
    kind = None if info is None else info.get_attr("IFLA_INFO_KIND")
    return Device(
        found["index"],
        found.get_attr("IFLA_IFNAME"),
        found.get_attr("IFLA_IFALIAS"),
        kind,
        int(found.get_attr("IFLA_MTU") or _DEFAULT_MTU),
    )


def _find(route: Any, name: str) -> Device | None:
    try:
        for each in route.link("get", ifname=name):
            return _device(each)
    except NetlinkError as error:
        if error.code != errno.ENODEV:
            raise
    return None


def _found(route: Any, name: str) -> int:
    """The index of a device that must be there."""
    found = _find(route, name)
    if found is None:
        raise NetlinkError(errno.ENODEV)
    return found.index


@contextlib.contextmanager
def _missing() -> Iterator[None]:
    """What is to be removed need not be there."""
    try:
        yield
    except NetlinkError as error:
        if error.code not in (errno.ENOENT, errno.EINVAL):
            raise


@contextlib.contextmanager
def _existing() -> Iterator[None]:
    """What is to be added may be there."""
    try:
        yield
    except NetlinkError as error:
        if error.code != errno.EEXIST:
            raise
