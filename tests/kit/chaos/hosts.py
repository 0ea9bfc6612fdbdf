"""Machines around one switch, as network namespaces: nothing touches the host's network.

::

    with Network() as network:
        master, agent = network.host("master"), network.host("agent")
        process = master.inside(lambda: subprocess.Popen(argv))

The switch is a bridge in a namespace of its own.  Namespaces are held by descriptors
only: there is nothing to be mounted, and nothing is left when the last process is gone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar

from pyroute2 import IPRoute

from agent.isolation.network import namespaces
from tests.kit.networks import set_up

T = TypeVar("T")

_NETWORK: Final = "192.0.2"
_BRIDGE: Final = "switch"


@dataclass(frozen=True)
class Host:
    """One machine.  `port` is the device of the switch that its cable is in."""

    name: str
    address: str
    namespace: int
    port: str

    def inside(self, work: Callable[[], T]) -> T:
        """Do something on it; sockets and processes that are made there stay there."""
        return namespaces.inside(self.namespace, work)


class Network:
    """A switch and the hosts that were asked for.  Raises PermissionError without rights."""

    def __init__(self) -> None:
        self.hosts: dict[str, Host] = {}
        self.switch = namespaces.create()
        namespaces.inside(self.switch, _add_bridge)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in (*(host.namespace for host in self.hosts.values()), self.switch):
            os.close(fd)
        self.hosts.clear()

    def host(self, name: str) -> Host:
        """A new host; the switch forwards at once."""
        number = len(self.hosts) + 1
        host = Host(name, f"{_NETWORK}.{number}", namespaces.create(), f"port{number}")
        self.hosts[name] = host
        namespaces.inside(self.switch, lambda: _plug_in(host))
        host.inside(lambda: _switch_on(host))
        return host

    def on_switch(self, work: Callable[[], T]) -> T:
        return namespaces.inside(self.switch, work)


def _add_bridge() -> None:
    with IPRoute() as route:
        route.link("add", ifname=_BRIDGE, kind="bridge")
        route.link("set", index=index_of(route, _BRIDGE), state="up")


def _plug_in(host: Host) -> None:
    with IPRoute() as route:
        peer = {"ifname": "eth0", "net_ns_fd": host.namespace}
        route.link("add", ifname=host.port, kind="veth", peer=peer)
        bridge = index_of(route, _BRIDGE)
        route.link("set", index=index_of(route, host.port), master=bridge, state="up")


def _switch_on(host: Host) -> None:
    with IPRoute() as route:
        route.link("set", index=index_of(route, "lo"), state="up")
    set_up("eth0", host.address)


def index_of(route: Any, device: str) -> int:
    """The kernel's number of a device, which must be there."""
    found: list[int] = route.link_lookup(ifname=device)
    return found[0]
