"""AgentOperatorService: what operators, and the master for them, ask of one agent."""

from __future__ import annotations

from typing import Any, TypeAlias

import grpc.aio

from agent.usage.collector import UsageCollector
from mesos_py import logs, rpc
from mesos_py.enums import name_of
from mesos_py.errors import InvalidValue, MesosPyError
from mesos_py.metrics import Metrics
from mesos_py.v1 import types_pb2 as pb
from mesos_py.v1.agent_operator_pb2 import Call, Response
from mesos_py.v1.agent_operator_pb2_grpc import AgentOperatorServiceServicer

log = logs.get("agent.operator")

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]


class AgentOperator(AgentOperatorServiceServicer):
    """Unary calls that read."""

    def __init__(self, usage: UsageCollector, metrics: Metrics) -> None:
        self._usage = usage
        self._metrics = metrics

    async def Execute(self, request: Call, context: Context) -> Response:
        try:
            return await self._answer(request)
        except MesosPyError as error:
            await rpc.abort(context, error)
        except Exception as error:
            log.exception("operator call failed", call=request.type)
            await rpc.abort(context, error)

    async def _answer(self, call: Call) -> Response:
        if call.type == Call.GET_HEALTH:
            health = Response.GetHealth(healthy=True)
            return Response(type=Response.GET_HEALTH, get_health=health)
        if call.type == Call.GET_METRICS:
            numbers = self._metrics.snapshot()
            metrics = [pb.Metric(name=name, value=numbers[name]) for name in sorted(numbers)]
            answer = Response.GetMetrics(metrics=metrics)
            return Response(type=Response.GET_METRICS, get_metrics=answer)
        if call.type == Call.GET_CONTAINERS:
            found = Response.GetContainers(containers=await self._usage.collect())
            return Response(type=Response.GET_CONTAINERS, get_containers=found)
        name = name_of(Call.Type, call.type)
        raise InvalidValue("type", name, "is not supported by this agent")
