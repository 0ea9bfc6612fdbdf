"""Operators' answers as bodies: as Mesos would give them, and without keeping others waiting."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from google.protobuf.message import Message

from master.api.slices import SLICE_S, sliced
from mesos_py.http import jsonpb
from mesos_py.http.fields import OURS
from mesos_py.http.media import Media
from mesos_py.http.shapes import agent_pid, http_port
from mesos_py.v1 import operator_pb2 as op
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


async def as_mesos(response: op.Response, slice_s: float = SLICE_S) -> None:
    """What is known to clients of Mesos, as it is known to them."""
    if response.type == Response.GET_AGENTS:
        await _agents_as_mesos(response.get_agents, slice_s)
    elif response.type == Response.GET_STATE:
        await _agents_as_mesos(response.get_state.get_agents, slice_s)
    elif response.type == Response.GET_VERSION:
        response.get_version.version_info.version = MESOS_VERSION
    elif response.type == Response.GET_WEIGHTS and not response.get_weights.weight_infos:
        response.ClearField("get_weights")


def agent_as_mesos(agent: op.Response.GetAgents.Agent) -> None:
    """Its port is that of its HTTP."""
    info = agent.agent_info
    info.port = http_port(info)
    agent.pid = agent_pid(info)


async def _agents_as_mesos(found: op.Response.GetAgents, slice_s: float) -> None:
    """Without those that are away for good; those that are to come back, by their own name."""
    agents = found.agents
    await sliced(agent_as_mesos, agents, slice_s)
    away = [at for at, agent in enumerate(agents) if agent.state in _NOT_THERE]
    expected = [agents[at].agent_info for at in away if agents[at].state == "expected"]
    found.recovered_agents.extend(expected)
    for at in reversed(away):
        del agents[at]


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
    """The messages within `message`, which has nothing else that is told of, as JSON."""
    found = []
    for field, value in message.ListFields():
        if field.message_type is None or field.number >= OURS:
            continue
        if field.is_repeated:
            entries = await sliced(_text, value, slice_s)
            found.append(f'"{field.name}":[{",".join(entries)}]')
        else:
            inner = ",".join(await _members(value, slice_s))
            found.append(f'"{field.name}":{{{inner}}}')
    return found


def _text(message: Any) -> str:
    return json.dumps(jsonpb.as_object(message), separators=(",", ":"))


__all__ = ["agent_as_mesos", "as_mesos", "body", "state_object"]
