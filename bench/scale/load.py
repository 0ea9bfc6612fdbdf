"""The load generator: a process with all agents, the frameworks and the probe in it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click
import psutil

from bench.processes import BenchFailed, cpu_seconds
from bench.scale.connection import Connection
from bench.scale.peers import PROBE_ROLE, Agent, Framework, Load, Probe, Wheel, World
from mesos_py import rpc
from mesos_py.address import Address, parse_address
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1 import operator_pb2_grpc

LOOK_S: Final = 0.05
# Before the first probe so much of the cluster is to be busy.
FULL: Final = 0.97


@click.command()
@click.option("--master", required=True)
@click.option("--master-pid", type=int, required=True, multiple=True)
@click.option("--load", required=True, help="A Load, as JSON.")
@click.option("--out", type=click.Path(path_type=Path), required=True)
def main(master: str, master_pid: tuple[int, ...], load: str, out: Path) -> None:
    """Fill a cluster, keep it full, and see how long a newcomer waits for a place."""
    # The generator must not be slower than it has to be.
    gc.freeze()
    gc.disable()
    played = Played(parse_address(master, "--master"), master_pid, Load(**json.loads(load)))
    out.write_text(json.dumps(asyncio.run(played.play())))


class Played:
    def __init__(self, master: Address, pids: tuple[int, ...], load: Load) -> None:
        self._master = master
        self._pids = pids
        self._load = load
        self._world = World(load)
        self._wires: list[Connection] = []
        self._own = psutil.Process().pid

    async def play(self) -> dict[str, Any]:
        found: dict[str, Any] = {"load_average": psutil.getloadavg()[0]}
        found["registration"] = await self._measured(self._register)
        probe = Probe(self._world, await self._connect())
        probe.subscribe(PROBE_ROLE)
        await self._until("the probe is subscribed", lambda: self._world.subscribed == 1, 10)
        # Nobody else is there.
        found["alone"] = await probe.run(LOOK_S, self._load.probe_within_s)
        found["alone"]["asked"] = LOOK_S
        found["filling"] = await self._measured(self._fill)
        await asyncio.sleep(self._load.settle_s)
        before = await self._cycles()
        found["steady"] = await self._measured(self._probed(probe))
        found["cycles"] = [after - b for b, after in zip(before, await self._cycles(), strict=True)]
        found["longest_cycle_s"] = (await self._metrics()).get("master/allocation_longest_seconds")
        found["complaints"] = self._world.complaints
        for wire in self._wires:
            wire.close()
        return found

    async def _register(self) -> dict[str, Any]:
        """All agents come as fast as the master lets them."""
        load, world, wheel = self._load, self._world, Wheel()
        for number in range(load.agents):
            if number % load.together == 0:
                wire = await self._connect()
            Agent(world, wheel, number, wire).register()
        await self._until(
            "all agents are registered",
            lambda: world.registered == load.agents,
            load.register_within_s,
        )
        return {}

    async def _fill(self) -> dict[str, Any]:
        load, world = self._load, self._world
        for number in range(load.frameworks):
            role = f"role-{number % load.roles}"
            Framework(world, f"framework-{number}", role, await self._connect()).subscribe()
        full = FULL * load.agents * load.slots
        with contextlib.suppress(BenchFailed):  # as far as it gets
            await self._until("it is full", lambda: world.running >= full, load.fill_within_s)
        return {"running": world.running}

    def _probed(self, probe: Probe) -> Callable[[], Any]:
        async def probed() -> dict[str, Any]:
            load = self._load
            runs = [await probe.run(load.probe_s, load.probe_within_s) for _ in range(load.probes)]
            return {"probes": runs, "running": self._world.running}

        return probed

    async def _measured(self, part: Callable[[], Any]) -> dict[str, Any]:
        """What `part` returns, and what was done meanwhile."""
        world = self._world
        before = dict(world.entries), self._messages(), world.launched, world.finished
        cpu_s, own_s, began_s = cpu_seconds(self._pids), cpu_seconds([self._own]), time.monotonic()
        found: dict[str, Any] = await part()
        seconds = time.monotonic() - began_s
        into, out = self._messages()
        return {
            **found,
            "seconds": seconds,
            "cpu_s": cpu_seconds(self._pids) - cpu_s,
            "generator_cpu_s": cpu_seconds([self._own]) - own_s,
            "to_master": out - before[1][1],
            "from_master": into - before[1][0],
            "entries": {k: v - before[0].get(k, 0) for k, v in world.entries.items()},
            "launched": world.launched - before[2],
            "finished": world.finished - before[3],
            "memory_bytes": sum(psutil.Process(pid).memory_info().rss for pid in self._pids),
        }

    def _messages(self) -> tuple[int, int]:
        wires = self._wires
        return sum(w.received_messages for w in wires), sum(w.sent_messages for w in wires)

    async def _connect(self) -> Connection:
        host, port = self._master.host, self._master.port
        loop = asyncio.get_running_loop()
        _, wire = await loop.create_connection(lambda: Connection(str(self._master)), host, port)
        self._wires.append(wire)
        return wire

    async def _until(self, what: str, condition: Callable[[], bool], within_s: float) -> None:
        until_s = time.monotonic() + within_s
        while not condition():
            if time.monotonic() > until_s:
                raise BenchFailed(f"{what}: not within {within_s:g} s; {self._world}")
            await asyncio.sleep(LOOK_S)

    async def _cycles(self) -> tuple[float, float]:
        """How many allocation cycles there were, and how many seconds they took."""
        found = await self._metrics()
        return (
            found.get("master/allocation_cycles", 0.0),
            found.get("master/allocation_seconds", 0.0),
        )

    async def _metrics(self) -> dict[str, float]:
        async with rpc.open_channel(self._master) as channel:
            stub = operator_pb2_grpc.OperatorServiceStub(channel)
            answer = await stub.Execute(op.Call(type=op.Call.GET_METRICS))
            return {metric.name: metric.value for metric in answer.get_metrics.metrics}


if __name__ == "__main__":
    main()
