"""Work on file systems, on threads of its own, that is tried until it is done."""

from __future__ import annotations

import functools
import heapq
import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from frameworks.mapreduce.core.views import Trouble
from mesos_py import logs
from mesos_py.errors import MesosPyError

log = logs.get("mapreduce.labour")

THREADS: Final = 8
# In seconds, between tries; the last one is repeated.
PAUSES: Final = (0.1, 0.5, 2.0, 5.0, 10.0)


# Told why, and how it stood if patience has ended.
Failed = Callable[[str, Trouble | None], object]


@dataclass(slots=True)
class _Piece:
    """failed: None if it is tried for ever."""

    what: str
    work: Callable[[], object]
    done: Callable[[], object] | None = None
    failed: Failed | None = None
    patience_s: float = 0.0
    trouble: Callable[[Trouble], object] | None = None
    since_s: float = 0.0
    count: int = 0

    def troubled(self, error: Exception, now_s: float, pause_s: float) -> Trouble:
        return Trouble(
            what=self.what,
            why=_text(error),
            tries=self.count,
            since_s=self.since_s,
            next_s=now_s + pause_s,
            until_s=self.since_s + self.patience_s if self.failed is not None else 0.0,
        )


class Labour:
    """Calls of `done` are made on the threads; none is made after `close`.

    What is to be tried again holds no thread until then: a file system that is away, of one
    job, keeps no other job waiting.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="mapreduce files")
        self._closed = threading.Event()
        # What is to be tried again, and when; the number keeps equal times apart.
        self._later: list[tuple[float, int, _Piece]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._clock: threading.Thread | None = None

    def begin(
        self, what: str, work: Callable[[], object], done: Callable[[], object] | None = None
    ) -> None:
        """Have `work` done, again and again while it raises; then `done`."""
        self._submit(_Piece(what, work, done))

    def attempt(
        self,
        what: str,
        work: Callable[[], object],
        done: Callable[[], object],
        failed: Failed,
        *,
        patience_s: float,
        trouble: Callable[[Trouble], object] | None = None,
    ) -> None:
        """As `begin`; but what is ours (`MesosPyError`) is final, and so is what is raised
        `patience_s` after the first failure.  `failed` is told why, and in the second case how it
        stood; `trouble`, how it stands, after each failure that another try follows."""
        self._submit(_Piece(what, work, done, failed, patience_s, trouble))

    def close(self) -> None:
        """Nothing more is begun, and no try follows the one that is under way.  Returns when
        none is."""
        self._closed.set()
        with self._changed:
            self._changed.notify()
        if self._clock is not None:
            self._clock.join()
        self._pool.shutdown(cancel_futures=True)

    # ---- On the threads --------------------------------------------------------------------

    def _submit(self, piece: _Piece) -> None:
        # `close` may be quicker than what is under way.
        with suppress(RuntimeError):
            if not self._closed.is_set():
                self._pool.submit(self._try, piece)

    def _try(self, piece: _Piece) -> None:
        if self._closed.is_set():
            return
        piece.count += 1
        try:
            piece.work()
        except Exception as error:
            # A file system raises what it likes.
            self._failed(piece, error)
        else:
            if piece.done is not None:
                self._tell(piece.done)

    def _failed(self, piece: _Piece, error: Exception) -> None:
        now_s = time.time()
        piece.since_s = piece.since_s or now_s
        pause_s = PAUSES[min(piece.count, len(PAUSES)) - 1]
        found = piece.troubled(error, now_s, pause_s)
        if piece.failed is not None:
            ours = isinstance(error, MesosPyError)
            if ours or now_s - piece.since_s >= piece.patience_s:
                self._tell(functools.partial(piece.failed, found.why, None if ours else found))
                return
        log.warning("files not in order yet", what=piece.what, tries=piece.count, error=repr(error))
        if piece.trouble is not None:
            self._tell(functools.partial(piece.trouble, found))
        self._put_off(piece, pause_s)

    def _tell(self, call: Callable[[], object]) -> None:
        if not self._closed.is_set():
            call()

    # ---- What is tried again ---------------------------------------------------------------

    def _put_off(self, piece: _Piece, pause_s: float) -> None:
        with self._changed:
            if self._closed.is_set():
                return
            due_s = time.monotonic() + pause_s
            heapq.heappush(self._later, (due_s, next(self._numbers), piece))
            if self._clock is None:
                name = "mapreduce files again"
                self._clock = threading.Thread(target=self._wake, name=name, daemon=True)
                self._clock.start()
            self._changed.notify()

    def _wake(self) -> None:
        with self._changed:
            while not self._closed.is_set():
                now_s = time.monotonic()
                while self._later and self._later[0][0] <= now_s:
                    self._submit(heapq.heappop(self._later)[2])
                self._changed.wait(self._later[0][0] - now_s if self._later else None)


def _text(error: Exception) -> str:
    return error.message if isinstance(error, MesosPyError) else f"{type(error).__name__}: {error}"


__all__ = ["Labour"]
