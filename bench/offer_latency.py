"""On an idle cluster: from the moment that something is free to its offer.

The master is real; the agent is a stream of this process, so that both ends of what is
measured are seen by one clock.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

import grpc.aio

from bench.processes import processes
from bench.report import Result, Row
from bench.stats import Spread, percentile
from mesos_py import rpc
from mesos_py.resources import Resources
from mesos_py.scheduler.aio import SchedulerClient
from mesos_py.states import TASK_FINISHED, TASK_RUNNING
from mesos_py.tasks import command_task
from mesos_py.v1 import agent_pb2, agent_pb2_grpc, operator_pb2, operator_pb2_grpc
from mesos_py.v1 import types_pb2 as pb
from mesos_py.v1.scheduler_pb2 import Event

AMOUNT: Final = Resources.parse("cpus:1;mem:128")
WITHIN_S: Final = 120.0
# Between two measurements nothing happens: the cluster is idle again.
PAUSE_S: Final = 0.03
CASES: Final = ("new agent", "task ended", "declined by another")


@dataclass
class Run:
    """Milliseconds, by case; and those of one call to the master and back."""

    cases: dict[str, list[float]] = field(default_factory=lambda: {case: [] for case in CASES})
    floors: list[float] = field(default_factory=list)


class Agent:
    """One agent with room for one task, which ends when it is told to."""

    def __init__(self, channel: grpc.aio.Channel, number: int) -> None:
        self._call: Any = agent_pb2_grpc.AgentServiceStub(channel).Connect()
        self._info = pb.AgentInfo(
            hostname=f"host-{number}", ip="127.0.0.1", port=number, resources=AMOUNT.to_proto()
        )
        self._reader = asyncio.create_task(self._read())
        self._running: asyncio.Future[agent_pb2.Event.RunTasks]
        self._running = asyncio.get_running_loop().create_future()

    async def register(self) -> None:
        register = agent_pb2.Call.Register(
            agent_info=self._info, version="bench", protocol_version=rpc.PROTOCOL_VERSION
        )
        await self._write(agent_pb2.Call(type=agent_pb2.Call.REGISTER, register=register))

    async def end_task(self) -> None:
        run = await self._running
        self._running = asyncio.get_running_loop().create_future()
        status = pb.TaskStatus(
            task_id=run.tasks[0].task_id,
            state=TASK_RUNNING,
            agent_id=self._info.id,
            uuid=(1).to_bytes(16, "big"),
        )
        # As an agent reports it whose RUNNING still waits for its acknowledgement.
        update = agent_pb2.Call.Update(
            framework_id=run.framework_info.id, status=status, latest_state=TASK_FINISHED
        )
        await self._write(agent_pb2.Call(type=agent_pb2.Call.UPDATE, update=update))

    async def unregister(self) -> None:
        gone = agent_pb2.Call.Unregister(message="the bench is done with it")
        await self._write(agent_pb2.Call(type=agent_pb2.Call.UNREGISTER, unregister=gone))
        await self._reader

    async def _write(self, call: agent_pb2.Call) -> None:
        await self._call.write(agent_pb2.Calls(calls=[call]))

    async def _read(self) -> None:
        async for events in self._call:
            for event in events.events:
                if event.type == agent_pb2.Event.RUN_TASKS:
                    self._running.set_result(event.run_tasks)
                elif event.type == agent_pb2.Event.REGISTERED:
                    self._info.id.CopyFrom(event.registered.agent_id)
