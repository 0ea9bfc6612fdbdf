"""Connections to block services."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final

import grpc.aio

from mesos_py import rpc
from mesos_py.errors import Unavailable

# A program that runs for days sees executors by the thousand.
MOST_IDLE: Final = 64


@dataclass(slots=True, eq=False)
class _Kept:
    channel: grpc.aio.Channel
    users: int = 0


class Channels:
    """One for each address, kept to be used again; those that were used longest ago go when
    there are too many, and whoever cannot be reached is forgotten at once.

    Of one event loop.
    """

    def __init__(
        self,
        opened: Callable[[str], grpc.aio.Channel] = rpc.open_channel,
        most_idle: int = MOST_IDLE,
    ) -> None:
        self._opened = opened
        self._most_idle = most_idle
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        # Forgotten while they were used.
        self._left: set[_Kept] = set()

    def held(self, address: str) -> grpc.aio.Channel:
        """Until `close`."""
        return self._take(address).channel

    @contextlib.asynccontextmanager
    async def used(self, address: str) -> AsyncIterator[grpc.aio.Channel]:
        kept = self._take(address)
        try:
            yield kept.channel
        except Unavailable:
            self._leave(address, kept)
            raise
        finally:
            kept.users -= 1
            await self._tidy()

    async def forget(self, address: str) -> None:
        """Whoever was there is gone; who still reads from it may end."""
        if (kept := self._kept.get(address)) is not None:
            self._leave(address, kept)
            await self._tidy()

    async def close(self) -> None:
        """All of them, whoever uses them."""
        gone = [*self._kept.values(), *self._left]
        self._kept.clear()
        self._left.clear()
        for each in gone:
            await each.channel.close()

    def _take(self, address: str) -> _Kept:
        kept = self._kept.get(address)
        if kept is None:
            kept = self._kept[address] = _Kept(self._opened(address))
        self._kept.move_to_end(address)
        kept.users += 1
        return kept

    def _leave(self, address: str, kept: _Kept) -> None:
        if self._kept.get(address) is kept:
            del self._kept[address]
            self._left.add(kept)

    async def _tidy(self) -> None:
        idle = [(address, kept) for address, kept in self._kept.items() if not kept.users]
        for address, kept in idle[: max(0, len(idle) - self._most_idle)]:
            self._leave(address, kept)
        gone = [each for each in self._left if not each.users]
        self._left.difference_update(gone)
        for each in gone:
            await each.channel.close()


__all__ = ["MOST_IDLE", "Channels"]
