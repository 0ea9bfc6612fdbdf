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
from mesos_py.v1 import operator_pb2 as op

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


def as_mesos(response: op.Response) -> None:
    """Leave out what a client of Mesos would not know how to take."""
    if response.type == Response.GET_AGENTS:
        _registered_only(response.get_agents)
    elif response.type == Response.GET_STATE:
        _registered_only(response.get_state.get_agents)
    elif response.type == Response.GET_WEIGHTS and not response.get_weights.weight_infos:
        response.ClearField("get_weights")


def _registered_only(found: op.Response.GetAgents) -> None:
    """Without those that are away for good; those that are to come back, by their own name."""
    agents = found.agents
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


__all__ = ["as_mesos", "body", "state_object"]
