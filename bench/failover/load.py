"""The load generator: a process with all agents and frameworks of a cluster in it.

It and who started it take turns by files in a directory: `steady-N` says that all is
well before round N, `killed-N` that the leader is dead and when it died, `round-N` what
was seen until offers flowed again.  Moments are of the clock that all processes share.
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import time
from pathlib import Path
from typing import Any

import click

from bench.failover.peers import Agent, Count, Framework, Load, Peer, World, follow
from bench.failover.told import ToldDetector
from bench.processes import BenchFailed
from bench.stats import percentile
from mesos_py.election import parse_master
from mesos_py.election.zookeeper.url import is_zookeeper
from mesos_py.files import write_atomically
from mesos_py.v1 import types_pb2 as pb

LOOK_S = 0.02
COME_EVERY_S = 0.05
FILES_PER_PEER = 1
SPARE_FILES = 200


@click.command()
@click.option("--master", required=True, help="zk://..., or a file with the leader's address.")
@click.option("--load", required=True, help="A Load, as JSON.")
@click.option("--bare", is_flag=True, help="The server has no offers and no memory.")
@click.option("--directory", type=click.Path(path_type=Path), required=True)
def main(master: str, load: str, bare: bool, directory: Path) -> None:
    """Keep every slot of every agent busy, and watch the leader die and be replaced."""
    # The generator must not be slower than it has to be.
    gc.freeze()
    gc.disable()
    asyncio.run(Generator(master, Load(**json.loads(load)), bare, directory).play())


class Generator:
    def __init__(self, master: str, load: Load, bare: bool, directory: Path) -> None:
        needed = FILES_PER_PEER * (load.agents + load.frameworks) + SPARE_FILES
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        if most < needed:
            raise BenchFailed(f"{needed} open files are needed, {most} are allowed")
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, most))
        self._load = load
        self._bare = bare
        self._directory = directory
        self._detector = (
            parse_master(master) if is_zookeeper(master) else ToldDetector(Path(master))
        )
        self._found_s = 0.0
        self._world = World(self._detector, Count(load.agents), Count(load.frameworks))

    async def play(self) -> None:
        load, world = self._load, self._world
        hosts = [Agent(world, number, load.slots) for number in range(load.agents)]
        schedulers = [
            Framework(world, number, load.roles, load.idle) for number in range(load.frameworks)
        ]
        if self._bare:
            _hold_tasks(hosts, schedulers, load.slots)
        peers: list[Peer] = [*schedulers, *hosts]
        tasks = []
        for number, peer in enumerate(peers):
            tasks.append(asyncio.create_task(peer.run()))
            if number % load.come_together == 0:
                await asyncio.sleep(COME_EVERY_S)
        tasks.append(asyncio.create_task(follow(self._detector, peers, self._found)))
        try:
            for number in range(load.rounds):
                await self._wait_for("all are well", self._steady, load.steady_within_s)
                await asyncio.sleep(load.rest_s)
                self._write(f"steady-{number}", await self._before())
                self._write(f"round-{number}", await self._round(number))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _before(self) -> dict[str, Any]:
        leader = await self._detector.leader()
        return {"running": self._world.running, "leader": str(leader)}

    def _steady(self) -> bool:
        load, world = self._load, self._world
        wanted = 0 if self._bare or load.idle else load.busy * load.agents * load.slots
        return world.complete and world.running >= wanted

    async def _round(self, number: int) -> dict[str, Any]:
        """From the kill until all are back and offers flow."""
        load, world = self._load, self._world
        world.begin()
        killed = self._directory / f"killed-{number}"
        await self._wait_for("the kill", killed.exists, load.steady_within_s)
        cpu_s = time.process_time()
        killed_s = json.loads(killed.read_text())["killed_s"]
        await self._wait_for("offers flow", self._flowing, load.back_within_s)
        ends = [c.all_s or 0.0 for c in (world.agents, world.frameworks)]
        back = [moment - killed_s for moment in world.agents.back_s]
        return {
            "killed_s": killed_s,
            "leader": str(await self._detector.leader()),
            "named_s": self._found_s - killed_s,
            "agents_s": ends[0] - killed_s,
            "frameworks_s": ends[1] - killed_s,
            "half_of_agents_s": percentile(back, 50),
            "back_s": max(ends) - killed_s,
            "first_offer_s": (world.first_offer_s or max(ends)) - killed_s,
            "flowing_s": (world.flowing_s or max(ends)) - killed_s,
            "complaints": list(world.complaints),
            "attempts": world.attempts,
            "refused": world.refused,
            "links_made": len(world.agents.back_s) + len(world.frameworks.back_s),
            "generator_cpu_s": time.process_time() - cpu_s,
        }

    def _flowing(self) -> bool:
        # A bare server has no offers.
        return self._world.renewed and (self._bare or self._world.flowing_s is not None)

    def _found(self) -> None:
        self._found_s = time.monotonic()

    async def _wait_for(self, what: str, condition: Any, within_s: float) -> None:
        until_s = time.monotonic() + within_s
        while not condition():
            if time.monotonic() > until_s:
                raise BenchFailed(f"{what}: not within {within_s:g} s; {self._summary()}")
            await asyncio.sleep(LOOK_S)

    def _summary(self) -> str:
        world = self._world
        return (
            f"agents {world.agents.linked} of {world.agents.total}, frameworks "
            f"{world.frameworks.linked} of {world.frameworks.total}, {world.running} tasks, "
            f"complaints {world.complaints[:3]}"
        )

    def _write(self, name: str, content: dict[str, Any]) -> None:
        write_atomically(self._directory / name, json.dumps(content))


def _hold_tasks(hosts: list[Agent], schedulers: list[Framework], slots: int) -> None:
    for number, scheduler in enumerate(schedulers):
        scheduler.info.id.value = f"5f0c2d4e-8a51-4c56-9d3e-2b7a90c1e4f6-{number:04}"
    for number, host in enumerate(hosts):
        host.info.id.value = f"5f0c2d4e-8a51-4c56-9d3e-2b7a90c1e4f6-S{number}"
        for slot in range(slots):
            owner = schedulers[(number * slots + slot) % len(schedulers)]
            task = owner.task(pb.AgentID(value=host.info.id.value))
            host.hold(owner.info, task)


if __name__ == "__main__":
    main()
