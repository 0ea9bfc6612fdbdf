"""What the callback drivers of schedulers and executors share: their threads.

Two daemon threads per driver.  One runs an asyncio loop with the link; the other runs
the callbacks, so that slow ones never hold up heartbeats.  How it ends is kept and
raised by `join`.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final, Generic, TypeVar

from mesos_py import logs

log = logs.get("driver")
Item = TypeVar("Item")

# With this many events waiting for the callbacks, no more are taken from the link.
MAX_WAITING: Final = 50_000
# How long run() waits for a callback in progress when it is interrupted.
INTERRUPTED_S: Final = 10.0


class CallbackDriver(ABC, Generic[Item]):
    """Threads, their beginning and their end.  Subclasses: link and callbacks."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._inbox: SimpleQueue[list[Item] | None] = SimpleQueue()
        # Each is written by one thread only: taken in by the link's, done by the callbacks'.
        self._taken_in = 0
        self._done = 0
        self._started = threading.Lock()
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        # No callback is made any more.
        self._quiet = False
        self._callback_thread: int | None = None
        self._after_callback: list[Callable[[], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._drained: asyncio.Event | None = None

    # ---- For users -----------------------------------------------------------

    def start(self) -> None:
        """Begin; returns at once.  A driver is started once."""
        if not self._started.acquire(blocking=False):
            raise RuntimeError("a driver is started once; make another one")
        for part, work in (("link", self._run_link), ("callbacks", self._run_callbacks)):
            threading.Thread(target=work, name=f"{self._name} {part}", daemon=True).start()

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait until the driver has ended; False if it has not after `timeout_s`.

        Raises what it ended with: what a callback raised, or what ended the link.
        """
        if threading.get_ident() == self._callback_thread:
            raise RuntimeError("join() inside a callback would wait for itself")
        if not self._started.locked():
            raise RuntimeError("the driver was not started")
        if not self._ended.wait(timeout_s):
            return False
        if self._failure is not None:
            raise self._failure
        return True

    def run(self) -> None:
        """`start` and `join`.  KeyboardInterrupt stops the driver and is raised again."""
        self.start()
        try:
            self.join()
        except KeyboardInterrupt:
            self._interrupted()
            self._ended.wait(INTERRUPTED_S)
            raise

    # ---- For subclasses ------------------------------------------------------

    @abstractmethod
    async def _link(self) -> None:
        """Hold the link; give what comes to `_take_in`.  Raises what ends it for good."""

    @abstractmethod
    def _dispatch(self, batch: list[Item]) -> None:
        """Make the callbacks for a batch; stop in between when `_quiet` is set."""

    @abstractmethod
    def _cut(self) -> None:
        """A callback has failed: end the link.  From the callback thread."""

    @abstractmethod
    def _interrupted(self) -> None:
        """Ctrl-C during `run`: stop."""

    def _link_ended(self, error: BaseException | None) -> None:
        """The link has ended; called on the callback thread, after all that came by it,
        unless the user or a failure ended it.  For a last callback."""

    async def _take_in(self, batch: list[Item]) -> None:
        """Hand a batch to the callbacks; waits while very many are waiting."""
        assert self._drained is not None
        self._taken_in += len(batch)
        self._inbox.put(batch)
        while self._taken_in - self._done >= MAX_WAITING and not self._quiet:
            self._drained.clear()
            await self._drained.wait()

    def _outside_callback(self, work: Callable[[], None]) -> None:
        """Do `work` now or, inside a callback, when that returns (and was acknowledged)."""
        if threading.get_ident() == self._callback_thread:
            self._after_callback.append(work)
        else:
            work()

    def _settle_callback(self) -> None:
        """What a callback has put off until its return."""
        while self._after_callback:
            self._after_callback.pop(0)()

    # ---- Threads -------------------------------------------------------------

    def _run_link(self) -> None:
        error: BaseException | None = None
        try:
            asyncio.run(self._link_main())
        except BaseException as raised:
            error = raised
        if error is not None and self._failure is None and not self._quiet:
            self._failure = error
        self._inbox.put(None)

    async def _link_main(self) -> None:
        self._drained = asyncio.Event()
        self._drained.set()
        self._loop = asyncio.get_running_loop()
        await self._link()

    def _run_callbacks(self) -> None:
        self._callback_thread = threading.get_ident()
        try:
            while (batch := self._inbox.get()) is not None:
                if not self._quiet:
                    self._guarded(self._dispatch, batch)
                self._done_with(len(batch))
            if not self._quiet:
                self._guarded(self._link_ended, self._failure)
        finally:
            self._callback_thread = None
            self._ended.set()

    def _guarded(self, callbacks: Callable[[Any], None], given: Any) -> None:
        try:
            callbacks(given)
        except BaseException as error:
            log.exception("a callback failed: the driver ends")
            if self._failure is None:
                self._failure = error
            self._quiet = True
            self._cut()

    def _done_with(self, count: int) -> None:
        self._done += count
        loop, drained = self._loop, self._drained
        if loop is None or drained is None or drained.is_set():
            return
        if self._quiet or self._taken_in - self._done < MAX_WAITING:
            try:
                loop.call_soon_threadsafe(drained.set)
            except RuntimeError:
                pass  # the link has ended


__all__ = ["CallbackDriver"]
