"""The older forms of operators' calls: /weights, /quota, /teardown, /reserve,
/create-volumes, maintenance.

Each is made a call of the operator API, and carried out as that.
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeAlias

from aiohttp import web
from google.protobuf.message import Message

from master.api.front import Leading
from master.api.http.leader import require_operator
from master.api.http.operator import Body, carry_out
from master.api.operator import OperatorService
from mesos_py.errors import InvalidValue
from mesos_py.http.answers import not_allowed
from mesos_py.http.jsonpb import as_object, from_object
from mesos_py.http.media import Media
from mesos_py.http.pages import json_answer
from mesos_py.http.server import Routes
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1 import quota_pb2 as qt
from mesos_py.v1 import types_pb2 as pb

Call: Final = op.Call
# Given who leads: what is to be carried out, or answered.
Handler: TypeAlias = Callable[[web.Request, OperatorService], Awaitable[web.Response]]


class OlderCalls:
    """Answers each of them."""

    def __init__(self, leading: Leading, body: Body) -> None:
        self._leading = leading
        self._body = body

    def add_to(self, routes: Routes) -> None:
        """Have them answered."""
        rows: dict[str, dict[str, Handler]] = {
            "/weights": {"GET": self.get_weights, "PUT": self.put_weights},
            "/quota": {
                "GET": self.get_quota,
                "POST": self.set_quota,
                "DELETE": self.remove_quota,
            },
            "/teardown": {"POST": self.teardown},
            "/reserve": {"POST": self.reserve},
            "/unreserve": {"POST": self.unreserve},
            "/create-volumes": {"POST": self.create_volumes},
            "/destroy-volumes": {"POST": self.destroy_volumes},
            "/maintenance/schedule": {"GET": self.get_schedule, "POST": self.update_schedule},
            "/maintenance/status": {"GET": self.get_status},
            "/machine/down": {"POST": self.machine_down},
            "/machine/up": {"POST": self.machine_up},
        }
        for path, handlers in rows.items():
            routes.add(path, self._by_method(handlers))

    def _by_method(self, handlers: dict[str, Handler]) -> Callable[..., Awaitable[web.Response]]:
        async def answer(request: web.Request) -> web.Response:
            handler = handlers.get("GET" if request.method == "HEAD" else request.method)
            operator = require_operator(self._leading, request)
            if handler is None:
                raise not_allowed(request.method, *handlers)
            return await handler(request, operator)

        return answer

    # ---- Weights and quota -------------------------------------------------------

    async def get_weights(self, request: web.Request, operator: OperatorService) -> web.Response:
        found = await operator.answer(Call(type=Call.GET_WEIGHTS))
        return _page(request, found.get_weights.weight_infos)

    async def put_weights(self, request: web.Request, operator: OperatorService) -> web.Response:
        given = _array(await self._body(request))
        asked = from_object(Call.UpdateWeights, {"weight_infos": given})
        return await _done(operator, Call(type=Call.UPDATE_WEIGHTS, update_weights=asked))

    async def get_quota(self, request: web.Request, operator: OperatorService) -> web.Response:
        found = await operator.answer(Call(type=Call.GET_QUOTA))
        return _page(request, found.get_quota.status)

    async def set_quota(self, request: web.Request, operator: OperatorService) -> web.Response:
        asked = Media.JSON.loads(qt.QuotaRequest, await self._body(request))
        call = Call.SetQuota(quota_request=asked)
        return await _done(operator, Call(type=Call.SET_QUOTA, set_quota=call))

    async def remove_quota(self, request: web.Request, operator: OperatorService) -> web.Response:
        role = request.rel_url.path.partition("/quota")[2].strip("/")
        call = Call.RemoveQuota(role=role)
        return await _done(operator, Call(type=Call.REMOVE_QUOTA, remove_quota=call))

    # ---- Frameworks and machines ---------------------------------------------------

    async def teardown(self, request: web.Request, operator: OperatorService) -> web.Response:
        (given,) = _form(await self._body(request), "frameworkId")
        asked = Call.Teardown(framework_id=pb.FrameworkID(value=given))
        return await _done(operator, Call(type=Call.TEARDOWN, teardown=asked))

    # ---- Reservations and volumes ------------------------------------------------------

    async def reserve(self, request: web.Request, operator: OperatorService) -> web.Response:
        asked = from_object(Call.ReserveResources, await self._about(request))
        return await _done(operator, Call(type=Call.RESERVE_RESOURCES, reserve_resources=asked))

    async def unreserve(self, request: web.Request, operator: OperatorService) -> web.Response:
        asked = from_object(Call.UnreserveResources, await self._about(request))
        return await _done(operator, Call(type=Call.UNRESERVE_RESOURCES, unreserve_resources=asked))

    async def create_volumes(self, request: web.Request, operator: OperatorService) -> web.Response:
        asked = from_object(Call.CreateVolumes, await self._about(request, "volumes"))
        return await _done(operator, Call(type=Call.CREATE_VOLUMES, create_volumes=asked))

    async def destroy_volumes(
        self, request: web.Request, operator: OperatorService
    ) -> web.Response:
        asked = from_object(Call.DestroyVolumes, await self._about(request, "volumes"))
        return await _done(operator, Call(type=Call.DESTROY_VOLUMES, destroy_volumes=asked))

    async def _about(self, request: web.Request, field: str = "resources") -> dict[str, Any]:
        """Of which agent, and what."""
        agent_id, text = _form(await self._body(request), "slaveId", field)
        return {"agent_id": {"value": agent_id}, field: _array(text.encode(), field)}

    async def get_schedule(self, request: web.Request, operator: OperatorService) -> web.Response:
        found = await operator.answer(Call(type=Call.GET_MAINTENANCE_SCHEDULE))
        return _page(request, found.get_maintenance_schedule.schedule)

    async def update_schedule(
        self, request: web.Request, operator: OperatorService
    ) -> web.Response:
        call = Call(type=Call.UPDATE_MAINTENANCE_SCHEDULE)
        schedule = call.update_maintenance_schedule.schedule
        schedule.CopyFrom(Media.JSON.loads(type(schedule), await self._body(request)))
        return await _done(operator, call)

    async def get_status(self, request: web.Request, operator: OperatorService) -> web.Response:
        found = await operator.answer(Call(type=Call.GET_MAINTENANCE_STATUS))
        return _page(request, found.get_maintenance_status.status)

    async def machine_down(self, request: web.Request, operator: OperatorService) -> web.Response:
        machines = _array(await self._body(request))
        asked = from_object(Call.StartMaintenance, {"machines": machines})
        return await _done(operator, Call(type=Call.START_MAINTENANCE, start_maintenance=asked))

    async def machine_up(self, request: web.Request, operator: OperatorService) -> web.Response:
        machines = _array(await self._body(request))
        asked = from_object(Call.StopMaintenance, {"machines": machines})
        return await _done(operator, Call(type=Call.STOP_MAINTENANCE, stop_maintenance=asked))


def _form(data: bytes, *names: str) -> list[str]:
    """The values of a body that is a form.  Raises InvalidValue."""
    form = urllib.parse.parse_qs(data.decode("utf-8", "replace"))
    for name in names:
        if name not in form:
            raise InvalidValue(name, "", "is missing in the body, which is a form")
    return [form[name][-1] for name in names]


def _array(data: bytes, field: str = "body") -> list[Any]:
    """The JSON array of a body, or of a field of it.  Raises InvalidValue."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(field, data[:100], f"is no JSON: {error}") from None
    if not isinstance(content, list):
        raise InvalidValue(field, data[:100], "must be a JSON array")
    return content


async def _done(operator: OperatorService, call: op.Call) -> web.Response:
    """200 once it is done."""
    return await carry_out(operator, call, Media.JSON)


def _page(request: web.Request, found: Message | Iterable[Message]) -> web.Response:
    shape: Any = as_object(found) if isinstance(found, Message) else list(map(as_object, found))
    return json_answer(request, shape)


__all__ = ["OlderCalls"]
