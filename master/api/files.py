"""Logs for clients that can reach only the master: relayed from the agents."""

from __future__ import annotations

from collections.abc import AsyncIterator

import grpc.aio

from master.api.agents import AgentChannels, address_of
from master.core.cluster import Cluster
from master.core.records import Task
from mesos_py import rpc
from mesos_py.errors import NotFound, Unavailable
from mesos_py.states import short_name
from mesos_py.v1 import agent_pb2, agent_pb2_grpc
from mesos_py.v1 import types_pb2 as pb


class LogRelay:
    """Reads from the agents' own servers."""

    def __init__(self, channels: AgentChannels) -> None:
        self._channels = channels

    async def read(
        self, c: Cluster, task: Task, request: agent_pb2.ReadLogRequest
    ) -> AsyncIterator[agent_pb2.LogChunk]:
        """The chunks of a file of the task's sandbox.

        Raises NotFound for tasks that never reached an agent, with what became of
        them, and Unavailable naming an agent that is away.
        """
        agent = c.agents.get(task.agent_id)
        if agent is None:
            raise Unavailable(f"agent {task.agent_id} of task {task.task_id!r} is gone")
        if task.launched_wall_s is None:
            why = task.statuses[-1].message if task.statuses else short_name(task.state)
            raise NotFound("log", task.task_id, f"the task never started: {why}")
        if not agent.connected:
            raise Unavailable(f"agent {agent.info.hostname} ({agent.agent_id}) is not connected")
        relayed = agent_pb2.ReadLogRequest()
        relayed.CopyFrom(request)
        relayed.framework_id.CopyFrom(pb.FrameworkID(value=task.framework_id))
        address = address_of(agent)
        stub: agent_pb2_grpc.AgentFilesAsyncStub = agent_pb2_grpc.AgentFilesStub(
            self._channels.to(agent)
        )
        try:
            async for chunk in stub.ReadLog(relayed):
                yield chunk
        except grpc.aio.AioRpcError as error:
            raise rpc.from_rpc_error(error, f"agent {agent.info.hostname} at {address}") from error
