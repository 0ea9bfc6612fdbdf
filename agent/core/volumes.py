"""Persistent volumes on this agent: which there are, who uses them, what an operation does.

What is in a volume is in a directory of its own, and those are somebody else's
(`Directories`): the checkpoint says which volumes there are, and each directory is made
before the checkpoint has the volume, and goes out of the way before it has it no more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from agent.core.effects import EraseVolumes
from agent.core.sandbox_paths import names_of_link
from agent.core.volume_uses import (
    PATH_FIELD,
    VolumeKey,
    VolumeUse,
    keys_of,
    uses_in,
    volumes_in,
)
from mesos_py.conversions import Conversion, with_volumes_as
from mesos_py.errors import Conflict, InvalidValue, MesosPyError, Unavailable
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb

if TYPE_CHECKING:
    from agent.core.state import AgentState


class Directories(Protocol):
    """Where volumes are.  Both do all or nothing, and what is done outlives the machine."""

    def create(self, volumes: Sequence[VolumeKey]) -> None:
        """Make an empty directory for each.  Raises MesosPyError, also where there is one
        with something in it, which is somebody's."""
        ...

    def destroy(self, volumes: Sequence[VolumeKey], generation: int) -> None:
        """Put their directories aside.  They are erased by an EraseVolumes of this
        generation, or put back at a start whose checkpoint knows an earlier one.  Raises
        MesosPyError."""
        ...


class _Nowhere:
    """Of an agent that carries out no operations."""

    def create(self, volumes: Sequence[VolumeKey]) -> None:
        raise Unavailable("this agent keeps no volumes")

    def destroy(self, volumes: Sequence[VolumeKey], generation: int) -> None:
        raise Unavailable("this agent keeps no volumes")


NOWHERE: Final = _Nowhere()


def carry_out(s: AgentState, change: Conversion) -> None:
    """Do to the directories what the operation does.

    Raises Conflict for a volume that somebody uses, and MesosPyError where a directory
    cannot be had; nothing has changed then.
    """
    gone, made = keys_of(change.consumed), keys_of(change.converted)
    if not gone and not made:
        return
    for key in sorted(gone & _used(s)):
        raise Conflict(f"the volume {key} is in use on this agent", field="volumes")
    if created := sorted(made - gone):
        s.directories.create(created)
    s.generation += 1
    if destroyed := sorted(gone - made):
        s.directories.destroy(destroyed, s.generation)
        s.effects.append(EraseVolumes(s.generation))
    s.journal.volumes(s.generation)


def doubt(s: AgentState, operation: pb.Offer.Operation, why: str) -> None:
    """The operation was not done.  Orders that follow may rest on it: until the master has
    heard what there is, no task is to find another volume than it was made for."""
    named = [*operation.create.volumes, *operation.destroy.volumes]
    named += [operation.grow_volume.volume, operation.shrink_volume.volume]
    for each in named:
        try:
            keys = keys_of(volumes_in([each]))
        except MesosPyError:
            continue  # it is none, and nobody can use it
        for key in keys:
            s.doubtful.setdefault(key, why)


def _used(s: AgentState) -> set[VolumeKey]:
    used: set[VolumeKey] = set()
    for executor in s.containers.values():
        if executor.info is not None:
            used |= keys_of(volumes_in(executor.info.resources))
        for task in executor.tasks.values():
            used |= keys_of(volumes_in(task.info.resources))
    return used


def asked(task: pb.TaskInfo) -> bool:
    """Whether there may be a volume among its resources, or its executor's."""
    return any(each.HasField("disk") for each in task.resources) or any(
        each.HasField("disk") for each in task.executor.resources
    )


def unknown(s: AgentState, holders: Collection[pb.TaskInfo | pb.ExecutorInfo]) -> str | None:
    """Why not all volumes that they have are here as they were to be; None: they are.

    Raises InvalidResources for volumes that cannot be.
    """
    for holder in holders:
        wanted = with_volumes_as(s.total, volumes_in(holder.resources))
        for each in sorted(keys_of(wanted) & s.doubtful.keys()):
            return f"an operation on the volume {each} was not done: {s.doubtful[each]}"
        for key, milli in wanted.scalars.items():
            if s.total.scalars.get(key) != milli:
                (which,) = keys_of(Resources({key: milli}))
                return f"this agent has no volume {which} of {milli / 1000:g} MB"
    return None


def require_visible(task: pb.TaskInfo) -> None:
    """Raises InvalidValue for a volume that cannot be where the task, or the executor that it
    brings, wants to see it."""
    in_docker = pb.ContainerInfo.DOCKER
    executor = task.executor
    if not task.HasField("executor"):
        if task.container.type != in_docker:
            _require_links(uses_in(task.resources))
        return
    own = uses_in(task.resources)
    if executor.container.type != in_docker:
        _require_links([*uses_in(executor.resources), *own])
    elif own:
        reason = "a docker container gets no volume once it runs: its executor can have it"
        raise InvalidValue("resources.disk.persistence.id", own[0].key.volume_id, reason)


def _require_links(uses: Iterable[VolumeUse]) -> None:
    """In a sandbox a volume is a symbolic link."""
    for each in uses:
        names_of_link(PATH_FIELD, each.container_path)
        if each.read_only:
            reason = "can be kept in docker containers only: a link makes nothing read-only"
            raise InvalidValue("resources.disk.volume.mode", "RO", reason)


__all__ = [
    "NOWHERE",
    "Directories",
    "asked",
    "carry_out",
    "doubt",
    "require_visible",
    "unknown",
]
