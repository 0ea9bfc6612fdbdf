"""A web server for fetchers: files, and every way to serve them badly.

async with Web() as web:
    web.files["/a.txt"] = b"..."
    uri = web.uri("/a.txt")
"""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import web

STALL: Final = object()


class Web:
    """`files` by path; `requests` are the paths asked for, in order."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.authorizations: list[str] = []
        # Paths that answer with another status, or redirect.
        self.statuses: dict[str, int] = {}
        self.redirects: dict[str, str] = {}
        # Paths that give so many bytes and then nothing more, or end there.
        self.stalls_after: dict[str, int] = {}
        self.breaks_after: dict[str, int] = {}
        # Paths without a length.
        self.chunked: set[str] = set()
        # Held until it is set.
        self.gate = asyncio.Event()
        self.gate.set()
        self._never = asyncio.Event()
        self.port = 0

    async def __aenter__(self) -> Web:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._never.set()
        self.gate.set()
        await self._runner.cleanup()

    def uri(self, path: str, user: str = "") -> str:
        at = f"{user}@" if user else ""
        return f"http://{at}127.0.0.1:{self.port}{path}"

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        self.requests.append(path)
        self.authorizations.append(request.headers.get("Authorization", ""))
        await self.gate.wait()
        if path in self.redirects:
            raise web.HTTPFound(self.redirects[path])
        if path in self.statuses:
            return web.Response(status=self.statuses[path], body=b"no")
        if path not in self.files:
            return web.Response(status=404)
        body = self.files[path]
        answer = web.StreamResponse()
        if path not in self.chunked:
            answer.content_length = len(body)
        await answer.prepare(request)
        if path in self.stalls_after:
            await answer.write(body[: self.stalls_after[path]])
            await self._never.wait()
        elif path in self.breaks_after:
            await answer.write(body[: self.breaks_after[path]])
            assert request.transport is not None
            request.transport.close()
        else:
            await answer.write(body)
        return answer
