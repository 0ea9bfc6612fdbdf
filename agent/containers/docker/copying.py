"""One container's output, copied as it comes."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Final

from agent.containers.docker.engine import Engine, EngineError
from agent.containers.docker.logs import Entry, Frames, OutputFiles, Positions
from mesos_py import logs

log = logs.get("agent.docker")

# Between two attempts to follow; and how often the position is noted at the most.
AGAIN_S: Final = 1.0
NOTE_EVERY_S: Final = 1.0
# At the end: for the stream to run dry, and for the last reading.
DRY_S: Final = 5.0
LAST_S: Final = 60.0
TAIL: Final = 500
_LAST_TRIES: Final = 5


class Copying:
    """Follows from `start` to `finish`.  What a full disk refuses is lost, and said."""

    def __init__(
        self, engine: Engine, docker_id: str, files: OutputFiles, threads: Executor
    ) -> None:
        self._engine = engine
        self._docker_id = docker_id
        self._files = files
        self._threads = threads
        self._positions = Positions()
        self._noted_s = 0.0
        self._following: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        # The piece that is being written.
        self._writing: asyncio.Future[None] | None = None
        self.lost_bytes = 0

    async def start(self, *, again: bool) -> None:
        """`again`: an earlier agent has copied some of it already."""
        await self._run(self._take_up if again else self._begin)
        self._following = asyncio.create_task(self._follow())

    async def finish(self, *, removed: bool = False) -> None:
        """The container has ended: returns when all that it said is in its files.

        `removed`: dockerd has nothing of it any more.
        """
        self._ended.set()
        if self._following is not None:
            await asyncio.wait([self._following], timeout=0 if removed else DRY_S)
            await self.cancel()
        if not removed:
            await self._read_the_rest()
        await self._run(self._files.forget)

    async def _read_the_rest(self) -> None:
        """Who follows may miss the very last of it."""
        for _ in range(_LAST_TRIES):
            try:
                async with asyncio.timeout(LAST_S):
                    if not await self._copy_tail():
                        await self._copy(follow=False)
                break
            except (EngineError, ValueError, TimeoutError) as error:
                log.warning("last output not read", container=self._docker_id, error=error)
                await asyncio.sleep(AGAIN_S)

    async def cancel(self) -> None:
        """Stop, and leave a note of how far it came."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])
            self._following = None
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)

    async def _follow(self) -> None:
        while not self._ended.is_set():
            try:
                await self._copy(follow=True)
            except (EngineError, ValueError) as error:
                log.info("output interrupted", container=self._docker_id, error=error)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(AGAIN_S):
                    await self._ended.wait()

    async def _copy(self, *, follow: bool) -> None:
        """Once through the stream, from where we are to its end."""
        frames = Frames()
        self._positions.resume()
        since = self._positions.since()
        async with contextlib.aclosing(
            self._engine.logs(self._docker_id, since=since, follow=follow)
        ) as chunks:
            async for chunk in chunks:
                await self._take_in(functools.partial(frames.feed, chunk))

    async def _copy_tail(self) -> bool:
        """Only the last entries, which are cheap to have; whether we know all before them."""
        frames = Frames()
        async with contextlib.aclosing(self._engine.logs(self._docker_id, tail=TAIL)) as chunks:
            entries = [entry async for chunk in chunks for entry in frames.feed(chunk)]
        if len(entries) >= TAIL and not self._positions.know(entries[0]):
            return False
        self._positions.resume()
        await self._take_in(lambda: entries)
        return True

    async def _take_in(self, entries: Callable[[], list[Entry]]) -> None:
        """In a thread: a task that writes much must not keep the agent from all else."""
        self._writing = self._run(lambda: self._write(self._positions.take(entries())))
        # What has begun is finished, or the position would not be true.
        await asyncio.shield(self._writing)

    def _write(self, pieces: list[bytes]) -> None:
        """In a thread, one at a time."""
        if not any(pieces):
            return
        try:
            sizes = self._files.append(pieces)
            if time.monotonic() - self._noted_s > NOTE_EVERY_S:
                self._noted_s = time.monotonic()
                self._files.note(self._positions.to_text(sizes))
        except OSError as error:
            lost = sum(map(len, pieces))
            self.lost_bytes += lost
            log.warning("output lost", container=self._docker_id, bytes=lost, error=error)

    def _begin(self) -> None:
        """What is in the files already is of the fetcher's, not of the container's."""
        with contextlib.suppress(OSError):
            self._files.note(self._positions.to_text(self._files.append([b"", b""])))

    def _take_up(self) -> None:
        try:
            sizes = self._files.append([b"", b""])
        except OSError:
            return
        self._positions = Positions.resumed(self._files.noted(), sizes)

    def _run(self, work: Callable[[], None]) -> asyncio.Future[None]:
        return asyncio.get_running_loop().run_in_executor(self._threads, work)
