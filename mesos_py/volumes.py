"""Operations of frameworks on persistent volumes, for `accept_offers`.

A volume is made of disk that is reserved for the framework's role, and is kept by its agent
until it is destroyed, whichever tasks have used it.  It is in the offers of its role; a task
that has it among its resources finds it in its sandbox.
"""

from __future__ import annotations

from typing import Final

from mesos_py.errors import InvalidResources, InvalidValue
from mesos_py.ids import check_text
from mesos_py.persistent import RESOURCE, Volume
from mesos_py.reservations import checked
from mesos_py.reserved import (
    disk_of,
    is_reserved,
    key_of,
    plain_name,
    role_of,
    stack_of,
    volume_of,
)
from mesos_py.resources import Resources, to_milli
from mesos_py.v1.types_pb2 import Offer

# What is called so in the messages is an argument here.
_ARGUMENTS: Final = {
    "id": "volume_id",
    "container_path": "container_path",
    "principal": "principal",
}


def create_volume(
    disk: Resources,
    volume_id: str,
    container_path: str,
    *,
    principal: str | None = None,
    operation_id: str | None = None,
) -> Offer.Operation:
    """Make a volume of `disk`, MB that are reserved for the role of the offer.

    volume_id: one of its own among the role's volumes on that agent.
    container_path: where a task sees it, below its sandbox.
    principal: the framework's own, if it has one.
    operation_id: what becomes of it is told (`Scheduler.operation_update`).

    After it, `volume_on(disk, volume_id, ...)` is what a task of the same call asks for.
    Raises InvalidResources for what is no reserved disk, or a volume that cannot be.
    """
    made = volume_on(disk, volume_id, container_path, principal=principal)
    operation = Offer.Operation(type=Offer.Operation.CREATE)
    operation.create.volumes.extend(made.to_proto())
    return checked(operation, operation_id)


def destroy_volume(volume: Resources, *, operation_id: str | None = None) -> Offer.Operation:
    """Erase what is in it and give its disk back, which stays reserved.  `volume` as it is
    offered.  Raises InvalidResources where it is none."""
    operation = Offer.Operation(type=Offer.Operation.DESTROY)
    operation.destroy.volumes.extend(volume.to_proto())
    return checked(operation, operation_id)


def grow_volume(
    volume: Resources, addition: Resources, *, operation_id: str | None = None
) -> Offer.Operation:
    """Make a volume larger by `addition`, disk that is reserved in the same way; both as they
    are offered.  After it, `resized_volume` is what a task of the same call asks for.  Raises
    InvalidResources for what cannot be."""
    operation = Offer.Operation(type=Offer.Operation.GROW_VOLUME)
    operation.grow_volume.volume.CopyFrom(_only(volume).to_proto()[0])
    operation.grow_volume.addition.CopyFrom(_only(addition).to_proto()[0])
    return checked(operation, operation_id)


def shrink_volume(
    volume: Resources, subtract_mb: float, *, operation_id: str | None = None
) -> Offer.Operation:
    """Make a volume smaller by `subtract_mb`, which are reserved disk then.  What is in it
    stays.  Raises InvalidResources for an amount that cannot be."""
    operation = Offer.Operation(type=Offer.Operation.SHRINK_VOLUME)
    operation.shrink_volume.volume.CopyFrom(_only(volume).to_proto()[0])
    try:
        operation.shrink_volume.subtract.value = subtract_mb
    except TypeError:
        raise InvalidResources("subtract_mb", subtract_mb, "must be a number") from None
    return checked(operation, operation_id)


def volume_on(
    disk: Resources, volume_id: str, container_path: str, *, principal: str | None = None
) -> Resources:
    """The volume that `create_volume` makes, which says what is wrong with it."""
    (key,) = _only(disk).names()
    if key != key_of(RESOURCE, stack_of(key)) or not is_reserved(key):
        raise InvalidResources("disk", key, "must be disk that is reserved, and no volume yet")
    return _checked(disk, Volume(volume_id, container_path, principal))


def volume_at(volume: Resources, container_path: str, *, read_only: bool = False) -> Resources:
    """The same volume, for a task that is to see it at another place than the one that was
    said when it was made; in a docker container also at an absolute path, or not to write
    to it.  Other tasks with such a one are refused (TASK_ERROR)."""
    found = _volume(volume)
    used = found._replace(container_path=container_path, read_only=read_only)
    return _checked(volume, used)


def resized_volume(volume: Resources, disk_mb: float) -> Resources:
    """The same volume with so many MB: what it is after `grow_volume` or `shrink_volume`, for
    a task of the same call."""
    found = _volume(volume)
    (key,) = volume.names()
    return _checked(Resources({disk_of(key): to_milli(RESOURCE, disk_mb)}), found)


def disk_of_volume(volume: Resources) -> Resources:
    """The reserved disk that it is made of, and which there is again when it is destroyed: to
    be unreserved in the same call.  Raises InvalidResources for what is no volume."""
    _volume(volume)
    return volume.renamed(disk_of)


def volumes_in(resources: Resources, role: str | None = None) -> dict[str, Resources]:
    """The persistent volumes among `resources`, for example of an offer, by their ids.

    role: those of this role only.  Without it, an id that both the role of an offer and one
        above it have there is that of the narrower role.
    """
    found: dict[str, Resources] = {}
    for key in sorted(resources.scalars, key=lambda key: role_of(key).count("/")):
        volume = volume_of(key)
        if volume is not None and role in (None, role_of(key)):
            found[volume.volume_id] = Resources({key: resources.scalars[key]})
    return found


def _volume(resources: Resources) -> Volume:
    (key,) = _only(resources).names()
    found = volume_of(key)
    if found is None:
        raise InvalidResources("volume", key, "is no persistent volume")
    return found


def _checked(disk: Resources, volume: Volume) -> Resources:
    for argument in ("volume_id", "container_path", "principal"):
        value = getattr(volume, argument)
        if value is not None or argument != "principal":
            _check_text(argument, value)
    made = disk.renamed(lambda key: key_of(plain_name(key), stack_of(key), volume))
    try:
        Resources.from_proto("volume", made.to_proto())
    except InvalidResources as error:
        argument = _ARGUMENTS.get(error.field.rpartition(".")[2], error.field)
        raise InvalidResources(argument, error.value, error.reason) from None
    return made


def _check_text(argument: str, value: object) -> None:
    try:
        check_text(argument, value)
    except InvalidValue as error:
        raise InvalidResources(argument, value, error.reason) from None


def _only(resources: Resources) -> Resources:
    if len(resources.names()) != 1:
        raise InvalidResources("resources", str(resources), "must be one amount of disk")
    return resources


__all__ = [
    "create_volume",
    "destroy_volume",
    "disk_of_volume",
    "grow_volume",
    "resized_volume",
    "shrink_volume",
    "volume_at",
    "volume_on",
    "volumes_in",
]
