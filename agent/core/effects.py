"""What the core wants done: plain values that the shell carries out in order."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from agent.core.volume_uses import VolumeUse, without_volumes
from mesos_py.health import Probe
from mesos_py.resources import Resources
from mesos_py.v1 import agent_pb2, executor_pb2
from mesos_py.v1 import types_pb2 as pb

TaskKey: TypeAlias = tuple[str, str]  # framework id, task id
ExecutorKey: TypeAlias = tuple[str, str]  # framework id, executor id


@dataclass(slots=True)
class ContainerSpec:
    """Everything that is needed to start the first process of a container."""

    container_id: str
    framework_id: str
    executor_id: str
    agent_id: str
    user: str
    # What to run: `executable` is looked up in the PATH of `environment` unless it
    # has a slash; `argv` is complete, argv[0] included.
    executable: str
    argv: list[str]
    # Ours and the command's.  What isolators add stands between the two.
    environment: dict[str, str]
    command_environment: dict[str, str]
    # The sandbox, as names beneath the work directory.
    sandbox: tuple[str, ...]
    command: pb.CommandInfo
    # Whose resources the container has at its start: the executor's and the first tasks'.
    holders: list[pb.TaskInfo | pb.ExecutorInfo]
    container: pb.ContainerInfo | None = None
    # It is a program of the agent's own, and runs as the agent does.
    as_agent: bool = False
    # The persistent volumes that it sees from its start.
    volumes: Sequence[VolumeUse] = ()

    def resources(self) -> Resources:
        """The sum of what the holders were given, reserved or not; what is in a volume is
        not the container's."""
        return without_volumes(sum_of(self.holders))


def sum_of(holders: list[pb.TaskInfo | pb.ExecutorInfo]) -> Resources:
    messages = [each for holder in holders for each in holder.resources]
    return Resources.from_proto("resources", messages)


class Signal(enum.IntEnum):
    """How a container is ended: asked to, or made to."""

    TERM = 15
    KILL = 9


@dataclass(slots=True)
class SendMaster:
    call: agent_pb2.Call


@dataclass(slots=True)
class SendExecutor:
    key: ExecutorKey
    event: executor_pb2.Event


@dataclass(slots=True)
class LinkVolumes:
    """Show volumes in the sandbox of an executor that runs, for tasks that it is to get; then
    as SendExecutor.  Where that cannot be, nothing is sent, and `volumes_not_linked` is the
    answer."""

    key: ExecutorKey
    event: executor_pb2.Event
    tasks: tuple[TaskKey, ...]
    sandbox: tuple[str, ...]
    volumes: Sequence[VolumeUse]


@dataclass(slots=True)
class UnlinkVolumes:
    """The task that they were shown for in this sandbox has ended."""

    sandbox: tuple[str, ...]
    volumes: Sequence[VolumeUse]


@dataclass(slots=True)
class CloseExecutor:
    """End the stream of an executor once what was sent before is out."""

    key: ExecutorKey
    reason: str


@dataclass(slots=True)
class LaunchContainer:
    """Answered by exactly one `container_started` or `container_failed`."""

    spec: ContainerSpec


@dataclass(slots=True)
class KillContainer:
    """A signal for all processes of a container.

    TERM gives them until a KILL to end by themselves; before its first process
    exists either one stops the launch, answered by `container_failed`.
    """

    container_id: str
    signal: Signal


@dataclass(slots=True)
class ForgetContainer:
    """Its end is written down: whoever has kept how it ended need not any more."""

    container_id: str


@dataclass(slots=True)
class UpdateContainer:
    """The container's resources have changed, by plain names: its tasks come and go."""

    container_id: str
    resources: Resources


@dataclass(slots=True)
class EraseVolumes:
    """Volumes that the operation of this generation has destroyed are written down as gone:
    what was in them can be erased, in its own time."""

    generation: int


@dataclass(slots=True)
class StartProbe:
    """Try whether a task is well; `kind` names the check, as nothing else in the container.

    Answered by one `probe_ended` with the same number, unless a StopProbe comes first.
    The core keeps the time; `timeout_s` (0: none) is told as a second safeguard.
    """

    container_id: str
    kind: str
    number: int
    probe: Probe
    timeout_s: float


@dataclass(slots=True)
class StopProbe:
    """Nobody wants to know any more: end the probe, and say nothing of it."""

    container_id: str
    kind: str


@dataclass(slots=True)
class TaskEnded:
    """The task's last output is written: who follows its log may stop at the end."""

    key: TaskKey


@dataclass(slots=True)
class Drop:
    """An input was ignored; `reason` is constant, `fields` name whom it concerns."""

    reason: str
    fields: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class SentAway:
    """The master has this agent end, and nothing of it runs any more."""

    reason: str


@dataclass(slots=True)
class Stop:
    """The agent must end: nothing is running any more, or it may not go on."""

    reason: str
    # Whether that is what was asked for.
    wanted: bool


Effect: TypeAlias = (
    SendMaster
    | SendExecutor
    | LinkVolumes
    | UnlinkVolumes
    | CloseExecutor
    | LaunchContainer
    | KillContainer
    | ForgetContainer
    | UpdateContainer
    | EraseVolumes
    | StartProbe
    | StopProbe
    | TaskEnded
    | Drop
    | SentAway
    | Stop
)
