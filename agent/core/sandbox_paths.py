"""Volumes that are directories in sandboxes, shown by links: what is asked for.  Pure.

Rules: Mesos v1, src/slave/containerizer/mesos/isolators/volume/sandbox_path.cpp, as far as
they hold where nothing is mounted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from agent.core.records import CONTAINERS, TASKS
from mesos_py.enums import name_of
from mesos_py.errors import InvalidValue
from mesos_py.v1 import types_pb2 as pb

# More directories in one another are nobody's volume.
MAX_DEPTH: Final = 64
# What the agent itself puts into sandboxes: logs, with their earlier parts, and directories.
_RESERVED: Final = re.compile(rf"(std(out|err)(\.\d+)?|{TASKS}|{CONTAINERS})", re.ASCII)
_SANDBOX_PATH: Final = pb.Volume.Source.SandboxPath
_NO_MOUNTS: Final = "this agent mounts nothing into containers that are not dockerd's"


@dataclass(frozen=True)
class Link:
    """One volume: a link at `container_path` in a container's sandbox to `path`."""

    # The volume's field, and that of `path`.
    where: str
    path_field: str
    container_path: str
    path: str
    # Whether `path` is beneath the sandbox of the container's parent, or its own.
    of_parent: bool


def links_of(field: str, container: pb.ContainerInfo, *, in_group: bool = False) -> list[Link]:
    """The links that the volumes of a container come to, if dockerd does not run it.

    `field`: where the container is described.  `in_group`: it is that of a task of our own
    executor for groups, whose parent is the executor.  Raises InvalidValue for what cannot
    be had.
    """
    return [
        _link(f"{field}.volumes[{number}]", volume, in_group)
        for number, volume in enumerate(container.volumes)
    ]


def _link(where: str, volume: pb.Volume, in_group: bool) -> Link:
    if volume.HasField("image"):
        raise InvalidValue(f"{where}.image", volume.container_path, _NO_MOUNTS)
    if volume.HasField("host_path") == volume.HasField("source"):
        has = "both" if volume.HasField("source") else "neither"
        raise InvalidValue(where, has, "must have either a host_path or a source")
    if volume.HasField("source"):
        path_field, path, of_parent = _sandbox_path(f"{where}.source", volume.source, in_group)
    else:
        # As it was said before there were sources (Mesos).
        path_field, path, of_parent = f"{where}.host_path", volume.host_path, False
        if path.startswith("/"):
            text = f"must be a path beneath the sandbox: {_NO_MOUNTS}"
            raise InvalidValue(path_field, path, text)
    if volume.mode != pb.Volume.RW:
        text = f"must be RW: {_NO_MOUNTS}, and a link does not make anything read-only"
        raise InvalidValue(f"{where}.mode", name_of(pb.Volume.Mode, volume.mode), text)
    names_beneath(path_field, path)
    names_of_link(f"{where}.container_path", volume.container_path)
    return Link(where, path_field, volume.container_path, path, of_parent)


def _sandbox_path(field: str, source: pb.Volume.Source, in_group: bool) -> tuple[str, str, bool]:
    if source.type != pb.Volume.Source.SANDBOX_PATH:
        given = name_of(pb.Volume.Source.Type, source.type)
        raise InvalidValue(f"{field}.type", given, f"must be SANDBOX_PATH: {_NO_MOUNTS}")
    found = source.sandbox_path
    if found.type not in (_SANDBOX_PATH.SELF, _SANDBOX_PATH.PARENT):
        given = name_of(_SANDBOX_PATH.Type, found.type)
        raise InvalidValue(f"{field}.sandbox_path.type", given, "must be SELF or PARENT")
    of_parent = found.type == _SANDBOX_PATH.PARENT
    if of_parent and not in_group:
        text = "must be SELF: only tasks of a group have a parent, which is their executor"
        raise InvalidValue(f"{field}.sandbox_path.type", "PARENT", text)
    return f"{field}.sandbox_path.path", found.path, of_parent


def names_beneath(field: str, path: str) -> tuple[str, ...]:
    """The names that a path beneath a directory is made of.

    Raises InvalidValue, with `field`, for one that may lead out of it or to itself.
    """
    if path.startswith("/"):
        raise InvalidValue(field, path, "must be a path beneath the sandbox, not an absolute one")
    if "\0" in path:
        raise InvalidValue(field, path, "must not contain a NUL character")
    names = tuple(name for name in path.split("/") if name not in ("", "."))
    if not names:
        raise InvalidValue(field, path, "must be a path beneath the sandbox")
    if ".." in names:
        raise InvalidValue(field, path, "must not contain '..'")
    if len(names) > MAX_DEPTH:
        raise InvalidValue(field, path, f"must not be more than {MAX_DEPTH} directories deep")
    return names


def names_of_link(field: str, container_path: str) -> tuple[str, ...]:
    """As `names_beneath`, of a place where a link may be."""
    names = names_beneath(field, container_path)
    if _RESERVED.fullmatch(names[0]):
        raise InvalidValue(field, container_path, "is where the agent has something of its own")
    return names
