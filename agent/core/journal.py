"""What must be written down before it is acted on: records of what the agent has.

A topic that changes something says which record that concerns; what stands in it is
made when the shell asks (`take`), before it carries out the effects of the same step.
So a step costs one transaction, and what changed twice in it is written once.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from agent.core.effects import TaskKey
from agent.core.records import Cause, Executor, Task
from mesos_py.conversions import reserved_part
from mesos_py.resources import Resources
from mesos_py.v1 import checkpoint_pb2
from mesos_py.v1 import types_pb2 as pb


class Kind(enum.Enum):
    """The values are those in the data base."""

    AGENT = "agent"
    FRAMEWORK = "framework"
    CONTAINER = "container"
    TASK = "task"
    UPDATE = "update"
    RESERVED = "reserved"
    OPERATION = "operation"
    VOLUMES = "volumes"


# What must outlive the machine as well: nothing that ends with it tells of it.
# No set: each write looks, and to hash an Enum takes longer than to compare it with three.
LASTING = (Kind.RESERVED, Kind.OPERATION, Kind.VOLUMES)


# Ids, which have no slash in them.
RecordKey: TypeAlias = tuple[str, ...]
AGENT_KEY: RecordKey = ("agent",)
RESERVED_KEY: RecordKey = ("reserved",)
VOLUMES_KEY: RecordKey = ("volumes",)


class Change(NamedTuple):
    """A record is to be there with `data` from now on; None: it is to be gone."""

    kind: Kind
    key: RecordKey
    data: bytes | None


class Journal:
    """Changes since the last `take`, each record once, in the order of its first one."""

    def __init__(self) -> None:
        self._changed: dict[tuple[Kind, RecordKey], Callable[[], bytes] | None] = {}

    def put(self, kind: Kind, key: RecordKey, data: Callable[[], bytes]) -> None:
        self._changed[kind, key] = data

    def remove(self, kind: Kind, key: RecordKey) -> None:
        self._changed[kind, key] = None

    def take(self) -> list[Change]:
        if not self._changed:
            return []
        changed, self._changed = self._changed, {}
        return [
            Change(kind, key, data() if data is not None else None)
            for (kind, key), data in changed.items()
        ]

    # ---- What the topics have ------------------------------------------------------

    def agent(
        self, info: pb.AgentInfo, boot_id: str, epoch: int, drain: pb.DrainConfig | None
    ) -> None:
        record = checkpoint_pb2.Agent(info=info, boot_id=boot_id, epoch=epoch, drain=drain)
        self.put(Kind.AGENT, AGENT_KEY, record.SerializeToString)

    def framework(self, info: pb.FrameworkInfo) -> None:
        self.put(Kind.FRAMEWORK, (info.id.value,), info.SerializeToString)

    def container(self, executor: Executor) -> None:
        self.put(Kind.CONTAINER, (executor.container_id,), lambda: _container(executor))

    def task(self, task: Task) -> None:
        self.put(Kind.TASK, task_record_key(task), lambda: _task(task))

    def no_task(self, task: Task) -> None:
        self.remove(Kind.TASK, task_record_key(task))

    def update(
        self, key: TaskKey, number: int, status: pb.TaskStatus, latest: pb.TaskState.ValueType
    ) -> None:
        record = checkpoint_pb2.Update(status=status, latest=latest)
        record.framework_id.value = key[0]
        self.put(Kind.UPDATE, update_record_key(key, number), record.SerializeToString)

    def acknowledged(
        self, key: TaskKey, number: int, status: pb.TaskStatus, latest: pb.TaskState.ValueType
    ) -> None:
        """Only that it was there is still of interest."""
        record = checkpoint_pb2.Update(latest=latest, acknowledged=True)
        record.framework_id.value = key[0]
        record.status.task_id.value = key[1]
        record.status.uuid = status.uuid
        self.put(Kind.UPDATE, update_record_key(key, number), record.SerializeToString)

    def reserved(self, total: Resources) -> None:
        """The part of it that is; many operations of one step are written as one."""
        self.put(Kind.RESERVED, RESERVED_KEY, lambda: _reserved(total))

    def volumes(self, generation: int) -> None:
        """There are volumes, or were: which, is in what is reserved."""
        record = checkpoint_pb2.Volumes(generation=generation)
        self.put(Kind.VOLUMES, VOLUMES_KEY, record.SerializeToString)

    def operation(self, operation: pb.Operation) -> None:
        record = checkpoint_pb2.Operation(operation=operation)
        self.put(Kind.OPERATION, (operation.uuid.value.hex(),), record.SerializeToString)

    def no_operation(self, uuid: bytes) -> None:
        self.remove(Kind.OPERATION, (uuid.hex(),))

    def no_updates(self, key: TaskKey, numbers: Iterable[int]) -> None:
        """Updates of the task are not remembered any more."""
        for number in numbers:
            self.remove(Kind.UPDATE, update_record_key(key, number))


def task_record_key(task: Task) -> RecordKey:
    # With the container: if the record is damaged it is still known what to end.
    return (*task.key, task.executor.container_id)


def update_record_key(key: TaskKey, number: int) -> RecordKey:
    return (*key, f"{number:08}")


def _reserved(total: Resources) -> bytes:
    record = checkpoint_pb2.Reserved(resources=reserved_part(total).to_proto())
    return record.SerializeToString()


def _container(executor: Executor) -> bytes:
    record = checkpoint_pb2.Container(
        container_id=executor.container_id,
        sandbox=executor.sandbox,
        pid=executor.pid,
        start_ticks=executor.start_ticks,
        subscribed=executor.subscribed,
        ending=executor.ending,
        deadline_monotonic=executor.deadline_s,
        forced=executor.forced,
        killed=executor.killed,
        abandoned=executor.abandoned,
        knows_volumes=executor.knows_volumes,
    )
    record.framework_id.value, record.executor_id.value = executor.key
    if executor.info is not None:
        record.executor.CopyFrom(executor.info)
    if executor.cause is not None:
        record.cause.CopyFrom(_cause(executor.cause))
    return record.SerializeToString()


def _cause(cause: Cause) -> checkpoint_pb2.Cause:
    return checkpoint_pb2.Cause(
        state=cause.state,
        reason=cause.reason,
        message=cause.message,
        source=cause.source,
        limitation=cause.limitation,
    )


def _task(task: Task) -> bytes:
    record = checkpoint_pb2.Task(
        container_id=task.executor.container_id,
        launched=task.launched.wall_s,
        launched_monotonic=task.launched.monotonic_s,
        state=task.state,
        delivered=task.delivered,
        group=task.group,
        unhealthy=task.unhealthy,
        ends_with_group=task.ends_with_group,
    )
    record.framework_id.value = task.key[0]
    record.info.CopyFrom(task.info)
    if task.status is not None:
        record.status.CopyFrom(task.status)
    if task.kill is not None:
        record.kill.CopyFrom(task.kill)
    if task.kill_cause is not None:
        record.kill_reason, record.kill_message = task.kill_cause
    return record.SerializeToString()
