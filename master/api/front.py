"""What all the world sees of a master, whether it leads or not.

The server lives as long as the process; leaderships come and go.  A master that does not
lead sends everybody to the one that does, and answers what is about itself.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final, TypeAlias

import grpc.aio

from master.api.operator import (
    OperatorService,
    flags_response,
    health_response,
    version_response,
)
from master.api.streams import Streams, add_streams
from master.api.turns import Turns
from mesos_py import rpc
from mesos_py.address import Address, MasterAddress
from mesos_py.errors import NotLeader
from mesos_py.v1 import agent_pb2, operator_pb2_grpc
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1 import types_pb2 as pb

# Well within the time that a peer waits for its first answer.
SOON_S: Final = 2.0

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]


class Leading:
    """The services of the present leadership, if there is one, and who else leads."""

    def __init__(self) -> None:
        self.streams: Streams | None = None
        self.operator: OperatorService | None = None
        # What others are told to reach this master by, and clients of HTTP.
        self.own: Address | None = None
        self.own_http: Address | None = None
        self._detected: Address | None = None
        self._changed = asyncio.Event()

    @property
    def detected(self) -> Address | None:
        """Who leads as far as the election has told, also when it is this master."""
        return self._detected

    @detected.setter
    def detected(self, leader: Address | None) -> None:
        self._detected = leader
        self._wake()

    def begin(self, streams: Streams, operator: OperatorService) -> None:
        """This master leads."""
        self.streams, self.operator = streams, operator
        self._wake()

    def end(self) -> None:
        """It does not any more.  Idempotent."""
        self.streams = self.operator = None

    def not_leader(self) -> NotLeader:
        return NotLeader(None if self.detected is None else str(self.detected))

    def http_of_other(self) -> Address | None:
        """Where clients of HTTP find another master that leads; None if none is known."""
        leader = self._detected
        if leader is None or leader == self.own:
            return None
        return leader.http if isinstance(leader, MasterAddress) else None

    def http_leader(self) -> Address | None:
        """The same of whoever leads."""
        return self.own_http if self.streams is not None else self.http_of_other()

    def streams_now(self) -> Streams:
        """Raises NotLeader."""
        if self.streams is None:
            raise self.not_leader()
        return self.streams

    async def streams_soon(self) -> Streams:
        """As `streams_now`, but while it may be this master that is about to lead, wait.

        All peers hear of an election as soon as this master itself, and before it has
        read what the last leader left.  Sent away, they would come again after a pause.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SOON_S):
                while self.streams is None and self.detected in (None, self.own):
                    await self._changed.wait()
        return self.streams_now()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class OperatorFront(operator_pb2_grpc.OperatorServiceServicer):
    """OperatorService of whoever leads; of a master that does not, what is its own."""

    def __init__(
        self, leading: Leading, flags: Mapping[str, str], metrics: Callable[[], list[pb.Metric]]
    ) -> None:
        self._leading = leading
        self._flags = flags
        self._metrics = metrics

    async def Execute(self, request: op.Call, context: Context) -> op.Response:
        operator = self._leading.operator
        if operator is not None:
            return await operator.Execute(request, context)
        answer = _LOCAL.get(request.type)
        if answer is None:
            await rpc.abort(context, self._leading.not_leader())
        return answer(self)

    async def ReadLog(
        self, request: agent_pb2.ReadLogRequest, context: Context
    ) -> AsyncIterator[agent_pb2.LogChunk]:
        operator = self._leading.operator
        if operator is None:
            await rpc.abort(context, self._leading.not_leader())
        async for chunk in operator.ReadLog(request, context):
            yield chunk

    # ---- Without leading -------------------------------------------------------

    def get_health(self) -> op.Response:
        return health_response()

    def get_version(self) -> op.Response:
        return version_response()

    def get_flags(self) -> op.Response:
        return flags_response(self._flags)

    def get_metrics(self) -> op.Response:
        metrics = op.Response.GetMetrics(metrics=self._metrics())
        return op.Response(type=op.Response.GET_METRICS, get_metrics=metrics)

    def get_master(self) -> op.Response:
        answer = op.Response.GetMaster(leading=False)
        leader = self._leading.detected
        if leader is not None:
            http = getattr(leader, "http", None) or leader
            answer.master_info.address.hostname = http.host
            answer.master_info.address.port = http.port
            answer.master_info.grpc_port = leader.port
        return op.Response(type=op.Response.GET_MASTER, get_master=answer)


_LOCAL: Final[dict[int, Callable[[OperatorFront], op.Response]]] = {
    op.Call.GET_HEALTH: OperatorFront.get_health,
    op.Call.GET_VERSION: OperatorFront.get_version,
    op.Call.GET_FLAGS: OperatorFront.get_flags,
    op.Call.GET_METRICS: OperatorFront.get_metrics,
    op.Call.GET_MASTER: OperatorFront.get_master,
}


class Front:
    """The server of the master's port: grpc.aio's, or (`lean`) our own."""

    def __init__(self, kind: str) -> None:
        self.server: Any
        self.turns = Turns()
        self._lean: Any = None
        if kind == "lean":
            # Only who wants it pays for loading it.
            from master.api.lean.server import LeanServer

            self.server = self._lean = LeanServer(self.turns)
        else:
            self.server = rpc.new_server()

    def bind(self, ip: str, port: int) -> int:
        """As rpc.bind."""
        if self._lean is not None:
            return int(self._lean.bind(ip, port))
        return rpc.bind(self.server, ip, port)

    def serve(self, leading: Leading, operator: OperatorFront) -> None:
        """Add all services, before the start."""
        if self._lean is not None:
            self._lean.add_streams(lambda: leading.streams, leading.streams_soon)
        else:
            add_streams(self.server, leading.streams_soon)
        operator_pb2_grpc.add_OperatorServiceServicer_to_server(operator, self.server)


__all__ = ["Front", "Leading", "OperatorFront"]
