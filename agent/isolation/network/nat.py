"""Which ports of this machine lead to which container: the agent's table, by netlink.

Raises OSError with the kernel's number for whatever it refuses.
"""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Sequence
from ipaddress import IPv4Network
from typing import Any, Final

from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.nfnetlink import nfgen_msg
from pyroute2.netlink.nfnetlink import nftsocket as nft
from pyroute2.netlink.nfnetlink.nfctsocket import NFCTAttrTuple, NFCTSocket
from pyroute2.nftables.main import NFTables

from agent.isolation.network import rules
from agent.isolation.network.links import said
from agent.isolation.network.rules import Entry

# The buffer of a netlink socket takes so many elements of the map at once.
_AT_ONCE: Final = 2 * rules.CHUNK
# For each port the kernel looks through all that it remembers: not for a thousand ports.
_FORGOTTEN: Final = 16


class Nat:
    """The table of one agent.  For one thread at a time."""

    def __init__(self, table: str) -> None:
        self._table = table

    def exists(self) -> bool:
        with said("list the tables of nftables"), _netlink() as netlink:
            found = netlink.request_get(nfgen_msg(), nft.NFT_MSG_GETTABLE)
            return any(each.get_attr("NFTA_TABLE_NAME") == self._table for each in found)

    def make(self, bridge: str, network: IPv4Network, ports: Sequence[Entry] = ()) -> None:
        """Have the table, with these ports only."""
        first, rest = ports[:_AT_ONCE], ports[_AT_ONCE:]
        self._send("make the table", rules.new_table(self._table, bridge, network, first))
        self.change((), rest)

    def drop(self) -> None:
        """The table need not be there."""
        self._send("remove the table", rules.drop_table(self._table))

    def ports(self) -> list[Entry]:
        """What is in the map; nothing if there is no table."""
        request, kind = rules.all_elements(self._table)
        try:
            with said(f"list the ports of {self._table}"), _netlink() as netlink:
                return rules.read(netlink.request_get(request, kind))
        except OSError as error:
            if error.errno == errno.ENOENT:
                return []
            raise

    def change(self, removed: Sequence[Entry], added: Sequence[Entry]) -> None:
        """Each entry of `removed` must be there, those of `added` must not, else nothing
        happens, and OSError is raised."""
        if len(removed) + len(added) <= _AT_ONCE:
            messages = rules.remove(self._table, removed) + rules.add(self._table, added)
            if messages:
                self._send("map ports", messages)
            return
        for start in range(0, len(removed), _AT_ONCE):
            self.change(removed[start : start + _AT_ONCE], ())
        for start in range(0, len(added), _AT_ONCE):
            self.change((), added[start : start + _AT_ONCE])

    def _send(self, what: str, messages: Sequence[Any]) -> None:
        with said(f"{what} in {self._table}"), _netlink() as netlink:
            netlink.nlm_request_batch(rules.batch(messages))


def forget(ports: Sequence[Entry]) -> None:
    """Have the kernel forget who sent datagrams to these ports, and where they were led.

    A client that goes on sending would go on to reach the old container's address, for
    minutes.  New connections of tcp are led anew by themselves.
    """
    wanted = [each for each in ports if each.protocol == "udp"][:_FORGOTTEN]
    if not wanted:
        return
    with said("forget datagrams"):
        for each in wanted:
            for original in _tracked(each):
                # That of pyroute2 can be asked once only.
                with NFCTSocket() as netlink, contextlib.suppress(NetlinkError):
                    netlink.entry("del", tuple_orig=original)


def _tracked(port: Entry) -> list[Any]:
    """Flows that were led from this port to this address."""
    sought = NFCTAttrTuple(proto=socket.IPPROTO_UDP, dport=port.host_port)
    with NFCTSocket() as netlink:
        return [
            _tuple(found, "ORIG")
            for found in netlink.dump(tuple_orig=sought)
            if _tuple(found, "REPLY").saddr == str(port.address)
        ]


def _tuple(found: Any, name: str) -> Any:
    return NFCTAttrTuple.from_netlink(socket.AF_INET, found.get_attr(f"CTA_TUPLE_{name}"))


def _netlink() -> Any:
    return NFTables(nfgen_family=socket.AF_INET)
