"""Operations of frameworks on persistent volumes, for `accept_offers`.

A volume is made of disk that is reserved for the framework's role, and is kept by its agent
until it is destroyed, whichever tasks have used it.  It is in the offers of its role; a task
that has it among its resources finds it in its sandbox.
"""

from __future__ import annotations

from mesos_py.errors import InvalidResources
from mesos_py.persistent import RESOURCE, Volume
from mesos_py.reservations import checked
from mesos_py.reserved import is_reserved, is_volume, key_of, plain_name, stack_of, volume_of
from mesos_py.resources import Resources
from mesos_py.v1.types_pb2 import Offer


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
    are offered.  Raises InvalidResources for what cannot be."""
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
    operation.shrink_volume.subtract.value = subtract_mb
    return checked(operation, operation_id)


def volume_on(
    disk: Resources, volume_id: str, container_path: str, *, principal: str | None = None
) -> Resources:
    """The volume that `create_volume` makes."""
    (key,) = _only(disk).names()
    if key != key_of(RESOURCE, stack_of(key)) or not is_reserved(key):
        raise InvalidResources("disk", key, "must be disk that is reserved, and no volume yet")
    volume = Volume(volume_id, container_path, principal)
    return disk.renamed(lambda key: key_of(plain_name(key), stack_of(key), volume))


def volumes_in(resources: Resources) -> dict[str, Resources]:
    """The persistent volumes among `resources`, for example of an offer, by their ids."""
    found = {}
    for key, milli in resources.scalars.items():
        volume = volume_of(key) if is_volume(key) else None
        if volume is not None:
            found[volume.volume_id] = Resources({key: milli})
    return found


def _only(resources: Resources) -> Resources:
    if len(resources.names()) != 1:
        raise InvalidResources("resources", str(resources), "must be one amount of disk")
    return resources


__all__ = [
    "create_volume",
    "destroy_volume",
    "grow_volume",
    "shrink_volume",
    "volume_on",
    "volumes_in",
]
