"""The one thread that owns a core, and the queue in front of it."""

from __future__ import annotations

import functools
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from mesos_py import logs
from mesos_py.errors import MesosPyError, Unavailable

log = logs.get("rounds")

T = TypeVar("T")

# So much is taken in before what it causes is written down and done.
MOST: Final = 5000
LONG_ROUND_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class _Item:
    """answer: of a caller that waits, until what it has caused is done; None if none does."""

    work: Callable[[], Any]
    answer: Future[Any] | None


class Rounds:
    """All that is waiting is run, then `settle`, which writes down and carries out
    what came of it and says in how many seconds there must be another round (None: when
    something comes).

    What `settle` raises, or work that nobody waits for, ends them: `failed` is told on their
    thread, as the last thing, and all who wait get Unavailable.  name: of the thread.
    """

    def __init__(
        self,
        settle: Callable[[], float | None],
        failed: Callable[[BaseException], None],
        name: str,
    ) -> None:
        self._name = name
        self._settle = settle
        self._failed = failed
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        # Of the present round.
        self._items: list[_Item] = []
        self._lock = threading.Lock()
        self._open = True
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """No more work is taken; what is waiting is still done.  From any thread."""
        with self._lock:
            if self._open:
                self._open = False
                self._queue.put(None)

    def join(self) -> None:
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join()

    def post(self, work: Callable[[], object]) -> None:
        """Have it run in the next round; nothing once they have stopped."""
        self._put(_Item(work, None))

    def ask(self, work: Callable[[], T]) -> Future[T]:
        """As `post`.  The answer comes when what it has caused is durable and done; it raises
        what the work raised, or Unavailable."""
        answer: Future[T] = Future()
        if not self._put(_Item(work, answer)):
            answer.set_exception(self._ended())
        return answer

    def call(self, work: Callable[[], T], timeout_s: float | None = None) -> T:
        """`ask`, and wait for it."""
        return self.ask(work).result(timeout_s)

    # ---- Inside ----------------------------------------------------------------------------

    def _put(self, item: _Item) -> bool:
        with self._lock:
            if self._open:
                self._queue.put(item)
            return self._open

    def _run(self) -> None:
        failure: BaseException | None = None
        try:
            self._rounds()
        except BaseException as error:
            log.exception("rounds cannot go on", thread=self._name)
            failure = error
        self._end()
        if failure is not None:
            self._failed(failure)

    def _rounds(self) -> None:
        pause_s: float | None = 0.0
        going_on = True
        while going_on:
            going_on = self._take(pause_s)
            began_s = time.monotonic()
            told = [tell for item in self._items if (tell := _work(item)) is not None]
            pause_s = self._settle()
            for tell in told:
                tell()
            took_s = time.monotonic() - began_s
            if took_s > LONG_ROUND_S:
                log.info(
                    "long round",
                    thread=self._name,
                    seconds=round(took_s, 3),
                    items=len(self._items),
                )
            self._items.clear()

    def _take(self, pause_s: float | None) -> bool:
        """Of what is there, after waiting for something, as much as fits; and whether more may
        come."""
        try:
            item = self._queue.get(timeout=None if pause_s is None else max(0.0, pause_s))
            while item is not None:
                self._items.append(item)
                if len(self._items) >= MOST:
                    return True
                item = self._queue.get_nowait()
        except queue.Empty:
            return True
        return False

    def _end(self) -> None:
        """Nobody is left to wait."""
        with self._lock:
            self._open = False
        while True:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                break
            if item is not None:
                self._items.append(item)
        for item in self._items:
            if item.answer is not None and not item.answer.done():
                item.answer.set_exception(self._ended())

    def _ended(self) -> Unavailable:
        return Unavailable(f"the {self._name} has ended")


def _work(item: _Item) -> Callable[[], None] | None:
    """Do it; what tells the one who waits for it, if somebody does."""
    answer = item.answer
    if answer is None:
        item.work()
        return None
    try:
        result = item.work()
    except MesosPyError as error:
        return functools.partial(answer.set_exception, error)
    return functools.partial(answer.set_result, result)


__all__ = ["Rounds"]
