"""A container's description as a request to dockerd.  Pure: nothing is looked up here.

Whatever cannot be had is refused with its field, its value and why; nothing that was
asked for is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from agent.containers.docker import parameters
from agent.containers.docker import settings as known
from agent.containers.docker.limits import limits_of
from agent.containers.docker.request import CreateRequest, MountPoint, Ulimit
from agent.containers.docker.settings import Dockerd, DockerSettings
from agent.core.effects import ContainerSpec
from agent.core.volume_uses import PATH_FIELD, VolumeUse
from agent.volumes.store import path_of
from mesos_py.enums import name_of
from mesos_py.errors import InvalidValue
from mesos_py.executor.environment import ENDPOINT
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb

Docker = pb.ContainerInfo.DockerInfo

# Where Mesos puts the sandbox; and, ours, what of the agent a custom executor can reach.
SANDBOX: Final = "/mnt/mesos/sandbox"
AGENT: Final = "/mnt/mesos/agent"

_PROTOCOLS: Final = ("tcp", "udp", "sctp")
# What docker knows of RLimitInfo: it has no RLMT_AS.
_NO_ULIMIT: Final = (pb.RLimitInfo.RLimit.UNKNOWN, pb.RLimitInfo.RLimit.RLMT_AS)
_LOG_FILES: Final = "3"


@dataclass(frozen=True)
class Place:
    """What the launch has made or looked up on this machine."""

    work_dir: str
    # Of the sandbox, and of the task if it names one.
    uid: int
    gid: int
    groups: tuple[int, ...]
    # Host directory in which the agent's socket for executors is.
    socket_dir: str


def create_request(
    spec: ContainerSpec, place: Place, settings: DockerSettings, dockerd: Dockerd
) -> CreateRequest:
    """Raises InvalidValue naming what cannot be had."""
    info = spec.container or pb.ContainerInfo()
    docker = info.docker
    if not docker.image:
        raise InvalidValue("container.docker.image", docker.image, "must name an image")
    sandbox = "/".join((place.work_dir, *spec.sandbox))
    request = CreateRequest(known.container_name(spec.container_id), docker.image)
    request.config["labels"] = labels_of(spec)
    request.config["environment"] = {
        **_environment(spec, request.name),
        **({"TINI_KILL_PROCESS_GROUP": "1"} if dockerd.has_init else {}),
        **spec.command_environment,
    }
    request.config.update(_command(spec.command, has_init=dockerd.has_init))
    if spec.command.user:
        request.config["user"] = f"{place.uid}:{place.gid}"
        request.host["group_add"] = [str(gid) for gid in place.groups]
    request.host["init"] = dockerd.has_init
    request.host["log"] = {"max-size": settings.log_size, "max-file": _LOG_FILES}
    request.host["cgroup_parent"] = known.cgroup_parent(
        settings.cgroup_root, spec.agent_id, dockerd.cgroup_driver
    )
    request.mount("sandbox", MountPoint(sandbox, SANDBOX))
    if ENDPOINT in spec.environment:
        request.mount("agent", MountPoint(place.socket_dir, AGENT, read_only=True))
    for number, each in enumerate(info.volumes):
        where = f"container.volumes[{number}]"
        request.mount(f"{where}.container_path", _volume(where, each, sandbox))
    for use in spec.volumes:
        request.mount(PATH_FIELD, _persistent(use, place.work_dir))
    resources = spec.resources()
    request.host.update(limits_of(resources, settings).arguments())
    request.ulimits.extend(_ulimits(info.rlimit_info))
    _network(request, info, resources)
    if docker.privileged:
        if not settings.privileged:
            raise InvalidValue(
                "container.docker.privileged", True, "this agent runs no privileged containers"
            )
        request.host["privileged"] = True
    parameters.apply(request, docker.parameters, privileged=settings.privileged)
    _bound_pids(request, settings)
    return request


def sandbox_directories(info: pb.ContainerInfo) -> list[tuple[str, ...]]:
    """Directories beneath the sandbox that volumes name: to be made before they are
    mounted.  Raises InvalidValue for one that leads out of it."""
    found = []
    for number, each in enumerate(info.volumes):
        if each.host_path and not each.host_path.startswith("/"):
            found.append(_beneath(f"container.volumes[{number}].host_path", each.host_path))
    return found


def labels_of(spec: ContainerSpec) -> dict[str, str]:
    return {
        known.LABEL_AGENT: spec.agent_id,
        known.LABEL_FRAMEWORK: spec.framework_id,
        known.LABEL_EXECUTOR: spec.executor_id,
        known.LABEL_CONTAINER: spec.container_id,
        known.LABEL_SANDBOX: "/".join(spec.sandbox),
    }


def _environment(spec: ContainerSpec, name: str) -> dict[str, str]:
    environment = {key: text for key, text in spec.environment.items() if key != "PATH"}
    environment["MESOS_SANDBOX"] = SANDBOX
    environment["MESOS_CONTAINER_NAME"] = name
    if ENDPOINT in environment:
        socket = PurePosixPath(environment[ENDPOINT]).name
        environment[ENDPOINT] = f"unix:{AGENT}/{socket}"
    return environment


def _command(command: pb.CommandInfo, *, has_init: bool) -> dict[str, Any]:
    """As Mesos: a shell's text replaces the image's entry point, words are its arguments."""
    if command.shell or not command.HasField("shell"):
        # The init passes TERM on to all of its group, and ends, and the container with it, when the
        # shell does: that must not be before what the shell waits for.  A shell that traps TERM
        # waits, and ends with that one's status.  Without an init the shell is alone in getting
        # it, and had better become the program.
        waiting = "trap exit TERM; " if has_init else ""
        return {"entrypoint": ["/bin/sh"], "command": ["-c", waiting + command.value]}
    words = [command.value] if command.value else []
    words += command.arguments
    return {"command": words} if words else {}


def _bound_pids(request: CreateRequest, settings: DockerSettings) -> None:
    asked = request.host.get("pids_limit")
    if not settings.pids_limit:
        return
    if asked is not None and not 0 < asked <= settings.pids_limit:
        where = f"{parameters.FIELD}.pids-limit"
        raise InvalidValue(where, asked, f"must be 1 to {settings.pids_limit} on this agent")
    request.host["pids_limit"] = asked or settings.pids_limit


# ---- Volumes -------------------------------------------------------------------------


def _volume(where: str, volume: pb.Volume, sandbox: str) -> MountPoint:
    if volume.mode not in (pb.Volume.RW, pb.Volume.RO):
        raise InvalidValue(f"{where}.mode", volume.mode, "must be RW or RO")
    target = volume.container_path
    if not target or "\0" in target or ".." in PurePosixPath(target).parts:
        raise InvalidValue(f"{where}.container_path", target, "must be a path in the container")
    if not target.startswith("/"):
        target = f"{SANDBOX}/{target}"
    source = volume.host_path
    if not source or "\0" in source:
        raise InvalidValue(f"{where}.host_path", source, "must be a path of the host")
    if not source.startswith("/"):
        source = "/".join((sandbox, *_beneath(f"{where}.host_path", source)))
    return MountPoint(source, _place(target), volume.mode == pb.Volume.RO)


def _persistent(use: VolumeUse, work_dir: str) -> MountPoint:
    target = use.container_path
    if not target.startswith("/"):
        target = f"{SANDBOX}/{target}"
    return MountPoint(path_of(work_dir, use.key), _place(target), use.read_only)


def _place(target: str) -> str:
    """In one spelling: two slashes at the beginning are a place of its own to Python only."""
    return str(PurePosixPath("/", target.lstrip("/")))


def _beneath(where: str, path: str) -> tuple[str, ...]:
    parts = PurePosixPath(path).parts
    if not parts or ".." in parts or "\0" in path:
        raise InvalidValue(where, path, "must be an absolute path, or one beneath the sandbox")
    return parts


# ---- Networks ------------------------------------------------------------------------


def _network(request: CreateRequest, info: pb.ContainerInfo, resources: Resources) -> None:
    docker = info.docker
    network = docker.network if docker.network else Docker.HOST
    named = [each.name for each in info.network_infos if each.name]
    field = "container.network_infos"
    for each in info.network_infos:
        if each.port_mappings:
            what = "port mappings of a docker container are in container.docker.port_mappings"
            raise InvalidValue(f"{field}.port_mappings", len(each.port_mappings), what)
    if network == Docker.USER:
        if len(named) != 1:
            raise InvalidValue(field, ",".join(named), "must name one network of docker's for USER")
        request.host["network_mode"] = named[0]
    elif named:
        word = name_of(Docker.Network, network)
        raise InvalidValue(f"{field}.name", named[0], f"is for the network USER, not {word}")
    else:
        modes = {Docker.HOST: "host", Docker.BRIDGE: "bridge", Docker.NONE: "none"}
        if network not in modes:
            raise InvalidValue("container.docker.network", network, "is not known")
        request.host["network_mode"] = modes[network]
    if info.hostname:
        if network == Docker.HOST:
            reason = "cannot be given to a container in the host's network"
            raise InvalidValue("container.hostname", info.hostname, reason)
        request.config["hostname"] = info.hostname
    if docker.port_mappings:
        _ports(request, docker.port_mappings, network, resources)


def _ports(
    request: CreateRequest,
    mappings: Iterable[Docker.PortMapping],
    network: Docker.Network.ValueType,
    resources: Resources,
) -> None:
    """Exactly what was offered, and each port once."""
    field = "container.docker.port_mappings"
    if network not in (Docker.BRIDGE, Docker.USER):
        word = name_of(Docker.Network, network)
        raise InvalidValue(field, word, "are for the networks BRIDGE and USER")
    offered = resources.ranges.get("ports", ())
    taken: set[tuple[int, str]] = set()
    bindings: dict[str, list[int]] = {}
    for number, each in enumerate(mappings):
        where = f"{field}[{number}]"
        protocol = each.protocol.lower() or "tcp"
        if protocol not in _PROTOCOLS:
            raise InvalidValue(f"{where}.protocol", each.protocol, "must be tcp, udp or sctp")
        if not 1 <= each.container_port <= 65535:
            raise InvalidValue(f"{where}.container_port", each.container_port, "is no port")
        if not any(begin <= each.host_port <= end for begin, end in offered):
            reason = "is not among the ports that the task was given"
            raise InvalidValue(f"{where}.host_port", each.host_port, reason)
        if (each.host_port, protocol) in taken:
            raise InvalidValue(f"{where}.host_port", each.host_port, "is mapped twice")
        taken.add((each.host_port, protocol))
        bindings.setdefault(f"{each.container_port}/{protocol}", []).append(each.host_port)
    request.host["port_bindings"] = bindings
    request.config["ports"] = [(int(p), t) for p, _, t in (k.partition("/") for k in bindings)]


# ---- Limits of processes ---------------------------------------------------------------


def _ulimits(info: pb.RLimitInfo) -> list[Ulimit]:
    found = []
    for number, each in enumerate(info.rlimits):
        where = f"container.rlimit_info.rlimits[{number}]"
        name = name_of(pb.RLimitInfo.RLimit.Type, each.type)
        if each.type in _NO_ULIMIT or not name.startswith("RLMT_"):
            raise InvalidValue(f"{where}.type", name, "is no limit that docker can set")
        if each.HasField("soft") != each.HasField("hard"):
            raise InvalidValue(where, name, "must have both soft and hard, or neither")
        if each.soft > each.hard:
            raise InvalidValue(f"{where}.soft", each.soft, f"is over the hard limit {each.hard}")
        unlimited = not each.HasField("soft")
        soft, hard = (-1, -1) if unlimited else (each.soft, each.hard)
        found.append(Ulimit(name.removeprefix("RLMT_").lower(), soft, hard))
    return found
