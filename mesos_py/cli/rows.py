"""The rows of each list: what `--json` prints, and what tables are made of.

Keys are stable: new ones may be added, none is renamed or dropped.  Times are
seconds since the epoch, `null` where there is none; resources are objects such as
`{"cpus": 1.0, "ports": "[31000-31001]"}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mesos_py import resources as res
from mesos_py.states import TASK_RUNNING
from mesos_py.v1 import operator_pb2 as pb
from mesos_py.v1 import types_pb2

Json = dict[str, Any]


def resources(messages: Iterable[types_pb2.Resource]) -> Json:
    return dict(res.Resources.from_proto("resources", messages).plain.to_json())


def free(agent: pb.Response.GetAgents.Agent) -> Json:
    """What is neither allocated nor offered of an agent."""
    left = res.Resources.from_proto("total", agent.total_resources)
    for name, part in (
        ("allocated", agent.allocated_resources),
        ("offered", agent.offered_resources),
    ):
        taken = res.Resources.from_proto(name, part)
        if not left.contains(taken):
            # An agent that came back smaller than what still runs on it.
            return {}
        left = left - taken
    return dict(left.plain.to_json())


def agent_row(agent: pb.Response.GetAgents.Agent) -> Json:
    info = agent.agent_info
    return {
        "id": info.id.value,
        "hostname": info.hostname,
        "address": f"{info.ip}:{info.port}" if info.ip else None,
        "state": agent.state,
        "active": agent.active,
        "deactivated": agent.deactivated,
        "drain": _drain(agent),
        "version": agent.version,
        "attributes": {each.name: _attribute(each) for each in info.attributes},
        "total": resources(agent.total_resources),
        "allocated": resources(agent.allocated_resources),
        "offered": resources(agent.offered_resources),
        "free": free(agent),
        "tasks": agent.running_tasks,
        "registered": _moment(agent, "registered_time"),
        "reregistered": _moment(agent, "reregistered_time"),
        "unreachable": _moment(agent, "unreachable_time"),
    }


def _drain(agent: pb.Response.GetAgents.Agent) -> str | None:
    if not agent.HasField("drain_info"):
        return None
    return "drained" if agent.drain_info.state == types_pb2.DRAINED else "draining"


def framework_rows(answer: pb.Response.GetFrameworks) -> list[Json]:
    """Frameworks that are there, then those that are not any more."""
    return [
        *(_framework(each, completed=False) for each in answer.frameworks),
        *(_framework(each, completed=True) for each in answer.completed_frameworks),
    ]


def _framework(each: pb.Response.GetFrameworks.Framework, *, completed: bool) -> Json:
    info = each.framework_info
    return {
        "id": info.id.value,
        "name": info.name,
        "state": _framework_state(each, completed),
        "active": each.active and not completed,
        "connected": each.connected and not completed,
        "user": info.user,
        "roles": list(info.roles) or [info.role or "*"],
        "suppressed_roles": list(each.suppressed_roles),
        "principal": info.principal or None,
        "hostname": info.hostname or None,
        "webui_url": info.webui_url or None,
        "failover_timeout": info.failover_timeout,
        "standbys": list(each.standbys),
        "tasks": each.running_tasks,
        "offers": len(each.offers),
        "allocated": resources(each.allocated_resources),
        "offered": resources(each.offered_resources),
        "registered": _moment(each, "registered_time"),
        "reregistered": _moment(each, "reregistered_time"),
        "unregistered": _moment(each, "unregistered_time"),
    }


def _framework_state(each: pb.Response.GetFrameworks.Framework, completed: bool) -> str:
    if completed:
        return "completed"
    if not each.connected:
        return "disconnected"
    return "active" if each.active else "inactive"


def offer_rows(answer: pb.Response.GetFrameworks) -> list[Json]:
    return [
        {
            "id": offer.id.value,
            "framework_id": offer.framework_id.value,
            "framework": framework.framework_info.name,
            "agent_id": offer.agent_id.value,
            "hostname": offer.hostname,
            "role": offer.allocation_info.role or None,
            "resources": resources(offer.resources),
        }
        for framework in answer.frameworks
        for offer in framework.offers
    ]


def role_row(role: types_pb2.Role) -> Json:
    return {
        "name": role.name,
        "weight": role.weight,
        "share": role.share if role.HasField("share") else None,
        "frameworks": [each.value for each in role.frameworks],
        "resources": resources(role.resources),
        "priority": role.policy.priority,
        "guarantee": _scalars(role.policy.guarantees),
        "limit": _scalars(role.policy.limits),
        "need_limit": _scalars(role.policy.need_limits),
        "agents": list(role.policy.agents),
    }


def _scalars(amounts: Mapping[str, types_pb2.Value.Scalar]) -> Json:
    return {name: amounts[name].value for name in sorted(amounts)}


def task_row(task: types_pb2.Task) -> Json:
    last = task.statuses[-1] if task.statuses else types_pb2.TaskStatus()
    ended = last.exit_status
    return {
        "id": task.task_id.value,
        "name": task.name,
        "framework_id": task.framework_id.value,
        "agent_id": task.agent_id.value,
        "state": _name(types_pb2.TaskState, task.state),
        "source": _enum(last, "source", types_pb2.TaskStatus.Source),
        "reason": _enum(last, "reason", types_pb2.TaskStatus.Reason),
        "message": last.message or None,
        "healthy": last.healthy if last.HasField("healthy") else None,
        "check": _check(last.check_status) if last.HasField("check_status") else None,
        "exit_code": ended.exit_code if ended.HasField("exit_code") else None,
        "signal": ended.signal if ended.HasField("signal") else None,
        "pid": _pid(task),
        "resources": resources(task.resources),
        "launched": task.launched_time if task.HasField("launched_time") else None,
        "started": _started(task),
        "ended": task.ended_time if task.HasField("ended_time") else None,
        "user": task.user or None,
        "role": task.allocation_role or None,
        "executor_id": task.executor_id.value or None,
    }


def _check(status: types_pb2.CheckStatusInfo) -> int | bool | None:
    """What the task's check found last: an exit code, an HTTP status, or connected or not."""
    if status.command.HasField("exit_code"):
        return status.command.exit_code
    if status.http.HasField("status_code"):
        return status.http.status_code
    return status.tcp.succeeded if status.tcp.HasField("succeeded") else None


