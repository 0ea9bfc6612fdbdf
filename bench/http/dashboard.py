"""The load generator of the second part: how long offers take, with dashboards and without.

A cluster full of tasks that do nothing, and beside it a few agents with room for one task of a
probe: each task ends after a while, and what passes from the agent's update to the next offer of
that agent at the probe, over HTTP, is the delay.  Windows with and without dashboards
alternate.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import click

from bench.http.load import until
from bench.http.peers import Host, Scheduler, register
from bench.processes import BenchFailed, cpu_seconds, end_with_parent
from bench.scale import peers as scale
from mesos_py.address import Address, parse_address
from mesos_py.http.media import Media

_SEED: Final = 7
_PROBE: Final = "probe"
_LAUNCH: Final = "fill"
_POLLERS_END_WITHIN_S: Final = 30.0


@dataclass(frozen=True)
class Polled:
    """What the second part plays, and for how long."""

    agents: int = 200
    tasks_per_agent: int = 25
    clients: int = 20
    every_s: float = 0.2
    # Whether they take compressed pages, as browsers and most libraries do.
    packed: bool = True
    # Agents of the probe, and how long one of its tasks lasts.
    probes: int = 4
    task_s: tuple[float, float] = (0.03, 0.09)
    # Pairs of windows.
    rounds: int = 6
    window_s: float = 7.0
    # At the beginning of a window nothing is measured for so long.
    settle_s: float = 0.7


class Probe(Scheduler):
    """Launches a task on all it is offered, and has it ended some time later."""

    def __init__(self, hosts: list[Host], task_s: tuple[float, float]) -> None:
        super().__init__(_PROBE, 1)
        self._hosts = hosts
        self._task_s = task_s
        self._chance = random.Random(_SEED)
        self.launching = True
        self.ended_s: dict[str, float] = {}
        self.took_ms: list[float] = []

    def accept(self, offer: dict[str, Any]) -> dict[str, Any]:
        ended_s = self.ended_s.pop(offer["agent_id"]["value"], None)
        if ended_s is not None:
            self.took_ms.append((time.monotonic() - ended_s) * 1e3)
        return super().accept(offer)

    def updated(self, status: dict[str, Any]) -> None:
        if status["state"] == "TASK_RUNNING":
            agent_id, task_id = status["agent_id"]["value"], status["task_id"]["value"]
            after_s = self._chance.uniform(*self._task_s)
            asyncio.get_running_loop().call_later(after_s, self._end, agent_id, task_id)

    def _end(self, agent_id: str, task_id: str) -> None:
        host = next(each for each in self._hosts if each.agent_id == agent_id)
        self.ended_s[agent_id] = time.monotonic()
        host.end(task_id)


@click.command()
@click.option("--grpc", required=True, help="The master's.")
@click.option("--http", required=True, help="The master's.")
@click.option("--pid", type=int, required=True, help="The master's.")
@click.option("--polled", required=True, help="A Polled, as JSON.")
@click.option("--out", type=click.Path(path_type=Path), required=True)
def main(grpc: str, http: str, pid: int, polled: str, out: Path) -> None:
    """Measure how long offers take."""
    gc.freeze()
    gc.disable()
    played = _Played(
        parse_address(grpc, "--grpc"),
        parse_address(http, "--http"),
        pid,
        Polled(**json.loads(polled)),
    )
    out.write_text(json.dumps(asyncio.run(played.play())))


class _Played:
    def __init__(self, grpc: Address, http: Address, pid: int, polled: Polled) -> None:
        self._grpc, self._http, self._pid = grpc, http, pid
        self._polled = polled
        self._windows: list[dict[str, Any]] = []

    async def play(self) -> dict[str, Any]:
        polled = self._polled
        fill = await self._fill()
        world = scale.World(scale.Load(agents=polled.probes, slots=1))
        hosts = await self._hosts(world, polled.agents)
        probe = Probe(hosts, polled.task_s)
        await probe.subscribe(self._http, Media.JSON, role=_PROBE)
        await until(lambda: probe.updates >= 3 * polled.probes, probe.trouble)
        pollers = self._pollers()
        assert pollers.stdin is not None
        for _ in range(polled.rounds):
            for on in (False, True):
                await self._window(probe, pollers.stdin, on)
        told, _ = pollers.communicate(timeout=_POLLERS_END_WITHIN_S)
        if trouble := probe.trouble() or fill.trouble() or next(iter(world.complaints), ""):
            raise BenchFailed(trouble)
        return {"windows": self._windows, "pages": json.loads(told)}

    def _pollers(self) -> subprocess.Popen[bytes]:
        polled = self._polled
        argv = [sys.executable, "-m", "bench.http.pollers", "--http", str(self._http)]
        argv += ["--clients", str(polled.clients), "--every-s", str(polled.every_s)]
        argv += ["--packed" if polled.packed else "--plain"]
        return subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            preexec_fn=end_with_parent,  # noqa: PLW1509 (no threads here)
        )

    async def _fill(self) -> Scheduler:
        """All agents with all their tasks."""
        polled = self._polled
        slots = polled.tasks_per_agent
        world = scale.World(scale.Load(agents=polled.agents, slots=slots))
        await self._hosts(world, 0)
        fill = Scheduler(_LAUNCH, slots)
        fill.launching = True
        await fill.subscribe(self._http, Media.JSON, role=_LAUNCH)
        tasks = polled.agents * slots
        await until(lambda: fill.launched == tasks, fill.trouble)
        fill.say("SUPPRESS")
        await until(lambda: fill.updates == tasks, fill.trouble)
        return fill

    async def _hosts(self, world: scale.World, first: int) -> list[Host]:
        def made(number: int, wire: Any) -> Host:
            return Host(world, first + number, wire)

        hosts = await register(world, self._grpc, made)
        await until(
            lambda: world.registered == len(hosts), lambda: next(iter(world.complaints), "")
        )
        return hosts

    async def _window(self, probe: Probe, pollers: IO[bytes], on: bool) -> None:
        polled = self._polled
        pollers.write(b"on\n" if on else b"off\n")
        pollers.flush()
        await asyncio.sleep(polled.settle_s)
        probe.took_ms = []
        cpu_s, began_s = cpu_seconds([self._pid]), time.monotonic()
        await asyncio.sleep(polled.window_s)
        await until(lambda: bool(probe.took_ms), probe.trouble)
        # What comes from now on is of the next window's beginning.
        took_ms, probe.took_ms = probe.took_ms, []
        window = {"on": on, "seconds": time.monotonic() - began_s, "took_ms": took_ms}
        self._windows.append({**window, "cpu_s": cpu_seconds([self._pid]) - cpu_s})


if __name__ == "__main__":
    main()
