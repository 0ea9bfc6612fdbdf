"""Persistent volumes: which operations on them may be, and how tasks may use them.

The rules are those of Mesos (src/master/validation.cpp), as far as there are such volumes
here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mesos_py import reserved
from mesos_py.conversions import Conversion, require_new_volumes, with_volumes_as
from mesos_py.errors import Conflict, InsufficientResources, InvalidValue, MesosPyError
from mesos_py.resources import Resources, milli_text
from mesos_py.v1 import types_pb2 as pb

Operation = pb.Offer.Operation
# Each with the field of an operation that says what is to be done.
FIELDS: Final = {
    Operation.CREATE: "create",
    Operation.DESTROY: "destroy",
    Operation.GROW_VOLUME: "grow_volume",
    Operation.SHRINK_VOLUME: "shrink_volume",
}
KINDS: Final = frozenset(FIELDS)
_ID: Final = "disk.persistence.id"


# ---- Operations ----------------------------------------------------------------------


def require_sound(operation: pb.Offer.Operation, conversion: Conversion, there: Resources) -> None:
    """Raises InvalidResources for a new volume of an id that there is, and for what is no
    volume of the agent, which has all that is `there`, what `_missing` makes."""
    if operation.type == Operation.CREATE:
        require_new_volumes(there, conversion.converted, f"create.volumes.{_ID}")
        return
    for key, milli in conversion.consumed.scalars.items():
        volume = reserved.volume_of(key)
        if volume is None:
            continue
        has = there.scalars.get(key)
        if has is None:
            reason = f"the agent has no such volume of the role {reserved.role_of(key)}"
            raise _missing(operation, _ID, volume.volume_id, reason)
        if has != milli:
            reason = f"the volume {volume.volume_id} has {milli_text(has)} and is taken whole"
            raise _missing(operation, "disk", milli_text(milli), reason)


def require_unused(
    operation: pb.Offer.Operation, conversion: Conversion, unused: Resources
) -> None:
    """Raises what `_missing` makes where a volume of the agent is not among what is `unused`."""
    for key in conversion.consumed.scalars:
        volume = reserved.volume_of(key)
        if volume is None or key in unused.scalars:
            continue
        raise _missing(operation, _ID, volume.volume_id, "is in use, or is offered to others")


def _missing(operation: pb.Offer.Operation, member: str, value: str, reason: str) -> MesosPyError:
    """Of a volume that cannot be had.  As in Mesos, to destroy such a one is InvalidValue, and
    a Conflict to change its size."""
    where = f"{FIELDS[operation.type]}.{member}"
    if operation.type == Operation.DESTROY:
        return InvalidValue(where, value, reason)
    return Conflict(f"{where}: {value!r}: {reason}", field=where, value=value)


def require_principal(volumes: Resources, own: str) -> None:
    """Raises InvalidValue unless they are made in the name of the framework, if it has one."""
    for key in volumes.names():
        volume = reserved.volume_of(key)
        if own and volume is not None and volume.principal != own:
            reason = f"must be the framework's principal, {own!r}"
            where = "create.volumes.disk.persistence.principal"
            raise InvalidValue(where, volume.principal or "", reason)


# ---- Tasks ---------------------------------------------------------------------------


def uses(info: pb.TaskInfo, resources: Resources, there: Resources) -> Resources:
    """The resources of a task, in which volumes have the names that they have there.

    Raises InvalidResources for a volume that is there twice, and InvalidValue for one that
    cannot be where the task wants to see it.
    """
    if not resources.has_volumes:
        return resources
    of_executor = info.HasField("executor") and info.executor.type != pb.ExecutorInfo.DEFAULT
    container = info.executor.container if of_executor else info.container
    _require_visible("resources", info.resources, container)
    return with_volumes_as(there, resources)


def uses_of_executor(
    executor: pb.ExecutorInfo, resources: Resources, there: Resources
) -> Resources:
    """The same for those of an executor."""
    if not resources.has_volumes:
        return resources
    _require_visible("executor.resources", executor.resources, executor.container)
    return with_volumes_as(there, resources)


def _require_visible(
    field: str, messages: Iterable[pb.Resource], container: pb.ContainerInfo
) -> None:
    """In a sandbox a volume is a symbolic link."""
    if container.type == pb.ContainerInfo.DOCKER:
        return
    for message in messages:
        volume = message.disk.volume
        if volume.container_path.startswith("/"):
            reason = "must be relative for what runs in no image: it is within the sandbox"
            raise InvalidValue(f"{field}.disk.volume.container_path", volume.container_path, reason)
        if volume.mode == pb.Volume.RO:
            reason = "can be kept in containers of images only"
            raise InvalidValue(f"{field}.disk.volume.mode", "RO", reason)


def require_apart(task: Resources, executor: Resources) -> None:
    """Raises InvalidValue for a volume that a task and its executor would both have."""
    for key in task.scalars.keys() & executor.scalars.keys():
        volume = reserved.volume_of(key)
        if volume is not None:
            reason = "the task has the same volume as its executor"
            raise InvalidValue(f"executor.resources.{_ID}", volume.volume_id, reason)


def require_offered(name: str, left: Resources) -> None:
    """Raises InsufficientResources, in words, if what is wanted of that name and is not
    left is a volume."""
    volume = reserved.volume_of(name)
    if volume is None:
        return
    has = left.scalars.get(name)
    if has is None:
        reason = "is not in the offers, or is used by an earlier task of the call"
    else:
        reason = f"is had whole or not at all, and has {milli_text(has)}"
    text = f"resources.{_ID}: {volume.volume_id!r}: the volume of {reserved.role_of(name)}"
    raise InsufficientResources(
        f"{text} {reason}", field=f"resources.{_ID}", value=volume.volume_id
    )
