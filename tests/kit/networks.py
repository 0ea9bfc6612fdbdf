"""A machine and another one beside it, as network namespaces: nothing touches the host's.

with machine() as there:
    ...                            # this thread, and what it starts, is in there
    there.outside(lambda: socket.create_connection((there.address, 31000)))
"""

from __future__ import annotations

import contextlib
import functools
import os
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from pyroute2 import IPRoute

from agent.isolation.network import namespaces

T = TypeVar("T")
P = ParamSpec("P")

ADDRESS: Final = "192.0.2.1"
NEIGHBOUR: Final = "192.0.2.2"
_LIMIT_S: Final = 60.0
_FORWARD: Final = Path("/proc/sys/net/ipv4/ip_forward")


@dataclass
class Machine:
    """Where the thread is.  `neighbour` is the namespace of the other machine."""

    neighbour: int
    address: str = ADDRESS

    def forward(self, on: bool) -> None:
        """Whether it lets through what is meant for others."""
        _FORWARD.write_text("1" if on else "0")

    def outside(self, work: Callable[[], T]) -> T:
        """Do something on the other machine; sockets that are made there stay there."""
        return namespaces.inside(self.neighbour, work)


def beside(work: Callable[P, T]) -> Callable[P, T]:
    """Have it run in a thread: pyroute2 has an event loop of its own, and so have tests."""

    @functools.wraps(work)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return namespaces.in_thread(lambda: work(*args, **kwargs))

    return run


@contextlib.contextmanager
def machine() -> Iterator[Machine]:
    """Raises PermissionError without the rights to make namespaces."""
    home, here, neighbour = namespaces.own(), namespaces.create(), namespaces.create()
    try:
        _enter(here)
        _connect(neighbour)
        set_up("eth0", ADDRESS)
        namespaces.inside(neighbour, lambda: set_up("eth0", NEIGHBOUR))
        made = Machine(neighbour)
        made.forward(True)
        yield made
    finally:
        _enter(home)
        for fd in (home, here, neighbour):
            os.close(fd)


@beside
def _connect(neighbour: int) -> None:
    with IPRoute() as route:
        route.link("set", index=route.link_lookup(ifname="lo")[0], state="up")
        peer = {"ifname": "eth0", "net_ns_fd": neighbour}
        route.link("add", ifname="eth0", kind="veth", peer=peer)


def _enter(namespace: int) -> None:
    # Of this thread alone; threads and processes that it starts from now on inherit it.
    assert namespaces._libc.setns(namespace, 0) == 0


@beside
def set_up(device: str, address: str, prefixlen: int = 24) -> None:
    with IPRoute() as route:
        index = route.link_lookup(ifname=device)[0]
        route.addr("add", index=index, address=address, prefixlen=prefixlen)
        route.link("set", index=index, state="up")


@beside
def add_device(name: str, alias: str | None = None, kind: str = "ifb") -> None:
    with IPRoute() as route:
        route.link("add", ifname=name, kind=kind)
        if alias is not None:
            route.link("set", index=route.link_lookup(ifname=name)[0], ifalias=alias)


@beside
def device_names() -> set[str]:
    with IPRoute() as route:
        return {each.get_attr("IFLA_IFNAME") for each in route.get_links()}


@beside
def mtu_of(device: str) -> int:
    with IPRoute() as route:
        (found,) = route.link("get", ifname=device)
        return int(found.get_attr("IFLA_MTU"))


# ---- Talking ----------------------------------------------------------------------------


class Greeter:
    """Listens and answers each connection, or packet, with its name; tells who came."""

    def __init__(self, name: str, port: int, kind: int = socket.SOCK_STREAM) -> None:
        self.name = name
        self.peers: list[str] = []
        self._socket = socket.socket(socket.AF_INET, kind)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("0.0.0.0", port))
        self._stream = kind == socket.SOCK_STREAM
        if self._stream:
            self._socket.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                if self._stream:
                    connection, (peer, _) = self._socket.accept()
                    self.peers.append(peer)
                    with connection:
                        connection.sendall(self.name.encode())
                else:
                    data, peer = self._socket.recvfrom(100)
                    if not data:
                        return
                    self.peers.append(peer[0])
                    self._socket.sendto(self.name.encode(), peer)

    def __enter__(self) -> Greeter:
        return self

    def __exit__(self, *_: object) -> None:
        # Wakes up who waits in accept and recvfrom.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(_LIMIT_S)
        self._socket.close()


def greet(address: str, port: int) -> str:
    """Connect, and what was answered."""
    with socket.create_connection((address, port), timeout=_LIMIT_S) as connection:
        return connection.recv(100).decode()


def greet_udp(address: str, port: int) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
        sending.settimeout(_LIMIT_S)
        sending.connect((address, port))
        sending.send(b"hello")
        return sending.recv(100).decode()


@beside
def rates_of(device: str) -> list[int]:
    """What token buckets on the device let through, in bits per second."""
    with IPRoute() as route:
        index = route.link_lookup(ifname=device)[0]
        found: list[Any] = list(route.get_qdiscs(index=index))
        return [
            q.get_attr("TCA_OPTIONS").get_attr("TCA_TBF_PARMS")["rate"] * 8
            for q in found
            if q["index"] == index and q.get_attr("TCA_KIND") == "tbf"
        ]
