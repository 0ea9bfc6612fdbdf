"""All that looks after the sandboxes of one agent, in one hand: for `agent.app`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agent.api.http_server import HttpServer
from agent.sandboxes import collector, rotation
from agent.sandboxes.logfile import Cuts
from agent.sandboxes.removals import Removals
from agent.sandboxes.rotation import Placed
from mesos_py import logs
from mesos_py.errors import PortInUse
from mesos_py.files import write_atomically
from mesos_py.metrics import Metrics

log = logs.get("agent.sandboxes")


@dataclass(frozen=True)
class Limits:
    """What an operator may choose."""

    collector: collector.Limits = field(default_factory=collector.Limits)
    rotation: rotation.Limits = field(default_factory=rotation.Limits)


class SandboxKeeper:
    """Serves from `serve` on; removes and rotates from `keep` on."""

    def __init__(
        self, work_dir: Path, limits: Limits, agent_id: Callable[[], str], metrics: Metrics
    ) -> None:
        self._live: Mapping[str, Placed] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._port_file = work_dir / "sandboxes" / "http-port"
        self.removals = Removals(work_dir / "sandboxes" / "removed")
        self._collector = collector.Collector(
            str(work_dir), limits.collector, self._is_live, self.removals, metrics
        )
        self._rotator = rotation.Rotator(
            str(work_dir), limits.rotation, lambda: self._live, metrics
        )
        self.http = HttpServer(
            str(work_dir), agent_id, self._is_live, self.removals, self.cuts, metrics
        )

    async def serve(self, host: str, port: int) -> None:
        """Serve; with port 0 at the port of the agent's earlier run if that is free, since
        tasks were told its address.  Raises PortInUse."""
        if port == 0 and (earlier := self._earlier_port()):
            try:
                await self.http.start(host, earlier)
            except PortInUse:
                log.info("another port for sandboxes: the earlier one is taken", earlier=earlier)
            else:
                return
        await self.http.start(host, port)
        try:
            write_atomically(self._port_file, f"{self.http.port}\n")
        except OSError as error:
            log.warning("port for sandboxes cannot be written down", error=error)

    def _earlier_port(self) -> int:
        try:
            port = int(self._port_file.read_text())
        except (OSError, ValueError):
            return 0
        return port if 0 < port < 65536 else 0

    def keep(self, live: Mapping[str, Placed]) -> None:
        """Begin, once all containers that still run are in `live`, and stay so until the
        agent has done with them: no other sandbox is safe."""
        self._live = live
        runs = (self._collector.run(), self._rotator.run())
        self._tasks += [asyncio.create_task(each) for each in runs]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.http.close()

    def ended(self, parts: tuple[str, ...]) -> None:
        """The container with this sandbox has ended; () if nothing is known of it."""
        if parts:
            self._collector.ended(parts)
            self.http.ended(parts)

    def cuts(self, container_id: str, name: str, directory: int) -> Cuts:
        return self._rotator.cuts(container_id, name, directory)

    def _is_live(self, container_id: str) -> bool:
        return container_id in self._live
