"""Resources that say more of themselves than an amount: refused by name, never overlooked."""

from __future__ import annotations

from mesos_py.errors import InvalidResources
from mesos_py.v1 import types_pb2 as pb


def refuse_special(where: str, message: pb.Resource) -> None:
    """Raises InvalidResources, with `where` as its field, for what is not there (yet):
    reservations, revocable and shared resources, volumes, disks of a kind of their own,
    resource providers."""
    reserved = (
        (message.HasField("role") and message.role != "*")
        or message.HasField("reservation")
        or bool(message.reservations)
    )
    if reserved:
        raise InvalidResources(where, message.role, "reserved resources are not supported")
    if message.HasField("revocable"):
        raise InvalidResources(where, "revocable", "revocable resources are not supported")
    if message.HasField("disk"):
        volume = message.disk.persistence.id or "disk"
        reason = "persistent volumes and disks of a kind of their own are not supported"
        raise InvalidResources(where, volume, reason)
    if message.HasField("shared"):
        raise InvalidResources(where, "shared", "shared resources are not supported")
    if message.HasField("provider_id"):
        reason = "resource providers are not supported"
        raise InvalidResources(where, message.provider_id.value, reason)
