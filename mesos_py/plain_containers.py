"""Containers without an image, from few words: limits of processes, networks.

Agents need `--isolation rlimits,network` for them; others refuse such tasks in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from mesos_py.errors import InvalidValue
from mesos_py.v1.types_pb2 import ContainerInfo, NetworkInfo, RLimitInfo

# A soft limit and a hard one, one number for both, or None: no limit.
Limit: TypeAlias = int | tuple[int, int] | None

_MAX: Final = 2**63 - 1
_TYPES: Final = {
    name.removeprefix("RLMT_").lower(): number
    for name, number in RLimitInfo.RLimit.Type.items()
    if number != RLimitInfo.RLimit.UNKNOWN
}


def plain_container(
    *,
    network: str | None = None,
    ports: Mapping[int, int] | None = None,
    egress: str | None = None,
    ingress: str | None = None,
    rlimits: Mapping[str, Limit] | None = None,
) -> ContainerInfo:
    """A container for `command_task` and `custom_executor` that is no docker container.

    network: "mesos-py" for a network of its own at the agent's bridge, "none" for one
        with nothing but loopback, "host" or None for the machine's.
    ports: from ports of the container to those of the task that lead to them; the task
        must ask for these.  None: each port of the task to the same number.
    egress, ingress: how much may go out and come in, such as "10mbit"; None: no limit.
    rlimits: by their names of setrlimit, such as nofile; (soft, hard), one number for
        both, or None for no limit.

    Ports and rates mean "mesos-py" unless a network is named.  Raises InvalidValue.
    """
    container = ContainerInfo(type=ContainerInfo.MESOS)
    if rlimits:
        container.rlimit_info.CopyFrom(rlimit_info(rlimits))
    if network is not None or ports or egress or ingress:
        container.network_infos.append(_network(network, ports or {}, egress, ingress))
    return container


def rlimit_info(limits: Mapping[str, Limit]) -> RLimitInfo:
    """Limits in the form of the wire.  Raises InvalidValue for what is no limit."""
    info = RLimitInfo()
    for name, limit in limits.items():
        number = _TYPES.get(name.lower())
        if number is None:
            reason = f"is no limit; there are: {', '.join(_TYPES)}"
            raise InvalidValue("rlimits", name, reason)
        made = info.rlimits.add(type=number)
        if limit is not None:
            soft, hard = limit if isinstance(limit, tuple) else (limit, limit)
            if not 0 <= soft <= hard <= _MAX:
                raise InvalidValue(f"rlimits.{name}", limit, "must be 0 <= soft <= hard")
            made.soft, made.hard = soft, hard
    return info


def parse_rlimit(text: str) -> tuple[str, Limit]:
    """A limit from "nofile=1024", "nofile=1024:2048" or "core=unlimited".

    Raises InvalidValue.
    """
    name, equals, value = text.partition("=")
    soft, colon, hard = value.partition(":")
    if not equals or not name:
        raise InvalidValue("rlimit", text, "must be NAME=LIMIT, such as nofile=1024:2048")
    if value == "unlimited":
        return name, None
    if not all(part.isascii() and part.isdigit() for part in (soft, hard or soft)) or (
        colon and not hard
    ):
        raise InvalidValue(
            "rlimit", text, "must have numbers SOFT:HARD, one for both, or unlimited"
        )
    return name, (int(soft), int(hard or soft))


def _network(
    name: str | None, ports: Mapping[int, int], egress: str | None, ingress: str | None
) -> NetworkInfo:
    info = NetworkInfo(name=name if name is not None else "mesos-py")
    for container_port, host_port in ports.items():
        for port in (container_port, host_port):
            if not 1 <= port <= 65535:
                raise InvalidValue("ports", port, "must be 1 to 65535")
        info.port_mappings.add(container_port=container_port, host_port=host_port)
    for key, value in (("egress", egress), ("ingress", ingress)):
        if value is not None:
            info.labels.labels.add(key=key, value=value)
    return info


__all__ = ["Limit", "parse_rlimit", "plain_container", "rlimit_info"]
