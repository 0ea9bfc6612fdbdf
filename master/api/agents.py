"""What the master asks of the agents' own servers, over one channel per agent."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from typing import Final

import grpc.aio

from master.core.cluster import Cluster
from master.core.records import Agent
from mesos_py import rpc
from mesos_py.address import Address
from mesos_py.errors import InvalidValue, MesosPyError, NotFound, Unavailable
from mesos_py.v1 import agent_operator_pb2, agent_operator_pb2_grpc
from mesos_py.v1 import operator_pb2 as op

USAGE_TIMEOUT_S: Final = 2.0
MAX_USAGE_TIMEOUT_S: Final = 30.0
# So many agents are asked at the same time, and so many containers fit into one answer.
MAX_PARALLEL: Final = 100
MAX_CONTAINERS: Final = 20_000

Containers = agent_operator_pb2.Response.GetContainers
Usage = op.Response.GetUsage


class AgentChannels:
    """One channel per address, for all who talk to agents; those of agents that are gone
    are closed when there are many."""

    def __init__(self) -> None:
        self._channels: dict[Address, grpc.aio.Channel] = {}

    def to(self, agent: Agent) -> grpc.aio.Channel:
        address = address_of(agent)
        channel = self._channels.get(address)
        if channel is None:
            channel = self._channels[address] = rpc.open_channel(address)
        return channel

    async def prune(self, agents: Iterable[Agent]) -> None:
        """Close those that lead to none of `agents`."""
        known = {address_of(agent) for agent in agents}
        for address in [each for each in self._channels if each not in known]:
            await self._channels.pop(address).close()

    async def close(self) -> None:
        await self.prune(())


def address_of(agent: Agent) -> Address:
    return Address(agent.info.ip or agent.info.hostname, agent.info.port)


class UsageRelay:
    """Asks agents what their containers use."""

    def __init__(self, channels: AgentChannels) -> None:
        self._channels = channels

    async def usage(self, c: Cluster, call: op.Call.GetUsage) -> Usage:
        """The answers of the agents that are asked for; those that are missing are named.

        Raises NotFound for an agent or a framework that is not known.
        """
        timeout_s = _timeout_s(call)
        framework_id = call.framework_id.value
        if framework_id and framework_id not in c.frameworks:
            raise NotFound("framework", framework_id)
        agents = _wanted(c, call.agent_id.value, framework_id)
        await self._channels.prune(c.agents.values())
        places = asyncio.Semaphore(MAX_PARALLEL)
        answer = Usage()
        room = MAX_CONTAINERS

        async def ask(agent: Agent) -> Containers | MesosPyError:
            async with places:
                return await self._ask(agent, timeout_s)

        for agent, found in zip(agents, await asyncio.gather(*map(ask, agents)), strict=True):
            agent_id, hostname = agent.info.id, agent.info.hostname
            if isinstance(found, MesosPyError):
                answer.missing.add(agent_id=agent_id, hostname=hostname, reason=found.message)
                continue
            entry = answer.agents.add(agent_id=agent_id, hostname=hostname)
            entry.total_resources.extend(agent.total.to_proto())
            for each in found.containers:
                if framework_id and each.framework_id.value != framework_id:
                    continue
                if room:
                    room -= 1
                    entry.containers.append(each)
                else:
                    answer.left_out += 1
        return answer

    async def _ask(self, agent: Agent, timeout_s: float) -> Containers | MesosPyError:
        name = f"agent {agent.info.hostname} ({agent.agent_id})"
        if not agent.connected:
            return Unavailable(f"{name} is not connected")
        stub: agent_operator_pb2_grpc.AgentOperatorServiceAsyncStub = (
            agent_operator_pb2_grpc.AgentOperatorServiceStub(self._channels.to(agent))
        )
        call = agent_operator_pb2.Call(type=agent_operator_pb2.Call.GET_CONTAINERS)
        try:
            async with asyncio.timeout(timeout_s):
                return (await stub.Execute(call)).get_containers
        except TimeoutError:
            return Unavailable(f"{name} did not answer within {timeout_s:g} s")
        except grpc.aio.AioRpcError as error:
            return rpc.from_rpc_error(error, f"{name} at {address_of(agent)}")


def _timeout_s(call: op.Call.GetUsage) -> float:
    if not call.HasField("timeout_seconds"):
        return USAGE_TIMEOUT_S
    given = call.timeout_seconds
    if math.isnan(given) or not 0 < given <= MAX_USAGE_TIMEOUT_S:
        why = f"must be more than 0 and at most {MAX_USAGE_TIMEOUT_S:g} seconds"
        raise InvalidValue("get_usage.timeout_seconds", given, why)
    return given


def _wanted(c: Cluster, agent_id: str, framework_id: str) -> list[Agent]:
    if agent_id:
        agent = c.agents.get(agent_id)
        if agent is None:
            raise NotFound("agent", agent_id)
        return [agent]
    if framework_id:
        framework = c.frameworks[framework_id]
        there = {task.agent_id for task in framework.tasks.values()}
        there.update(executor.agent_id for executor in framework.executors.values())
        return [c.agents[each] for each in sorted(there) if each in c.agents]
    return list(c.agents.values())
