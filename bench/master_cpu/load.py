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

from bench.master_cpu import recording
from bench.master_cpu.peers import UPDATES, Agent, Framework, Peer, World, while_running
from bench.processes import cpu_seconds

SEED = 20


@click.command()
@click.option("--master", required=True)
@click.option("--master-pid", type=int, required=True)
@click.option("--agents", type=int, required=True)
@click.option("--frameworks", type=int, required=True)
@click.option("--roles", type=int, required=True)
@click.option("--slots", type=int, required=True, help="Tasks that an agent has room for.")
@click.option("--warm-up-s", type=float, required=True)
@click.option("--window-s", type=float, required=True)
@click.option("--windows", type=int, required=True)
@click.option("--record", type=click.Path(path_type=Path), required=True)
@click.option("--out", type=click.Path(path_type=Path), required=True)
def main(
    master: str,
    master_pid: int,
    agents: int,
    frameworks: int,
    roles: int,
    slots: int,
    warm_up_s: float,
    window_s: float,
    windows: int,
    record: Path,
    out: Path,
) -> None:
    """Keep every slot of every agent busy; measure the master over some windows."""
    found: list[dict[str, Any]] = []

    async def run() -> None:
        world = World(master, slots)
        chance = random.Random(SEED)
        hosts = [Agent(world, n, chance.uniform(0, warm_up_s / 2)) for n in range(agents)]
        schedulers = [Framework(world, n, roles) for n in range(frameworks)]
        peers: list[Peer] = [*hosts, *schedulers]

        async def body() -> None:
            await asyncio.sleep(warm_up_s)
            for number in range(windows):
                found.append(await window(world, peers, master_pid, window_s))
                path = record / f"window-{number}.pickle"
                traffic = recording.save([peer.script for peer in peers], path)
                found[-1]["traffic"] = {kind: asdict(t) for kind, t in traffic.items()}
                for peer in peers:
                    peer.script.entries = []
                await asyncio.sleep(0.2)

        await while_running([hosts, schedulers], body)
        if world.complaints:
            raise RuntimeError("; ".join(world.complaints[:5]))

    # The generator must not be slower than it has to be.
    gc.freeze()
    gc.disable()
    asyncio.run(run())
    out.write_text(json.dumps(found))


async def window(
    world: World, peers: list[Peer], master_pid: int, seconds: float
) -> dict[str, Any]:
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
