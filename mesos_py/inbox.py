"""Between a link and who consumes its events, on one event loop; and the way to that
loop from other threads."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")

# With this many events waiting, no more are read from the peer.
MAX_WAITING: Final = 50_000


class Inbox(Generic[Item]):
    """Batches on their way to one consumer.  For the event loop's thread."""

    def __init__(self) -> None:
        self._batches: deque[list[Item]] = deque()
        self._waiting = 0
        self._some = asyncio.Event()
        self._room = asyncio.Event()
        self._quiet = False
        self._ended = False
        self._failure: BaseException | None = None

    def put(self, items: list[Item]) -> None:
        self._batches.append(items)
        self._waiting += len(items)
        self._some.set()

    async def room(self) -> None:
        """Wait while very many events are waiting."""
        while self._waiting >= MAX_WAITING and not (self._quiet or self._ended):
            self._room.clear()
            await self._room.wait()

    def quiet(self) -> None:
        """The consumer wants nothing more: `batches` ends."""
        self._quiet = True
        self._some.set()
        self._room.set()

    def end(self, failure: BaseException | None) -> None:
        """Nothing more will come: `batches` gives what is there, then ends or raises."""
        self._ended = True
        self._failure = failure
        self._some.set()
        self._room.set()

    async def batches(self) -> AsyncIterator[list[Item]]:
        while not self._quiet:
            if self._batches:
                batch = self._batches.popleft()
                self._waiting -= len(batch)
                if self._waiting < MAX_WAITING:
                    self._room.set()
                yield batch
            elif self._ended:
                if self._failure is not None:
                    raise self._failure
                return
            else:
                self._some.clear()
                await self._some.wait()


class Doorbell:
    """Has `answer` called on a loop's thread, once for any number of rings before it."""

    def __init__(self, answer: Callable[[], None]) -> None:
        self._answer = answer
        self._loop: asyncio.AbstractEventLoop | None = None
        self._rung = False

    def connect(self, loop: asyncio.AbstractEventLoop) -> None:
        """Before this, rings do nothing: what they were for is looked at in the beginning."""
        self._loop = loop

    def ring(self) -> None:
        """From any thread."""
        if self._loop is not None and not self._rung:
            self._rung = True
            self.call(self._come)

    def call(self, work: Callable[[], None]) -> None:
        """Have `work` done on the loop's thread; nothing once the loop has ended."""
        if self._loop is None:
            return
        try:
            self._loop.call_soon_threadsafe(work)
        except RuntimeError:
            pass  # the loop is closed

    def _come(self) -> None:
        # First the mark, then the work: who still sees the mark is served by this work.
        self._rung = False
        self._answer()


__all__ = ["Doorbell", "Inbox"]
