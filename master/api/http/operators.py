"""All that operators, dashboards and monitoring ask of a master over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from master.api.front import Leading
from master.api.http.files import MasterFiles
from master.api.http.older import OlderEndpoints
from master.api.http.older_calls import OlderCalls
from master.api.http.operator import Body, OperatorApi
from mesos_py.http import help, toggling
from mesos_py.http.help import Help
from mesos_py.http.log_file import OwnLog
from mesos_py.http.server import Routes
from mesos_py.http.toggling import LoggingToggle


def add_operators(
    routes: Routes,
    leading: Leading,
    body: Body,
    flags: Mapping[str, str],
    render: Callable[[], bytes] | None = None,
    log: OwnLog | None = None,
) -> None:
    """Have it answered.  `body` reads that of a request; `render` gives what Prometheus is
    to be shown, at /metrics; `log` is what this master logs to, stderr unless given."""
    older = OlderEndpoints(leading, flags, render)
    older.add_to(routes)
    OlderCalls(leading, body).add_to(routes)
    files = MasterFiles(log)
    files.add_to(routes)
    routes.add("/api/v1", OperatorApi(leading, body, older.numbers, files).answer)
    routes.add(toggling.PATH, LoggingToggle().answer)
    routes.add(help.PATH, Help(routes).answer)


__all__ = ["add_operators"]
