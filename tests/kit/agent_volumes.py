"""Operations on an agent that has disk, and on its volumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from agent.core.volume_uses import VolumeKey
from agent.core.volumes import Directories
from mesos_py.errors import Unavailable
from mesos_py.resources import Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import FRAMEWORK, AgentWorld
from tests.kit.reserving import amount, by, reserve, volume

Event = agent_pb2.Event
ADS = by("ads", "alice")
DISK = amount(ADS, disk=100)


def agent_with_disk() -> pb.AgentInfo:
    return pb.AgentInfo(hostname="host", resources=amount(cpus=8, mem=1024, disk=500).to_proto())


class VolumeWorld(AgentWorld):
    """An agent of which disk is reserved; `agent_core.agent_info` is `agent_with_disk`."""

    def __init__(self, directories: Directories) -> None:
        super().__init__(directories=directories)
        self._numbers = iter(range(1, 1000))
        self.apply(reserve(DISK))

    def apply(self, *infos: pb.Offer.Operation) -> list[pb.OperationStatus]:
        """Have the agent do them in one step; what it says to the master."""
        self.order(*infos)
        return [
            effect.call.update_operation.operation.latest_status
            for effect in self.collect()
            if hasattr(effect, "call") and effect.call.HasField("update_operation")
        ]

    def order(self, *infos: pb.Offer.Operation) -> None:
        """The same, and nothing is written down yet."""
        for info in infos:
            number = next(self._numbers)
            operation = pb.Operation(info=info, uuid=pb.UUID(value=number.to_bytes(16, "big")))
            operation.framework_id.value = FRAMEWORK
            order = Event.ApplyOperation(operation=operation)
            event = Event(type=Event.APPLY_OPERATION, apply_operation=order)
            self.core.on_master_event(event, self.clock.now())


def made(volume_id: str = "v1", disk_mb: float = 10):
    return volume(ADS, disk_mb, volume_id)


class Listed:
    """Directories that are only a list of what was asked for."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.full = False

    def create(self, volumes: Sequence[VolumeKey]) -> None:
        self._do("create", volumes)

    def destroy(self, volumes: Sequence[VolumeKey], generation: int) -> None:
        self._do("destroy", volumes)

    def _do(self, what: str, volumes: Sequence[VolumeKey]) -> None:
        if self.full:
            raise Unavailable("no space left")
        self.done += [f"{what} {each.role} {each.volume_id}" for each in volumes]


H = TypeVar("H", pb.TaskInfo, pb.ExecutorInfo)


def using(holder: H, resources: Resources) -> H:
    """A task or executor that has these as well."""
    holder.resources.extend(resources.to_proto())
    return holder
