"""Pages for those who poll: by condition, packed, and as a call of a script's function."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from aiohttp import web

from mesos_py.errors import InvalidValue
from mesos_py.http.cache import SMALL_BYTES, Page
from mesos_py.http.shapes import text

JSON: Final = "application/json"
SCRIPT: Final = "text/javascript"

_MAX_CALLBACK: Final = 200
# Names of functions, and of those that are members of something.  Anything else could be a
# program of whoever made the link.
_CALLBACK: Final = re.compile(r"[\w$.\[\]]*", re.ASCII)
# No browser is to take a page for anything else.
_HEADERS: Final = {"X-Content-Type-Options": "nosniff"}


def callback_of(query: Mapping[str, str]) -> str | None:
    """The function that a page is to be handed to (`?jsonp=`).  Raises InvalidValue."""
    name = query.get("jsonp")
    if name is None:
        return None
    if len(name) > _MAX_CALLBACK or not _CALLBACK.fullmatch(name):
        raise InvalidValue("jsonp", name, "must be the name of a function")
    return name


def json_answer(request: web.Request, shape: object) -> web.Response:
    """Something short that is made for this request.  Raises InvalidValue."""
    body = text(shape).encode()
    callback = callback_of(request.query)
    if callback is None:
        return web.Response(body=body, content_type=JSON, headers=_HEADERS)
    return _called(callback, body)


async def answer(request: web.Request, page: Page) -> web.Response:
    """The page; 304 if the client has it; compressed if it can read that.

    Raises InvalidValue.
    """
    callback = callback_of(request.query)
    if callback is not None:
        return _called(callback, page.body)
    headers = {**_HEADERS, "ETag": page.etag, "Vary": "Accept-Encoding"}
    packed = len(page.body) >= SMALL_BYTES and _takes_gzip(request.headers)
    if packed:
        # Another body, so another name.
        headers["ETag"] = f'{page.etag[:-1]}-gzip"'
    if request.method in ("GET", "HEAD") and _has(request.headers, headers["ETag"]):
        return web.Response(status=304, headers=headers)
    if not packed:
        return web.Response(body=page.body, content_type=JSON, headers=headers)
    headers["Content-Encoding"] = "gzip"
    return web.Response(body=await page.packed(), content_type=JSON, headers=headers)


def _called(callback: str, body: bytes) -> web.Response:
    called = callback.encode() + b"(" + body + b")"
    return web.Response(body=called, content_type=SCRIPT, headers=_HEADERS)


def _has(headers: Mapping[str, str], etag: str) -> bool:
    known = [
        each.strip().removeprefix("W/") for each in headers.get("If-None-Match", "").split(",")
    ]
    return etag in known or "*" in known


def _takes_gzip(headers: Mapping[str, str]) -> bool:
    for each in headers.get("Accept-Encoding", "").split(","):
        name, _, weight = each.partition(";")
        if name.strip().lower() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


__all__ = ["answer", "callback_of", "json_answer"]
