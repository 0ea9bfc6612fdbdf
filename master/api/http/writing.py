"""Operators' answers as bodies: as Mesos would give them, and without keeping others waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from google.protobuf.message import Message

from master.api.slices import SLICE_S, sliced
from mesos_py.http.fields import OURS
from mesos_py.http.jsontext import text_of
from mesos_py.http.media import Media
from mesos_py.http.shapes import agent_pid, http_port
from mesos_py.reserved import put_both_forms
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1 import types_pb2 as pb
from mesos_py.version import MESOS_VERSION

Response: Final = op.Response

# Answers whose members are lists that may be long, or objects of such lists.
_LONG: Final = frozenset(
    {
        Response.GET_STATE,
        Response.GET_AGENTS,
        Response.GET_FRAMEWORKS,
        Response.GET_EXECUTORS,
        Response.GET_TASKS,
    }
)
# Agents that Mesos does not count among those that it has.
_NOT_THERE: Final = frozenset({"unreachable", "gone", "expected"})
# What lists say of a framework, and events do not.
_NOT_TOLD: Final = ("offers", "inverse_offers", "allocated_resources", "offered_resources")


async def as_mesos(response: op.Response, slice_s: float = SLICE_S) -> None:
    """What is known to clients of Mesos, as it is known to them."""
    match response.type:
        case Response.GET_STATE:
            state = response.get_state
            await _tasks_as_mesos(state.get_tasks, slice_s)
            await _frameworks_as_mesos(state.get_frameworks, slice_s)
            await _agents_as_mesos(state.get_agents, slice_s)
        case Response.GET_TASKS:
            await _tasks_as_mesos(response.get_tasks, slice_s)
        case Response.GET_FRAMEWORKS:
            await _frameworks_as_mesos(response.get_frameworks, slice_s)
        case Response.GET_AGENTS:
            await _agents_as_mesos(response.get_agents, slice_s)
        case Response.GET_VERSION:
            response.get_version.version_info.version = MESOS_VERSION
        case Response.GET_WEIGHTS:
            if not response.get_weights.weight_infos:
                response.ClearField("get_weights")


def event_as_mesos(event: op.Event) -> None:
    """The same of an event.  Done again it changes nothing."""
    match event.type:
        case op.Event.TASK_ADDED:
            _task_as_mesos(event.task_added.task)
        case op.Event.AGENT_ADDED:
            _agent_as_mesos(event.agent_added.agent)
        case op.Event.FRAMEWORK_ADDED:
            _framework_told(event.framework_added.framework)
        case op.Event.FRAMEWORK_UPDATED:
            _framework_told(event.framework_updated.framework)


async def _tasks_as_mesos(found: op.Response.GetTasks, slice_s: float) -> None:
    for tasks in (found.tasks, found.unreachable_tasks, found.completed_tasks):
        await sliced(_task_as_mesos, tasks, slice_s)


def _task_as_mesos(task: pb.Task) -> None:
    for resource in task.resources:
        resource.allocation_info.role = task.allocation_role


async def _frameworks_as_mesos(found: op.Response.GetFrameworks, slice_s: float) -> None:
    for frameworks in (found.frameworks, found.completed_frameworks):
        await sliced(_framework_as_mesos, frameworks, slice_s)
        for each in frameworks:
            each.offer_constraints.SetInParent()


def _framework_as_mesos(framework: op.Response.GetFrameworks.Framework) -> None:
    """As it is in lists."""
    if not framework.HasField("reregistered_time"):
        framework.reregistered_time.CopyFrom(framework.registered_time)
    _with_role(framework.allocated_resources)
    _with_role(framework.offered_resources)


def _framework_told(framework: op.Response.GetFrameworks.Framework) -> None:
    """As it is in events: all its moments are there, and nothing that it has."""
    _framework_as_mesos(framework)
    framework.unregistered_time.SetInParent()
    for name in _NOT_TOLD:
        framework.ClearField(name)


async def _agents_as_mesos(found: op.Response.GetAgents, slice_s: float) -> None:
    """Without those that are away for good; those that are to come back, by their own name."""
    agents = found.agents
    await sliced(_agent_as_mesos, agents, slice_s)
    away = [at for at, agent in enumerate(agents) if agent.state in _NOT_THERE]
    expected = [agents[at].agent_info for at in away if agents[at].state == "expected"]
    found.recovered_agents.extend(expected)
    for at in reversed(away):
        del agents[at]


def _agent_as_mesos(agent: op.Response.GetAgents.Agent) -> None:
    """Its port is that of its HTTP."""
    info = agent.agent_info
    info.port = http_port(info)
    agent.pid = agent_pid(info)
    _with_role(agent.total_resources)
    _with_role(agent.allocated_resources)
    _with_role(agent.offered_resources)


def _with_role(resources: Iterable[pb.Resource]) -> None:
    """In both forms that there are for reservations."""
    for resource in resources:
        put_both_forms(resource)


async def body(response: op.Response, media: Media, slice_s: float = SLICE_S) -> bytes:
    """The answer as a body.  It must not be changed meanwhile."""
    ours = response.type >= OURS
    if response.type not in _LONG:
        return media.dumps(response, ours=ours)
    if media is not Media.JSON:
        return await asyncio.to_thread(media.dumps, response)
    members = [f'"type":"{Response.Type.Name(response.type)}"']
    members += await _members(response, slice_s)
    return ("{" + ",".join(members) + "}").encode()


async def state_object(state: op.Response.GetState, slice_s: float = SLICE_S) -> str:
    """The state as a JSON object."""
    return "{" + ",".join(await _members(state, slice_s)) + "}"


async def _members(message: Message, slice_s: float) -> list[str]:
    """The messages within `message`, which has nothing else that is told of, as JSON.

    As in Mesos, lists are there also when they are empty; elsewhere they are not."""
    found = []
    for field in message.DESCRIPTOR.fields:
        if field.message_type is None or field.number >= OURS:
            continue
        if field.is_repeated:
            entries = await sliced(text_of, getattr(message, field.name), slice_s)
            found.append(f'"{field.name}":[{",".join(entries)}]')
        elif message.HasField(field.name):
            inner = ",".join(await _members(getattr(message, field.name), slice_s))
            found.append(f'"{field.name}":{{{inner}}}')
    return found


__all__ = ["as_mesos", "body", "event_as_mesos", "state_object"]
