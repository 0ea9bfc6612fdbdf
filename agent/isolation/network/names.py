"""What the agent's network devices are called, and whose they are.  Pure.

A device's name has at most 15 characters: ours are hashes, so that they do not collide.
Whose a device is says its alias, which holds the full ids, and nothing else does.
"""

from __future__ import annotations

import hashlib
from ipaddress import IPv4Address
from typing import Final, NamedTuple

from mesos_py.errors import InvalidValue

_MARK: Final = "mesos-py"
# What the names of all agents' bridges begin with.
BRIDGES: Final = "mpb"
# IFALIASZ of the kernel, without the end of the text.
MAX_ALIAS: Final = 255


class Owner(NamedTuple):
    """What the alias of a container's device says."""

    agent_id: str
    container_id: str
    address: IPv4Address


def bridge(agent_id: str) -> str:
    return f"{BRIDGES}{_digest(agent_id)}"


def veth(agent_id: str, container_id: str) -> str:
    """The host's end of the pair that leads into a container."""
    return f"mpv{_digest(agent_id, container_id)}"


def shaper(agent_id: str, container_id: str) -> str:
    """The device that slows down what comes out of a container."""
    return f"mpi{_digest(agent_id, container_id)}"


def table(agent_id: str) -> str:
    """The agent's table of nftables."""
    return f"{_MARK}/{agent_id}"


def bridge_alias(agent_id: str) -> str:
    return _checked(f"{_MARK} {agent_id}")


def alias(owner: Owner) -> str:
    return _checked(f"{_MARK} {owner.agent_id} {owner.container_id} {owner.address}")


def owner_of(alias: str | None) -> Owner | None:
    """Read the alias of a container's device; None if it is not one of any agent's."""
    words = (alias or "").split(" ")
    if len(words) != 4 or words[0] != _MARK or not words[1] or not words[2]:
        return None
    try:
        return Owner(words[1], words[2], IPv4Address(words[3]))
    except ValueError:
        return None


def mac(address: IPv4Address) -> str:
    """A hardware address that follows from the other one: neighbours' caches stay true."""
    return ":".join(f"{byte:02x}" for byte in (0x02, 0x6D, *address.packed))


def _digest(*ids: str) -> str:
    # Ids have no spaces.
    return hashlib.sha256(" ".join(ids).encode()).hexdigest()[:12]


def _checked(text: str) -> str:
    if len(text.encode()) > MAX_ALIAS:
        raise InvalidValue("alias", text, f"is longer than {MAX_ALIAS} bytes")
    return text
