"""The master as `run` asks it beside its subscription: logs and explanations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

import grpc.aio

from mesos_py import rpc
from mesos_py.address import Address, parse_address
from mesos_py.election import parse_master
from mesos_py.errors import NotFound, NotLeader, Unavailable
from mesos_py.operator import advance
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import operator_pb2 as pb
from mesos_py.v1.operator_pb2_grpc import OperatorServiceStub

if TYPE_CHECKING:
    from mesos_py.v1.operator_pb2_grpc import OperatorServiceAsyncStub

ANSWER_S: Final = 5.0
# A log whose agent or master is away is waited for so long, and then given up.
PATIENCE_S: Final = 30.0
FIRST_PAUSE_S: Final = 0.05
MAX_PAUSE_S: Final = 2.0


class Relay:
    """Used from one event loop; `close` it at the end."""

    def __init__(self, master: str) -> None:
        self._detector = parse_master(master)
        self._channels: dict[Address, grpc.aio.Channel] = {}

    async def close(self) -> None:
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            await channel.close()
        await self._detector.close()

    async def explain(self, framework_id: str) -> list[str]:
        """What the master says of the framework, the most important first.

        Empty when it cannot be had: an explanation is not worth an error.
        """
        call = pb.Call(type=pb.Call.EXPLAIN)
        call.explain.framework_id.value = framework_id
        address = await self._detector.leader()
        try:
            answer = await self._stub(address).Execute(call, timeout=ANSWER_S)
        except grpc.aio.AioRpcError:
            return []
        return [text for each in answer.explain.frameworks for text in each.findings]

    async def read(
        self, framework_id: str, task_id: str, path: str, *, known: bool
    ) -> AsyncIterator[bytes]:
        """The file as it grows, until the task has ended and all of it was read.

        `known`: there is such a file; a master that has just started may not know of it
        before its agent is back.  Goes on where it was when a link breaks.  Raises
        Unavailable or NotFound when there was no sign of life for PATIENCE_S, and
        NotFound at once for a file that is not known to be there.
        """
        request = agent_pb2.ReadLogRequest(path=path, follow=True)
        request.framework_id.value = framework_id
        request.task_id.value = task_id
        loop = asyncio.get_running_loop()
        until, pause_s = loop.time() + PATIENCE_S, FIRST_PAUSE_S
        while True:
            address = await self._detector.leader()
            stream = self._stub(address).ReadLog(request)
            try:
                async for chunk in stream:
                    known = True
                    advance(request, chunk)
                    until, pause_s = loop.time() + PATIENCE_S, FIRST_PAUSE_S
                    yield chunk.data
                return
            except grpc.aio.AioRpcError as raw:
                error = rpc.from_rpc_error(raw, address)
            finally:
                stream.cancel()
            if isinstance(error, (Unavailable, NotLeader)):
                self._elsewhere(address, error)
                known = True
            elif not (known and isinstance(error, NotFound)):
                raise error
            if loop.time() + pause_s > until:
                raise error
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, MAX_PAUSE_S)

    def _elsewhere(self, address: Address, error: Unavailable | NotLeader) -> None:
        if isinstance(error, NotLeader) and error.leader:
            self._detector.hint(parse_address(error.leader))
        elif not isinstance(error, Unavailable) or error.fields.get("address"):
            # Not for what a master has said of an agent: that master is well.
            self._detector.failed(address)

    def _stub(self, address: Address) -> OperatorServiceAsyncStub:
        if address not in self._channels:
            self._channels[address] = rpc.open_channel(address)
        return OperatorServiceStub(self._channels[address])
