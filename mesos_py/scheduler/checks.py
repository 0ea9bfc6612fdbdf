"""What a framework gives us, checked and brought into the form of the wire.

Pure.  Raises InvalidValue or TooLarge that names the field and the value; nothing
has been sent or changed then.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from mesos_py import constraints
from mesos_py.errors import InvalidValue, TooLarge
from mesos_py.ids import check_id
from mesos_py.resources import MILLI, Resources
from mesos_py.v1 import scheduler_pb2 as pb
from mesos_py.v1.types_pb2 import (
    AgentID,
    ExecutorID,
    Filters,
    FrameworkInfo,
    InverseOffer,
    KillPolicy,
    Offer,
    OfferFilters,
    OfferID,
    OperationID,
    OperationStatus,
    TaskID,
    TaskInfo,
    TaskStatus,
    Value,
)

# An offer or an id, as messages or as texts: wherever one is asked for.
OfferLike: TypeAlias = Offer | OfferID | str
InverseOfferLike: TypeAlias = InverseOffer | OfferID | str
AgentLike: TypeAlias = AgentID | str
TaskLike: TypeAlias = TaskID | str
ExecutorLike: TypeAlias = ExecutorID | str
FiltersLike: TypeAlias = Filters | float | None
ReconcileLike: TypeAlias = TaskStatus | TaskLike | tuple[TaskLike, AgentLike | None]
OperationLike: TypeAlias = (
    OperationStatus | OperationID | str | tuple[OperationID | str, AgentLike | None]
)
RoleConstraints: TypeAlias = pb.OfferConstraints.RoleConstraints

# Mesos: the longest time for which resources can be refused.
MAX_REFUSE_S: Final = 365 * 86400.0
DEFAULT_FAILOVER_S: Final = 3600.0

Capability = FrameworkInfo.Capability


# ---- Ids ---------------------------------------------------------------------


def text_of(value: TaskID | AgentID | ExecutorID | OfferID | OperationID | str) -> str:
    return value if isinstance(value, str) else value.value


def offer_ids_of(offers: OfferLike | Iterable[OfferLike]) -> list[str]:
    """The ids of one or several offers; raises InvalidValue for none or one given twice."""
    if isinstance(offers, (Offer, OfferID, str)):
        offers = (offers,)
    ids = [offer.id.value if isinstance(offer, Offer) else text_of(offer) for offer in offers]
    return _distinct("offer_ids", ids)


def inverse_offer_ids_of(offers: InverseOfferLike | Iterable[InverseOfferLike]) -> list[str]:
    """The same of inverse offers."""
    if isinstance(offers, (InverseOffer, OfferID, str)):
        offers = (offers,)
    ids = [each.id.value if isinstance(each, InverseOffer) else text_of(each) for each in offers]
    return _distinct("inverse_offer_ids", ids)


def _distinct(field: str, ids: list[str]) -> list[str]:
    if not ids:
        raise InvalidValue(field, "[]", "must name at least one offer")
    if len(set(ids)) != len(ids):
        twice = next(offer_id for offer_id in ids if ids.count(offer_id) > 1)
        raise InvalidValue(field, twice, "is in the call twice")
    return ids


def tasks_of(operation: Offer.Operation) -> Sequence[TaskInfo]:
    """The tasks that an operation launches."""
    if operation.type == Offer.Operation.LAUNCH:
        return operation.launch.task_infos
    if operation.type == Offer.Operation.LAUNCH_GROUP:
        return operation.launch_group.task_group.tasks
    return ()


def settle_tasks(operations: Iterable[Offer.Operation], agent_id: str | None) -> list[TaskInfo]:
    """All tasks of the operations, which are ours to complete: the agent is filled in.

    None: the offers are gone, and with them whose they were; each task's own word stands.
    Raises InvalidValue for an unusable id, one that is there twice, and a task that
    names another agent than the offers'.
    """
    found: dict[str, TaskInfo] = {}
    for operation in operations:
        for task in tasks_of(operation):
            task_id = check_id("task_id", task.task_id.value)
            if task_id in found:
                raise InvalidValue("task_id", task_id, "is in this call twice")
            if agent_id is not None and not task.agent_id.value:
                task.agent_id.value = agent_id
            elif agent_id is not None and task.agent_id.value != agent_id:
                raise InvalidValue(
                    f"task {task_id}: agent_id",
                    task.agent_id.value,
                    f"the offers are of agent {agent_id}",
                )
            found[task_id] = task
    return list(found.values())


def reconcile_entries(tasks: Iterable[ReconcileLike]) -> list[pb.Call.Reconcile.Task]:
    """What RECONCILE asks about: statuses, ids, or (task id, agent id)."""
    entries = []
    for item in tasks:
        agent: AgentLike | None = None
        if isinstance(item, TaskStatus):
            task_id, agent = item.task_id.value, item.agent_id
        elif isinstance(item, tuple):
            task_id, agent = text_of(item[0]), item[1]
        else:
            task_id = text_of(item)
        entry = pb.Call.Reconcile.Task(task_id=TaskID(value=check_id("task_id", task_id)))
        if agent is not None and text_of(agent):
            entry.agent_id.value = text_of(agent)
        entries.append(entry)
    return entries


def operation_entries(
    operations: Iterable[OperationLike],
) -> list[pb.Call.ReconcileOperations.Operation]:
    """What RECONCILE_OPERATIONS asks about: statuses, ids, or (operation id, agent id)."""
    entries = []
    for item in operations:
        agent: AgentLike | None = None
        if isinstance(item, OperationStatus):
            named, agent = item.operation_id.value, item.agent_id
        elif isinstance(item, tuple):
            named, agent = text_of(item[0]), item[1]
        else:
            named = text_of(item)
        entry = pb.Call.ReconcileOperations.Operation()
        entry.operation_id.value = check_id("operation_id", named)
        if agent is not None and text_of(agent):
            entry.agent_id.value = text_of(agent)
        entries.append(entry)
    return entries


# ---- Amounts and times -------------------------------------------------------


def filters_of(filters: FiltersLike) -> Filters | None:
    """The wire form of filters, or of the seconds to refuse for (infinity: a year)."""
    if filters is None:
        return None
    if not isinstance(filters, Filters):
        filters = Filters(refuse_seconds=seconds("refuse_seconds", filters))
    elif filters.HasField("refuse_seconds"):
        seconds("refuse_seconds", filters.refuse_seconds)
    if filters.refuse_seconds > MAX_REFUSE_S:
        filters = Filters(refuse_seconds=MAX_REFUSE_S)
    return filters


def seconds(field: str, value: float) -> float:
    """`value` if it is a time span; raises InvalidValue for a negative one or NaN."""
    if isinstance(value, bool) or not isinstance(value, float | int):
        raise InvalidValue(field, value, "must be a number of seconds")
    if math.isnan(value) or value < 0:
        raise InvalidValue(field, value, "must be zero or more seconds")
    return value


def kill_policy_of(grace_s: float | None) -> KillPolicy | None:
    if grace_s is None:
        return None
    if math.isinf(seconds("grace_s", grace_s)):
        raise InvalidValue("grace_s", grace_s, "must be finite")
    policy = KillPolicy()
    policy.grace_period.nanoseconds = int(grace_s * 1e9)
    return policy


def checked_size(what: str, size: int, limit: int) -> int:
    if size > limit:
        raise TooLarge(
            f"{what}: {size} bytes, at most {limit} fit into one message", size=size, limit=limit
        )
    return size


# ---- The framework -----------------------------------------------------------


def complete_framework(given: FrameworkInfo, user: str, hostname: str) -> FrameworkInfo:
    """A copy of `given` with our defaults where it says nothing.

    The failover time-out is an hour (zero on the wire: a framework whose link drops
    for a moment would lose its tasks).  `checkpoint` is on: executors wait for an agent
    that is started again.  `roles` brings the capability that they need.
    """
    info = FrameworkInfo()
    info.CopyFrom(given)
    if not info.name:
        raise InvalidValue("framework.name", info.name, "must not be empty")
    if info.id.value:
        check_id("framework.id", info.id.value)
    if not info.user:
        info.user = user
    if not info.hostname:
        info.hostname = hostname
    if not info.HasField("failover_timeout"):
        info.failover_timeout = DEFAULT_FAILOVER_S
    if math.isinf(seconds("framework.failover_timeout", info.failover_timeout)):
        raise InvalidValue("framework.failover_timeout", info.failover_timeout, "must be finite")
    if not info.HasField("checkpoint"):
        info.checkpoint = True
    if info.roles and info.HasField("role"):
        raise InvalidValue("framework.role", info.role, "give either role or roles")
    if info.roles and not _has(info, Capability.MULTI_ROLE):
        info.capabilities.add(type=Capability.MULTI_ROLE)
    return info


def roles_of(info: FrameworkInfo) -> tuple[str, ...]:
    if _has(info, Capability.MULTI_ROLE):
        return tuple(info.roles)
    return (info.role if info.HasField("role") else "*",)


def is_partition_aware(info: FrameworkInfo) -> bool:
    return _has(info, Capability.PARTITION_AWARE)


def _has(info: FrameworkInfo, capability: Capability.Type.ValueType) -> bool:
    return any(item.type == capability for item in info.capabilities)


# ---- Filters of the whole framework ------------------------------------------


def min_free_of(min_free: Resources | Sequence[Resources]) -> OfferFilters:
    """The wire form of "only offers with at least this": one bundle, or alternatives."""
    alternatives = [min_free] if isinstance(min_free, Resources) else list(min_free)
    filters = OfferFilters()
    entries = filters.min_allocatable_resources.quantities
    for bundle in alternatives:
        if bundle.ranges or bundle.sets or not bundle.scalars:
            raise InvalidValue("min_free", str(bundle), "must be amounts such as cpus:1;mem:64")
        entry = entries.add()
        for name, milli in bundle.scalars.items():
            entry.quantities[name].CopyFrom(Value.Scalar(value=milli / MILLI))
    # No alternatives: any offer will do, also one below the master's own minimum.
    filters.min_allocatable_resources.SetInParent()
    return filters


def role_constraints_of(
    hosts: Sequence[str] | None, given: RoleConstraints | None
) -> RoleConstraints | None:
    """`given` and "only these hosts" together; None if there is neither."""
    if isinstance(hosts, str):
        raise InvalidValue("hosts", hosts, "must be a list of host names")
    if hosts is not None and not hosts:
        raise InvalidValue("hosts", "[]", "must name at least one host; None means all")
    if hosts is None:
        return given
    only = constraints.hosts_only(list(hosts))
    if given is None or not given.groups:
        return only
    both = RoleConstraints()
    for host in only.groups:
        for group in given.groups:
            both.groups.add(
                attribute_constraints=[*host.attribute_constraints, *group.attribute_constraints]
            )
    return both


def check_constraints(wanted: RoleConstraints) -> None:
    """Raises InvalidValue for what the master would refuse, such as a bad pattern."""
    constraints.from_proto(
        "constraints", pb.OfferConstraints(role_constraints={"*": wanted}), ("*",)
    )
