"""The load generator: a process with all agents and frameworks of a cluster in it."""

from __future__ import annotations

import asyncio
import gc
import json
import random
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import psutil

from bench.master_cpu.peers import UPDATES, Agent, Framework, Load, World, while_running
from bench.master_cpu.recording import save
from bench.processes import cpu_seconds

SEED = 20


@click.command()
@click.option("--master", required=True)
@click.option("--master-pid", type=int, required=True)
@click.option("--load", required=True, help="A Load, as JSON.")
@click.option("--recording", type=click.Path(path_type=Path), required=True)
@click.option("--out", type=click.Path(path_type=Path), required=True)
def main(master: str, master_pid: int, load: str, recording: Path, out: Path) -> None:
    """Keep every slot of every agent busy; measure the master for a while."""
    # The generator must not be slower than it has to be.
    gc.freeze()
    gc.disable()
    found = asyncio.run(play(World(master), master_pid, Load(**json.loads(load)), recording))
    out.write_text(json.dumps(found))


async def play(world: World, master_pid: int, load: Load, recording: Path) -> dict[str, Any]:
    chance = random.Random(SEED)
    delays = [chance.uniform(0, load.warm_up_s / 2) for _ in range(load.agents)]
    hosts = [Agent(world, n, load.slots, delay) for n, delay in enumerate(delays)]
    schedulers = [Framework(world, n, load.roles) for n in range(load.frameworks)]
    found: dict[str, Any] = {}

    async def body() -> None:
        await asyncio.sleep(load.warm_up_s)
        found.update(await window(world, master_pid, load.window_s))

    await while_running([hosts, schedulers], body)
    if world.complaints:
        raise RuntimeError("; ".join(world.complaints[:5]))
    traffic = save([peer.script for peer in (*hosts, *schedulers)], recording)
    found["traffic"] = {kind: asdict(amount) for kind, amount in traffic.items()}
    return found


async def window(world: World, master_pid: int, seconds: float) -> dict[str, Any]:
    """One measured stretch of time: the master's CPU, and what was done with it."""
    own = psutil.Process().pid
    world.recording = True
    began, acknowledged = time.monotonic(), world.acknowledged
    cpu, own_cpu = cpu_seconds([master_pid]), cpu_seconds([own])
    await asyncio.sleep(seconds)
    found = {
        "cpu_s": cpu_seconds([master_pid]) - cpu,
        "generator_cpu_s": cpu_seconds([own]) - own_cpu,
        "tasks": (world.acknowledged - acknowledged) / UPDATES,
        "seconds": time.monotonic() - began,
    }
    world.recording = False
    return found


if __name__ == "__main__":
    main()
