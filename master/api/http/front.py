"""The master's HTTP port, whether it leads or not: who answers which path."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aiohttp import web

from master.api.front import Leading
from master.api.http.leader import redirect
from master.api.http.operators import add_operators
from master.api.http.scheduler import SchedulerApi
from mesos_py.http.answers import HttpRefusal
from mesos_py.http.auth import Credentials
from mesos_py.http.server import HttpServer, Limits, Routes, as_json, empty
from mesos_py.version import MESOS_VERSION, VERSION


class HttpFront:
    """One server for all that the master says over HTTP."""

    def __init__(
        self,
        leading: Leading,
        limits: Limits,
        credentials: Credentials | None = None,
        *,
        echoed: bool = False,
    ) -> None:
        """As SchedulerApi."""
        self.routes = Routes("master")
        self.server = HttpServer(self.routes, limits)
        self._leading = leading
        scheduler = SchedulerApi(self.server, leading, credentials, echoed=echoed)
        self.routes.add("/api/v1/scheduler", scheduler.answer)
        self.routes.add("/health", _health)
        self.routes.add("/version", _version)
        self.routes.add("/redirect", self._redirect, exact=True)

    def add_operators(self, flags: Mapping[str, str], render: Callable[[], bytes]) -> None:
        """As operators.add_operators."""
        add_operators(self.routes, self._leading, self.server.body, flags, render)

    async def _redirect(self, _: web.Request) -> web.StreamResponse:
        """To the master that leads, also if that is this one."""
        leader = self._leading.http_leader()
        if leader is None:
            raise HttpRefusal(503, "No leader elected")
        raise redirect(leader, "")


async def _health(_: web.Request) -> web.StreamResponse:
    return empty(200)


async def _version(_: web.Request) -> web.StreamResponse:
    # Clients turn each part of `version` into a number, and look what of Mesos is there.
    return as_json(
        {
            "build_date": "",
            "build_time": 0.0,
            "build_user": "",
            "mesos_py_version": VERSION,
            "version": MESOS_VERSION,
        }
    )


__all__ = ["HttpFront"]