def _pid(task: types_pb2.Task) -> int | None:
    for status in reversed(task.statuses):
        if status.container_status.HasField("executor_pid"):
            return status.container_status.executor_pid
    return None


def _started(task: types_pb2.Task) -> float | None:
    """When it was first seen running."""
    for status in task.statuses:
        if status.state == TASK_RUNNING and status.HasField("timestamp"):
            return status.timestamp
    return None


def explain_row(each: pb.Response.Explain.Framework) -> Json:
    return {
        "framework_id": each.framework_id.value,
        "name": each.name,
        "findings": list(each.findings),
        "offers_sent": each.offers_sent,
        "last_offer": each.last_offer_time if each.HasField("last_offer_time") else None,
        "refusals": [
            {
                "code": refusal.code,
                "message": refusal.message,
                "count": refusal.count,
                "last": refusal.last_time,
                "agent_id": refusal.agent_id or None,
            }
            for refusal in each.refusals
        ],
        "requests": [
            {
                "name": request.name or None,
                "count": request.count if request.HasField("count") else 1,
                "agent_id": request.agent_id.value or None,
                "resources": resources(request.resources),
            }
            for request in each.requests
        ],
        "standings": [_standing(standing) for standing in each.standings],
    }


def explain_role_row(each: pb.Response.Explain.Role) -> Json:
    return {
        "role": each.name,
        "findings": list(each.findings),
        "standings": [_standing(standing) for standing in each.standings],
    }


def _standing(each: pb.Response.Explain.Standing) -> Json:
    return {
        "role": each.role,
        "framework_id": each.framework_id.value or None,
        "share": each.share,
        "weighted_share": each.weighted_share,
        "weight": each.weight,
        "position": each.position or None,
        "contenders": each.contenders,
        "priority": each.priority,
        "held": resources(each.held),
        "guarantee": resources(each.guarantee),
        "limit": resources(each.limit),
        "lacking": resources(each.lacking),
    }


def _moment(message: Any, field: str) -> float | None:
    """A TimeInfo in seconds; None where it is absent or zero."""
    if not message.HasField(field):
        return None
    nanoseconds: int = getattr(message, field).nanoseconds
    return nanoseconds / 1e9 or None


def _enum(message: Any, field: str, names: Any) -> str | None:
    return _name(names, getattr(message, field)) if message.HasField(field) else None


def _name(names: Any, number: int) -> str:
    """The name of an enum's value; a newer master may have values without one here."""
    return str(names.Name(number)) if number in names.values() else str(number)


def _attribute(each: types_pb2.Attribute) -> object:
    match each.type:
        case types_pb2.Value.SCALAR:
            return each.scalar.value
        case types_pb2.Value.RANGES:
            spans = ",".join(f"{r.begin}-{r.end}" for r in each.ranges.range)
            return f"[{spans}]"
        case types_pb2.Value.SET:
            return "{" + ",".join(each.set.item) + "}"
        case _:
            return each.text.value
