"""What masters publish of themselves: names and content of candidate nodes.

A candidate is an ephemeral sequential node `json.info_NNNNNNNNNN` with a MasterInfo as
JSON; the one with the smallest number leads.  Both are what clients of Mesos read, so
nothing else is kept under the same path.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterable
from typing import Any, Final

from mesos_py.address import Address, MasterAddress, parse_address
from mesos_py.errors import InvalidValue
from mesos_py.v1 import types_pb2 as pb

# What the name of a candidate begins with; ZooKeeper appends the number.
PREFIX: Final = "json.info_"
# What masters of long ago wrote: a MasterInfo in binary form.
_BINARY_PREFIX: Final = "info_"
_NUMBER: Final = re.compile(r"-?[0-9]{1,10}", re.ASCII)
_NUMERIC_VERSION: Final = re.compile(r"[0-9]+(\.[0-9]+)*", re.ASCII)
_Capability = pb.MasterInfo.Capability
# What clients may expect of a master that they find, or that has told them of itself.
CAPABILITIES: Final = (_Capability.AGENT_UPDATE, _Capability.AGENT_DRAINING, _Capability.QUOTA_V2)


def sequence_of(name: str) -> int | None:
    """The number of a candidate node; None for any other node."""
    number = name.removeprefix(PREFIX)
    if number == name or not _NUMBER.fullmatch(number):
        return None
    return int(number)


def leader_of(names: Iterable[str]) -> str | None:
    """The candidate that leads, among the children of the path; None: there is none."""
    numbered = [(number, name) for name in names if (number := sequence_of(name)) is not None]
    return min(numbered)[1] if numbered else None


def why_skipped(name: str) -> str | None:
    """Why a child of the path is no candidate; None if it is one."""
    if sequence_of(name) is not None:
        return None
    if name.startswith(_BINARY_PREFIX):
        return "holds a MasterInfo in the binary form of old masters, which is not read here"
    return "is not named as candidates are"


def encode(info: pb.MasterInfo) -> bytes:
    """The content of a candidate node.

    Raises InvalidValue for an address at which nobody could reach the master.
    """
    ip = ipaddress.ip_address(info.address.ip)
    if ip.is_unspecified:
        raise InvalidValue("ip", info.address.ip, "is no address that others can connect to")
    address = Address(info.address.ip, info.address.port)
    version = _NUMERIC_VERSION.match(info.version)
    content: dict[str, Any] = {
        "id": info.id,
        "ip": info.ip,
        "port": info.port,
        "pid": f"master@{address}",
        "hostname": info.hostname,
        # Clients turn each part into a number.
        "version": version.group() if version else "0",
        "address": {
            "hostname": info.address.hostname,
            "ip": info.address.ip,
            "port": info.address.port,
        },
        # Not known to Mesos: where our own peers find it.
        "grpc_port": info.grpc_port or info.address.port,
        "capabilities": [{"type": _Capability.Type.Name(each)} for each in CAPABILITIES],
    }
    return json.dumps(content).encode()


def decode(data: bytes) -> MasterAddress:
    """Where the master of a candidate node is.  Raises InvalidValue saying what is wrong."""
    try:
        content = json.loads(data)
    except ValueError as error:
        raise InvalidValue("MasterInfo", data[:100], f"is no JSON: {error}") from None
    address = content.get("address") if isinstance(content, dict) else None
    if not isinstance(address, dict):
        raise InvalidValue("MasterInfo.address", _shown(content), "must be an object")
    host, port = address.get("ip") or address.get("hostname"), address.get("port")
    if not isinstance(host, str) or type(port) is not int:
        reason = "must have an ip or a hostname, and a port"
        raise InvalidValue("MasterInfo.address", _shown(address), reason)
    named = address.get("hostname")
    http = parse_address(str(Address(host, port)), "MasterInfo.address")
    grpc_port = content.get("grpc_port")
    if type(grpc_port) is not int:
        grpc_port = port
    found = MasterAddress(*parse_address(str(Address(host, grpc_port)), "MasterInfo.grpc_port"))
    # Clients are sent to the name: it may be in a certificate.
    found.http = Address(named, port) if isinstance(named, str) and named else http
    return found


def _shown(content: object) -> str:
    return json.dumps(content)[:200]
