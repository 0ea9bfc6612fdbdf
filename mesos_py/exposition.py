"""`/metrics` over HTTP, for Prometheus and whoever reads its text format."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from aiohttp import web

from mesos_py import logs
from mesos_py.errors import PortInUse
from mesos_py.metrics import CONTENT_TYPE

log = logs.get("metrics")

PATH: Final = "/metrics"
Render: TypeAlias = Callable[[], Awaitable[bytes]]


def mount(app: web.Application, render: Render) -> None:
    """Have `app` answer GET /metrics with what `render` gives.  It is called each time."""
    app.router.add_get(PATH, answering(render))


def answering(render: Render) -> Callable[[web.Request], Awaitable[web.Response]]:
    """What answers GET, and refuses all else, for a server that is not aiohttp's own."""

    async def answer(request: web.Request) -> web.Response:
        if request.method not in ("GET", "HEAD"):
            reason = f"method: {request.method!r}: must be GET, HEAD\n"
            return web.Response(status=405, text=reason, headers={"Allow": "GET, HEAD"})
        try:
            text = await render()
        except Exception as error:
            log.exception("metrics cannot be read")
            return web.Response(status=500, text=f"{type(error).__name__}: {error}\n")
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE})

    return answer


class MetricsServer:
    """A small server of its own, for a daemon that has no other."""

    def __init__(self, render: Render) -> None:
        app = web.Application()
        mount(app, render)
        self._runner = web.AppRunner(
            app, access_log=None, handle_signals=False, shutdown_timeout=0.5
        )
        self.port = 0

    async def start(self, ip: str, port: int) -> int:
        """Bind and serve; the port (0 picks one).  Raises PortInUse."""
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, ip, port).start()
        except OSError as error:
            await self._runner.cleanup()
            reason = error.strerror or str(error)
            text = f"metrics-port {port} on {ip}: {reason}"
            raise PortInUse(text, ip=ip, port=port) from None
        self.port = self._runner.addresses[0][1]
        log.info("metrics served", ip=ip, port=self.port)
        return self.port

    async def close(self) -> None:
        await self._runner.cleanup()
