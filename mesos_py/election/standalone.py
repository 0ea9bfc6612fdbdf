"""Election without a coordinator: addresses that were given, a master that leads."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Sequence

from mesos_py.address import Address
from mesos_py.election.base import Contender, Detector, Standing
from mesos_py.errors import InvalidValue
from mesos_py.v1 import types_pb2


class StandaloneDetector(Detector):
    """Tries given addresses in order, over and over.

    A hint comes first next time.  When the present address fails, the next one of
    the list is tried; a hint from outside the list is forgotten then.
    """

    def __init__(self, addresses: Sequence[Address]) -> None:
        if not addresses:
            raise InvalidValue("master", "", "must name at least one address")
        self._addresses = tuple(addresses)
        self._index = 0
        self._hinted: Address | None = None
        self._watchers: set[asyncio.Event] = set()

    @property
    def current(self) -> Address:
        return self._hinted or self._addresses[self._index]

    async def leader(self) -> Address:
        return self.current

    async def watch(self) -> AsyncIterator[Address]:
        # The set is emptied of this watcher when its generator is closed.
        changed = asyncio.Event()
        self._watchers.add(changed)
        try:
            seen: Address | None = None
            while True:
                changed.clear()
                if self.current != seen:
                    seen = self.current
                    yield seen
                else:
                    await changed.wait()
        finally:
            self._watchers.discard(changed)

    def hint(self, address: Address) -> None:
        if address in self._addresses:
            self._index = self._addresses.index(address)
            self._hinted = None
        else:
            self._hinted = address
        self._wake()

    def failed(self, address: Address) -> None:
        # Late news of an address that is not tried any more changes nothing.
        if address != self.current:
            return
        # Also after a failed hint: who gave it may give the same one for long.
        self._hinted = None
        self._index = (self._index + 1) % len(self._addresses)
        self._wake()

    def _wake(self) -> None:
        for changed in self._watchers:
            changed.set()


class StandaloneContender(Contender):
    """Always leads, in epoch 1: there is nobody to lose to."""

    EPOCH = 1

    def __init__(self) -> None:
        self._resigned = asyncio.Event()

    async def elected(self, info: types_pb2.MasterInfo) -> None:
        pass

    async def watch(self) -> AsyncIterator[Standing]:
        if not self._resigned.is_set():
            yield Standing.LEADING
            await self._resigned.wait()
        yield Standing.LOST

    def certain_until_s(self) -> float:
        return -math.inf if self._resigned.is_set() else math.inf

    async def resign(self) -> None:
        self._resigned.set()
