"""Opening things in a thread for somebody who may go away meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar


class Closable(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=Closable)


async def opened(open_it: Callable[[], C]) -> C:
    """What `open_it` opens, in a thread.  If the caller is cancelled it is closed at once:
    otherwise each client that hangs up in that moment would cost a descriptor."""
    opening = asyncio.ensure_future(asyncio.to_thread(open_it))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_close)
        raise


def _close(opening: asyncio.Future[C]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
