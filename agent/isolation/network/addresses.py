"""The addresses of an agent's containers: a range, its gateway, who has which.  Pure."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Final

from mesos_py.errors import InsufficientResources, InvalidValue

FIELD: Final = "network-range"
# Room for at least a gateway and a few containers; at most what one link can bear.
NARROWEST: Final = 29
WIDEST: Final = 12


def parse_range(text: str) -> IPv4Network:
    """Raises InvalidValue for what is no range of addresses, or none to use."""
    try:
        found = IPv4Network(text)
    except ValueError as error:
        raise InvalidValue(FIELD, text, f"is no range of IPv4 addresses: {error}") from None
    if not WIDEST <= found.prefixlen <= NARROWEST:
        raise InvalidValue(FIELD, text, f"must be a /{WIDEST} to /{NARROWEST}")
    unusable = (found.is_multicast, found.is_loopback, found.is_link_local, found.is_unspecified)
    if any(unusable) or found.is_reserved:
        raise InvalidValue(FIELD, text, "has addresses that no container can have")
    return found


def check_range(text: str) -> None:
    """As the check of a flag: raises ValueError."""
    try:
        parse_range(text)
    except InvalidValue as error:
        raise ValueError(error.reason) from None


def overlap(
    wanted: IPv4Network, others: Iterable[tuple[str, IPv4Interface]]
) -> tuple[str, IPv4Interface] | None:
    """The first of the addresses of other devices that lies in the range or around it."""
    return next((each for each in others if wanted.overlaps(each[1].network)), None)


class Pool:
    """Who has which address.

    Addresses are given in turn, so that one that became free rests as long as it can:
    connections to its last holder may still be remembered.
    """

    def __init__(self, network: IPv4Network) -> None:
        self.network = network
        self.gateway = network.network_address + 1
        self._first = int(self.gateway) + 1
        self._count = network.num_addresses - 3
        self._next = 0
        self._holders: dict[IPv4Address, str] = {}

    def __len__(self) -> int:
        return len(self._holders)

    def take(self, holder: str) -> IPv4Address:
        """The next free address.  Raises InsufficientResources when there is none."""
        for step in range(self._count):
            place = (self._next + step) % self._count
            address = IPv4Address(self._first + place)
            if address not in self._holders:
                self._holders[address] = holder
                self._next = place + 1
                return address
        raise InsufficientResources(
            f"all {self._count} addresses of {self.network} are taken (--network-range)",
            range=str(self.network),
        )

    def hold(self, address: IPv4Address, holder: str) -> None:
        """It has the address already; it need not be one of the range of today."""
        self._holders[address] = holder
        self.rest(address)

    def rest(self, address: IPv4Address) -> None:
        """Somebody had it until a moment ago: it is the last to be given again."""
        if address in self.network:
            self._next = max(self._next, int(address) - self._first + 1)

    def release(self, address: IPv4Address, holder: str) -> None:
        """Nothing happens if somebody else has it by now."""
        if self._holders.get(address) == holder:
            del self._holders[address]
