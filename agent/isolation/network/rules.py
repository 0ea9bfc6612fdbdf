"""The agent's table of nftables, as netlink messages.  Pure.

    table ip mesos-py/AGENT {
        map ports {
            type inet_proto . inet_service : ipv4_addr . inet_service
            elements = { tcp . 31000 : 10.213.0.2 . 80 }
        }
        chain prerouting {  # and the same at the hook output: connections of this machine
            type nat hook prerouting priority dstnat
            fib daddr type local dnat ip to meta l4proto . th dport map @ports
        }
        chain postrouting {
            type nat hook postrouting priority srcnat
            ip saddr RANGE oifname != BRIDGE masquerade
            ip saddr RANGE oifname BRIDGE ct status dnat masquerade
        }
        chain forward {
            type filter hook forward priority filter
            oifname BRIDGE iifname != BRIDGE ct state != established,related ct status != dnat drop
        }
    }

One table for an agent, whose name has the agent's full id; one element for a port, found
by hash however many there are.  The last rule is for a container that connects to a
port of the machine that leads back to the bridge: the answer must pass here too.  Who
routes packets to a container's address from outside, past the ports, is not let in.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network
from typing import Any, Final, NamedTuple

from pyroute2.netlink import NLM_F_ACK, NLM_F_CREATE, NLM_F_REQUEST
from pyroute2.netlink.nfnetlink import NFNL_SUBSYS_NFTABLES, nfgen_msg
from pyroute2.netlink.nfnetlink import nftsocket as nft
from pyroute2.nftables.expressions import genex

from agent.isolation.network.asked import PortMapping

MAP: Final = "ports"
# What goes into one message: an attribute of netlink ends at 64 KB.
CHUNK: Final = 500
# linux/netfilter/nfnetlink.h: the edges of what takes effect as one.
_BATCH_BEGIN: Final = 0x10
_BATCH_END: Final = 0x11

# linux/netfilter.h, nf_tables.h, rtnetlink.h, nf_conntrack_common.h
_PREROUTING, _FORWARD, _OUTPUT, _POSTROUTING = 0, 2, 3, 4
_DSTNAT, _FILTER, _SRCNAT = -100, 0, 100
_DROP, _ACCEPT = 0, 1
_REG_VERDICT: Final = 0
_REG_1: Final = 1
# Two registers of 4 bytes each, the first of which is where register 1 begins.
_REG32_00, _REG32_01 = 8, 9
_EQ, _NEQ = 0, 1
_META_IIFNAME, _META_OIFNAME, _META_L4PROTO = 6, 7, 16
_NETWORK_HEADER, _TRANSPORT_HEADER = 1, 2
_FIB_ADDRTYPE, _FIB_DADDR = 3, 2
_RTN_LOCAL: Final = 2
_CT_STATE, _CT_STATUS = 0, 2
_ESTABLISHED_OR_RELATED: Final = 1 << 1 | 1 << 2
_IPS_DST_NAT: Final = 1 << 5
_NAT_DST: Final = 1
# The types of nft(8), which it shows the map by: six bits for each part of a pair.
_INET_PROTO, _INET_SERVICE, _IPV4_ADDR = 12, 13, 7
_PROTOCOLS: Final = {"tcp": socket.IPPROTO_TCP, "udp": socket.IPPROTO_UDP}
_NAMES: Final = {number: name for name, number in _PROTOCOLS.items()}


class Entry(NamedTuple):
    """An element of the map."""

    protocol: str
    host_port: int
    address: IPv4Address
    container_port: int

    @property
    def key(self) -> tuple[str, int]:
        return self.protocol, self.host_port


def entries(mappings: Iterable[PortMapping], address: IPv4Address) -> list[Entry]:
    return [Entry(m.protocol, m.host_port, address, m.container_port) for m in mappings]


class _Rule(nft.nft_rule_msg):  # type: ignore[misc]
    class nft_expr(nft.nft_rule_msg.nft_expr):  # type: ignore[misc]  # noqa: N801
        # That of pyroute2 takes the result, a number, for a set of flags.
        class nft_fib(nft.nft_regs):  # type: ignore[misc]  # noqa: N801
            nla_map = (
                ("NFTA_FIB_UNSPEC", "none"),
                ("NFTA_FIB_DREG", "regs"),
                ("NFTA_FIB_RESULT", "be32"),
                ("NFTA_FIB_FLAGS", "be32"),
            )


def batch(messages: Sequence[Any]) -> list[Any]:
    """All of them, or none."""
    return [_edge(_BATCH_BEGIN), *messages, _edge(_BATCH_END)]


def new_table(table: str, bridge: str, network: IPv4Network, ports: Sequence[Entry]) -> list[Any]:
    """The table with these elements, in place of whatever is there under its name."""
    # To remove a table that is not there is an error: so it is made first.
    made = [_table(table, nft.NFT_MSG_NEWTABLE), _table(table, nft.NFT_MSG_DELTABLE)]
    made.append(_table(table, nft.NFT_MSG_NEWTABLE))
    made.append(
        _message(
            nft.nft_set_msg,
            nft.NFT_MSG_NEWSET,
            NLM_F_CREATE,
            table=table,
            name=MAP,
            flags={"NFT_SET_MAP"},
            key_type=_INET_PROTO << 6 | _INET_SERVICE,
            key_len=8,
            data_type=_IPV4_ADDR << 6 | _INET_SERVICE,
            data_len=8,
            id=1,
        )
    )
    for kind, name, hook, priority in (
        ("nat", "prerouting", _PREROUTING, _DSTNAT),
        ("nat", "output", _OUTPUT, _DSTNAT),
        ("nat", "postrouting", _POSTROUTING, _SRCNAT),
        ("filter", "forward", _FORWARD, _FILTER),
    ):
        made.append(_chain(table, kind, name, hook, priority))
    made += [_rule(table, chain, _to_container()) for chain in ("prerouting", "output")]
    made.append(_rule(table, "postrouting", _leaving(bridge, network)))
    made.append(_rule(table, "postrouting", _turning_back(bridge, network)))
    made.append(_rule(table, "forward", _unasked(bridge)))
    return made + add(table, ports)


def drop_table(table: str) -> list[Any]:
    return [_table(table, nft.NFT_MSG_NEWTABLE), _table(table, nft.NFT_MSG_DELTABLE)]


def add(table: str, ports: Sequence[Entry]) -> list[Any]:
    elements = [
        {
            "attrs": [
                ("NFTA_SET_ELEM_KEY", _data(_key(each.protocol, each.host_port))),
                (
                    "NFTA_SET_ELEM_DATA",
                    _data(each.address.packed + struct.pack("!H2x", each.container_port)),
                ),
            ]
        }
        for each in ports
    ]
    return _elements(table, nft.NFT_MSG_NEWSETELEM, NLM_F_CREATE, elements)


def remove(table: str, ports: Sequence[Entry]) -> list[Any]:
    """Fails as a whole if one of them is not there."""
    elements = [
        {"attrs": [("NFTA_SET_ELEM_KEY", _data(_key(each.protocol, each.host_port)))]}
        for each in ports
    ]
    return _elements(table, nft.NFT_MSG_DELSETELEM, 0, elements)


def all_elements(table: str) -> tuple[Any, int]:
    """The request for what is in the map, and its type."""
    request = nft.nft_set_elem_list_msg()
    request["attrs"] = [
        ("NFTA_SET_ELEM_LIST_TABLE", table),
        ("NFTA_SET_ELEM_LIST_SET", MAP),
    ]
    return request, nft.NFT_MSG_GETSETELEM


def read(answers: Iterable[Any]) -> list[Entry]:
    """The elements in the answers to `all_elements`; those that are not ours are left out."""
    found = []
    for answer in answers:
        for element in answer.get_attr("NFTA_SET_ELEM_LIST_ELEMENTS") or ():
            key = element.get_attr("NFTA_SET_ELEM_KEY").get_attr("NFTA_DATA_VALUE")
            data = element.get_attr("NFTA_SET_ELEM_DATA").get_attr("NFTA_DATA_VALUE")
            protocol = _NAMES.get(key[0])
            if protocol is not None and len(key) == len(data) == 8:
                (host_port,) = struct.unpack("!H", key[4:6])
                (container_port,) = struct.unpack("!H", data[4:6])
                found.append(Entry(protocol, host_port, IPv4Address(data[:4]), container_port))
    return found


# ---- Rules --------------------------------------------------------------------------


def _to_container() -> list[Any]:
    return [
        genex("fib", {"dreg": _REG_1, "result": _FIB_ADDRTYPE, "flags": _FIB_DADDR}),
        *_compare(_EQ, struct.pack("=I", _RTN_LOCAL)),
        genex("meta", {"dreg": _REG32_00, "key": _META_L4PROTO}),
        # Of tcp and udp alike the port; of others something that is not in the map.
        genex("payload", {"dreg": _REG32_01, "base": _TRANSPORT_HEADER, "offset": 2, "len": 2}),
        genex("lookup", {"set": MAP, "sreg": _REG_1, "dreg": _REG_1}),
        genex(
            "nat",
            {
                "type": _NAT_DST,
                "family": socket.AF_INET,
                "reg_addr_min": _REG32_00,
                "reg_proto_min": _REG32_01,
            },
        ),
    ]


def _leaving(bridge: str, network: IPv4Network) -> list[Any]:
    return [*_from(network), *_by(_META_OIFNAME, bridge, _NEQ), genex("masq", {})]


def _turning_back(bridge: str, network: IPv4Network) -> list[Any]:
    return [
        *_from(network),
        *_by(_META_OIFNAME, bridge, _EQ),
        *_tracked(_CT_STATUS, _IPS_DST_NAT, _NEQ),
        genex("masq", {}),
    ]


def _unasked(bridge: str) -> list[Any]:
    verdict = {"attrs": [("NFTA_VERDICT_CODE", _DROP)]}
    data = {"attrs": [("NFTA_DATA_VERDICT", verdict)]}
    return [
        *_by(_META_OIFNAME, bridge, _EQ),
        *_by(_META_IIFNAME, bridge, _NEQ),
        *_tracked(_CT_STATE, _ESTABLISHED_OR_RELATED, _EQ),
        *_tracked(_CT_STATUS, _IPS_DST_NAT, _EQ),
        genex("immediate", {"dreg": _REG_VERDICT, "data": data}),
    ]


def _tracked(key: int, bits: int, how: int) -> list[Any]:
    """None of the bits of the connection is set (_EQ), or one is (_NEQ)."""
    return [
        genex("ct", {"dreg": _REG_1, "key": key}),
        *_masked(struct.pack("=I", bits)),
        *_compare(how, bytes(4)),
    ]


def _from(network: IPv4Network) -> list[Any]:
    source = {"dreg": _REG_1, "base": _NETWORK_HEADER, "offset": 12, "len": 4}
    return [
        genex("payload", source),
        *_masked(network.netmask.packed),
        *_compare(_EQ, network.network_address.packed),
    ]


def _by(direction: int, device: str, how: int) -> list[Any]:
    name = device.encode().ljust(16, b"\0")
    return [genex("meta", {"dreg": _REG_1, "key": direction}), *_compare(how, name)]


def _masked(mask: bytes) -> list[Any]:
    fields = {"sreg": _REG_1, "dreg": _REG_1, "len": len(mask)}
    return [genex("bitwise", {**fields, "mask": _data(mask), "xor": _data(bytes(len(mask)))})]


def _compare(how: int, value: bytes) -> list[Any]:
    return [genex("cmp", {"sreg": _REG_1, "op": how, "data": _data(value)})]


# ---- Messages -----------------------------------------------------------------------


def _key(protocol: str, port: int) -> bytes:
    return struct.pack("!B3xH2x", _PROTOCOLS[protocol], port)


def _data(value: bytes) -> dict[str, Any]:
    return {"attrs": [("NFTA_DATA_VALUE", value)]}


def _table(name: str, kind: int) -> Any:
    create = NLM_F_CREATE if kind == nft.NFT_MSG_NEWTABLE else 0
    return _message(nft.nft_table_msg, kind, create, name=name)


def _chain(table: str, kind: str, name: str, hook: int, priority: int) -> Any:
    place = [("NFTA_HOOK_HOOKNUM", hook), ("NFTA_HOOK_PRIORITY", priority)]
    return _message(
        nft.nft_chain_msg,
        nft.NFT_MSG_NEWCHAIN,
        NLM_F_CREATE,
        table=table,
        name=name,
        hook={"attrs": place},
        type=kind,
        policy=_ACCEPT,
    )


def _rule(table: str, chain: str, expressions: list[Any]) -> Any:
    return _message(
        _Rule,
        nft.NFT_MSG_NEWRULE,
        NLM_F_CREATE,
        table=table,
        chain=chain,
        expressions=expressions,
    )


def _elements(table: str, kind: int, flags: int, elements: list[Any]) -> list[Any]:
    return [
        _message(
            nft.nft_set_elem_list_msg,
            kind,
            flags,
            table=table,
            set=MAP,
            elements=elements[start : start + CHUNK],
        )
        for start in range(0, len(elements), CHUNK)
    ]


def _message(cls: Any, kind: int, more_flags: int, /, **attributes: Any) -> Any:
    made = cls()
    made["attrs"] = [(cls.name2nla(name), value) for name, value in attributes.items()]
    made["header"]["type"] = NFNL_SUBSYS_NFTABLES << 8 | kind
    made["header"]["flags"] = NLM_F_REQUEST | NLM_F_ACK | more_flags
    made["nfgen_family"] = socket.AF_INET
    return made


def _edge(kind: int) -> Any:
    made = nfgen_msg()
    made["header"]["type"] = kind
    made["header"]["flags"] = NLM_F_REQUEST
    made["res_id"] = NFNL_SUBSYS_NFTABLES
    return made
