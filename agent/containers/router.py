"""Which launcher a container goes to: by its type, as the framework chose it."""

from __future__ import annotations

from typing import Protocol

from agent.core.effects import ContainerSpec, Signal
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb


class Containers(Protocol):
    """What the shell asks of whoever runs containers.  See Launcher for the contracts."""

    def launch(self, spec: ContainerSpec) -> None: ...

    def kill(self, container_id: str, number: Signal) -> None: ...

    def update(self, container_id: str, resources: Resources) -> None: ...

    def forget(self, container_id: str) -> None: ...

    def flush(self) -> None: ...


class DockerContainers(Containers, Protocol):
    """DockerLauncher; by this name the SDK is needed only where it is used."""

    def __contains__(self, container_id: str) -> bool:
        """Whether it has it, or how it ended."""
        ...


class Router:
    """Processes of the agent's own, and containers of dockerd's, as one."""

    def __init__(self, posix: Containers, docker: DockerContainers | None) -> None:
        """`docker` None: all are processes of the agent's own."""
        self._posix = posix
        self._docker = docker

    def launch(self, spec: ContainerSpec) -> None:
        wanted = spec.container.type if spec.container is not None else None
        if self._docker is not None and wanted == pb.ContainerInfo.DOCKER:
            self._docker.launch(spec)
        else:
            self._posix.launch(spec)

    def kill(self, container_id: str, number: Signal) -> None:
        self._of(container_id).kill(container_id, number)

    def update(self, container_id: str, resources: Resources) -> None:
        self._of(container_id).update(container_id, resources)

    def forget(self, container_id: str) -> None:
        self._of(container_id).forget(container_id)

    def flush(self) -> None:
        self._posix.flush()
        if self._docker is not None:
            self._docker.flush()

    def _of(self, container_id: str) -> Containers:
        if self._docker is not None and container_id in self._docker:
            return self._docker
        return self._posix
