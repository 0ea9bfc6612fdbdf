"""The fork server: has loaded what workers need and has no thread, and forks workers.

It is forked itself, by an executor that has no thread yet.  It ends with the executor, and
its workers with it, whatever happens.  What user code has left running in a worker's process
group is killed as the worker ends; what has left the group too, when the executor ends.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from frameworks.rdd.executor import packets
from frameworks.runtime import processes
from frameworks.runtime.forkloop import ForkLoop, kill_group, sweep

# (the worker's socket, its page's file) -> exit code
Run = Callable[[socket.socket, int], int]

_SWEEP_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Fork:
    """With the worker's socket, and its page of counters."""

    number: int


@dataclass(frozen=True, slots=True)
class Signal:
    """All of a worker's group is sent a signal."""

    number: int
    signal: int


@dataclass(frozen=True, slots=True)
class Gone:
    """code: as subprocess has it.  pid is 0 if it could not be forked."""

    number: int
    pid: int
    code: int


class ForkServer:
    """The executor's side."""

    def __init__(self, link: socket.socket, pid: int) -> None:
        self.link = link
        self.pid = pid

    @classmethod
    def start(cls, run: Run, load: Callable[[], None]) -> ForkServer:
        """run: called in each worker.  load: called once, in the server.

        This process may have no thread yet.
        """
        ours, theirs = packets.pair()
        child = processes.forked(
            lambda: _serve(theirs, run, load), fds=(theirs.fileno(),), std=(0, 2, 2)
        )
        theirs.close()
        child.close()
        processes.Child.unreaped.discard(child.pid)
        return cls(ours, child.pid)

    def fork(self, number: int, link: socket.socket, page: int) -> None:
        """Raises OSError if the server is gone."""
        packets.send(self.link, Fork(number), (link.fileno(), page))

    def signal(self, number: int, which: int) -> None:
        """No harm if the worker, or the server, has ended."""
        with contextlib.suppress(OSError):
            packets.send(self.link, Signal(number, which))

    def gone(self) -> Gone | None:
        """The next worker that has ended; None when the server has.  Waits."""
        got = packets.receive(self.link)
        return None if got is None else got[0]

    def close(self) -> None:
        """All workers are killed; returns when they have ended."""
        self.link.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def _serve(link: socket.socket, run: Run, load: Callable[[], None]) -> int:
    processes.become_subreaper()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    load()
    gc.collect()
    gc.freeze()
    server = _Server(link, run)
    try:
        server.serve()
    finally:
        server.end()
    return 0


class _Server:
    """In the fork server's process."""

    def __init__(self, link: socket.socket, run: Run) -> None:
        self._link = link
        self._run = run
        self._pids: dict[int, int] = {}  # number -> pid
        self._loop = ForkLoop(link)

    def serve(self) -> None:
        """Until the executor closes its end."""
        self._loop.run(self._obey, self._reap)

    def _obey(self) -> bool:
        got = packets.receive(self._link)
        if got is None:
            return False
        order, fds = got
        if isinstance(order, Fork):
            self._fork(order, *fds)
        elif (pid := self._pids.get(order.number)) is not None:
            kill_group(pid, order.signal)
        return True

    def _fork(self, order: Fork, link: int, page: int) -> None:
        try:
            child = processes.forked(
                lambda: self._run(socket.socket(fileno=link), page),
                fds=(link, page),
                std=(0, 2, 2),
            )
        except OSError:
            # No more processes, or no memory.
            self._say(Gone(order.number, 0, -int(signal.SIGKILL)))
        else:
            child.close()
            self._pids[order.number] = child.pid
        finally:
            os.close(link)
            os.close(page)

    def _reap(self) -> None:
        numbers = {pid: number for number, pid in self._pids.items()}
        while True:
            try:
                # Looked at, not reaped: its group has its number until then, and nobody else's.
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            number = numbers.get(found.si_pid)
            if number is not None:
                kill_group(found.si_pid)
            _, status = os.waitpid(found.si_pid, 0)
            processes.Child.unreaped.discard(found.si_pid)
            if number is not None:
                del self._pids[number]
                self._say(Gone(number, found.si_pid, os.waitstatus_to_exitcode(status)))

    def end(self) -> None:
        """Kill the workers, and what user code has left behind."""
        for pid in self._pids.values():
            kill_group(pid)
        if left := sweep(_SWEEP_S):
            sys.stderr.write(f"processes {sorted(left)} cannot be killed\n")

    def _say(self, gone: Gone) -> None:
        with contextlib.suppress(OSError):
            packets.send(self._link, gone)


__all__ = ["ForkServer", "Gone"]
