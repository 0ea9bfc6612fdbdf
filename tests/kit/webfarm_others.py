"""Another balancer and another server than haproxy and Apache, as small as may be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from frameworks.webfarm.core.balancer import Mode, Reading, Slot
from frameworks.webfarm.core.farm import FarmRules
from frameworks.webfarm.core.policy import Limits
from frameworks.webfarm.core.server import run_until_told, site_lines, site_uris
from frameworks.webfarm.run import Settings
from mesos_py import CommandInfo, HealthCheck, Resources, health_tcp
from tests.kit.local import LIMIT_S

SLOTS: Final = 8


class PythonServer:
    """A Server: Python's own, which ends at once when it is told to."""

    def command(self, address: str, port: int, site: str) -> tuple[str, list[CommandInfo.URI]]:
        serve = f'python3 -m http.server {port} --bind {address} --directory "$site"'
        return f"{site_lines(site)}\n{run_until_told(serve)}", site_uris(site)

    def health(self, port: int) -> HealthCheck:
        return health_tcp(port, delay_s=0, interval_s=1)


class ListBalancer:
    """A Balancer that sends nobody anywhere: it has slots, and looks whether servers answer."""

    def __init__(self) -> None:
        self._slots = {f"s{n}": Slot(f"s{n}", Mode.FREE, "", 0) for n in range(SLOTS)}
        self.closed = False

    async def start(self) -> bool:
        return False

    async def read(self) -> Reading:
        for slot in self._slots.values():
            well = slot.mode is not Mode.FREE and await _listens(slot.address, slot.port)
            self._slots[slot.name] = replace(self._slots[slot.name], well=well)
        return Reading("1", 0, 0, 0, tuple(self._slots.values()))

    async def put(self, slot: str, address: str, port: int) -> None:
        self._slots[slot] = Slot(slot, Mode.HELD, address, port)

    async def open(self, slot: str) -> None:
        self._slots[slot] = replace(self._slots[slot], mode=Mode.OPEN)

    async def hold(self, slot: str) -> None:
        self._slots[slot] = replace(self._slots[slot], mode=Mode.HELD)

    async def free(self, slot: str) -> None:
        self._slots[slot] = Slot(slot, Mode.FREE, "", 0)

    async def close(self) -> None:
        self.closed = True

    async def died(self) -> None:
        await asyncio.Event().wait()

    # ---- For tests -----------------------------------------------------------------

    def used(self) -> list[Slot]:
        return [slot for slot in self._slots.values() if slot.mode is not Mode.FREE]

    def opened(self) -> list[Slot]:
        return [slot for slot in self._slots.values() if slot.mode is Mode.OPEN and slot.well]

    async def until(
        self, count: int, also: Callable[[list[Slot]], bool] = lambda slots: True
    ) -> None:
        """Exactly so many that are open and well, and no others."""
        async with asyncio.timeout(LIMIT_S):
            while True:
                there = self.opened()
                if len(there) == len(self.used()) == count and also(there):
                    return
                await asyncio.sleep(0.05)


def other_settings(master: str, site: str) -> Settings:
    """Of a farm of two small servers."""
    return Settings(
        master=master,
        name="others",
        role="*",
        user="",
        site=site,
        period_s=1.0,
        failover_s=60.0,
        limits=Limits(minimum=2, maximum=2, target=30.0),
        rules=FarmRules(most=2, each=Resources.of(cpus=0.1, mem=32)),
    )


async def page(address: str, port: int) -> str:
    """What a server answers, without its head."""
    reader, writer = await asyncio.open_connection(address, port)
    try:
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        return (await reader.read(-1)).decode().partition("\r\n\r\n")[2]
    finally:
        writer.close()
        await writer.wait_closed()


async def _listens(address: str, port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(address, port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


__all__ = ["ListBalancer", "PythonServer", "other_settings", "page"]
