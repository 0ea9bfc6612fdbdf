"""What the master and the agents say beside the subscription: sizes, addresses, reasons."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from frameworks.common.gang import Ask, never_fits, over
from frameworks.runtime.addresses import address_of
from mesos_py import MesosPyError, Resources
from mesos_py.operator import OperatorClient
from mesos_py.v1.types_pb2 import Value

ANSWER_S: Final = 10.0


@dataclass(frozen=True)
class Agent:
    """One agent, as registered."""

    agent_id: str
    hostname: str
    address: str
    port: int
    size: Resources


@dataclass(frozen=True)
class Limits:
    """What an operator has set for a role, or one above it."""

    role: str
    limit: Resources
    guarantee: Resources


class Master:
    """Questions to the master; each waits for its answer on a thread."""

    def __init__(self, where: str) -> None:
        self._where = where

    async def agents(self) -> dict[str, Agent]:
        """The active agents, by id.  Raises MasterUnreachable."""
        return await asyncio.to_thread(self._agents)

    async def limits(self, role: str) -> list[Limits]:
        """Of the role and those above it, as far as something is set."""
        return await asyncio.to_thread(self._limits, role)

    async def reasons(self, framework_id: str) -> list[str]:
        """Why the framework gets nothing, what matters most first; nothing if it cannot be had."""
        return await asyncio.to_thread(self._reasons, framework_id)

    def _agents(self) -> dict[str, Agent]:
        with OperatorClient(self._where, timeout_s=ANSWER_S) as client:
            rows = [row for row in client.agents() if row.active and not row.deactivated]
        found = {}
        for row in rows:
            info = row.agent_info
            size = Resources.from_proto("total", row.total_resources)
            address = info.ip or address_of(info.hostname)
            found[info.id.value] = Agent(info.id.value, info.hostname, address, info.port, size)
        return found

    def _limits(self, role: str) -> list[Limits]:
        parts = role.split("/")
        names = {"/".join(parts[:count]) for count in range(1, len(parts) + 1)}
        with OperatorClient(self._where, timeout_s=ANSWER_S) as client:
            return [
                Limits(row.name, _amounts(row.policy.limits), _amounts(row.policy.guarantees))
                for row in client.roles()
                if row.name in names
            ]

    def _reasons(self, framework_id: str) -> list[str]:
        with contextlib.suppress(MesosPyError):
            with OperatorClient(self._where, timeout_s=ANSWER_S) as client:
                told = client.explain(framework_id)
            return [text for each in told for text in each.findings]
        return []


def refusal(
    ask: Ask, agents: Mapping[str, Agent], limits: Sequence[Limits], *, beyond: bool
) -> str:
    """Why the job can never run on this cluster as it is, with numbers; "" if it can."""
    found = never_fits(ask, [agent.size for agent in agents.values()])
    for each in limits:
        found = found or over(ask, each.limit, f"role {each.role!r} is limited to")
        if not beyond:
            words = f"role {each.role!r} is guaranteed (--beyond-guarantee takes more)"
            found = found or over(ask, each.guarantee, words)
    return found


def _amounts(found: Mapping[str, Value.Scalar]) -> Resources:
    return Resources.of(None, **{name: amount.value for name, amount in found.items()})


async def answers(agent: Agent, within_s: float) -> bool:
    """Whether something listens where the agent does."""
    try:
        async with asyncio.timeout(within_s):
            _, writer = await asyncio.open_connection(agent.address, agent.port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True
