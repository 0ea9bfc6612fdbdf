"""Containers that tasks run in, from few words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from mesos_py.errors import InvalidValue
from mesos_py.v1.types_pb2 import CommandInfo, ContainerInfo, Parameter, Volume

_NETWORKS: Final = {
    "host": ContainerInfo.DockerInfo.HOST,
    "bridge": ContainerInfo.DockerInfo.BRIDGE,
    "none": ContainerInfo.DockerInfo.NONE,
}


def docker_container(
    image: str,
    *,
    network: str = "host",
    volumes: Iterable[str] = (),
    ports: Mapping[int, int] | None = None,
    parameters: Iterable[tuple[str, str]] = (),
    hostname: str | None = None,
    privileged: bool = False,
    force_pull: bool = False,
) -> ContainerInfo:
    """A docker container: of an agent that runs such (`--containerizers posix,docker`).

    image: as docker names it.
    network: host, bridge, none, or the name of a network that docker has there.
    volumes: as `docker run -v` takes them: SOURCE:TARGET, and :ro for reading only.
    ports: from ports of the container to those of the task that lead to them; the task
        must ask for these. For bridge and named networks.
    parameters: options of `docker run`, without dashes; agents refuse those that would
        take what the task was not given.
    privileged: agents must allow it.
    force_pull: pull it even if the agent has an image of this name.

    Raises InvalidValue for an empty image, a malformed volume and an empty network.
    """
    if not image:
        raise InvalidValue("image", image, "must not be empty")
    if not network:
        raise InvalidValue("network", network, "must be host, bridge, none or a network's name")
    docker = ContainerInfo.DockerInfo(
        image=image,
        network=_NETWORKS.get(network, ContainerInfo.DockerInfo.USER),
        parameters=[Parameter(key=key, value=value) for key, value in parameters],
        privileged=privileged or None,
        force_pull_image=force_pull or None,
    )
    for container_port, host_port in (ports or {}).items():
        docker.port_mappings.add(container_port=container_port, host_port=host_port)
    container = ContainerInfo(
        type=ContainerInfo.DOCKER,
        docker=docker,
        volumes=map(volume, volumes),
        hostname=hostname,
    )
    if network not in _NETWORKS:
        container.network_infos.add(name=network)
    return container


def volume(text: str) -> Volume:
    """SOURCE:TARGET or SOURCE:TARGET:MODE, where the mode is ro or rw.

    A source without a slash at its beginning is a directory in the sandbox.
    """
    source, _, rest = text.partition(":")
    target, _, mode = rest.partition(":")
    if not source or not target or mode not in ("", "ro", "rw"):
        raise InvalidValue("volumes", text, "must be SOURCE:TARGET, and :ro or :rw")
    return Volume(
        host_path=source, container_path=target, mode=Volume.RO if mode == "ro" else Volume.RW
    )


def fit(command: CommandInfo, container: ContainerInfo) -> None:
    """Make of a command for a machine one for the container.

    For docker `arguments` are what comes after the program (Mesos), for all else they
    begin with its name.
    """
    if container.type != ContainerInfo.DOCKER or command.shell or not command.HasField("shell"):
        return
    if command.arguments and command.arguments[0] == command.value:
        del command.arguments[0]


__all__ = ["docker_container", "fit", "volume"]
