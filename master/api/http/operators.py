"""All that operators, dashboards and monitoring ask of a master over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from master.api.front import Leading
from master.api.http.older import OlderEndpoints
from master.api.http.older_calls import OlderCalls
from master.api.http.operator import Body, OperatorApi
from mesos_py.http.server import Routes


def add_operators(
    routes: Routes,
    leading: Leading,
    body: Body,
    flags: Mapping[str, str],
    render: Callable[[], bytes] | None = None,
) -> None:
    """Have it answered.  `body` reads that of a request; `render` gives what Prometheus is
    to be shown, at /metrics."""
    older = OlderEndpoints(leading, flags, render)
    older.add_to(routes)
    OlderCalls(leading, body).add_to(routes)
    routes.add("/api/v1", OperatorApi(leading, body, older.numbers).answer)


__all__ = ["add_operators"]
