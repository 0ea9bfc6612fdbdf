"""What there is to see of a running agent: its numbers and its containers', for operators
and for Prometheus."""

from __future__ import annotations

import contextlib
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import grpc.aio

from agent.api.http.server import AgentHttp
from agent.api.older.metrics import Recovery, snapshot
from agent.api.older.pages import About, Pages
from agent.api.operator import AgentOperator
from agent.api.virtual_files import VirtualFiles
from agent.containers.launcher import Launcher
from agent.containers.nested import Nested
from agent.core.agent import AgentCore
from agent.usage.collector import UsageCollector, UsageOf
from agent.usage.exporter import families
from mesos_py.clock import Now, SystemClock
from mesos_py.http.jsonpb import as_object
from mesos_py.metrics import Metrics, rendered
from mesos_py.v1 import agent_operator_pb2_grpc
from mesos_py.version import MESOS_VERSION

if TYPE_CHECKING:
    from agent.containers.docker.launcher import DockerLauncher

# Of the agent's own numbers.
PREFIX: Final = "mesos_py_agent_"


@dataclass(frozen=True, slots=True)
class Told:
    """What operators may see of how the agent was started."""

    flags: dict[str, str]
    started: Now
    recovery: Recovery
    fetcher_cache_bytes: int


def observe(
    stack: contextlib.AsyncExitStack,
    server: grpc.aio.Server,
    core: AgentCore,
    usage_of: UsageOf,
    metrics: Metrics,
    http: AgentHttp,
    told: Told,
    *,
    nested: Nested,
) -> None:
    """Answer operators on `server` and by HTTP, and Prometheus, until `stack` ends."""
    clock = SystemClock()
    state = core.state
    usage = UsageCollector(state, usage_of, clock)
    stack.push_async_callback(usage.close)
    _watch(core, metrics)

    def numbers() -> dict[str, float]:
        return snapshot(
            state,
            {name.removeprefix(PREFIX): value for name, value in metrics.snapshot().items()},
            uptime_s=clock.now().monotonic_s - told.started.monotonic_s,
            recovery=told.recovery,
            cache_bytes=told.fetcher_cache_bytes,
        )

    files = VirtualFiles(state.settings.work_dir, lambda: state.agent_id, http.sandboxes.open)
    operator = AgentOperator(
        state, usage, lambda: metrics.snapshot() | numbers(), told.flags, files, nested
    )
    stack.callback(operator.close)
    agent_operator_pb2_grpc.add_AgentOperatorServiceServicer_to_server(operator, server)
    about = About(MESOS_VERSION, told.started.wall_s, told.flags, files.own_log())
    http.metrics = lambda: render(metrics, usage)
    http.operator.open(operator)
    http.older.open(Pages(state, about, usage.collect, as_object), numbers)
    http.files.open(files, state)


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
