"""The agent's one HTTP server: who answers which path, and where it listens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from agent.api.http import executor, operator
from agent.api.http.executor import ExecutorApi
from agent.api.http.files import FilesEndpoints
from agent.api.http.flags import HttpFlags
from agent.api.http.older import OlderEndpoints
from agent.api.http.operator import OperatorApi
from agent.api.http.sandboxes import SandboxFiles
from mesos_py import exposition, logs, mesos_flags
from mesos_py.errors import PortInUse
from mesos_py.exposition import Render
from mesos_py.files import write_atomically
from mesos_py.http import help, toggling
from mesos_py.http.help import Help
from mesos_py.http.server import HttpServer, Routes
from mesos_py.http.toggling import LoggingToggle
from mesos_py.metrics import Metrics

log = logs.get("agent.http")

# What Mesos calls this part of an agent; its routes are found below that, too.
PROCESS: Final = "slave(1)"


class AgentHttp:
    """Listens before there is an agent to ask, since tasks are told the port; what is not
    there yet is refused."""

    def __init__(self, work_dir: Path, files: SandboxFiles, flags: HttpFlags) -> None:
        self._port_file = work_dir / "sandboxes" / "http-port"
        self.sandboxes = files
        routes = Routes(PROCESS)
        self._server = HttpServer(routes, flags.http_limits())
        self.executors = ExecutorApi(
            self._server,
            flags.executor_heartbeat_interval_s,
            echoed=flags.http_heartbeat_after_event,
        )
        # What /metrics answers, once the agent is up.
        self.metrics: Render | None = None
        self.operator = OperatorApi(self._server, flags.http_heartbeat_interval_s)
        self.older = OlderEndpoints(mesos_flags.as_texts(flags))
        self.files = FilesEndpoints()
        routes.add(executor.PATH, self.executors.answer)
        routes.add(operator.PATH, self.operator.answer)
        routes.add("/files", files.answer)
        self.older.add_to(routes)
        self.files.add_to(routes)
        routes.add(toggling.PATH, LoggingToggle().answer)
        routes.add(help.PATH, Help(routes).answer)
        routes.add(exposition.PATH, exposition.answering(self._rendered), exact=True)

    @property
    def port(self) -> int:
        return self._server.port

    async def serve(self, ip: str, port: int) -> None:
        """Serve; with port 0 at the port of the agent's earlier run if that is free, since
        executors and tasks were told its address.  Raises PortInUse."""
        if port == 0 and (earlier := self._earlier_port()):
            try:
                await self._server.start(ip, earlier)
            except PortInUse:
                log.info("another port for HTTP: the earlier one is taken", earlier=earlier)
            else:
                return
        await self._server.start(ip, port)
        try:
            write_atomically(self._port_file, f"{self.port}\n")
        except OSError as error:
            log.warning("port for HTTP cannot be written down", error=error)

    async def close(self) -> None:
        self.sandboxes.close()
        self.executors.close()
        await self._server.close()

    def count(self, metrics: Metrics) -> None:
        """Show in `metrics` what was answered, and what was not."""
        server = self._server
        counts: dict[str, tuple[str, Callable[[], float]]] = {
            "requests": ("Requests that were answered", lambda: sum(server.answered.values())),
            "requests_refused": ("Those with a status from 400 on", self._refused),
            "requests_failed": ("Those that a fault of ours ended", lambda: server.failures),
            "unreadable": ("What is no request, or not its body", lambda: server.unreadable),
            "crowded_out": ("Connections that made or got no room", lambda: server.crowded_out),
        }
        for name, (text, read) in counts.items():
            metrics.watch(f"http_{name}", text, read)

    def _refused(self) -> float:
        return sum(n for status, n in self._server.answered.items() if status >= 400)

    def _earlier_port(self) -> int:
        try:
            port = int(self._port_file.read_text())
        except (OSError, ValueError):
            return 0
        return port if 0 < port < 65536 else 0

    async def _rendered(self) -> bytes:
        return await self.metrics() if self.metrics is not None else b""
