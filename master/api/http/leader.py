"""Who leads, as HTTP clients are told."""

from __future__ import annotations

from aiohttp import web

from master.api.front import Leading
from master.api.operator import OperatorService
from master.api.streams import Streams
from mesos_py.address import Address
from mesos_py.http.answers import HttpRefusal


def redirect(leader: Address, path: str) -> HttpRefusal:
    """The answer that sends a client to the master that leads.  Without a scheme, as in
    Mesos: the client keeps its own."""
    where = f"//{leader}{path}"
    return HttpRefusal(
        307, f"this master does not lead; the leader is {leader}", {"Location": where}
    )


def require_leading(leading: Leading, request: web.Request) -> Streams:
    """The streams of the present leadership.

    Raises HttpRefusal: 307 to who leads instead, 503 if nobody does that is known, or this
    master is about to.
    """
    if leading.streams is not None:
        return leading.streams
    raise _not_leading(leading, request)


def require_operator(leading: Leading, request: web.Request) -> OperatorService:
    """What the present leadership answers operators by.  Raises as require_leading."""
    if leading.operator is not None:
        return leading.operator
    raise _not_leading(leading, request)


def _not_leading(leading: Leading, request: web.Request) -> HttpRefusal:
    leader = leading.http_of_other()
    if leader is not None:
        return redirect(leader, str(request.rel_url.raw_path_qs))
    if leading.detected is None:
        return HttpRefusal(503, "No leader elected")
    return HttpRefusal(503, "this master is not ready to lead yet")


__all__ = ["redirect", "require_leading", "require_operator"]
