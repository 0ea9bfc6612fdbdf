"""The agent's flags for HTTP."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from mesos_py import config
from mesos_py.config import at_least, flag
from mesos_py.http.server import Limits


@dataclass(frozen=True)
class HttpFlags:
    """Inherited by `AgentFlags`."""

    http_port: int = flag(
        5051,
        kind=config.port_number,
        help="Port for HTTP: executors written for Mesos, sandboxes and published data, metrics;"
        " 0 picks one, and keeps it over restarts while it is free",
    )
    advertise_http_port: int | None = flag(
        None, kind=config.port_number, help="HTTP port that others are told (default: http-port)"
    )
    http_max_body_bytes: int = flag(
        32 * 1024 * 1024,
        kind=config.size_bytes,
        check=at_least(1024),
        help="No request over HTTP may be larger",
    )
    http_max_connections: int = flag(
        10_000,
        kind=config.integer,
        check=at_least(1),
        help="When so many clients are connected over HTTP, the longest idle makes room",
    )
    http_heartbeat_after_event: bool = flag(
        False,
        kind=config.boolean,
        help="Send a heartbeat right after each event to executors that come over HTTP, for"
        " those that see a record only when the next one has come",
    )
    http_heartbeat_interval_s: float = flag(
        30.0,
        kind=config.duration_s,
        check=at_least(0.01),
        help="How often a stream of what a container writes has a heartbeat",
    )
    executor_heartbeat_interval_s: float = flag(
        1800.0,
        kind=config.duration_s,
        check=at_least(0.01),
        help="How often executors that have subscribed over HTTP are sent a heartbeat",
    )

    def http_limits(self) -> Limits:
        """What the server takes from its clients."""
        return Limits(body_bytes=self.http_max_body_bytes, connections=self.http_max_connections)


def executor_ip(ip: str, advertised: str | None) -> str:
    """The address by which executors on this machine reach an agent that listens on `ip`.

    One that listens on all addresses is reached by the one that others are told, also from
    a network of the executor's own; without that, on the loopback.
    """
    listening = ipaddress.ip_address(ip)
    if not listening.is_unspecified:
        return ip
    return advertised or ("127.0.0.1" if listening.version == 4 else "::1")
