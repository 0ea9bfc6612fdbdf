"""Long answers for many who ask at once: one at a time is made, for all who wait for it.

Whoever asks gets an answer that was begun after that, so nobody misses what was changed
before; and however many ask, the master does no more than one such work beside its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable


class Batches:
    """All calls from the event loop's thread."""

    def __init__(self) -> None:
        self._one = asyncio.Lock()
        # Those that have not begun.
        self._waiting: dict[Hashable, asyncio.Task[bytes]] = {}

    async def get(self, key: Hashable, make: Callable[[], Awaitable[bytes]]) -> bytes:
        """What the `make` of the first who has asked for `key` gives.  Raises what it raises."""
        making = self._waiting.get(key)
        if making is None:
            making = self._waiting[key] = asyncio.create_task(self._make(key, make))
            making.add_done_callback(_told)
        # Who asked first may go away; the others still want it.
        return await asyncio.shield(making)

    async def _make(self, key: Hashable, make: Callable[[], Awaitable[bytes]]) -> bytes:
        async with self._one:
            del self._waiting[key]
            return await make()


def _told(done: asyncio.Task[bytes]) -> None:
    if not done.cancelled():
        done.exception()  # those who wait are told, if anybody does


__all__ = ["Batches"]
