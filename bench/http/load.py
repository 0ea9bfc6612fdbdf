"""The load generator of the first part: agents and one scheduler at a time.

Each scheduler first declines all it is offered, as fast as it can; then it fills the cluster,
and acknowledges what the agents tell it over and over.  Both are closed loops, so that the
master, or the floor, gets as much as it takes.
"""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import click
import psutil

from bench.http.forms import FORMS
from bench.http.libprocess import MesosAgents
from bench.http.peers import Scheduler, Teller, ready_made, register
from bench.processes import BenchFailed, cpu_seconds
from bench.scale import peers as scale
from mesos_py.address import Address, parse_address
from mesos_py.http.media import Media

LOOK_S: Final = 0.02
WITHIN_S: Final = 60.0


@dataclass(frozen=True)
class Rates:
    """What the first part plays, and for how long."""

    agents: int = 200
    slots: int = 4
    rounds: int = 5
    warm_s: float = 0.4
    window_s: float = 1.5


@dataclass(frozen=True)
class Server:
    """Somebody who is measured."""

    address: Address
    pid: int


@dataclass(frozen=True)
class Measured:
    """One window: what was done in it, and the server's CPU time."""

    server: str
    form: str
    phase: str
    events: int
    seconds: float
    cpu_s: float
    own_cpu_s: float
    # Of the longest record, and how many events it has.
    record_bytes: int
    record_events: float


@click.command()
@click.option("--grpc", required=True, help="The master's.")
@click.option("--http", required=True, help="The master's.")
@click.option("--pid", type=int, required=True, help="The master's.")
@click.option("--floor", required=True)
@click.option("--floor-pid", type=int, required=True)
@click.option("--mesos", help="Of an Apache Mesos to measure beside.")
@click.option("--mesos-pid", type=int)
@click.option("--rates", required=True, help="A Rates, as JSON.")
@click.option("--out", type=click.Path(path_type=Path), required=True)
def main(
    *,
    grpc: str,
    http: str,
    pid: int,
    floor: str,
    floor_pid: int,
    mesos: str | None,
    mesos_pid: int | None,
    rates: str,
    out: Path,
) -> None:
    """Measure the forms in turn, next to the floor."""
    # The generator must not be slower than it has to be.
    gc.freeze()
    gc.disable()
    servers = {"grpc": Server(parse_address(grpc, "--grpc"), pid)}
    servers["http"] = Server(parse_address(http, "--http"), pid)
    servers["floor"] = Server(parse_address(floor, "--floor"), floor_pid)
    if mesos is not None and mesos_pid is not None:
        servers["mesos"] = Server(parse_address(mesos, "--mesos"), mesos_pid)
    played = _Played(servers, Rates(**json.loads(rates)))
    asyncio.run(played.play())
    out.write_text(json.dumps([asdict(each) for each in played.found]))


