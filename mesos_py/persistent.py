"""Persistent volumes: what a reserved disk says of itself that is one.

A volume outlives the tasks that use it.  It belongs to the role of its reservation, there
is one of an id for each role on an agent, and it is used whole or not at all.

As in Mesos (src/common/resources.cpp, operator== of DiskInfo) a volume is told from others
by its id alone; where it is to be seen in a sandbox, and whether it may be written to, is
said anew by whoever uses it.  The place that was named when it was made is kept, too, and
offered with it; so is the name of whoever made it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mesos_py.errors import InvalidResources, InvalidValue
from mesos_py.ids import check_id
from mesos_py.v1 import types_pb2 as pb

# As part of a name, of which many are kept.
MAX_PATH_BYTES: Final = 1024
MAX_PRINCIPAL_BYTES: Final = 255
RESOURCE: Final = "disk"


class Volume(NamedTuple):
    """The persistent volume `volume_id`, made by whoever has the name `principal`, to be seen at
    `container_path` of a sandbox or of an image's files."""

    volume_id: str
    container_path: str
    principal: str | None = None
    read_only: bool = False


def from_disk(where: str, message: pb.Resource) -> Volume:
    """What a message with a `disk` says.

    where: the resource, by its name.

    Raises InvalidResources, with `where` in its field, for what is no volume that can be,
    and for disks of a kind of their own, which are not there.
    """
    disk = message.disk
    if message.name != RESOURCE or message.type != pb.Value.SCALAR:
        raise InvalidResources(f"{where}.disk", message.name, "only a disk can be a volume")
    if disk.HasField("source"):
        reason = "disks of a kind of their own are not supported"
        raise InvalidResources(f"{where}.source", "", reason)
    if not disk.HasField("persistence"):
        reason = "a volume must have an id" if disk.HasField("volume") else "must not be empty"
        raise InvalidResources(f"{where}.persistence.id", "", reason)
    try:
        volume_id = check_id(f"{where}.persistence.id", disk.persistence.id)
    except InvalidValue as error:
        raise InvalidResources(error.field, disk.persistence.id, error.reason) from None
    principal = disk.persistence.principal if disk.persistence.HasField("principal") else None
    if principal is not None and len(principal.encode()) > MAX_PRINCIPAL_BYTES:
        reason = f"must be at most {MAX_PRINCIPAL_BYTES} bytes"
        raise InvalidResources(f"{where}.persistence.principal", principal, reason)
    path = _container_path(f"{where}.volume", disk)
    return Volume(volume_id, path, principal, disk.volume.mode == pb.Volume.RO)


def _container_path(where: str, disk: pb.Resource.DiskInfo) -> str:
    if not disk.HasField("volume"):
        raise InvalidResources(where, disk.persistence.id, "must say where the volume is to be")
    volume = disk.volume
    for field in ("host_path", "image", "source"):
        if volume.HasField(field):
            reason = "a persistent volume is where its agent keeps it"
            raise InvalidResources(f"{where}.{field}", str(getattr(volume, field)).strip(), reason)
    if volume.mode not in (pb.Volume.RW, pb.Volume.RO):
        raise InvalidResources(f"{where}.mode", volume.mode, "must be RW or RO")
    path = volume.container_path
    if not path.strip("/"):
        raise InvalidResources(f"{where}.container_path", path, "must name a place")
    if len(path.encode()) > MAX_PATH_BYTES:
        reason = f"must be at most {MAX_PATH_BYTES} bytes"
        raise InvalidResources(f"{where}.container_path", path, reason)
    if "\0" in path or any(part in (".", "..") for part in path.split("/")):
        reason = "must have no '.', no '..' and no zero byte in it"
        raise InvalidResources(f"{where}.container_path", path, reason)
    return path


def put(message: pb.Resource, volume: Volume) -> None:
    """Say in the message that it is that volume."""
    message.disk.persistence.id = volume.volume_id
    if volume.principal is not None:
        message.disk.persistence.principal = volume.principal
    message.disk.volume.container_path = volume.container_path
    message.disk.volume.mode = pb.Volume.RO if volume.read_only else pb.Volume.RW


__all__ = ["RESOURCE", "Volume", "from_disk", "put"]
