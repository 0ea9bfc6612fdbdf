"""Messages for tests, complete enough to be real, from few words."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterable, Mapping

from mesos_py.resources import Resources
from mesos_py.states import TASK_RUNNING, TaskState
from mesos_py.v1.types_pb2 import (
    AgentID,
    Attribute,
    CommandInfo,
    ExecutorID,
    ExecutorInfo,
    FrameworkID,
    FrameworkInfo,
    InverseOffer,
    Offer,
    OfferID,
    Resource,
    TaskID,
    TaskInfo,
    TaskStatus,
    Value,
)

_numbers = itertools.count(1)


def make_framework(name: str = "test", **fields: object) -> FrameworkInfo:
    """A framework; `fields` are those of FrameworkInfo, `id` as a text."""
    framework_id = fields.pop("id", None)
    info = FrameworkInfo(name=name, **fields)  # type: ignore[arg-type]
    if framework_id is not None:
        info.id.value = str(framework_id)
    return info


def make_offer(
    offer_id: str | None = None,
    agent_id: str = "agent-1",
    *,
    resources: Resources | None = None,
    hostname: str = "host-1",
    role: str = "*",
    attributes: Mapping[str, str] | None = None,
    framework_id: str = "framework-1",
    executor_ids: Iterable[str] = (),
) -> Offer:
    """An offer of 4 cpus, 1024 MB and ports, unless `resources` says otherwise."""
    what = resources or Resources.parse("cpus:4;mem:1024;ports:[31000-31999]")
    allocation = Resource.AllocationInfo(role=role)
    offer = Offer(
        id=OfferID(value=offer_id or f"offer-{next(_numbers)}"),
        framework_id=FrameworkID(value=framework_id),
        agent_id=AgentID(value=agent_id),
        hostname=hostname,
        resources=what.to_proto(),
        allocation_info=allocation,
        executor_ids=[ExecutorID(value=item) for item in executor_ids],
    )
    for name, text in (attributes or {}).items():
        offer.attributes.append(Attribute(name=name, type=Value.TEXT, text=Value.Text(value=text)))
    return offer


def make_inverse_offer(
    offer_id: str | None = None,
    agent_id: str = "agent-1",
    *,
    resources: Resources | None = None,
    start_s: float = 1_800_000_000.0,
    duration_s: float | None = None,
    framework_id: str = "framework-1",
) -> InverseOffer:
    """The question whether to leave the agent before `start_s` (seconds since the epoch)."""
    offer = InverseOffer(
        id=OfferID(value=offer_id or f"inverse-offer-{next(_numbers)}"),
        framework_id=FrameworkID(value=framework_id),
        agent_id=AgentID(value=agent_id),
        resources=(resources or Resources.of(cpus=1, mem=64)).to_proto(),
    )
    offer.unavailability.start.nanoseconds = round(start_s * 1e9)
    if duration_s is not None:
        offer.unavailability.duration.nanoseconds = round(duration_s * 1e9)
    return offer


def make_asking_back(
    *task_ids: str,
    offer_id: str | None = None,
    agent_id: str = "agent-1",
    resources: Resources | None = None,
    deadline_s: float = 1_800_000_000.0,
    reason: str = "another framework lacks what it needs",
    framework_id: str = "framework-1",
) -> InverseOffer:
    """The question to give resources there back before `deadline_s` (seconds since the
    epoch), or those tasks are killed."""
    offer = make_inverse_offer(offer_id, agent_id, resources=resources, framework_id=framework_id)
    offer.ClearField("unavailability")
    offer.revocation.deadline.nanoseconds = round(deadline_s * 1e9)
    offer.revocation.task_ids.extend(TaskID(value=task_id) for task_id in task_ids)
    offer.revocation.reason = reason
    return offer


def make_task(
    task_id: str | None = None,
    agent_id: str = "",
    *,
    resources: Resources | None = None,
    command: str = "true",
    executor: ExecutorInfo | None = None,
    data: bytes = b"",
) -> TaskInfo:
    """A command task, or one for `executor`; 0.1 cpus and 16 MB unless said otherwise."""
    task_id = task_id or f"task-{next(_numbers)}"
    task = TaskInfo(
        name=task_id,
        task_id=TaskID(value=task_id),
        resources=(resources or Resources.of(cpus=0.1, mem=16)).to_proto(),
    )
    if agent_id:
        task.agent_id.value = agent_id
    if executor is not None:
        task.executor.CopyFrom(executor)
    else:
        task.command.CopyFrom(CommandInfo(value=command))
    if data:
        task.data = data
    return task


def make_executor(executor_id: str = "executor-1", command: str = "true") -> ExecutorInfo:
    return ExecutorInfo(
        executor_id=ExecutorID(value=executor_id),
        type=ExecutorInfo.CUSTOM,
        command=CommandInfo(value=command),
        resources=Resources.of(cpus=0.1, mem=32).to_proto(),
    )


def make_status(
    task_id: str,
    state: TaskState.ValueType = TASK_RUNNING,
    *,
    agent_id: str = "agent-1",
    acknowledged: bool = True,
    message: str = "",
    source: TaskStatus.Source.ValueType = TaskStatus.SOURCE_EXECUTOR,
    reason: TaskStatus.Reason.ValueType | None = None,
) -> TaskStatus:
    """A status; with a fresh uuid unless `acknowledged` is false (the master's own word)."""
    status = TaskStatus(
        task_id=TaskID(value=task_id),
        state=state,
        agent_id=AgentID(value=agent_id),
        timestamp=1_700_000_000.0,
        source=source if acknowledged else TaskStatus.SOURCE_MASTER,
        reason=reason,
    )
    if acknowledged:
        status.uuid = uuid.uuid4().bytes
    if message:
        status.message = message
    return status


__all__ = [
    "make_asking_back",
    "make_executor",
    "make_framework",
    "make_inverse_offer",
    "make_offer",
    "make_status",
    "make_task",
]
