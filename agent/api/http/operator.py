"""POST /api/v1: the operator API of Mesos' agents, answered by AgentOperator.

The order of the checks, and which status each gives, are those of Mesos.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from aiohttp import web
from google.protobuf.message import Message

from agent.api.http.sessions import STREAMED, Records, Sessions, within_time
from agent.api.operator import AgentOperator
from agent.core.nested import check_name
from agent.usage.statistics import as_mesos
from mesos_py.errors import InvalidValue, Unavailable
from mesos_py.http.answers import HttpRefusal, not_allowed
from mesos_py.http.fields import OURS
from mesos_py.http.jsonpb import as_object
from mesos_py.http.media import RECORDIO, Media, accepted_media, content_media
from mesos_py.http.server import HttpServer, empty
from mesos_py.http.shapes import text
from mesos_py.slices import SLICE_S, sliced
from mesos_py.v1 import types_pb2 as pb
from mesos_py.v1.agent_operator_pb2 import Call, Response
from mesos_py.version import MESOS_VERSION

PATH: Final = "/api/v1"

# Calls whose own member may be absent although they have one.
_OPTIONAL: Final = frozenset({"get_containers", "prune_images"})
# Of these Mesos writes each list, also an empty one.
_IN_FULL: Final = frozenset(
    {
        Response.GET_STATE,
        Response.GET_FRAMEWORKS,
        Response.GET_EXECUTORS,
        Response.GET_TASKS,
    }
)
# Answers without a body.
_STATUSES: Final[dict[int, int]] = {Response.DONE: 200, Response.DONE_BEFORE: 202}
_NO_STANDALONE: Final = (
    "this agent launches containers within those of tasks and executors only (give a parent)"
)
_NO_PROVIDERS: Final = "this agent has no resource providers"
_NOT_THERE: Final = {
    Call.UNKNOWN: "is no call",
    Call.ADD_RESOURCE_PROVIDER_CONFIG: _NO_PROVIDERS,
    Call.UPDATE_RESOURCE_PROVIDER_CONFIG: _NO_PROVIDERS,
    Call.REMOVE_RESOURCE_PROVIDER_CONFIG: _NO_PROVIDERS,
    Call.MARK_RESOURCE_PROVIDER_GONE: _NO_PROVIDERS,
}


class _Asked(NamedTuple):
    call: Call
    # What follows if it was the first record of a stream.
    rest: Records | None


class OperatorApi:
    """Answers requests; before `open` there is nobody to ask."""

    def __init__(
        self, server: HttpServer, heartbeat_s: float = 30.0, slice_s: float = SLICE_S
    ) -> None:
        """`heartbeat_s`: between the heartbeats of a stream."""
        self._server = server
        self._heartbeat_s = heartbeat_s
        self._slice_s = slice_s
        self._operator: AgentOperator | None = None

    def open(self, operator: AgentOperator) -> None:
        """The agent knows what it has."""
        self._operator = operator

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Raises MesosPyError."""
        operator = self._operator
        if operator is None:
            raise Unavailable("Agent has not finished recovery")
        if request.method != "POST":
            raise not_allowed(request.method, "POST")
        asked = await self._asked(request)
        call = asked.call
        check(call)
        if (asked.rest is not None) is not (call.type == Call.ATTACH_CONTAINER_INPUT):
            name, given = Call.Type.Name(call.type), request.headers.get("Content-Type")
            raise HttpRefusal(415, f"Content-Type: {given!r}: is not how {name} comes")
        if call.type in STREAMED:
            return await self._sessions_of(operator).answer(request, call, asked.rest)
        media = _wanted(request, call)
        _refuse_what_is_not_there(call)
        response = await operator.answer(call)
        if response.type in _STATUSES:
            return empty(_STATUSES[response.type])
        body = await written(response, media, self._slice_s)
        return web.Response(body=body, content_type=media.value)

    async def _asked(self, request: web.Request) -> _Asked:
        """The call of a request.  Raises MesosPyError."""
        headers = request.headers
        if headers.get("Content-Type") != RECORDIO:
            media = content_media(headers)
            if "Message-Content-Type" in headers:
                raise HttpRefusal(415, "Message-Content-Type: is for streams only")
            return _Asked(media.loads(Call, await self._server.body(request)), None)
        records = Records(request, content_media(headers, "Message-Content-Type"))
        async with within_time():
            first = await records.next()
        if first is None:
            raise InvalidValue("body", "", "ended before there was a record")
        return _Asked(first, records)

    def _sessions_of(self, operator: AgentOperator) -> Sessions:
        return Sessions(operator.nested, self._heartbeat_s)


