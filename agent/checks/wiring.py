"""Which containerizer runs the commands that a container is checked by."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from agent.checks.docker import DockerProbes
from agent.checks.groups import GroupProbes
from agent.checks.prober import Containers, ProbeEvents, Prober
from agent.containers.launcher import Launcher
from agent.core.agent import AgentCore

if TYPE_CHECKING:
    from agent.containers.docker.launcher import DockerLauncher


def prober_of(
    stack: contextlib.AsyncExitStack,
    core: AgentCore,
    events: ProbeEvents,
    launcher: Launcher,
    docker: DockerLauncher | None,
) -> Prober:
    """Closed with `stack`.  `docker` None: dockerd runs nothing."""
    dockers = DockerProbes(docker.run_in, events) if docker is not None else None
    if dockers is not None:
        stack.push_async_callback(dockers.close)

    groups = GroupProbes(core.state, launcher, events)
    stack.push_async_callback(groups.close)

    def containers(container_id: str) -> Containers:
        if docker is not None and dockers is not None and container_id in docker:
            return dockers
        return groups

    def pid_of(container_id: str) -> int:
        executor = core.state.containers.get(container_id)
        return (executor.pid or 0) if executor is not None else 0

    prober = Prober(containers, pid_of, events)
    stack.push_async_callback(prober.close)
    return prober
