"""What a farm shows of itself, as it goes."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.processes import LOOPBACK, BenchFailed, Processes

WITHIN_S: Final = 120.0


@dataclass(frozen=True)
class Sample:
    """offered: by users.  rate: at the balancer; rates: at each server; sessions per second."""

    at_s: float
    offered: float
    rate: float | None
    wanted: int
    serving: int
    rates: list[float]

    @property
    def per_server(self) -> float | None:
        return None if self.rate is None or not self.serving else self.rate / self.serving


class Watch:
    def __init__(self, running: Processes) -> None:
        self._directory = running.directory
        self._status = running.directory / "farm" / "status.json"
        self.retries = 0
        self.port = _free_port()
        self.options = ["--port", str(self.port), "--bind", LOOPBACK]
        self.options += ["--cpus", "0.1", "--mem", "64"]

    def sample(self, at_s: float, offered: float) -> Sample:
        status = self._read()
        serving = [each for each in status.get("servers", ()) if each["phase"] == "serving"]
        if (balancer := status.get("balancer")) is not None:
            self.retries = balancer["retries"]
        rates = [each["rate"] for each in serving if each["rate"] is not None]
        return Sample(
            at_s, offered, status.get("rate"), status.get("wanted", 0), len(serving), rates
        )

    async def until(self, done: Callable[[Sample], bool]) -> None:
        end_s = time.monotonic() + WITHIN_S
        while not done(self.sample(0.0, 0.0)):
            if time.monotonic() > end_s:
                raise BenchFailed(f"not within {WITHIN_S:g} s; the farm: {self._read()}")
            await asyncio.sleep(0.1)

    def logs(self) -> list[Path]:
        """What instances have said."""
        return list(self._directory.glob("agent-*/**/stderr"))

    def _read(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self._status.read_text())
        except FileNotFoundError:
            return {}
        return found


def farm_argv(running: Processes, master: str, command: str, *arguments: str) -> list[str]:
    """`mesos-py webfarm COMMAND` of the farm of this bench."""
    argv = [sys.executable, "-m", "mesos_py.cli", "webfarm", command]
    argv += ["--state-dir", str(running.directory / "farm")]
    if command != "deploy":
        argv += ["--master", master]
    return [*argv, *arguments]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
    return port


__all__ = ["Sample", "Watch", "farm_argv"]
