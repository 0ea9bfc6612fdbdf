"""A detector that is told who leads: by a file, without an election."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

from mesos_py.address import Address, parse_address
from mesos_py.election import Detector

LOOK_S: Final = 0.005


class ToldDetector(Detector):
    """Believes what stands in the file.  A failed attempt changes nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._leader = self._read()
        # Set, and replaced, with each change that `watch` meets.
        self._changed = asyncio.Event()

    async def leader(self) -> Address:
        return self._leader

    async def news(self, left: Address) -> None:
        while self._leader == left:
            await self._changed.wait()

    async def watch(self) -> AsyncGenerator[Address, None]:
        seen: Address | None = None
        while True:
            self._leader = self._read()
            if self._leader != seen:
                seen = self._leader
                self._changed.set()
                self._changed = asyncio.Event()
                yield self._leader
            await asyncio.sleep(LOOK_S)

    def _read(self) -> Address:
        return parse_address(self._path.read_text().strip(), "leader")
