"""The objects that the older endpoints are made of, from the core's records.

Names, nesting and the choice of what is always there are those of Apache Mesos 1.11 (reference,
section 2.6; its own answers where that is silent).  Pure: nothing here waits or changes anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from master.api.older.roles import Standing
from master.core.cluster import Cluster
from master.core.records import Agent, Executor, Framework, Offer, Task
from mesos_py.clock import Now
from mesos_py.http.shapes import (
    AsJson,
    Shape,
    agent_pid,
    amounts,
    attributes,
    http_port,
    in_full,
    labels,
    reserved_amounts,
    reserved_by_role,
    status,
)
from mesos_py.resources import Resources
from mesos_py.states import is_terminal
from mesos_py.v1 import types_pb2 as pb

# Counted by /state-summary for each agent and each framework.
COUNTED: Final = tuple(
    f"TASK_{name}"
    for name in (
        *("STAGING", "STARTING", "RUNNING", "KILLING", "FINISHED"),
        *("KILLED", "FAILED", "LOST", "ERROR", "UNREACHABLE"),
    )
)
_SHOWN_OF_TASKS: Final = ("discovery", "container", "health_check")


def seconds(moment: Now | None) -> float:
    """Since the epoch; 0 for never."""
    return 0.0 if moment is None else moment.wall_s


# ---- Tasks and executors ----------------------------------------------------------


def task(given: Task, as_json: AsJson) -> Shape:
    shape: Shape = {
        "id": given.task_id,
        "name": given.name,
        "framework_id": given.framework_id,
        "executor_id": given.executor_id or "",
        "slave_id": given.agent_id,
        "state": pb.TaskState.Name(given.state),
        "resources": amounts(given.resources),
    }
    extras = given.extras
    if extras is not None and extras.limits:
        shape["limits"] = {name: limit.value for name, limit in extras.limits.items()}
    shape["role"] = given.role
    shape["statuses"] = [status(each, as_json) for each in given.statuses]
    if extras is None:
        return shape
    if extras.HasField("user"):
        shape["user"] = extras.user
    if extras.HasField("labels"):
        shape["labels"] = labels(extras.labels)
    for name in _SHOWN_OF_TASKS:
        if extras.HasField(name):
            shape[name] = as_json(getattr(extras, name))
    return shape


def executor(given: Executor, as_json: AsJson) -> Shape:
    info = given.info
    shape: Shape = {
        "executor_id": given.executor_id,
        "name": info.name,
        "framework_id": given.framework_id,
        "command": as_json(info.command),
        "resources": amounts(given.resources),
        "role": given.role,
        "slave_id": given.agent_id,
    }
    if info.HasField("source"):
        shape["source"] = info.source
    if info.HasField("labels"):
        shape["labels"] = labels(info.labels)
    if info.HasField("container"):
        shape["container"] = as_json(info.container)
    return shape


# ---- Agents -----------------------------------------------------------------------


def agent(c: Cluster, given: Agent) -> Shape:
    info, total = given.info, given.total
    shape: Shape = {
        "id": given.agent_id,
        "hostname": info.hostname,
        "port": http_port(info),
        "attributes": attributes(info.attributes),
        "pid": agent_pid(info),
        "registered_time": seconds(given.registered),
    }
    if given.reregistered is not None:
        shape["reregistered_time"] = seconds(given.reregistered)
    shape |= {
        "resources": amounts(total),
        "used_resources": amounts(c.ledger.allocated(given.agent_id)),
        "offered_resources": amounts(c.ledger.offered(given.agent_id)),
        "reserved_resources": reserved_amounts(total),
        "unreserved_resources": amounts(total.unreserved),
        "active": given.connected,
        "deactivated": given.deactivated,
        "version": given.version,
        "capabilities": [pb.AgentInfo.Capability.Type.Name(each) for each in given.capabilities],
    }
    return shape


def agent_in_full(c: Cluster, given: Agent, as_json: AsJson) -> Shape:
    """With its amounts as messages: what only /slaves shows."""
    ledger, agent_id = c.ledger, given.agent_id

    def full(bundle: Resources) -> list[Any]:
        return in_full(bundle, as_json)

    return agent(c, given) | {
        "reserved_resources_full": {
            role: full(bundle) for role, bundle in reserved_by_role(given.total).items()
        },
        "unreserved_resources_full": full(given.total.unreserved),
        "used_resources_full": full(ledger.allocated(agent_id)),
        "offered_resources_full": full(ledger.offered(agent_id)),
    }


# ---- Frameworks -------------------------------------------------------------------


def framework_summary(c: Cluster, given: Framework) -> Shape:
    return _summary(given, _used(given), _offered(c, given))


def _summary(given: Framework, used: list[Resources], offered: list[Resources]) -> Shape:
    info = given.info
    return {
        "id": given.framework_id,
        "name": info.name,
        "used_resources": amounts(*used),
        "offered_resources": amounts(*offered),
        "capabilities": [
            pb.FrameworkInfo.Capability.Type.Name(each.type) for each in info.capabilities
        ],
        "hostname": info.hostname,
        "webui_url": info.webui_url,
        "active": given.connected,
        "connected": given.connected,
        "recovered": given.recovered,
    }


def framework(c: Cluster, given: Framework, as_json: AsJson) -> Shape:
    """All of a framework but its lists (`tasks`, `executors` ...), which are long."""
    info, used, offered = given.info, _used(given), _offered(c, given)
    summary = _summary(given, used, offered)
    shape = summary | {
        "user": info.user,
        "failover_timeout": info.failover_timeout,
        "checkpoint": info.checkpoint,
        "registered_time": seconds(given.registered),
        "unregistered_time": seconds(given.unregistered),
        "resources": amounts(*used, *offered) if offered else summary["used_resources"],
    }
    if info.HasField("principal"):
        shape["principal"] = info.principal
    if given.reregistered is not None:
        shape["reregistered_time"] = seconds(given.reregistered)
    if given.multi_role:
        shape["roles"] = list(given.roles)
    else:
        shape["role"] = given.roles[0] if given.roles else "*"
    if info.HasField("labels"):
        shape["labels"] = labels(info.labels)
    constraints = given.constraints_proto
    shape["offer_constraints"] = {} if constraints is None else as_json(constraints)
    return shape


def offer(c: Cluster, given: Offer) -> Shape:
    return {
        "id": given.offer_id,
        "framework_id": given.framework_id,
        "allocation_info": {"role": given.role},
        "slave_id": given.agent_id,
        "resources": amounts(given.resources),
    }


def _used(given: Framework) -> list[Resources]:
    running = [each.resources for each in given.tasks.values() if not is_terminal(each.state)]
    return [*running, *(each.resources for each in given.executors.values())]


def _offered(c: Cluster, given: Framework) -> list[Resources]:
    return [c.offers[offer_id].resources for offer_id in given.offers]


# ---- Roles and counts ---------------------------------------------------------------


def role(given: pb.Role, standing: Standing) -> Shape:
    policy = given.policy
    used = standing.held - standing.offered

    def shown(milli: Mapping[str, int]) -> Shape:
        return {name: amount / 1000 for name, amount in sorted(milli.items()) if amount}

    return {
        "name": given.name,
        "weight": given.weight,
        "quota": {
            "role": given.name,
            "guarantee": {name: each.value for name, each in sorted(policy.guarantees.items())},
            "limit": {name: each.value for name, each in sorted(policy.limits.items())},
            "consumed": shown(used + standing.unused),
        },
        "resources": shown(standing.held),
        "allocated": shown(used),
        "offered": shown(standing.offered),
        "reserved": shown(standing.reserved),
        "frameworks": [each.value for each in given.frameworks],
    }


class Tallies:
    """Tasks by state, of each framework and agent, and who is where: /state-summary."""

    def __init__(self) -> None:
        self._states: dict[str, Counter[str]] = {}
        self._agents_of: dict[str, set[str]] = {}
        self._frameworks_on: dict[str, set[str]] = {}

    def add(self, given: Task) -> None:
        """Of each task once, ended ones as well."""
        name = pb.TaskState.Name(given.state)
        for owner in (given.framework_id, given.agent_id):
            self._states.setdefault(owner, Counter())[name] += 1
        self._agents_of.setdefault(given.framework_id, set()).add(given.agent_id)
        self._frameworks_on.setdefault(given.agent_id, set()).add(given.framework_id)

    def of_framework(self, framework_id: str) -> Shape:
        there = sorted(self._agents_of.get(framework_id, ()))
        return self._counts(framework_id) | {"slave_ids": there}

    def of_agent(self, agent_id: str) -> Shape:
        there = sorted(self._frameworks_on.get(agent_id, ()))
        return self._counts(agent_id) | {"framework_ids": there}

    def _counts(self, owner: str) -> Shape:
        counted = self._states.get(owner, Counter())
        return {name: counted[name] for name in COUNTED}


__all__ = [
    "COUNTED",
    "AsJson",
    "Shape",
    "Tallies",
    "agent",
    "agent_in_full",
    "amounts",
    "attributes",
    "executor",
    "framework",
    "framework_summary",
    "http_port",
    "labels",
    "offer",
    "role",
    "status",
    "task",
]
