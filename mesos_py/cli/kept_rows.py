"""The rows of `mesos-py reservations` and `mesos-py volume list`, as those in `rows`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mesos_py.cli import kept
from mesos_py.conversions import with_volumes_as
from mesos_py.errors import InvalidResources
from mesos_py.reserved import Reservation, Stack, role_of, stack_of, volume_of
from mesos_py.resources import EMPTY, Resources
from mesos_py.states import is_terminal
from mesos_py.v1.operator_pb2 import Response
from mesos_py.v1.types_pb2 import Task

Json = dict[str, Any]
Agent = Response.GetAgents.Agent


def reservation_rows(agents: Iterable[Agent]) -> list[Json]:
    """One for each kind of reservation on each agent."""
    return [
        _reservation(agent, stack, part)
        for agent in _in_order(agents)
        for stack, part in sorted(kept.by_stack(kept.has(agent)).items(), key=_role_first)
    ]


def _in_order(agents: Iterable[Agent]) -> list[Agent]:
    there = [each for each in agents if each.state != "gone"]
    return sorted(there, key=lambda each: (each.agent_info.hostname, each.agent_info.id.value))


def _role_first(item: tuple[Stack, Resources]) -> tuple[str, str]:
    return item[0][-1].role, str(item[0])


def _reservation(agent: Agent, stack: Stack, part: Resources) -> Json:
    used = _same(Resources.from_proto("allocated", agent.allocated_resources), stack)
    offered = _same(Resources.from_proto("offered", agent.offered_resources), stack)
    last = stack[-1]
    return {
        "role": last.role,
        "agent_id": agent.agent_info.id.value,
        "hostname": agent.agent_info.hostname,
        "kind": last.kind,
        "principal": last.principal,
        "labels": _labels(last),
        "within": [_level(each) for each in stack[:-1]],
        "reserved": dict(part.plain.to_json()),
        "used": dict(used.plain.to_json()),
        "offered": dict(offered.plain.to_json()),
        # An agent may have come back smaller than what still runs on it.
        "unused": dict((part - used).plain.to_json()) if part.contains(used) else {},
        "volumes": {_volume_id(key): _mb(each) for key, each in kept.volumes_of(part).items()},
    }


def _same(resources: Resources, stack: Stack) -> Resources:
    return kept.by_stack(resources).get(stack, EMPTY)


def _level(each: Reservation) -> Json:
    return {
        "role": each.role,
        "kind": each.kind,
        "principal": each.principal,
        "labels": _labels(each),
    }


def _labels(each: Reservation) -> list[Json]:
    return [{"key": key, "value": value} for key, value in each.labels or ()]


# ---- Volumes ---------------------------------------------------------------------------------


def volume_rows(agents: Iterable[Agent], tasks: Iterable[Task]) -> list[Json]:
    """One for each volume, with the tasks that use it."""
    running: dict[str, list[Task]] = {}
    for task in tasks:
        if not is_terminal(task.state):
            running.setdefault(task.agent_id.value, []).append(task)
    return [
        row
        for agent in _in_order(agents)
        for row in _volumes(agent, running.get(agent.agent_info.id.value, []))
    ]


def _volumes(agent: Agent, tasks: list[Task]) -> list[Json]:
    there = kept.has(agent)
    volumes = kept.volumes_of(there)
    if not volumes:
        return []
    used = Resources.from_proto("allocated", agent.allocated_resources)
    offered = Resources.from_proto("offered", agent.offered_resources)
    users = {task.task_id.value: _names(there, task) for task in tasks}
    return [
        {
            **_described(key, each),
            "agent_id": agent.agent_info.id.value,
            "hostname": agent.agent_info.hostname,
            "used": key in used.scalars,
            "offered": key in offered.scalars,
            "tasks": [task_id for task_id, names in users.items() if key in names],
        }
        for key, each in sorted(volumes.items(), key=lambda item: _volume_id(item[0]))
    ]


def _names(there: Resources, task: Task) -> set[str]:
    """What the task has, by the names that the agent has for it."""
    try:
        resources = Resources.from_proto("task", task.resources)
        return set(with_volumes_as(there, resources).names())
    except InvalidResources:
        return set()


def _described(key: str, volume: Resources) -> Json:
    found = volume_of(key)
    assert found is not None
    return {
        "id": found.volume_id,
        "role": role_of(key),
        "disk": _mb(volume),
        "container_path": found.container_path,
        "principal": found.principal,
        "reservations": [_level(each) for each in stack_of(key)],
    }


def _volume_id(key: str) -> str:
    found = volume_of(key)
    assert found is not None
    return found.volume_id


def _mb(volume: Resources) -> float:
    (key,) = volume.names()
    return volume.scalar(key)


__all__ = ["reservation_rows", "volume_rows"]
