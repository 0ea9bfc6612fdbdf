"""What the agent remembers of frameworks, executors and tasks."""

from __future__ import annotations

import signal
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from agent.core.effects import ExecutorKey, TaskKey
from agent.core.health import Check, fill
from mesos_py.clock import Now
from mesos_py.resources import EMPTY, Resources
from mesos_py.states import is_terminal
from mesos_py.v1 import types_pb2 as pb

# Beneath it each task of the agent's own executor has a directory, in the sandbox of that.
TASKS: Final = "tasks"
# In the sandbox of a container: the directories of those within it.
CONTAINERS: Final = "containers"

State: TypeAlias = pb.TaskState.ValueType
Reason: TypeAlias = pb.TaskStatus.Reason.ValueType
Source: TypeAlias = pb.TaskStatus.Source.ValueType


class Exit(NamedTuple):
    """How a container's first process ended: a wait status, or why there is none."""

    status: int | None
    unknown: str = ""

    @property
    def signal(self) -> int | None:
        """The signal that ended it, None if it exited."""
        if self.status is None:
            return None
        return self.status & 0x7F or None

    @property
    def code(self) -> int | None:
        """Its exit code, None if a signal ended it."""
        if self.status is None or self.status & 0x7F:
            return None
        return (self.status >> 8) & 0xFF

    def fill(self, status: pb.TaskStatus) -> None:
        """As the numbers of a status, if they are known."""
        if self.status is None:
            return
        if self.signal is not None:
            status.exit_status.signal = self.signal
        else:
            status.exit_status.exit_code = self.status >> 8

    def text(self, who: str) -> str:
        """As Mesos words it: "Command exited with status 3"."""
        if self.status is None:
            return f"{who} ended, exit status unknown: {self.unknown}"
        if self.signal is not None:
            return f"{who} terminated with signal {_signal_name(self.signal)}"
        return f"{who} exited with status {self.code}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)  # a real-time signal


class Framework:
    """A framework that has tasks or unacknowledged updates here."""

    __slots__ = ("framework_id", "info", "partition_aware", "reports_killing")

    def __init__(self, info: pb.FrameworkInfo) -> None:
        self.framework_id = info.id.value
        self.update(info)

    def update(self, info: pb.FrameworkInfo) -> None:
        self.info = info
        types = {capability.type for capability in info.capabilities}
        self.partition_aware = pb.FrameworkInfo.Capability.PARTITION_AWARE in types
        self.reports_killing = pb.FrameworkInfo.Capability.TASK_KILLING_STATE in types

    def lost_or(self, state: State) -> State:
        """`state` for partition-aware frameworks, TASK_LOST for the others."""
        return state if self.partition_aware else pb.TASK_LOST


class Cause(NamedTuple):
    """Why the agent itself ends a container: what its tasks will be told."""

    state: State
    reason: Reason
    message: str
    source: Source = pb.TaskStatus.SOURCE_AGENT
    limitation: pb.TaskResourceLimitation | None = None


class KillCause(NamedTuple):
    """Why the master has a task killed, if that is another's doing than its framework's."""

    reason: Reason
    message: str

    def fill(self, status: pb.TaskStatus) -> None:
        """Say so in a status of the task's end; what its executor says comes after it."""
        own = f" ({status.message})" if status.message else ""
        status.reason, status.message = self.reason, self.message + own


@dataclass(slots=True)
class Task:
    """A task that has not ended."""

    key: TaskKey
    info: pb.TaskInfo
    executor: Executor
    launched: Now
    state: State = pb.TASK_STAGING
    status: pb.TaskStatus | None = None
    # The start of each status that the agent makes of it.
    form: pb.TaskStatus | None = None
    # Custom executors: whether the executor was sent it, and has reported on it.
    delivered: bool = False
    # The last KILL that was ordered, told again to an executor that comes back.
    kill: pb.KillPolicy | None = None
    # Custom executors: why the agent has it killed, if that is not somebody's wish.
    cause: Cause | None = None
    # What the update of its end says, if it is the first kill that ends it.
    kill_cause: KillCause | None = None
    # Custom executors: what the task adds to the container.
    resources: Resources = EMPTY
    # The group that it came with: they reach their executor together.  Empty: none.
    group: str = ""
    # Another of that has failed or was killed, for which the agent's own executor ends it.
    ends_with_group: bool = False
    # What the agent checks; the newest news of that which is not told yet (kind and text);
    # and why it is killed, if that is for its health.
    checks: tuple[Check, ...] = ()
    untold: tuple[str, str] | None = None
    unhealthy: str = ""
    # For operators, as agent.core.past has it.
    statuses: list[pb.TaskStatus] = field(default_factory=list)

    @property
    def is_killed(self) -> bool:
        """Whether somebody has asked for its end already."""
        return self.executor.killed or self.kill is not None

    def fill(self, status: pb.TaskStatus) -> None:
        """What a status of it says of its checks, if the agent has any of it."""
        if not self.checks:
            return
        fill(status, self.checks)
        if self.unhealthy and is_terminal(status.state):
            status.healthy = False


