"""What this agent cannot do yet: refused in words, never silently left out."""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from agent.core.sandbox_paths import links_of
from mesos_py.errors import InvalidValue
from mesos_py.v1 import types_pb2 as pb

_NO_IMAGE: Final = pb.ContainerInfo.MesosInfo()
# What may be said in `linux_info` of who shares a container with others, for it is so.
IS_SO: Final = ("share_cgroups", "share_pid_namespace")


def missing_for(task: pb.TaskInfo, provided: Set[str]) -> str | None:
    """What the task asks for that this agent does not have; None if all is there.

    provided: what its isolators add, in their words (agent.isolation.base).
    """
    holder = task.executor if task.HasField("executor") else task
    if holder.HasField("container"):
        lacking = _missing_for_container(holder.container, provided)
        if lacking is not None:
            return lacking
    if task.executor.type == pb.ExecutorInfo.DEFAULT:
        return _missing_in_group(task)
    return None


def _asks_for_network(container: pb.ContainerInfo) -> bool:
    """Whether it asks for another network than the one around it.

    As in Mesos, where the name chooses it: mappings of ports alone, which some schedulers
    write into each of their tasks, change nothing where there is one network only.
    """
    return any(
        each.name
        or each.groups
        or each.labels.labels
        or any(address.ip_address for address in each.ip_addresses)
        for each in container.network_infos
    )


def _missing_in_group(task: pb.TaskInfo) -> str | None:
    """What a task of our own executor cannot have: it shares the container with others."""
    whose = f"(asked by task {task.task_id.value!r})"
    for asked, value in task.container.ListFields():
        if asked.name == "network_infos" and not _asks_for_network(task.container):
            continue
        plain = asked.name in ("type", "volumes", "linux_info")
        if not plain and not (asked.name == "mesos" and value == _NO_IMAGE):
            return f"tasks of a group have nothing of their own but a sandbox {whose}: {asked.name}"
    for asked, value in task.container.linux_info.ListFields():
        if asked.name not in IS_SO or not value:
            text = "tasks of a group share all that their executor has"
            return f"{text} {whose}: linux_info.{asked.name}"
    lacking = _missing_volume(task.container, in_group=True)
    return f"{lacking} {whose}" if lacking is not None else None


def _missing_volume(container: pb.ContainerInfo, *, in_group: bool = False) -> str | None:
    try:
        links_of("container", container, in_group=in_group)
    except InvalidValue as error:
        return error.message
    return None


def _missing_for_container(container: pb.ContainerInfo, provided: Set[str]) -> str | None:
    if (lacking := _missing_for_any(container)) is not None:
        return lacking
    if container.type == pb.ContainerInfo.DOCKER:
        if "docker" in provided:
            return None  # what else it asks for is checked by who knows what docker can do
        return f"this agent runs no docker containers (asked for {container.docker.image!r})"
    if (lacking := _missing_volume(container)) is not None:
        return lacking
    if _asks_for_network(container) and "networks" not in provided:
        return "this agent has no networks besides the host's (--isolation network)"
    if container.HasField("rlimit_info") and "rlimits" not in provided:
        return "this agent sets no rlimits (--isolation rlimits)"
    if container.hostname:
        return "this agent gives containers no host names of their own"
    return None


def _missing_for_any(container: pb.ContainerInfo) -> str | None:
    """What no container of ours can have, whoever runs it."""
    if container.mesos.HasField("image"):
        return "this agent runs images by dockerd only (a container of type DOCKER)"
    if container.HasField("linux_info"):
        return (
            "this agent gives containers the namespaces of its isolators only (asked: linux_info)"
        )
    if container.HasField("tty_info"):
        return "this agent gives containers no terminal (asked for tty_info)"
    in_docker = container.volumes if container.type == pb.ContainerInfo.DOCKER else ()
    for volume in in_docker:
        for name in ("image", "source"):
            if volume.HasField(name):
                return f"this agent mounts no {name} (asked for at {volume.container_path!r})"
    if container.docker.HasField("volume_driver"):
        driver = container.docker.volume_driver
        return f"this agent has no drivers of volumes (asked for {driver!r})"
    return None
