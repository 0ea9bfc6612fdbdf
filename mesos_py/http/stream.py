"""A stream of records as the answer to a request, fed by a queue.

Each record is one chunk: clients were seen that look for a record's length only at the
beginning of a chunk.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from aiohttp.http import HttpVersion11

from mesos_py import logs
from mesos_py.errors import Unavailable
from mesos_py.outbox import Outbox

log = logs.get("http.stream")

MAX_BATCH_RECORDS: Final = 1_000
MAX_BATCH_BYTES: Final = 1024 * 1024
# For so long a client may take nothing of the rest, once that is known to be all.
MAX_STALL_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A record that is sent at intervals, for a stream whose source sends none."""

    # As it goes out (recordio.framed).
    record: bytes
    interval_s: float
    at_once: bool = False


async def _always() -> bool:
    return True


def cutter(request: web.Request) -> Callable[[], None]:
    """What ends the connection of a request at once, with whatever it has not read."""

    def cut() -> None:
        if request.transport is not None:
            request.transport.abort()

    return cut


async def respond(
    request: web.Request,
    queue: Outbox[bytes],
    headers: Mapping[str, str],
    *,
    may_write: Callable[[], Awaitable[bool]] = _always,
    heartbeat: Heartbeat | None = None,
) -> web.StreamResponse:
    """Send what comes into `queue`, records as `recordio.framed` makes them, until it is
    closed, the client goes, or `may_write`, asked before each batch, says no.

    When the queue overflows the connection is cut: its client reads too slowly.  Have the
    queue call `cutter(request)` then, since the writer may be waiting for the client.  It is
    cut, too, when it takes nothing of the rest of a queue that is closed.
    """
    answer = web.StreamResponse(headers=headers)
    if request.version >= HttpVersion11:
        # Also if the client wants the connection closed at the end.
        answer.enable_chunked_encoding()
    await answer.prepare(request)
    async with _beating(queue, heartbeat):
        try:
            async with _ending(queue) as got_on:
                async for records in queue.batches(MAX_BATCH_RECORDS, MAX_BATCH_BYTES):
                    if not await may_write():
                        break
                    for record in records:
                        await answer.write(record)
                        if queue.closed is not None:
                            got_on()
                got_on()
                await answer.write_eof()
        except Unavailable as error:
            log.warning("stream cut off", peer=request.remote, reason=error.message)
            cutter(request)()
        except TimeoutError:
            log.warning("stream cut off", peer=request.remote, reason="nobody takes its end")
            cutter(request)()
        except ConnectionError:
            log.debug("stream's client has gone", peer=request.remote)
    return answer


@contextlib.asynccontextmanager
async def _ending(queue: Outbox[bytes]) -> AsyncIterator[Callable[[], None]]:
    """Once the queue is closed no overflow ends the waiting for the client: a TimeoutError
    does, so long after that, or after the last call of what this gives."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as limit:

        def got_on() -> None:
            limit.reschedule(loop.time() + MAX_STALL_S)

        queue.on_close = got_on
        if queue.closed is not None:
            got_on()
        try:
            yield got_on
        finally:
            queue.on_close = None


@contextlib.asynccontextmanager
async def _beating(queue: Outbox[bytes], heartbeat: Heartbeat | None) -> AsyncIterator[None]:
    if heartbeat is None:
        yield
        return
    beating = asyncio.create_task(_beat(queue, heartbeat))
    try:
        yield
    finally:
        beating.cancel()


async def _beat(queue: Outbox[bytes], heartbeat: Heartbeat) -> None:
    if heartbeat.at_once:
        queue.put(heartbeat.record, len(heartbeat.record))
    while queue.closed is None:
        await asyncio.sleep(heartbeat.interval_s)
        queue.put(heartbeat.record, len(heartbeat.record))


__all__ = ["Heartbeat", "cutter", "respond"]
