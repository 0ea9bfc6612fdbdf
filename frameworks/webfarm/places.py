"""What is asked of the world around: addresses of agents, and why nothing is offered."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import Final

from mesos_py.errors import MesosPyError, Unavailable
from mesos_py.operator import OperatorClient

ANSWER_S: Final = 5.0


class Places:
    # An agent whose name means nothing is asked for again after this long.
    retry_s: Final = 60.0

    def __init__(self, master: str) -> None:
        self._master = master
        # By agent id.  Kept, so that an agent that is known is not asked about again.
        self._known: dict[str, str] = {}

    async def address(self, agent_id: str, hostname: str) -> str:
        """Where the balancer reaches the agent: the address by which it has registered, else
        what its name means here.  Raises Unavailable."""
        if agent_id not in self._known:
            self._known |= await asyncio.to_thread(self._registered)
        if agent_id not in self._known:
            self._known[agent_id] = await self._resolved(hostname)
        return self._known[agent_id]

    def _registered(self) -> dict[str, str]:
        try:
            with OperatorClient(self._master, timeout_s=ANSWER_S) as client:
                infos = [each.agent_info for each in client.agents()]
        except MesosPyError:
            return {}
        return {info.id.value: info.ip for info in infos if _is_address(info.ip)}

    async def _resolved(self, hostname: str) -> str:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(hostname, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise Unavailable(f"the name {hostname!r} has no address here: {error}") from error
        best = min(found, key=lambda each: each[0] != socket.AF_INET)
        return str(best[4][0])

    async def reasons(self, framework_id: str) -> list[str]:
        """What the master says of what is waited for; empty when that cannot be had: an
        explanation is not worth an error."""

        def ask() -> list[str]:
            with OperatorClient(self._master, timeout_s=ANSWER_S) as client:
                answer = client.explain(framework_id)
            return [text for each in answer for text in each.findings]

        try:
            return await asyncio.to_thread(ask)
        except MesosPyError:
            return []


def _is_address(text: str) -> bool:
    """Of one machine: an agent that listens at all of its addresses may say 0.0.0.0."""
    try:
        return not ipaddress.ip_address(text).is_unspecified
    except ValueError:
        return False


__all__ = ["Places"]
