"""A worker: a process that runs one task after the other."""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import mmap
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any, Final, NoReturn

from frameworks.rdd.executor import orders, packets, tasks
from frameworks.rdd.executor.ending import Cancelled, Gone
from frameworks.rdd.executor.page import Page
from frameworks.rdd.executor.settings import Settings
from frameworks.rdd.executor.state import WorkerState

# The kernel is to take a worker, whose task is tried again, before the parent with all blocks.
_OOM_SCORE: Final = b"500"
# The exit code of a worker whose connection was closed by user code.
UNPLUGGED: Final = 121
_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def load(settings: Settings) -> None:
    """What every worker needs, loaded once, in the fork server."""
    # One core for each task: others are busy with theirs.
    for name in _THREADS:
        os.environ.setdefault(name, "1")
    # Tasks make objects by the million and few cycles: looking for those as often as Python
    # does by itself takes a third of the time.
    gc.set_threshold(20_000, 20, 20)
    import cloudpickle  # noqa: F401

    for name in settings.preload:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def run(settings: Settings, link: socket.socket, page: int) -> int:
    """Until the parent wants no more tasks to be run.  The exit code."""
    sys.path.extend(path for path in settings.python_path if path not in sys.path)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_bytes(_OOM_SCORE)
    signal.signal(signal.SIGTERM, _cancel)
    if (numpy := sys.modules.get("numpy")) is not None:
        # All workers are forks of one.
        numpy.random.seed()
    with mmap.mmap(page, 0) as shared:
        os.close(page)
        try:
            _Worker(settings, link, Page(shared)).serve()
        except (Cancelled, Gone):
            # Not through what user code has registered at exit: it may hang.
            _leave(0)
    return 0


def _cancel(number: int, _frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)
    raise Cancelled


def _leave(code: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):
            stream.flush()
    os._exit(code)


class _Worker:
    def __init__(self, settings: Settings, link: socket.socket, page: Page) -> None:
        self._pid = os.getpid()
        self._link = link
        self._page = page
        self._stages: dict[str, orders.Define] = {}
        self._state = WorkerState(settings, self._ask, self._tell, page)

    def serve(self) -> None:
        self._tell(orders.Ready(self._pid))
        while True:
            got = packets.receive(self._link)
            if got is None:
                return
            order, _ = got
            if isinstance(order, orders.Run):
                self._run(order)
            elif isinstance(order, orders.Define):
                self._stages[order.key] = order
            elif isinstance(order, orders.Drop):
                for key in order.stages:
                    self._stages.pop(key, None)
                self._state.forget(order)
            elif isinstance(order, orders.Paths):
                self._state.add_paths(order)

    def _run(self, order: orders.Run) -> None:
        task = order.task
        self._page.clear()
        begun, cpu = time.monotonic(), _cpu_s()
        outcome, result = tasks.run(task, self._stages[task.stage_key], self._state)
        if os.getpid() != self._pid:
            # User code has forked, and this is the child: the task's end is the other's to tell.
            _leave(0)
        for stream in (sys.stdout, sys.stderr):
            # User code may have closed them.
            with contextlib.suppress(Exception):
                stream.flush()
        outcome = self._page.measured(outcome, time.monotonic() - begun, _cpu_s() - cpu)
        try:
            self._tell(orders.Done(task.task_id, outcome), () if result < 0 else (result,))
        finally:
            if result >= 0:
                os.close(result)
        with contextlib.suppress(ChildProcessError):
            # What user code has started and never waited for.
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass

    def _tell(self, record: orders.FromWorker, fds: tuple[int, ...] = ()) -> None:
        try:
            packets.send(self._link, record, fds)
        except ConnectionError:
            raise Gone from None
        except OSError as error:
            if error.errno not in (errno.EBADF, errno.ENOTSOCK):
                raise
            # The task has closed files that were not its own.
            _leave(UNPLUGGED)

    def _ask(self, record: orders.FromWorker) -> tuple[Any, list[int]]:
        """Raises what the parent answers as error."""
        self._tell(record)
        while True:
            got = packets.receive(self._link)
            if got is None:
                raise Gone
            order, fds = got
            if isinstance(order, orders.Answer):
                if order.error is not None:
                    raise order.error
                return order.value, fds
            # Nothing else comes while a task runs but news that can be had at once.
            if isinstance(order, orders.Drop):
                self._state.forget(order)
            elif isinstance(order, orders.Paths):
                self._state.add_paths(order)


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


__all__ = ["UNPLUGGED", "load", "run"]
