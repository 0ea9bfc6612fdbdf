"""What there is to see of a running agent: its numbers and its containers', for operators
and for Prometheus."""

from __future__ import annotations

import contextlib
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any

import grpc.aio

from agent.api.http.server import AgentHttp
from agent.api.operator import AgentOperator
from agent.containers.launcher import Launcher
from agent.core.agent import AgentCore
from agent.usage.collector import UsageCollector, UsageOf
from agent.usage.exporter import families
from mesos_py.clock import SystemClock
from mesos_py.metrics import Metrics, rendered
from mesos_py.v1 import agent_operator_pb2_grpc

if TYPE_CHECKING:
    from agent.containers.docker.launcher import DockerLauncher


def observe(
    stack: contextlib.AsyncExitStack,
    server: grpc.aio.Server,
    core: AgentCore,
    usage_of: UsageOf,
    metrics: Metrics,
    http: AgentHttp,
) -> None:
    """Answer operators on `server`, and Prometheus by HTTP, until `stack` ends."""
    usage = UsageCollector(core.state, usage_of, SystemClock())
    stack.push_async_callback(usage.close)
    _watch(core, metrics)
    agent_operator_pb2_grpc.add_AgentOperatorServiceServicer_to_server(
        AgentOperator(usage, metrics), server
    )
    http.metrics = lambda: render(metrics, usage)


def used_by(launcher: Launcher, docker: DockerLauncher | None) -> UsageOf:
    """Who counts for a container: dockerd, or whichever isolators there are by then."""

    def used(container_id: str) -> Coroutine[Any, Any, Mapping[str, float]]:
        if docker is not None and container_id in docker:
            return docker.usage(container_id)
        return launcher.isolating.used(container_id)

    return used


async def render(metrics: Metrics, usage: UsageCollector) -> bytes:
    """All numbers, containers' included, in the text format of Prometheus."""
    return metrics.render() + rendered(families(await usage.collect()))


def _watch(core: AgentCore, metrics: Metrics) -> None:
    state = core.state
    metrics.watch("registered", "Whether a master has this agent", lambda: state.registered)
    metrics.watch("containers", "Containers that are not gone", lambda: len(state.containers))
    metrics.watch("tasks", "Tasks that are not settled", lambda: len(state.tasks))
    metrics.watch(
        "unacknowledged_tasks", "Tasks with updates on their way", lambda: core.unacknowledged
    )
