"""POST /api/v1: the operator API of Mesos, carried out by the handlers of OperatorService."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from aiohttp import web

from master.api.front import Leading
from master.api.http import writing
from master.api.http.batches import Batches
from master.api.http.files import MasterFiles
from master.api.http.leader import require_operator
from master.api.http.watching import subscribe
from master.api.operator import OperatorService
from mesos_py.errors import Conflict, InvalidValue, MesosPyError, NotFound
from mesos_py.http.answers import HttpRefusal, not_allowed
from mesos_py.http.media import Media, accepted_media, content_media
from mesos_py.http.server import empty
from mesos_py.v1 import agent_operator_pb2
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1 import types_pb2 as pb

Call: Final = op.Call
Body: TypeAlias = Callable[[web.Request], Awaitable[bytes]]
# What GET_METRICS answers with: the numbers under the names of Mesos.
Numbers: TypeAlias = Callable[[], dict[str, float]]

# Calls of Mesos for which there is nothing in this master.
_NOT_THERE: Final = {
    Call.UNKNOWN: "is no call",
}
# Calls whose answers may be long, and are the same for all who ask.
_LONG: Final = frozenset(
    {
        Call.GET_STATE,
        Call.GET_AGENTS,
        Call.GET_FRAMEWORKS,
        Call.GET_EXECUTORS,
        Call.GET_TASKS,
    }
)
_OF_FILES: Final = {
    Call.LIST_FILES: MasterFiles.list_files,
    Call.READ_FILE: MasterFiles.read_file,
}
# Of calls that can do without a member of their own.
_OPTIONAL: Final = frozenset({"get_tasks", "get_usage", "explain"})
# What Mesos only accepts: agents carry it out afterwards.
_ACCEPTED: Final = frozenset(
    {
        Call.RESERVE_RESOURCES,
        Call.UNRESERVE_RESOURCES,
        Call.CREATE_VOLUMES,
        Call.DESTROY_VOLUMES,
        Call.GROW_VOLUME,
        Call.SHRINK_VOLUME,
    }
)
# Where Mesos takes what cannot be done for a bad request.
_BAD_REQUEST: Final = frozenset(
    {
        Call.TEARDOWN,
        Call.DRAIN_AGENT,
        Call.DEACTIVATE_AGENT,
        Call.REACTIVATE_AGENT,
        Call.UPDATE_QUOTA,
        Call.UPDATE_MAINTENANCE_SCHEDULE,
        Call.START_MAINTENANCE,
        Call.STOP_MAINTENANCE,
    }
)


class OperatorApi:
    """Answers POST /api/v1."""

    def __init__(self, leading: Leading, body: Body, numbers: Numbers, files: MasterFiles) -> None:
        self._leading = leading
        self._body = body
        self._numbers = numbers
        self._files = files
        self._batches = Batches()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Raises MesosPyError for what is refused."""
        require_operator(self._leading, request)
        if request.method != "POST":
            raise not_allowed(request.method, "POST")
        media = content_media(request.headers)
        data = await self._body(request)
        call = read_call(media, data)
        of_files = read_files_call(media, data, call)
        accepted = accepted_media(request.headers)
        if of_files is not None:
            answering = _OF_FILES[call.type]
            return _with_body(accepted.dumps(answering(self._files, of_files)), accepted)
        if call.type == Call.GET_METRICS:
            return await _answer(self._metrics(), accepted)
        # It may be over by now.
        operator = require_operator(self._leading, request)
        if call.type == Call.SUBSCRIBE:
            return await subscribe(operator, request, accepted, self._batches)
        if call.type in _LONG and not call.HasField("get_tasks"):
            key = (operator, call.type, accepted)
            data = await self._batches.get(key, lambda: _written(operator, call, accepted))
            return _with_body(data, accepted)
        return await carry_out(operator, call, accepted)

    def _metrics(self) -> op.Response:
        numbers = sorted(self._numbers().items())
        metrics = [pb.Metric(name=name, value=value) for name, value in numbers]
        found = op.Response.GetMetrics(metrics=metrics)
        return op.Response(type=op.Response.GET_METRICS, get_metrics=found)


def read_call(media: Media, data: bytes) -> op.Call:
    """The call of a body.  Raises InvalidValue, and HttpRefusal 501 for one that is not there."""
    call = media.loads(op.Call, data)
    if not call.HasField("type"):
        raise InvalidValue("type", "", "is missing")
    if call.type in _NOT_THERE:
        name = Call.Type.Name(call.type)
        raise HttpRefusal(501, f"type: {name}: {_NOT_THERE[call.type]}")
    if call.type in Call.Type.values():
        member = Call.Type.Name(call.type).lower()
        given = {field.name for field, _ in call.ListFields()}
        known = Call.DESCRIPTOR.fields_by_name
        if member in known and member not in _OPTIONAL and member not in given:
            raise InvalidValue(member, "", "is missing")
    return call


def read_files_call(media: Media, data: bytes, call: op.Call) -> agent_operator_pb2.Call | None:
    """The call of a body if it is one of files: they are the same of masters and of agents.

    Raises InvalidValue.
    """
    if call.type not in _OF_FILES:
        return None
    found = media.loads(agent_operator_pb2.Call, data)
    member = Call.Type.Name(call.type).lower()
    if not found.HasField("list_files" if member == "list_files" else "read_file"):
        raise InvalidValue(member, "", "is missing")
    return found


async def carry_out(operator: OperatorService, call: op.Call, media: Media) -> web.Response:
    """Have the call carried out; 200 with what it answers, or with nothing if it is a change.

    Raises MesosPyError, with the statuses that Mesos has for them.
    """
    try:
        response = await operator.answer(call)
    except MesosPyError as error:
        raise _as_mesos_says(call, error) from None
    if call.type in _ACCEPTED:
        return empty(202)
    return await _answer(response, media)


async def _written(operator: OperatorService, call: op.Call, media: Media) -> bytes:
    response = await operator.answer(call)
    await writing.as_mesos(response)
    return await writing.body(response, media)


def _as_mesos_says(call: op.Call, error: MesosPyError) -> MesosPyError:
    wrong = isinstance(error, (NotFound, Conflict)) and error.fields.get("registered", True)
    if wrong and call.type in _BAD_REQUEST:
        return HttpRefusal(400, error.message)
    if isinstance(error, NotFound) and call.type in _ACCEPTED:
        return HttpRefusal(400, error.message)
    return error


async def _answer(response: op.Response, media: Media) -> web.Response:
    if response.type == op.Response.DONE:
        return empty(200)
    await writing.as_mesos(response)
    return _with_body(await writing.body(response, media), media)


def _with_body(data: bytes, media: Media) -> web.Response:
    return web.Response(body=data, headers={"Content-Type": media.value})


__all__ = ["OperatorApi", "carry_out", "read_call"]
