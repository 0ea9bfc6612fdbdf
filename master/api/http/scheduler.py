"""The Scheduler API, `/api/v1/scheduler`.

SUBSCRIBE is answered by a stream of events, which is a link of the core like a stream of
gRPC; every other call comes in a request of its own, names its stream by the header
Mesos-Stream-Id, and is handed to the core as if it had come on that stream.

What is wrong with a request is found in Mesos' order: the first fault names the status.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from aiohttp import web

from master.api.front import Leading
from master.api.http.dressing import refined
from master.api.http.leader import require_leading
from master.api.http.scheduler_calls import check_call
from master.api.http.scheduler_link import Form, SchedulerLink
from master.api.streams import Streams
from mesos_py import logs
from mesos_py.errors import InvalidValue, Unavailable
from mesos_py.http import stream
from mesos_py.http.answers import HttpRefusal, not_allowed
from mesos_py.http.auth import Credentials
from mesos_py.http.media import accepted_media, content_media
from mesos_py.http.server import HttpServer, empty
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

log = logs.get("master.http")

Call = sched.Call
REALM: Final = "mesos-master-scheduler"
STREAM_ID: Final = "Mesos-Stream-Id"
# Calls whose answer has a form, and so are asked what they accept.
_WITH_FORM: Final = frozenset({Call.SUBSCRIBE, Call.RECONCILE_OPERATIONS})
T = TypeVar("T")


class SchedulerApi:
    """See the module's docstring.  Used from one event loop."""

    def __init__(
        self,
        server: HttpServer,
        leading: Leading,
        credentials: Credentials | None,
        *,
        echoed: bool,
    ) -> None:
        """Without `credentials` nobody has to say who he is; `echoed`: see Form."""
        self._server = server
        self._leading = leading
        self._credentials = credentials
        self._echoed = echoed

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Raises what is wrong with the request."""
        principal = self._principal(request)
        require_leading(self._leading, request)
        if request.method != "POST":
            raise not_allowed(request.method, "POST")
        media = content_media(request.headers)
        call = media.loads(sched.Call, await self._server.body(request))
        check_call(call)
        accepted = accepted_media(request.headers) if call.type in _WITH_FORM else media
        # It may be another leadership by now.
        streams = require_leading(self._leading, request)
        if call.type == Call.SUBSCRIBE:
            _put_principal(call, principal)
            if STREAM_ID in request.headers:
                given = request.headers[STREAM_ID]
                raise InvalidValue(STREAM_ID, given, "must not come with a SUBSCRIBE")
            form = Form(
                accepted,
                ours=call.subscribe.HasField("protocol_version"),
                newer_resources=refined(call.subscribe.framework_info),
                echoed=self._echoed,
            )
            return await self._subscribe(request, streams, call, form)
        stream_id = request.headers.get(STREAM_ID)
        take = partial(_take, streams, call, principal, stream_id)
        shell = streams.schedulers.shell
        if shell.certainty.certain() and shell.turns.free():
            return empty(_certainly(streams, take))
        taking = asyncio.create_task(_in_turn(streams, take))
        taking.add_done_callback(_noted)
        # Whoever sends a call and goes away at once has sent it.
        return empty(await asyncio.shield(taking))

    def _principal(self, request: web.Request) -> str | None:
        if self._credentials is None:
            return None
        return self._credentials.require(request.headers.get("Authorization"), REALM)

    async def _subscribe(
        self, request: web.Request, streams: Streams, call: Call, form: Form
    ) -> web.StreamResponse:
        shell, links = streams.schedulers.shell, streams.schedulers.links
        stream_id = str(uuid.uuid4())
        agents = shell.core.cluster.agents

        def agent_of(agent_id: str) -> pb.AgentInfo | None:
            agent = agents.get(agent_id)
            return agent.info if agent is not None else None

        make = partial(SchedulerLink, form=form, stream_id=stream_id, agent_of=agent_of)
        shell.turns.hurry()
        link = links.open_as(make, f"http:{request.remote}", stream.cutter(request))
        headers = {"Content-Type": form.media.value, STREAM_ID: stream_id}
        try:
            done = await _in_turn(streams, partial(_hand_in, streams, link.number, call))
            if not done:
                link.queue.close("the call could not be carried out; see the master's log")
            return await stream.respond(
                request, link.queue, headers, may_write=shell.certainty.wait
            )
        finally:
            links.forget(link)
            # After the leadership the core decides nothing more.
            if not shell.certainty.over.is_set():
                streams.schedulers.left(link.number)
                shell.rearm()


def _noted(taking: asyncio.Task[int]) -> None:
    """Nobody may be left who would hear of its error."""
    if not taking.cancelled():
        taking.exception()


def _put_principal(call: Call, principal: str | None) -> None:
    """Who has proved who he is speaks for himself only.  Raises InvalidValue."""
    info = call.subscribe.framework_info
    if principal is None:
        return
    if not info.HasField("principal"):
        info.principal = principal
    if info.principal != principal:
        reason = f"authenticated is {principal!r}"
        raise InvalidValue("subscribe.framework_info.principal", info.principal, reason)


# ---- In the core's turn ------------------------------------------------------------------


async def _in_turn(streams: Streams, step: Callable[[], T]) -> T:
    """Take a step of the core when it is its turn and this master certainly leads.

    Returns and raises what the step does; raises Unavailable if the leadership has ended.
    """
    shell = streams.schedulers.shell
    if not await shell.certainty.wait():
        raise Unavailable("the leadership has ended; nothing was done")
    if shell.turns.free():
        return _certainly(streams, step)
    outcome: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def taken() -> bool:
        try:
            outcome.set_result(_certainly(streams, step))
        except Exception as error:
            outcome.set_exception(error)
        return True

    await shell.turns.take(taken)
    return outcome.result()


def _certainly(streams: Streams, step: Callable[[], T]) -> T:
    shell = streams.schedulers.shell
    if not shell.certainty.certain():
        # While it waited for its turn.
        raise Unavailable("this master is not sure that it leads; nothing was done")
    try:
        return step()
    finally:
        shell.rearm()


def _hand_in(streams: Streams, link: int, call: Call) -> bool:
    return streams.schedulers.hand_in_one(link, call)


def _take(streams: Streams, call: Call, principal: str | None, stream_id: str | None) -> int:
    """Hand a call to the core; the status of its answer.  Raises what is wrong with it."""
    link = _link(streams, call, principal, stream_id)
    # Who knows us hears on the stream of what is refused, as of all other calls.
    if call.type == Call.UPDATE_FRAMEWORK and not link.form.ours:
        shell = streams.schedulers.shell
        shell.core.change_framework(call.framework_id.value, call.update_framework, shell.now())
        return 200
    if not _hand_in(streams, link.number, call):
        raise Unavailable("the call could not be carried out; see the master's log")
    return 202


def _link(
    streams: Streams, call: Call, principal: str | None, stream_id: str | None
) -> SchedulerLink:
    """The stream that the call names, that of the framework for which it speaks.  Raises."""
    framework_id = call.framework_id.value
    framework = streams.schedulers.shell.core.cluster.frameworks.get(framework_id)
    if framework is None:
        raise InvalidValue("framework_id", framework_id, "is no framework of this master")
    if principal is not None and principal != framework.info.principal:
        reason = f"is of {framework.info.principal!r}, authenticated is {principal!r}"
        raise InvalidValue("framework_id", framework_id, reason)
    if framework.link is None:
        raise HttpRefusal(403, f"framework_id: {framework_id!r}: is not subscribed")
    if stream_id is None:
        raise InvalidValue(STREAM_ID, "", "is missing")
    link = streams.schedulers.links.get(framework.link)
    if not isinstance(link, SchedulerLink) or link.stream_id != stream_id:
        raise InvalidValue(STREAM_ID, stream_id, "is not that of the framework's stream")
    return link


__all__ = ["REALM", "STREAM_ID", "SchedulerApi"]
