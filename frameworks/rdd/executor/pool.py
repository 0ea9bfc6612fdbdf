"""The workers of an executor, as its parent sees them."""

from __future__ import annotations

import asyncio
import contextlib
import mmap
import os
import signal
import socket
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from frameworks.rdd.executor import orders, packets, page
from frameworks.rdd.executor.forks import ForkServer, Gone
from frameworks.rdd.messages import RunTask
from mesos_py import logs

# Between the word that a task is to end and the end of its process.
GRACE_S: Final = 2.0
_log = logs.get("rdd.executor")


@dataclass(eq=False)
class Worker:
    """number: given once.  task: what it runs.  leaving: why it will take no more tasks."""

    number: int
    link: socket.socket
    shared: mmap.mmap
    ready: bool = False
    task: RunTask | None = None
    told: bool = False  # of its task's end
    leaving: str = ""
    cancelled: str = ""  # why its task was, if it was
    stages: set[str] = field(default_factory=set)
    unsent: deque[packets.Packed] = field(default_factory=deque)
    kill: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        return self.ready and self.task is None and not self.leaving


class Pool:
    """said: called with what a worker sends, and the files, which are the callee's to close.
    ended: called once for each, after all that it has sent.  broken: the fork server is gone.
    """

    def __init__(
        self,
        forks: ForkServer,
        said: Callable[[Worker, Any, list[int]], None],
        ended: Callable[[Worker, Gone], None],
        broken: Callable[[], None],
    ) -> None:
        self._forks = forks
        self._said = said
        self._ended = ended
        self._broken = broken
        self._loop = asyncio.get_running_loop()
        self._numbers = 0
        self.workers: dict[int, Worker] = {}
        self._loop.add_reader(forks.link, self._hear_forks)

    def add(self) -> Worker:
        """Raises OSError if the fork server is gone."""
        self._numbers += 1
        ours, theirs = packets.pair()
        fd = packets.memory_file("page")
        with theirs, contextlib.ExitStack() as stack:
            stack.callback(os.close, fd)
            os.ftruncate(fd, page.SIZE)
            shared = mmap.mmap(fd, page.SIZE)
            try:
                self._forks.fork(self._numbers, theirs, fd)
            except BaseException:
                ours.close()
                shared.close()
                raise
        ours.setblocking(False)
        worker = self.workers[self._numbers] = Worker(self._numbers, ours, shared)
        self._loop.add_reader(ours, self._hear, worker)
        return worker

    def send(self, worker: Worker, record: orders.ToWorker, fds: Sequence[int] = ()) -> None:
        """In order.  Nothing if the worker has ended.  The files stay the caller's."""
        packed = packets.Packed(record, fds)
        if worker.unsent:
            packed.keep_files()
            worker.unsent.append(packed)
            return
        try:
            packed.send(worker.link)
        except BlockingIOError:
            packed.keep_files()
            worker.unsent.append(packed)
            self._loop.add_writer(worker.link, self._flush, worker)
            return
        except OSError:
            # It has ended: `ended` comes.
            pass
        packed.close()

    def end(self, worker: Worker, reason: str) -> None:
        """Its task is to end, and it with it: the word first, then the kill."""
        if worker.leaving:
            return
        worker.leaving = reason
        self._forks.signal(worker.number, signal.SIGTERM)
        worker.kill = self._loop.call_later(GRACE_S, self.kill, worker, reason)

    def kill(self, worker: Worker, reason: str) -> None:
        worker.leaving = worker.leaving or reason
        self._forks.signal(worker.number, signal.SIGKILL)

    def close(self) -> None:
        """All are killed; nothing is told any more.  Waits for them, for a moment each."""
        self._loop.remove_reader(self._forks.link)
        for worker in list(self.workers.values()):
            self._remove(worker)
        self._forks.close()

    def _hear(self, worker: Worker) -> None:
        # Not for ever: the others have something to say, too.
        for _ in range(16):
            try:
                got = packets.receive(worker.link)
            except BlockingIOError:
                return
            except Exception as error:
                _log.warning("a worker's message cannot be read", reason=str(error))
                got = None
            if got is None:
                # It has ended, and `ended` comes; or a task has closed the socket.
                self._loop.remove_reader(worker.link)
                worker.kill = worker.kill or self._loop.call_later(
                    GRACE_S, self.kill, worker, "it has closed its connection to the executor"
                )
                return
            self._said(worker, *got)

    def _hear_forks(self) -> None:
        gone = self._forks.gone()
        if gone is None:
            self._loop.remove_reader(self._forks.link)
            self._broken()
            return
        worker = self.workers.get(gone.number)
        if worker is None:
            return
        # What it had said before its end.
        while True:
            try:
                got = packets.receive(worker.link)
            except Exception:
                # Also BlockingIOError: that was all.
                break
            if got is None:
                break
            self._said(worker, *got)
        self._remove(worker)
        self._ended(worker, gone)

    def _flush(self, worker: Worker) -> None:
        while worker.unsent:
            try:
                worker.unsent[0].send(worker.link)
            except BlockingIOError:
                return
            except OSError:
                pass
            worker.unsent.popleft().close()
        self._loop.remove_writer(worker.link)

    def _remove(self, worker: Worker) -> None:
        del self.workers[worker.number]
        self._loop.remove_reader(worker.link)
        self._loop.remove_writer(worker.link)
        while worker.unsent:
            worker.unsent.popleft().close()
        if worker.kill is not None:
            worker.kill.cancel()
        worker.link.close()
        worker.shared.close()
