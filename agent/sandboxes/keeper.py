"""All that looks after the sandboxes of one agent, in one hand: for `agent.app`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agent.api.http.sandboxes import SandboxFiles
from agent.sandboxes import collector, rotation
from agent.sandboxes.logfile import Cuts
from agent.sandboxes.removals import Removals
from agent.sandboxes.rotation import Placed
from mesos_py.metrics import Metrics


@dataclass(frozen=True)
class Limits:
    """What an operator may choose."""

    collector: collector.Limits = field(default_factory=collector.Limits)
    rotation: rotation.Limits = field(default_factory=rotation.Limits)


class SandboxKeeper:
    """Removes and rotates from `keep` on."""

    def __init__(
        self, work_dir: Path, limits: Limits, agent_id: Callable[[], str], metrics: Metrics
    ) -> None:
        self._live: Mapping[str, Placed] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self.removals = Removals(work_dir / "sandboxes" / "removed")
        self._collector = collector.Collector(
            str(work_dir), limits.collector, self._is_live, self.removals, metrics
        )
        self._rotator = rotation.Rotator(
            str(work_dir), limits.rotation, lambda: self._live, metrics
        )
        self.files = SandboxFiles(
            str(work_dir), agent_id, self._is_live, self.removals, self.cuts, metrics
        )

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

    def ended(self, parts: tuple[str, ...]) -> None:
        """The container with this sandbox has ended; () if nothing is known of it."""
        if parts:
            self._collector.ended(parts)
            self.files.ended(parts)

    def cuts(self, container_id: str, name: str, directory: int) -> Cuts:
        return self._rotator.cuts(container_id, name, directory)

    def _is_live(self, container_id: str) -> bool:
        return container_id in self._live
