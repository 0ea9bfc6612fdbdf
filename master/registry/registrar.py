"""Carries the core's writes to the storage: in order, folded, one batch at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from master.registry.base import Operation, Storage, size_of
from mesos_py import logs
from mesos_py.clock import Clock
from mesos_py.errors import InternalError, MesosPyError

log = logs.get("master.registrar")

# Of one batch; the first operation is always taken.  What was asked for first need not
# wait for the last of a flood.
MAX_OPERATIONS: Final = 2_000
MAX_BYTES: Final = 4 * 1024 * 1024


@dataclass
class Figures:
    """What the registrar has done, for metrics."""

    batches: int = 0
    operations: int = 0
    bytes: int = 0
    seconds: float = 0.0
    last_seconds: float = 0.0


class Registrar:
    """Of one leadership.  All calls from the event loop's thread.

    `writes` is filled by others, who call `wake` afterwards.  `stored(number)` is called
    for the last write of each batch, when all of it is certain.  At the first error
    everything ends and `on_lost(error)` is called, once: what was under way may have
    been stored or not, and the leadership must end.
    """

    def __init__(
        self,
        storage: Storage,
        writes: deque[tuple[int, Operation]],
        stored: Callable[[int], None],
        on_lost: Callable[[MesosPyError], None],
        clock: Clock,
    ) -> None:
        self._storage = storage
        self._writes = writes
        self._stored = stored
        self._on_lost = on_lost
        self._clock = clock
        self._woken = asyncio.Event()
        # An epoch to pass, and who is told of the new one.
        self._to_pass: tuple[int, Callable[[int], None]] | None = None
        self._task: asyncio.Task[None] | None = None
        self.figures = Figures()

    def start(self) -> None:
        """Begin to take what is in `writes`.  Called once, when the storage is claimed."""
        self._task = asyncio.create_task(self._run(), name="registrar")
        self.wake()

    def wake(self) -> None:
        """There may be something in `writes`.  Cheap, and never wrong."""
        if self._writes:
            self._woken.set()

    def raise_epoch(self, at_least: int, then: Callable[[int], None]) -> None:
        """Between two batches, go on with an epoch above `at_least`: `then` is told which.

        One that is asked for while another waits replaces it, if it is higher.
        """
        if self._to_pass is None or at_least > self._to_pass[0]:
            self._to_pass = (at_least, then)
            self._woken.set()

    @property
    def waiting(self) -> int:
        """How many writes have not been taken yet."""
        return len(self._writes)

    async def stop(self) -> None:
        """Take no more; return when nothing is under way.  `on_lost` is not called.

        A write that is under way is given up: nobody is told whether it was done.
        """
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            while True:
                await self._woken.wait()
                self._woken.clear()
                if self._to_pass is not None:
                    at_least, then = self._to_pass
                    self._to_pass = None
                    then(await self._storage.raise_epoch(at_least))
                while self._writes:
                    await self._batch()
        except MesosPyError as error:
            log.error("registry lost", error=error, waiting=self.waiting)
            self._on_lost(error)
        except Exception as error:
            log.exception("registrar failed", waiting=self.waiting)
            self._on_lost(InternalError(f"registrar: {error!r}"))

    async def _batch(self) -> None:
        number, operations = self._taken()
        # Changes may be none: then it was about the order only.
        if operations:
            begun_s = self._clock.now().monotonic_s
            await self._storage.write(operations)
            self._count(operations, self._clock.now().monotonic_s - begun_s)
        self._stored(number)

    def _taken(self) -> tuple[int, list[Operation]]:
        """The next batch: the number of its last write, and what changes."""
        number, changes = self._writes.popleft()
        operations = [changes] if changes else []
        size = size_of(operations)
        while self._writes and len(operations) < MAX_OPERATIONS:
            size += size_of([self._writes[0][1]])
            if size > MAX_BYTES:
                break
            number, changes = self._writes.popleft()
            if changes:
                operations.append(changes)
        return number, operations

    def _count(self, operations: list[Operation], seconds: float) -> None:
        figures = self.figures
        figures.batches += 1
        figures.operations += len(operations)
        figures.bytes += size_of(operations)
        figures.seconds += seconds
        figures.last_seconds = seconds