class _Played:
    def __init__(self, servers: dict[str, Server], rates: Rates) -> None:
        self._servers = servers
        self._rates = rates
        self._telling = True
        load = scale.Load(agents=rates.agents, slots=rates.slots)
        self._world = scale.World(load)
        self._own = psutil.Process().pid
        self.found: list[Measured] = []

    async def play(self) -> None:
        def made(number: int, wire: Any) -> Teller:
            return Teller(self._world, number, wire, lambda: self._telling)

        await register(self._world, self._servers["grpc"].address, made)
        await self._registered(self._world)
        if "mesos" in self._servers:
            world = scale.World(self._world.load)
            mesos = self._servers["mesos"].address
            await MesosAgents(world, mesos, lambda: self._telling).register()
            await self._registered(world)
        for number in range(self._rates.rounds):
            for name, media in FORMS.items():
                records = await self._master("master", f"{name} {number}", name, media)
                if media is not None:
                    await self._floor(name, media, records)
                    if "mesos" in self._servers:
                        await self._master("mesos", f"{name} {number}", name, media)

    async def _registered(self, world: scale.World) -> None:
        await until(lambda: world.registered == self._rates.agents, self._trouble)

    async def _master(
        self, whose: str, own_name: str, form: str, media: Media | None
    ) -> dict[str, bytes]:
        """All phases with one scheduler of a master, ours or Mesos' (`whose`)."""
        server = self._servers["mesos" if whose == "mesos" else "http" if media else "grpc"]
        tasks = self._rates.agents * self._rates.slots
        scheduler = Scheduler(own_name, self._rates.slots, revives=whose == "mesos")
        await scheduler.subscribe(server.address, media)
        await self._window(whose, form, "offers", scheduler, server)
        scheduler.launching = True
        await self._until(lambda: scheduler.launched == tasks, scheduler)
        scheduler.say("SUPPRESS")
        await self._window(whose, form, "updates", scheduler, server)
        self._telling = False
        await self._until(lambda: scheduler.finished == tasks, scheduler)
        self._telling = True
        if "mesos" in self._servers:
            # Nothing is offered meanwhile.
            await self._reconciled(whose, form, scheduler, server)
        scheduler.say("TEARDOWN")
        # Its answer is the end of the stream.
        await until(lambda: bool(scheduler.trouble()), lambda: "")
        scheduler.close()
        return scheduler.records

    async def _floor(self, form: str, media: Media, records: dict[str, bytes]) -> None:
        server = self._servers["floor"]
        tasks = self._rates.agents * self._rates.slots
        for phase, kind, at_once in (("offers", "OFFERS", 1), ("updates", "UPDATE", tasks)):
            scheduler = Scheduler("floor", self._rates.slots)
            opening = ready_made(records["SUBSCRIBED"], records[kind], at_once)
            await scheduler.open(server.address, media, opening)
            await self._window("floor", form, phase, scheduler, server)
            scheduler.close()

    async def _reconciled(self, name: str, form: str, scheduler: Scheduler, server: Server) -> None:
        scheduler.reconcile()
        await self._window(name, form, "answers", scheduler, server)
        scheduler.stop_asking()

    async def _window(
        self, name: str, form: str, phase: str, scheduler: Scheduler, server: Server
    ) -> None:
        def count() -> int:
            return scheduler.offers if phase == "offers" else scheduler.updates

        rates = self._rates
        before = count()
        await self._until(lambda: count() > before, scheduler)
        await asyncio.sleep(rates.warm_s)
        events, messages = count(), scheduler.offer_events
        cpu_s, own_s = cpu_seconds([server.pid]), cpu_seconds([self._own])
        began_s = time.monotonic()
        await asyncio.sleep(rates.window_s)
        await self._until(lambda: count() > events, scheduler)
        seconds = time.monotonic() - began_s
        record = scheduler.records["OFFERS" if phase == "offers" else "UPDATE"]
        events = count() - events
        each = events / max(1, scheduler.offer_events - messages) if phase == "offers" else 1.0
        self.found.append(
            Measured(
                name,
                form,
                phase,
                events,
                seconds,
                cpu_seconds([server.pid]) - cpu_s,
                cpu_seconds([self._own]) - own_s,
                len(record),
                each,
            )
        )
        if trouble := scheduler.trouble() or self._trouble():
            raise BenchFailed(f"{name}, {form}, {phase}: {trouble}")

    async def _until(self, condition: Callable[[], bool], scheduler: Scheduler) -> None:
        await until(condition, lambda: scheduler.trouble() or self._trouble())

    def _trouble(self) -> str:
        return next(iter(self._world.complaints), "")


async def until(condition: Callable[[], bool], trouble: Callable[[], str]) -> None:
    until_s = time.monotonic() + WITHIN_S
    while not condition():
        found = trouble()
        if not found and time.monotonic() > until_s:
            found = f"nothing came of it within {WITHIN_S:g} s"
        if found:
            raise BenchFailed(found)
        await asyncio.sleep(LOOK_S)


if __name__ == "__main__":
    main()