def check(call: Call) -> None:
    """Raises InvalidValue naming what a call lacks."""
    # A number that is no type of ours is none for a proto2 peer either.
    if not call.HasField("type") or call.type not in Call.Type.values():
        raise InvalidValue("type", "", "must be there, and one of the types of calls")
    member = Call.Type.Name(call.type).lower()
    if member not in Call.DESCRIPTOR.fields_by_name or member in _OPTIONAL:
        return
    if not call.HasField(member):  # type: ignore[arg-type]
        raise InvalidValue(member, "", "must be there")
    body = getattr(call, member)
    if call.type == Call.ATTACH_CONTAINER_INPUT and not _names_container(body):
        return
    if "container_id" in body.DESCRIPTOR.fields_by_name:
        _check_container(f"{member}.container_id", body.container_id)
        if "nested" in member and not body.container_id.HasField("parent"):
            raise InvalidValue(f"{member}.container_id.parent", "", "must be there")


def _names_container(asked: Call.AttachContainerInput) -> bool:
    """Raises InvalidValue unless it has what its type says."""
    kinds = {
        Call.AttachContainerInput.CONTAINER_ID: "container_id",
        Call.AttachContainerInput.PROCESS_IO: "process_io",
    }
    member = kinds.get(asked.type)
    if member is None:
        raise InvalidValue("attach_container_input.type", "", "must be CONTAINER_ID or PROCESS_IO")
    if not asked.HasField(member):  # type: ignore[arg-type]
        raise InvalidValue(f"attach_container_input.{member}", "", "must be there")
    return member == "container_id"


def _check_container(field: str, given: pb.ContainerID) -> None:
    check_name(f"{field}.value", given.value)
    if given.HasField("parent"):
        _check_container(f"{field}.parent", given.parent)


def _wanted(request: web.Request, call: Call) -> Media:
    """How to write the answer.  Raises HttpRefusal 406."""
    accept = request.headers.get("Accept")
    if accept is not None and accept.strip() == RECORDIO:
        name = Call.Type.Name(call.type)
        raise HttpRefusal(406, f"Accept: the answer to {name} is no stream")
    if "Message-Accept" in request.headers:
        raise HttpRefusal(406, "Message-Accept: is for answers that are streams")
    return accepted_media(request.headers)


def _refuse_what_is_not_there(call: Call) -> None:
    why = _NOT_THERE.get(call.type)
    if call.type == Call.LAUNCH_CONTAINER and not call.launch_container.container_id.HasField(
        "parent"
    ):
        why = _NO_STANDALONE
    if why is not None:
        raise HttpRefusal(501, f"type: {Call.Type.Name(call.type)}: {why}")


# ---- Answers ----------------------------------------------------------------------------


async def written(response: Response, media: Media, slice_s: float = SLICE_S) -> bytes:
    """An answer as a body, as Mesos would write it."""
    if response.type == Response.GET_CONTAINERS:
        response = _with_mesos_names(response)
    elif response.type == Response.GET_VERSION:
        # By this clients of Mesos see what they can ask for.
        response.get_version.version_info.version = MESOS_VERSION
    if media is not Media.JSON or response.type not in _IN_FULL:
        return media.dumps(response)
    name = Response.Type.Name(response.type)
    member = await _in_full(getattr(response, name.lower()), slice_s)
    return f'{{"type":"{name}","{name.lower()}":{member}}}'.encode()


async def _in_full(message: Message, slice_s: float) -> str:
    """An object of lists, or of objects of lists."""
    members: list[str] = []
    for field in message.DESCRIPTOR.fields:
        if field.number >= OURS:
            continue
        value: Any = getattr(message, field.name)
        if field.is_repeated:
            entries = await sliced(lambda each: text(as_object(each)), value, slice_s)
            members.append(f'"{field.name}":[{",".join(entries)}]')
        else:
            members.append(f'"{field.name}":{await _in_full(value, slice_s)}')
    return "{" + ",".join(members) + "}"


def _with_mesos_names(given: Response) -> Response:
    # What was measured is shared with others who have asked.
    response = Response()
    response.CopyFrom(given)
    for each in response.get_containers.containers:
        if each.HasField("resource_statistics"):
            each.resource_statistics.CopyFrom(as_mesos(each.resource_statistics))
    return response


__all__ = ["PATH", "OperatorApi", "check", "written"]
