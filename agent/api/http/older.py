"""The agent's older endpoints over HTTP: /state and its siblings."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Final

from aiohttp import web

from agent.api.older import shapes
from agent.api.older.pages import Pages
from mesos_py.errors import InvalidValue, Unavailable
from mesos_py.http.cache import PageCache
from mesos_py.http.numbers import stats
from mesos_py.http.pages import answer, callback_of, json_answer
from mesos_py.http.server import Routes, empty
from mesos_py.http.shapes import text
from mesos_py.version import MESOS_VERSION, VERSION

_DURATION: Final = re.compile(r"[0-9]+(\.[0-9]+)?(ns|us|ms|secs|mins|hrs|days|weeks)", re.ASCII)


class OlderEndpoints:
    """Answers any method, as Mesos does; what is about tasks, from `open` on."""

    def __init__(self, flags: Mapping[str, str]) -> None:
        self._flags = dict(flags)
        self._cache = PageCache()
        self._pages: Pages | None = None
        self._numbers: Callable[[], Mapping[str, float]] = dict

    def open(self, pages: Pages, numbers: Callable[[], Mapping[str, float]]) -> None:
        """The agent knows what it has.  `numbers`: those of /metrics/snapshot."""
        self._pages = pages
        self._numbers = numbers

    def add_to(self, routes: Routes) -> None:
        """Have them answered."""
        routes.add("/health", self.health)
        routes.add("/version", self.version)
        routes.add("/flags", self.flags)
        routes.add("/metrics/snapshot", self.metrics)
        routes.add("/system/stats.json", self.system)
        routes.add("/state", self.state)
        routes.add("/containers", self.containers)
        routes.add("/monitor/statistics", self.statistics)

    async def health(self, _: web.Request) -> web.StreamResponse:
        return empty(200)

    async def version(self, request: web.Request) -> web.StreamResponse:
        # Clients turn each part of `version` into a number, and look what of Mesos is there.
        return json_answer(request, shapes.version(MESOS_VERSION) | {"mesos_py_version": VERSION})

    async def flags(self, request: web.Request) -> web.StreamResponse:
        return json_answer(request, {"flags": self._flags})

    async def system(self, request: web.Request) -> web.StreamResponse:
        """The machine's numbers."""
        return json_answer(request, stats())

    async def metrics(self, request: web.Request) -> web.StreamResponse:
        self._opened()
        timeout = request.query.get("timeout")
        if timeout is not None and not _DURATION.fullmatch(timeout):
            raise InvalidValue("timeout", timeout, "is no duration, such as 5secs")

        async def make() -> bytes:
            return text(dict(sorted(self._numbers().items()))).encode()

        return await self._page(request, "metrics", make)

    async def state(self, request: web.Request) -> web.StreamResponse:
        return await self._page(request, "state", self._opened().state)

    async def containers(self, request: web.Request) -> web.StreamResponse:
        pages, wanted = self._opened(), request.query.get("container_id")
        return await self._page(request, ("containers", wanted), lambda: pages.containers(wanted))

    async def statistics(self, request: web.Request) -> web.StreamResponse:
        return await self._page(request, "statistics", self._opened().statistics)

    async def _page(
        self, request: web.Request, key: Hashable, make: Callable[[], Awaitable[bytes]]
    ) -> web.StreamResponse:
        callback_of(request.query)
        return await answer(request, await self._cache.get(key, make))

    def _opened(self) -> Pages:
        if self._pages is None:
            raise Unavailable("Agent has not finished recovery")
        return self._pages
