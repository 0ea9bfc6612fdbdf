"""`/help`: which endpoints there are."""

from __future__ import annotations

from html import escape
from typing import Final

from aiohttp import web

from mesos_py.http.answers import HttpRefusal
from mesos_py.http.pages import json_answer
from mesos_py.http.server import Routes

PATH: Final = "/help"

# Parts of a daemon that have endpoints of their own, as they are grouped in Mesos.
_PARTS: Final = frozenset({"files", "help", "logging", "metrics", "system", "version"})


class Help:
    """Answers for all that `routes` have when it is asked."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    async def answer(self, request: web.Request) -> web.Response:
        """`/help`, `/help/PART` and `/help/PART/ENDPOINT`; all of it as JSON with `format=json`.

        Raises HttpRefusal for what there is not.
        """
        part, _, name = (
            request.rel_url.path.strip("/").removeprefix("help").strip("/").partition("/")
        )
        parts = self._parts()
        if not part:
            if request.query.get("format") == "json":
                return json_answer(request, {"processes": _shape(parts)})
            return _page([path for paths in parts.values() for path in paths.values()])
        if part not in parts:
            raise HttpRefusal(404, f"path: {part[:200]!r}: there is no such part")
        if not name:
            return _page(list(parts[part].values()))
        if f"/{name}" not in parts[part]:
            raise HttpRefusal(400, f"path: {name[:200]!r}: there is no such endpoint of {part}")
        return _page([parts[part][f"/{name}"]])

    def _parts(self) -> dict[str, dict[str, str]]:
        """By part and name beneath it the path of each endpoint."""
        found: dict[str, dict[str, str]] = {}
        for path in self._routes.paths():
            first, _, rest = path.strip("/").partition("/")
            part, name = (first, f"/{rest}") if first in _PARTS else (self._routes.process, path)
            found.setdefault(part, {})[name] = path
        return dict(sorted(found.items()))


def _shape(parts: dict[str, dict[str, str]]) -> list[dict[str, object]]:
    return [
        {
            "id": part,
            "endpoints": [{"name": name, "text": f"{path}\n"} for name, path in paths.items()],
        }
        for part, paths in parts.items()
    ]


def _page(paths: list[str]) -> web.Response:
    rows = "".join(f"<li><code>{escape(path)}</code></li>\n" for path in paths)
    page = (
        "<!DOCTYPE html>\n<html><head><title>Help</title></head><body>\n"
        "<p>What each answers is in docs/mesos-compatibility.md.</p>\n"
        f"<ul>\n{rows}</ul>\n</body></html>\n"
    )
    headers = {"Content-Type": "text/html; charset=utf-8", "X-Content-Type-Options": "nosniff"}
    return web.Response(body=page.encode(), headers=headers)


__all__ = ["PATH", "Help"]