@dataclass(slots=True)
class Executor:
    """A container, and what runs in it: a command (one task, no executor process of
    ours) or a custom executor with any number of tasks."""

    key: ExecutorKey
    container_id: str
    framework: Framework
    sandbox: tuple[str, ...]
    # None for a command.
    info: pb.ExecutorInfo | None
    tasks: dict[str, Task] = field(default_factory=dict)
    # Custom executors: its own and its tasks'.
    resources: Resources = EMPTY
    pid: int | None = None
    # When it began: another process with its number began at another tick.
    start_ticks: int = 0
    # Of its own network, if it has one.
    addresses: tuple[str, ...] = ()
    # Custom executors: whether its stream is there now, and ever was.
    connected: bool = False
    subscribed: bool = False
    # Whether it has subscribed to this run of the agent.
    welcomed: bool = False
    # The agent's own for groups: whether it shows tasks their volumes.  One that an older
    # agent has started does not, and goes on as it is when that is replaced.
    knows_volumes: bool = False
    # Ended by the agent: when at the latest, whether KILL was sent, and why.
    deadline_s: float | None = None
    forced: bool = False
    cause: Cause | None = None
    # A command that somebody asked to kill: it is KILLED however it ends.
    killed: bool = False
    # Its framework is gone: nobody wants updates.
    abandoned: bool = False
    # What an isolator said of a part that was ended for a limit, while the rest went on.
    hurt: str = ""
    # Its tasks that have ended, for operators.
    completed: list[Task] = field(default_factory=list)

    def fill(
        self, status: pb.ContainerStatus, task: pb.TaskInfo, agent_ip: str, *, networks: bool
    ) -> None:
        """What a status of `task` says of its container.  One without a network of its own
        is found at the agent's address.  `networks`: whether the agent has any but its own."""
        status.container_id.value = self.container_id
        if self.pid is not None:
            status.executor_pid = self.pid
        addresses = self.addresses
        if not addresses and agent_ip and not status.network_infos:
            holder = self.info if self.info is not None else task
            addresses = (agent_ip,) if _on_the_agents_network(holder.container, networks) else ()
        if addresses:
            del status.network_infos[:]
            network = status.network_infos.add()
            for address in addresses:
                kind = pb.NetworkInfo.IPv6 if ":" in address else pb.NetworkInfo.IPv4
                network.ip_addresses.add(protocol=kind, ip_address=address)

    @property
    def custom(self) -> bool:
        """Whether a process speaks for the tasks: one of their framework, or the agent's
        own for groups."""
        return self.info is not None

    @property
    def default(self) -> bool:
        """Whether it is the agent's own for groups."""
        return self.info is not None and self.info.type == pb.ExecutorInfo.DEFAULT

    def log_places(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Where there is a stdout and a stderr of it: names, and directories."""
        yield self.container_id, self.sandbox
        if self.default:
            for task_id in self.tasks:
                yield f"{self.container_id}/{task_id}", (*self.sandbox, TASKS, task_id)

    def place(self, task_id: str) -> Place:
        """Where a task of it keeps its files."""
        inner = (TASKS, task_id) if self.default else ()
        return Place(self.sandbox, self.pid is not None, task_id not in self.tasks, inner)

    @property
    def ending(self) -> bool:
        return self.deadline_s is not None


def _on_the_agents_network(container: pb.ContainerInfo, networks: bool) -> bool:
    docker = pb.ContainerInfo.DockerInfo
    if container.type == pb.ContainerInfo.DOCKER:
        return container.docker.network in (docker.UNSPECIFIED, docker.HOST)
    return not (container.network_infos and networks)


class Place(NamedTuple):
    """Where a task's sandbox is, as names beneath the work directory."""

    sandbox: tuple[str, ...]
    # Whether a process of it ever existed: if not, its sandbox may never have been made.
    started: bool
    ended: bool
    # Where the task's own directory is in the sandbox, if it shares that with others.
    inner: tuple[str, ...] = ()


class History:
    """The tasks that ended last."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._places: OrderedDict[TaskKey, Place] = OrderedDict()

    def __len__(self) -> int:
        return len(self._places)

    def add(self, key: TaskKey, place: Place) -> None:
        self._places.pop(key, None)
        self._places[key] = place
        if len(self._places) > self._limit:
            self._places.popitem(last=False)

    def get(self, key: TaskKey) -> Place | None:
        return self._places.get(key)


def task_message(task: Task, agent_id: str, head: pb.TaskStatus | None) -> pb.Task:
    """The task as the master is told of it when the agent registers again."""
    info = task.info
    message = pb.Task(
        name=info.name,
        task_id=info.task_id,
        framework_id=pb.FrameworkID(value=task.key[0]),
        agent_id=pb.AgentID(value=agent_id),
        state=task.state,
        resources=info.resources,
        launched_time=task.launched.wall_s,
        allocation_role=role_of(info, task.executor.framework),
    )
    if task.executor.custom:
        message.executor_id.value = task.executor.key[1]
    for name in ("labels", "discovery", "container", "kill_policy", "health_check"):
        if info.HasField(name):
            getattr(message, name).CopyFrom(getattr(info, name))
    for name, limit in info.limits.items():
        message.limits[name].CopyFrom(limit)
    if info.short:
        message.short = True
    if info.HasField("revocation_cost"):
        message.revocation_cost = info.revocation_cost
    if task.status is not None:
        # Without what no master keeps of it: a few such tasks, and the agent could never
        # register again, since all of them go into one message.
        message.statuses.append(task.status)
        message.statuses[-1].ClearField("data")
    if head is not None:
        message.status_update_state = head.state
        message.status_update_uuid = head.uuid
    return message


def role_of(info: pb.TaskInfo, framework: Framework) -> str:
    """The role whose offer the task was launched from."""
    for resource in info.resources:
        if resource.allocation_info.role:
            return resource.allocation_info.role
    return framework.info.role or (framework.info.roles[0] if framework.info.roles else "*")
