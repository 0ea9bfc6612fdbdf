"""Users: so many requests per second, whatever became of those before, each counted."""

from __future__ import annotations

import asyncio
from typing import Final

from bench.processes import LOOPBACK

ANSWER_S: Final = 30.0
_REQUEST: Final = b"GET / HTTP/1.1\r\nHost: farm\r\nConnection: close\r\n\r\n"


class Load:
    """per_s: may be changed at any time.  lost: why, of each request that had no answer with
    200 and its whole content."""

    def __init__(self, port: int) -> None:
        self.per_s = 0.0
        self.asked = 0
        self.lost: list[str] = []
        self._port = port
        self._stopped = False
        self._open: set[asyncio.Task[None]] = set()

    def stop(self) -> None:
        self._stopped = True

    async def run(self) -> None:
        """Until `stop`, and until all have their answers."""
        loop = asyncio.get_running_loop()
        next_s = loop.time()
        while not self._stopped:
            if not self.per_s:
                await asyncio.sleep(0.05)
                next_s = loop.time()
                continue
            # What a busy machine was late with is made up for, of the last second.
            next_s = max(next_s + 1 / self.per_s, loop.time() - 1.0)
            await asyncio.sleep(max(0.0, next_s - loop.time()))
            task = asyncio.create_task(self._ask())
            self._open.add(task)
            task.add_done_callback(self._open.discard)
        while self._open:
            await asyncio.wait(self._open)

    async def _ask(self) -> None:
        self.asked += 1
        try:
            async with asyncio.timeout(ANSWER_S):
                answer = await self._answer()
        except (OSError, TimeoutError) as error:
            self.lost.append(repr(error))
            return
        head, blank, body = answer.partition(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        whole = f"content-length: {len(body)}".encode() in lines
        if not (blank and whole and b" 200 " in lines[0]):
            self.lost.append(repr(head[:80]))

    async def _answer(self) -> bytes:
        reader, writer = await asyncio.open_connection(LOOPBACK, self._port)
        try:
            writer.write(_REQUEST)
            return await reader.read(-1)
        finally:
            writer.close()


__all__ = ["Load"]
