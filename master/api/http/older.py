"""The older endpoints over HTTP: /state and its siblings, /flags and the metrics."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Final, TypeAlias

from aiohttp import web

from master.api.front import Leading
from master.api.http.leader import require_operator
from master.api.older.metrics import snapshot
from master.api.older.pages import DEFAULT_LIMIT, About, Pages, Wanted
from master.api.operator import OperatorService
from mesos_py.errors import InvalidValue
from mesos_py.http.cache import PageCache
from mesos_py.http.jsonpb import as_object
from mesos_py.http.numbers import stats
from mesos_py.http.pages import answer, callback_of, json_answer
from mesos_py.http.server import Routes
from mesos_py.http.shapes import text
from mesos_py.metrics import CONTENT_TYPE
from mesos_py.v1 import types_pb2 as pb
from mesos_py.version import MESOS_VERSION

Make: TypeAlias = Callable[[], Awaitable[bytes]]

_NUMBER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_HEX: Final = re.compile(r"0[xX][0-9a-fA-F]{1,15}", re.ASCII)
_DURATION: Final = re.compile(r"[0-9]+(\.[0-9]+)?(ns|us|ms|secs|mins|hrs|days|weeks)", re.ASCII)


class OlderEndpoints:
    """Answers each of them, with any method, as Mesos does."""

    def __init__(
        self,
        leading: Leading,
        flags: Mapping[str, str],
        render: Callable[[], bytes] | None = None,
        now_s: Callable[[], float] = time.monotonic,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        """`render` gives what Prometheus is to be shown, if it is."""
        self._leading = leading
        self._render = render
        self._flags = dict(flags)
        self._now_s, self._wall_s = now_s, wall_s
        self._started_wall_s = wall_s()
        self._cache = PageCache(now_s)
        # Of which leadership the pages are that the cache has.
        self._operator: OperatorService | None = None
        self._pages: Pages | None = None

    def add_to(self, routes: Routes) -> None:
        """Have them answered."""
        routes.add("/state", self.state)
        routes.add("/state-summary", self.state_summary)
        routes.add("/slaves", self.slaves)
        routes.add("/frameworks", self.frameworks)
        routes.add("/tasks", self.tasks)
        routes.add("/roles", self.roles)
        routes.add("/flags", self.flags)
        routes.add("/metrics/snapshot", self.metrics)
        routes.add("/system/stats.json", self.system)
        if self._render is not None:
            routes.add("/metrics", self.prometheus, exact=True)

    def numbers(self) -> dict[str, float]:
        """Those of /metrics/snapshot, as they are now."""
        operator = self._leading.operator
        cluster = operator.cluster if operator is not None else None
        uptime_s = self._wall_s() - self._started_wall_s
        return snapshot(cluster, uptime_s=uptime_s, leading=operator is not None)

    # ---- Of whoever leads --------------------------------------------------------

    async def state(self, request: web.Request) -> web.Response:
        return await self._page(request, "state", self._led(request).state)

    async def state_summary(self, request: web.Request) -> web.Response:
        return await self._page(request, "state-summary", self._led(request).state_summary)

    async def slaves(self, request: web.Request) -> web.Response:
        pages, agent_id = self._led(request), request.query.get("slave_id", "")
        return await self._page(request, ("slaves", agent_id), lambda: pages.slaves(agent_id))

    async def frameworks(self, request: web.Request) -> web.Response:
        pages, wanted = self._led(request), request.query.get("framework_id", "")
        return await self._page(request, ("frameworks", wanted), lambda: pages.frameworks(wanted))

    async def tasks(self, request: web.Request) -> web.Response:
        pages, query = self._led(request), request.query
        wanted = Wanted(
            limit=_number(query.get("limit"), DEFAULT_LIMIT),
            offset=_number(query.get("offset"), 0),
            newest=query.get("order") != "asc",
            framework_id=query.get("framework_id", ""),
            task_id=query.get("task_id", ""),
        )
        return await self._page(request, ("tasks", wanted), lambda: pages.tasks(wanted))

    async def roles(self, request: web.Request) -> web.Response:
        return await self._page(request, "roles", self._led(request).roles)

    def _led(self, request: web.Request) -> Pages:
        """The pages of this leadership.  Raises HttpRefusal when this master does not lead."""
        operator = require_operator(self._leading, request)
        if operator is not self._operator or self._pages is None:
            # Who waits for a page of an earlier leadership still gets it.
            self._operator, self._cache = operator, PageCache(self._now_s)
            self._pages = Pages(
                lambda: operator.cluster, lambda: about(operator, self._started_wall_s), as_object
            )
        return self._pages

    # ---- Of any master -----------------------------------------------------------

    async def flags(self, request: web.Request) -> web.Response:
        async def make() -> bytes:
            return text({"flags": self._flags}).encode()

        return await self._page(request, "flags", make)

    async def metrics(self, request: web.Request) -> web.Response:
        timeout = request.query.get("timeout")
        if timeout is not None and not _DURATION.fullmatch(timeout):
            raise InvalidValue("timeout", timeout, "is no duration, such as 5secs")

        async def make() -> bytes:
            return text(dict(sorted(self.numbers().items()))).encode()

        return await self._page(request, ("metrics", self._leading.operator is None), make)

    async def system(self, request: web.Request) -> web.Response:
        """The machine's numbers."""
        return json_answer(request, stats())

    async def prometheus(self, _: web.Request) -> web.Response:
        """Our own numbers, under their own names."""
        assert self._render is not None, "there is no such route"
        return web.Response(body=self._render(), headers={"Content-Type": CONTENT_TYPE})

    async def _page(self, request: web.Request, key: Hashable, make: Make) -> web.Response:
        # Asked for by a name that is none, it is not made.
        callback_of(request.query)
        return await answer(request, await self._cache.get(key, make))


def about(operator: OperatorService, started_wall_s: float) -> About:
    """What /state says of the master."""
    info = operator.cluster.info
    return About(
        version=MESOS_VERSION,
        id=info.id,
        hostname=info.hostname,
        ip=info.address.ip,
        port=info.port,
        started_wall_s=started_wall_s,
        elected_wall_s=operator.tenure.elected_wall_s,
        capabilities=[pb.MasterInfo.Capability.Type.Name(each.type) for each in info.capabilities],
        flags=dict(operator.flags),
    )


# ---- What was asked ------------------------------------------------------------------


def _number(given: str | None, absent: int) -> int:
    """What is no number, or negative, counts as absent, as in Mesos."""
    if given is not None and _NUMBER.fullmatch(given):
        return int(given)
    return int(given, 16) if given is not None and _HEX.fullmatch(given) else absent


__all__ = ["OlderEndpoints", "about"]
