"""What goes wrong on the way between hosts: packets that vanish, links that are slow.

Packets are dropped on the switch, by nftables: whoever sent them is told nothing, as
with a broken cable.  All faults of the moment are one table, replaced as a whole.

A slow link is a token bucket at both ends of a host's cable; what waits in it is late.
(The scheduler netem, which delays each packet by the same time, is not in every kernel.)
"""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from pyroute2 import IPRoute
from pyroute2.netlink.rtnl import TC_H_ROOT

from tests.kit.chaos.hosts import Host, Network, index_of

_TABLE: Final = "bridge faults"
_CHAIN: Final = "chain forward { type filter hook forward priority 0; policy accept;"
_MOMENT_S: Final = 10.0
# At least one whole packet of veth, which offloads: up to 64 KB.
_BURST: Final = 65_536
_QUEUE: Final = "2s"


@dataclass(frozen=True)
class Drop:
    """Packets of this kind vanish, so many of a thousand; what is None may be anything."""

    source: str | None = None
    target: str | None = None
    port: int | None = None
    per_thousand: int = 1000

    def rule(self) -> str:
        parts = ["meta protocol ip"]
        if self.source is not None:
            parts.append(f"ip saddr {self.source}")
        if self.target is not None:
            parts.append(f"ip daddr {self.target}")
        if self.port is not None:
            parts.append(f"tcp dport {self.port}")
        if self.per_thousand < 1000:
            parts.append(f"numgen random mod 1000 < {self.per_thousand}")
        return " ".join([*parts, "counter drop"])


def one_way(source: Host, target: Host) -> list[Drop]:
    return [Drop(source.address, target.address)]


def both_ways(one: Host, other: Host) -> list[Drop]:
    return [*one_way(one, other), *one_way(other, one)]


def lossy(per_thousand: int) -> list[Drop]:
    """Everybody loses so many packets of a thousand."""
    return [Drop(per_thousand=per_thousand)]


def table(drops: Iterable[Drop]) -> str:
    """The rules, as nft reads them, in place of those that were there."""
    rules = "\n".join(f"    {drop.rule()}" for drop in drops)
    return f"table {_TABLE}\ndelete table {_TABLE}\ntable {_TABLE} {{\n{_CHAIN}\n{rules}\n}}\n}}\n"


class Wires:
    """The faults of the moment.  A fault that was added twice is there until it was
    taken away twice."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._drops: list[Drop] = []
        self._dropped_before = 0

    def add(self, drops: Iterable[Drop]) -> None:
        self._replace([*self._drops, *drops])

    def remove(self, drops: Iterable[Drop]) -> None:
        left = list(self._drops)
        for drop in drops:
            left.remove(drop)
        self._replace(left)

    def dropped(self) -> int:
        """How many packets have vanished so far."""
        return self._dropped_before + self._dropped_now()

    def _dropped_now(self) -> int:
        if not self._drops:
            return 0
        words = self._nft("list", "table", *_TABLE.split()).split()
        return sum(int(count) for word, count in itertools.pairwise(words) if word == "packets")

    def slow(self, host: Host, bytes_s: int) -> None:
        """What leaves the host, and what comes to it, is let through no faster."""

        def throttle(device: str) -> Callable[[], None]:
            return lambda: _throttle(device, bytes_s)

        host.inside(throttle("eth0"))
        self._network.on_switch(throttle(host.port))

    def fast(self, host: Host) -> None:
        host.inside(lambda: _free("eth0"))
        self._network.on_switch(lambda: _free(host.port))

    def _replace(self, drops: list[Drop]) -> None:
        # The counters go with the rules.
        self._dropped_before = self.dropped()
        self._nft("-f", "-", text=table(drops))
        self._drops = drops

    def _nft(self, *args: str, text: str = "") -> str:
        def run() -> str:
            ended = subprocess.run(
                ["nft", *args], input=text, capture_output=True, text=True, timeout=_MOMENT_S
            )
            assert ended.returncode == 0, f"nft {args}: {ended.stderr}\n{text}"
            return ended.stdout

        return self._network.on_switch(run)


def _throttle(device: str, bytes_s: int) -> None:
    with IPRoute() as route:
        index = index_of(route, device)
        route.tc("replace", "tbf", index, rate=bytes_s, burst=_BURST, latency=_QUEUE)


def _free(device: str) -> None:
    with IPRoute() as route:
        route.tc("del", index=index_of(route, device), parent=TC_H_ROOT)
