"""Persistent volumes on this agent: which there are, who uses them, what an operation does.

What is in a volume is in a directory of its own, and those are somebody else's
(`Directories`): the checkpoint says which volumes there are, and each directory is made
before the checkpoint has the volume, and goes out of the way before it has it no more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from agent.core.effects import EraseVolumes
from mesos_py import reserved
from mesos_py.conversions import Conversion, with_volumes_as
from mesos_py.errors import Conflict, Unavailable
from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import types_pb2 as pb

if TYPE_CHECKING:
    from agent.core.state import AgentState


class VolumeKey(NamedTuple):
    """Which of an agent's volumes: there is one of an id for each role."""

    role: str
    volume_id: str

    def __str__(self) -> str:
        return f"{self.volume_id!r} of the role {self.role!r}"


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


def keys_of(resources: Resources) -> set[VolumeKey]:
    """The volumes among them."""
    found = set()
    for key in resources.scalars:
        volume = reserved.volume_of(key) if reserved.is_volume(key) else None
        if volume is not None:
            found.add(VolumeKey(reserved.role_of(key), volume.volume_id))
    return found


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


def _used(s: AgentState) -> set[VolumeKey]:
    used: set[VolumeKey] = set()
    for executor in s.containers.values():
        if executor.info is not None:
            used |= keys_in(executor.info.resources)
        for task in executor.tasks.values():
            used |= keys_in(task.info.resources)
    return used


def keys_in(messages: Iterable[pb.Resource]) -> set[VolumeKey]:
    """As `keys_of`, of the resources of a task or an executor."""
    return keys_of(_volumes(messages))


def unknown(s: AgentState, holders: Collection[pb.TaskInfo | pb.ExecutorInfo]) -> str | None:
    """Why not all volumes that they have are here as they say; None: they are.

    Raises InvalidResources for volumes that cannot be.
    """
    for holder in holders:
        asked = _volumes(holder.resources)
        if asked:
            asked = with_volumes_as(s.total, asked)
        for key, milli in asked.scalars.items():
            volume = reserved.volume_of(key)
            assert volume is not None
            if s.total.scalars.get(key) != milli:
                which = VolumeKey(reserved.role_of(key), volume.volume_id)
                return f"this agent has no volume {which} of {milli / 1000:g} MB"
    return None


def _volumes(messages: Iterable[pb.Resource]) -> Resources:
    found = [each for each in messages if each.HasField("disk")]
    return Resources.from_proto("resources", found) if found else EMPTY


__all__ = [
    "NOWHERE",
    "Directories",
    "VolumeKey",
    "carry_out",
    "keys_in",
    "keys_of",
    "unknown",
]
