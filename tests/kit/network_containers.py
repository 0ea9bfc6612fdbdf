"""The network isolator and its containers, without an agent, for tests in `machine()`."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from agent.isolation.base import AgentFacts, Container, Preparation, Recovered
from agent.isolation.network import names, namespaces
from agent.isolation.network.isolator import NetworkIsolator
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb
from tests.kit.networks import Greeter

T = TypeVar("T")

AGENT: Final = "5f0c1a52-17a9-4a8e-9c0e-0e8f0a1b2c3d-S0"
BRIDGE: Final = names.bridge(AGENT)
# The devices of a machine where nothing runs.
PLAIN: Final = {"lo", "eth0"}


def isolator(agent_id: str = AGENT, **flags: object) -> NetworkIsolator:
    return NetworkIsolator(AgentFacts(agent_id, "/nowhere", Resources(), flags))


def info(name: str | None = None, **fields: object) -> pb.ContainerInfo:
    return pb.ContainerInfo(
        type=pb.ContainerInfo.MESOS,
        network_infos=[pb.NetworkInfo(name=name, **fields)],  # type: ignore[arg-type]
    )


def labels(**given: str) -> pb.Labels:
    return pb.Labels(labels=[pb.Label(key=key, value=value) for key, value in given.items()])


def with_ports(ports: Sequence[int]) -> Resources:
    return Resources.of(ports=[(port, port) for port in ports]) if ports else Resources()


def container(
    container_id: str, *ports: int, asked: pb.ContainerInfo | None = None, **amounts: int
) -> Container:
    resources = Resources.of(None, cpus=1, **amounts) + with_ports(ports)
    return Container(container_id, "F1", "t", "/s", 0, 0, resources, asked or info(), {})


class Inside:
    """A container that is prepared: its namespace, as its process would hold it."""

    def __init__(self, made: Preparation) -> None:
        (path,) = made.namespaces
        self.address = made.environment.get("MESOS_CONTAINER_IP", "")
        self.namespace = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def greeter(self, name: str, port: int, kind: int = socket.SOCK_STREAM) -> Greeter:
        return namespaces.inside(self.namespace, lambda: Greeter(name, port, kind))

    def do(self, work: Callable[[], T]) -> T:
        return namespaces.inside(self.namespace, work)

    def end(self) -> None:
        if self.namespace >= 0:
            os.close(self.namespace)
            self.namespace = -1


@contextmanager
def running(
    network: NetworkIsolator, *containers: Container, cleanup: bool = True
) -> Iterator[list[Inside]]:
    """Containers from prepare to cleanup."""
    made: list[Inside] = []
    try:
        for each in containers:
            made.append(Inside(network.prepare(each)))
            network.isolate(each.container_id, os.getpid())
        yield made
    finally:
        for inside in made:
            inside.end()
        if cleanup:
            for each in containers:
                network.cleanup(each.container_id)


def reachable(address: str, port: int) -> bool:
    with socket.socket() as trying:
        trying.settimeout(1)
        return trying.connect_ex((address, port)) == 0


def recovered(container_id: str, *ports: int, asked: pb.ContainerInfo | None = None) -> Recovered:
    resources = Resources.of(cpus=1) + with_ports(ports)
    return Recovered(container_id, "F1", "t", os.getpid(), resources, asked or info())
