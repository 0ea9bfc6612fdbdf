"""Where clients are sent that came to a master which does not lead."""

from __future__ import annotations

from aiohttp import web

from master.api.front import Leading
from mesos_py.http.answers import HttpRefusal


def elsewhere(leading: Leading, request: web.Request) -> HttpRefusal:
    """307 to the same path of whoever leads; 503 when nobody does, or it is not known."""
    leader = leading.detected
    if leader is None or leader == leading.own:
        return HttpRefusal(503, "No leader elected")
    location = f"//{leader}{request.rel_url.raw_path_qs}"
    return HttpRefusal(307, f"the leader is {leader}", {"Location": location})


__all__ = ["elsewhere"]
