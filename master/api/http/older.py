"""The older endpoints over HTTP: /state and its siblings, /flags and the metrics."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Final, TypeAlias

from aiohttp import web

from master.api.front import Leading
from master.api.http.sending_on import elsewhere
from master.api.older.cache import SMALL_BYTES, Page, PageCache
from master.api.older.metrics import snapshot
from master.api.older.pages import DEFAULT_LIMIT, About, Pages, Wanted
from master.api.operator import OperatorService
from mesos_py.errors import InvalidValue
from mesos_py.http.jsonpb import as_object
from mesos_py.http.server import Routes
from mesos_py.metrics import CONTENT_TYPE
from mesos_py.version import VERSION

# What clients of Mesos ask for before they use it.
CAPABILITIES: Final = ("AGENT_UPDATE", "AGENT_DRAINING", "QUOTA_V2")

Make: TypeAlias = Callable[[], Awaitable[bytes]]

_NUMBER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_HEX: Final = re.compile(r"0[xX][0-9a-fA-F]{1,15}", re.ASCII)
_CALLBACK: Final = re.compile(r"[A-Za-z0-9_$.\[\]]*", re.ASCII)
_DURATION: Final = re.compile(r"[0-9]+(\.[0-9]+)?(ns|us|ms|secs|mins|hrs|days|weeks)", re.ASCII)
_GZIPPED: Final = "-gzip"


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
        operator = self._leading.operator
        if operator is None:
            raise elsewhere(self._leading, request)
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
            return _json({"flags": self._flags})

        return await self._page(request, "flags", make)

    async def metrics(self, request: web.Request) -> web.Response:
        timeout = request.query.get("timeout")
        if timeout is not None and not _DURATION.fullmatch(timeout):
            raise InvalidValue("timeout", timeout, "is no duration, such as 5secs")

        async def make() -> bytes:
            return _json(dict(sorted(self.numbers().items())))

        return await self._page(request, ("metrics", self._leading.operator is None), make)

    async def prometheus(self, _: web.Request) -> web.Response:
        """Our own numbers, under their own names."""
        assert self._render is not None, "there is no such route"
        return web.Response(body=self._render(), headers={"Content-Type": CONTENT_TYPE})

    async def _page(self, request: web.Request, key: Hashable, make: Make) -> web.Response:
        callback = jsonp(request)
        page = await self._cache.get(key, make)
        if callback is not None:
            return in_callback(callback, page.body)
        return await _conditional(request, page)


def about(operator: OperatorService, started_wall_s: float) -> About:
    """What /state says of the master."""
    info = operator.cluster.info
    return About(
        version=VERSION,
        id=info.id,
        hostname=info.hostname,
        ip=info.address.ip,
        port=info.port,
        started_wall_s=started_wall_s,
        elected_wall_s=operator.tenure.elected_wall_s,
        capabilities=CAPABILITIES,
        flags=dict(operator.flags),
    )


# ---- What was asked ------------------------------------------------------------------


def _number(text: str | None, absent: int) -> int:
    """What is no number, or negative, counts as absent, as in Mesos."""
    if text is not None and _NUMBER.fullmatch(text):
        return int(text)
    return int(text, 16) if text is not None and _HEX.fullmatch(text) else absent


def jsonp(request: web.Request) -> str | None:
    """The function that the answer is to be handed to; None: none.  Raises InvalidValue."""
    given = request.query.get("jsonp")
    if given is not None and (len(given) > 200 or not _CALLBACK.fullmatch(given)):
        raise InvalidValue("jsonp", given, "is no name of a function")
    return given


def _json(content: object) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


# ---- Answers -------------------------------------------------------------------------


def in_callback(callback: str, body: bytes) -> web.Response:
    """The body as a script that calls a function with it."""
    text = callback.encode() + b"(" + body + b")"
    headers = {"Content-Type": "text/javascript", "X-Content-Type-Options": "nosniff"}
    return web.Response(body=text, headers=headers)


async def _conditional(request: web.Request, page: Page) -> web.Response:
    """The page, as far as the client does not have it, and packed if it takes that."""
    headers = {"Content-Type": "application/json", "ETag": page.etag, "Vary": "Accept-Encoding"}
    packed = len(page.body) >= SMALL_BYTES and takes_gzip(request.headers.get("Accept-Encoding"))
    if packed:
        headers |= {"ETag": f'{page.etag[:-1]}{_GZIPPED}"', "Content-Encoding": "gzip"}
    if _has(request.headers.getall("If-None-Match", []), page.etag):
        kept = {name: headers[name] for name in ("ETag", "Vary")}
        return web.Response(status=304, headers=kept)
    return web.Response(body=await page.packed() if packed else page.body, headers=headers)


def _has(given: list[str], etag: str) -> bool:
    """Whether one of the entity tags names what `etag` does, packed or not."""
    tags = {part.strip().removeprefix("W/") for line in given for part in line.split(",")}
    return bool(tags & {"*", etag, f'{etag[:-1]}{_GZIPPED}"'})


def takes_gzip(accepted: str | None) -> bool:
    """Whether an Accept-Encoding header allows gzip (RFC 9110, section 12.5.3)."""
    weights: dict[str, bool] = {}
    for part in (accepted or "").lower().split(","):
        coding, _, parameters = (each.strip() for each in part.partition(";"))
        zero = re.fullmatch(r"q\s*=\s*0(\.0*)?", parameters)
        weights[coding] = zero is None
    return weights.get("gzip", weights.get("x-gzip", weights.get("*", False)))


__all__ = ["OlderEndpoints", "about", "in_callback", "jsonp", "takes_gzip"]
