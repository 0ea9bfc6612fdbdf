"""Pages that many ask for at once and again and again are made once.

A page is given out again while that costs little truth: for as long as ten times what making it
took.  So pages of a small cluster are as fresh as a person can tell, and those of a large one take
no more than a tenth of the daemon's time, however many poll them.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
import zlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Final

# A page is given out again for so many times what it cost.
TIMES: Final = 10.0
# And for no longer than that, whatever it cost.
OLDEST_S: Final = 5.0
# Of different questions (a framework each, say) the latest so many.
MAX_PAGES: Final = 64
# Below that compression costs more than it saves.
SMALL_BYTES: Final = 1024
# Above that its name is made beside the event loop: a megabyte takes a millisecond.
LARGE_BYTES: Final = 256 * 1024


@dataclass(slots=True)
class Page:
    """The body of an answer, and the name of just this body (RFC 9110, section 8.8.3)."""

    body: bytes
    etag: str
    # Until when it is given out again, on the cache's clock.
    until_s: float
    _packing: asyncio.Task[bytes] | None = None

    async def packed(self) -> bytes:
        """The body as gzip.  Made when it is first wanted, once, beside the event loop."""
        if self._packing is None:
            self._packing = asyncio.create_task(asyncio.to_thread(_gzip, self.body))
        # Who asked first may go away; the others still want it.
        return await asyncio.shield(self._packing)


class PageCache:
    """All calls from the event loop's thread."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._pages: OrderedDict[Hashable, Page] = OrderedDict()
        self._making: dict[Hashable, asyncio.Task[Page]] = {}

    async def get(self, key: Hashable, make: Callable[[], Awaitable[bytes]]) -> Page:
        """The page of that key: one that is fresh enough, or the one that is being made for
        somebody else, or what `make` gives now.  Raises what `make` raises."""
        page = self._pages.get(key)
        if page is not None and self._now_s() < page.until_s:
            self._pages.move_to_end(key)
            return page
        making = self._making.get(key)
        if making is None:
            making = self._making[key] = asyncio.create_task(self._make(key, make))
            making.add_done_callback(lambda done: self._made(key, done))
        # Who asked first may go away; the others still want it.
        return await asyncio.shield(making)

    def clear(self) -> None:
        """Forget all pages: what they were made of is another one now."""
        self._pages.clear()
        for making in self._making.values():
            making.cancel()
        self._making.clear()

    def _made(self, key: Hashable, making: asyncio.Task[Page]) -> None:
        if self._making.get(key) is making:
            del self._making[key]
        if not making.cancelled():
            making.exception()  # told to those who wait, if anybody does

    async def _make(self, key: Hashable, make: Callable[[], Awaitable[bytes]]) -> Page:
        began_s = self._now_s()
        body = await make()
        now_s = self._now_s()
        until_s = now_s + min(OLDEST_S, TIMES * (now_s - began_s))
        digest = await _digest(body)
        page = self._pages[key] = Page(body, f'"{digest}"', until_s)
        self._pages.move_to_end(key)
        while len(self._pages) > MAX_PAGES:
            self._pages.popitem(last=False)
        return page


async def _digest(body: bytes) -> str:
    if len(body) < LARGE_BYTES:
        return _name(body)
    return await asyncio.to_thread(_name, body)


def _name(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=12).hexdigest()


def _gzip(body: bytes) -> bytes:
    packer = zlib.compressobj(level=1, wbits=zlib.MAX_WBITS | 16)
    return packer.compress(body) + packer.flush()
