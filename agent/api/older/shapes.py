"""The objects that an agent's older endpoints are made of, from the core's records.

Names, nesting and the choice of what is always there are those of Apache Mesos 1.11 (reference,
section 2.6; its own answers where that is silent).  Pure: nothing here waits or changes anything.
"""

from __future__ import annotations

from typing import Final

from agent.core import listing
from agent.core.listing import Container
from agent.core.records import Executor, Framework, Task, role_of
from agent.core.registration import CAPABILITIES
from agent.core.state import AgentState
from agent.usage.statistics import as_mesos
from mesos_py.http.shapes import (
    AsJson,
    Shape,
    agent_pid,
    amounts,
    attributes,
    in_full,
    labels,
    reserved_amounts,
    reserved_by_role,
    status,
)
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb

_SHOWN_OF_TASKS: Final = ("discovery", "container", "health_check")


# ---- The agent ----------------------------------------------------------------------


def version(text: str) -> Shape:
    """Of a build there is nothing to say but its version."""
    return {"version": text, "build_date": "", "build_time": 0.0, "build_user": ""}


def agent(s: AgentState, *, version_text: str, started_wall_s: float, as_json: AsJson) -> Shape:
    """What /state says of the agent."""
    info = s.info
    total = s.total
    used = [each for executor in s.executors.values() for each in listing.held(executor)]
    shape = version(version_text) | {
        "start_time": started_wall_s,
        "id": s.agent_id,
        "pid": agent_pid(info),
        "hostname": info.hostname,
        "capabilities": [pb.AgentInfo.Capability.Type.Name(each) for each in CAPABILITIES],
    }
    if s.drain is not None:
        shape["drain_config"] = as_json(s.drain)
    shape |= {
        "resources": amounts(total),
        "reserved_resources": reserved_amounts(total),
        "unreserved_resources": amounts(total.unreserved),
        "reserved_resources_full": {
            role: in_full(bundle, as_json) for role, bundle in reserved_by_role(total).items()
        },
        "unreserved_resources_full": in_full(total.unreserved, as_json),
        "reserved_resources_allocated": reserved_amounts(*used),
        "unreserved_resources_allocated": amounts(*(each.unreserved for each in used)),
        "resource_providers": [],
        "attributes": attributes(info.attributes),
    }
    if s.registered:
        shape["master_hostname"] = s.master.hostname
    return shape


# ---- Frameworks and executors ---------------------------------------------------------


def framework(given: Framework) -> Shape:
    """All of a framework but its executors."""
    info = given.info
    shape: Shape = {
        "id": given.framework_id,
        "name": info.name,
        "user": info.user,
        "failover_timeout": info.failover_timeout,
        "checkpoint": info.checkpoint,
        "hostname": info.hostname,
    }
    if info.HasField("principal"):
        shape["principal"] = info.principal
    if any(each.type == pb.FrameworkInfo.Capability.MULTI_ROLE for each in info.capabilities):
        shape["roles"] = list(info.roles)
    else:
        shape["role"] = role_of(pb.TaskInfo(), given)
    return shape


def executor(given: Executor, directory: str) -> Shape:
    """All of an executor but its tasks."""
    info = listing.executor_info(given)
    shape: Shape = {
        "id": given.key[1],
        "name": info.name,
        "source": info.source,
        "container": given.container_id,
        "directory": directory,
        "resources": amounts(*listing.held(given)),
        "role": listing.role(given),
    }
    if info.HasField("labels"):
        shape["labels"] = labels(info.labels)
    if info.HasField("type"):
        shape["type"] = pb.ExecutorInfo.Type.Name(info.type)
    return shape


# ---- Tasks ----------------------------------------------------------------------------


def task(s: AgentState, given: Task, as_json: AsJson) -> Shape:
    """A task that its executor has, or had."""
    info, owner = given.info, given.executor
    shape: Shape = {
        "id": given.key[1],
        "name": info.name,
        "framework_id": given.key[0],
        # Of a command there is none.
        "executor_id": owner.key[1] if owner.custom else "",
        "slave_id": s.agent_id,
        "state": pb.TaskState.Name(given.state),
        "resources": amounts(Resources.from_proto("resources", info.resources)),
    }
    if info.limits:
        shape["limits"] = {name: limit.value for name, limit in info.limits.items()}
    shape["role"] = role_of(info, owner.framework)
    shape["statuses"] = [status(each, as_json) for each in given.statuses]
    user = info.command.user if info.command.HasField("user") else owner.framework.info.user
    if user:
        shape["user"] = user
    if info.HasField("labels"):
        shape["labels"] = labels(info.labels)
    for name in _SHOWN_OF_TASKS:
        if info.HasField(name):
            shape[name] = as_json(getattr(info, name))
    return shape


def queued(s: AgentState, given: Task, as_json: AsJson) -> Shape:
    """A task that waits for its executor."""
    info = given.info
    shape: Shape = {
        "id": given.key[1],
        "name": info.name,
        "slave_id": s.agent_id,
        "resources": amounts(Resources.from_proto("resources", info.resources)),
        "role": role_of(info, given.executor.framework),
        "executor_id": given.executor.key[1],
    }
    if info.HasField("discovery"):
        shape["discovery"] = as_json(info.discovery)
    return shape


# ---- Containers -------------------------------------------------------------------------


def container(given: Container, source: str, as_json: AsJson) -> Shape:
    """For /containers."""
    shape: Shape = {"container_id": given.container_id.value} | usage(given, source, as_json)
    shape["status"] = as_json(given.container_status)
    return shape


def usage(given: Container, source: str, as_json: AsJson) -> Shape:
    """For /monitor/statistics."""
    shape: Shape = {
        "executor_id": given.executor_id.value,
        "executor_name": given.executor_name,
        "framework_id": given.framework_id.value,
        "source": source,
    }
    if given.HasField("resource_statistics"):
        shape["statistics"] = as_json(as_mesos(given.resource_statistics))
    return shape


__all__ = [
    "agent",
    "container",
    "executor",
    "framework",
    "queued",
    "task",
    "usage",
    "version",
]
