"""Which persistent volumes tasks and executors have among their resources, and where they
see them.  Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from mesos_py import reserved
from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import types_pb2 as pb

PATH_FIELD: Final = "resources.disk.volume.container_path"


class VolumeKey(NamedTuple):
    """Which of an agent's volumes: there is one of an id for each role."""

    role: str
    volume_id: str

    def __str__(self) -> str:
        return f"{self.volume_id!r} of the role {self.role!r}"


class VolumeUse(NamedTuple):
    """How a container sees a volume."""

    key: VolumeKey
    container_path: str
    read_only: bool = False


def uses_of(resources: Resources) -> list[VolumeUse]:
    """The volumes among them."""
    found = []
    for name in resources.scalars:
        volume = reserved.volume_of(name) if reserved.is_volume(name) else None
        if volume is not None:
            key = VolumeKey(reserved.role_of(name), volume.volume_id)
            found.append(VolumeUse(key, volume.container_path, volume.read_only))
    return found


def keys_of(resources: Resources) -> set[VolumeKey]:
    return {each.key for each in uses_of(resources)}


def volumes_in(messages: Iterable[pb.Resource]) -> Resources:
    """Of the resources of a task or an executor.  Raises InvalidResources."""
    found = [each for each in messages if each.HasField("disk")]
    return Resources.from_proto("resources", found) if found else EMPTY


def uses_in(messages: Iterable[pb.Resource]) -> list[VolumeUse]:
    """As `uses_of`."""
    return uses_of(volumes_in(messages))


def without_volumes(resources: Resources) -> Resources:
    """By plain names, what a container has of the machine: what is in a volume is not its."""
    if not resources.has_reserved:
        return resources
    return resources.only(lambda name: not reserved.is_volume(name)).plain


__all__ = [
    "PATH_FIELD",
    "VolumeKey",
    "VolumeUse",
    "keys_of",
    "uses_in",
    "uses_of",
    "volumes_in",
    "without_volumes",
]
