"""The status page of a driver: jobs, stages, tasks, what is kept, executors.

A program that nobody watches pays nothing for it: only when somebody calls is the server
loaded and started, on the socket that has been listening.
"""

from __future__ import annotations

import asyncio
import dataclasses
import selectors
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from frameworks.rdd.core.views import View
from frameworks.rdd.pages import html
from mesos_py import logs
from mesos_py.errors import MesosPyError

if TYPE_CHECKING:
    from aiohttp import web

log = logs.get("rdd.page")

# So many further ports are tried if the first is taken, as Spark does.
MORE_PORTS: Final = 16
# Scripts and styles of others have no place here, nor has this page in those of others.
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class Page:
    """`url` once it was started, None if no port was free.

    title: the program's name.  port: 0 takes any that is free.
    """

    def __init__(self, title: str, host: str, port: int) -> None:
        self._title = title
        self._host = host
        self._port = port
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._wake: tuple[socket.socket, socket.socket] | None = None
        self._stopping = threading.Lock()
        self._view: Callable[[], View] | None = None
        self.url: str | None = None

    def start(self, view: Callable[[], View]) -> None:
        """view: how everything stands, from any thread; may raise MesosPyError."""
        self._view = view
        self._socket = self._listen()
        if self._socket is None:
            return
        port = self._socket.getsockname()[1]
        shown = f"[{self._host}]" if ":" in self._host else self._host
        self.url = f"http://{shown}:{port}"
        self._wake = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="rdd page", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """May be called twice, and by two at once."""
        with self._stopping:
            if self._thread is None or self._wake is None or self._socket is None:
                return
            self._wake[1].close()
            self._thread.join()
            self._wake[0].close()
            self._socket.close()
            self._thread = None

    # ---- Its thread --------------------------------------------------------------------------

    def _run(self) -> None:
        assert self._socket is not None
        assert self._wake is not None
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._socket, selectors.EVENT_READ)
                selector.register(self._wake[0], selectors.EVENT_READ)
                ready = {key.fileobj for key, _ in selector.select()}
            if self._wake[0] not in ready:
                asyncio.run(self._serve(self._socket, self._wake[0]))
        except Exception:
            # It is for people to look at: jobs go on without it.
            log.exception("status page has ended")

    async def _serve(self, listening: socket.socket, wake: socket.socket) -> None:
        from aiohttp import web

        app = web.Application()
        app.router.add_get("/", self._page)
        app.router.add_get("/api", self._api)
        app.router.add_get("/api/{part}", self._api)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.SockSite(runner, listening).start()
            loop = asyncio.get_running_loop()
            over = asyncio.Event()
            loop.add_reader(wake, over.set)
            await over.wait()
            loop.remove_reader(wake)
        finally:
            await runner.cleanup()

    async def _page(self, _: web.Request) -> web.Response:
        from aiohttp import web

        view = await self._now()
        return web.Response(text=html(self._title, view), content_type="text/html", headers=HEADERS)

    async def _api(self, request: web.Request) -> web.Response:
        from aiohttp import web

        whole = dataclasses.asdict(await self._now())
        part = request.match_info.get("part")
        if part is None:
            return web.json_response(whole, headers=HEADERS)
        if part not in whole:
            known = ", ".join(whole)
            return web.json_response(
                {"error": f"{part}: there is none such; known: {known}"}, status=404
            )
        return web.json_response(whole[part], headers=HEADERS)

    async def _now(self) -> View:
        from aiohttp import web

        assert self._view is not None
        try:
            return await asyncio.to_thread(self._view)
        except MesosPyError as error:
            raise web.HTTPServiceUnavailable(text=str(error)) from error

    def _listen(self) -> socket.socket | None:
        more = MORE_PORTS if self._port else 0
        for port in range(self._port, min(self._port + more, 65535) + 1):
            try:
                return socket.create_server(
                    (self._host, port),
                    family=socket.AF_INET6 if ":" in self._host else socket.AF_INET,
                )
            except OSError as error:
                last = error
        log.warning("no status page", host=self._host, port=self._port, error=str(last))
        return None


__all__ = ["Page"]
