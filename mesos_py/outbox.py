"""The bounded queue between who decides and the one who writes to a peer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

from mesos_py import errors

T = TypeVar("T")


class Outbox(Generic[T]):
    """The bounded queue between who decides and the one who writes to a peer.

    `put` never blocks and never raises.  When the peer reads so slowly that the
    queue passes its bound, what is queued is dropped, `overflow` says why,
    `on_overflow(reason)` is called once (cut the peer off there: its writer may hang
    in flow control), and `batches` raises Unavailable.  Nothing is ever left out
    of the middle: the peer gets a prefix, reconnects and is told anew.

    Not thread-safe: all calls from the event loop's thread.
    """

    __slots__ = (
        "_bytes",
        "_items",
        "_on_overflow",
        "_sizes",
        "_waiter",
        "closed",
        "max_bytes",
        "max_items",
        "on_close",
        "on_some",
        "overflow",
    )

    def __init__(
        self,
        max_items: int = 100_000,
        max_bytes: int = 64 * 1024 * 1024,
        on_overflow: Callable[[str], None] | None = None,
    ) -> None:
        self.max_items = max_items
        self.max_bytes = max_bytes
        # The reason of `close`, and that of an overflow; None before.
        self.closed: str | None = None
        self.overflow: str | None = None
        self._on_overflow = on_overflow
        self._items: list[T] = []
        self._sizes: list[int] = []
        self._bytes = 0
        self._waiter: asyncio.Future[None] | None = None
        # Called for each item and at the end, instead of `batches`: then `take`.
        self.on_some: Callable[[], None] | None = None
        # Called when it is closed, if nobody's slowness did that: all that comes is queued.
        self.on_close: Callable[[], None] | None = None

    def __len__(self) -> int:
        return len(self._items)

    @property
    def queued_bytes(self) -> int:
        """The sum of the approximate sizes of what is queued."""
        return self._bytes

    def put(self, item: T, size: int = 256) -> bool:
        """Queue `item`; False if it was not (closed, or over the bound).

        `size` is about how many bytes it takes on the wire.  A guess is enough
        for small items (asking a message for its size serializes it); for one
        that carries a payload, count the payload.
        """
        if self.closed is not None:
            return False
        self._items.append(item)
        self._sizes.append(size)
        self._bytes += size
        if self._bytes > self.max_bytes or len(self._items) > self.max_items:
            self._overflowed()
            return False
        if self.on_some is not None:
            self.on_some()
            return True
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
        return True

    def close(self, reason: str, *, drain: bool = True) -> None:
        """Take nothing more; `batches` ends after what is queued, or (not `drain`) now.

        Idempotent: the first reason stays.
        """
        if self.closed is None:
            self.closed = reason
            if self.on_close is not None:
                self.on_close()
        if not drain:
            self._clear()
        self._wake()

    async def batches(
        self, max_items: int = 10_000, max_bytes: int = 4 * 1024 * 1024
    ) -> AsyncIterator[list[T]]:
        """Yield all that is queued as one list, as often as there is something.

        A list has at most `max_items`, and about `max_bytes` unless a single item
        is larger.  Ends after `close`; raises Unavailable after an overflow.  For
        one reader at a time.
        """
        while True:
            while not self._items:
                if self.overflow is not None:
                    raise errors.Unavailable(self.overflow)
                if self.closed is not None:
                    return
                await self._some()
            yield self.take(max_items, max_bytes)

    def take(self, max_items: int = 10_000, max_bytes: int = 4 * 1024 * 1024) -> list[T]:
        """What `batches` would yield next; empty if nothing is queued.  For who does not
        wait, but is told by `on_some`."""
        if len(self._items) <= max_items and self._bytes <= max_bytes:
            batch, self._items = self._items, []
            self._sizes.clear()
            self._bytes = 0
            return batch
        return self._split(max_items, max_bytes)

    def _split(self, max_items: int, max_bytes: int) -> list[T]:
        count, total = 0, 0
        for size in self._sizes[:max_items]:
            if count and total + size > max_bytes:
                break
            count += 1
            total += size
        batch = self._items[:count]
        del self._items[:count]
        del self._sizes[:count]
        self._bytes -= total
        return batch

    async def _some(self) -> None:
        if self._waiter is not None:
            raise RuntimeError("an outbox has one reader at a time")
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self.on_some is not None:
            self.on_some()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _overflowed(self) -> None:
        self.overflow = self.closed = (
            f"the peer reads too slowly: {len(self._items)} messages of about {self._bytes} bytes "
            f"are queued, allowed are {self.max_items} and {self.max_bytes}"
        )
        self._clear()
        self._wake()
        if self._on_overflow is not None:
            self._on_overflow(self.overflow)

    def _clear(self) -> None:
        self._items = []
        self._sizes = []
        self._bytes = 0
