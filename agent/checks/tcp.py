"""TCP probes: whether a port can be connected to."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence

from agent.checks.dial import open_socket
from agent.core.health import Outcome
from mesos_py.health import TcpProbe


async def tried(probe: TcpProbe, namespaces: Sequence[str]) -> Outcome:
    """Connect, and close again without a word."""
    family, host = (socket.AF_INET6, "::1") if probe.ipv6 else (socket.AF_INET, "127.0.0.1")
    try:
        with open_socket(family, namespaces) as made:
            await asyncio.get_running_loop().sock_connect(made, (host, probe.port))
    except OSError as error:
        return Outcome(False, 0, f"port {probe.port}: {why(error)}")
    return Outcome(True, 1, f"port {probe.port} took a connection")


def why(error: OSError) -> str:
    """The reason alone, as people know it."""
    return os.strerror(error.errno) if error.errno else str(error) or type(error).__name__
