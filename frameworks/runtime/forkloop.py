"""What a process that forks others on demand does all the time.  It has no thread."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable, Collection
from typing import Final

from frameworks.runtime import processes

_STEP_S: Final = 0.01


class ForkLoop:
    """fds: what is its own, and not for those that it forks."""

    def __init__(self, link: socket.socket) -> None:
        """Signals of children wake it from now on."""
        self._link = link
        self._wake, wake = os.pipe()
        for fd in (self._wake, wake):
            os.set_blocking(fd, False)
        self.fds = (link.fileno(), self._wake, wake)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run(self, obey: Callable[[], bool], reap: Callable[[], None]) -> None:
        """obey: called when something has come on the link, until it says False: the other
        end is closed.  reap: when children may have ended."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._link, selectors.EVENT_READ)
            selector.register(self._wake, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fd == self._wake:
                        with contextlib.suppress(BlockingIOError):
                            os.read(self._wake, 1 << 16)
                        reap()
                    elif not obey():
                        return


def kill_group(pid: int, which: int = signal.SIGKILL) -> None:
    """A child that leads a group, or is about to, and all that is in it."""
    for send in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            send(pid, which)


def sweep(limit_s: float, spared: Collection[int] = ()) -> set[int]:
    """Kill all children but those, also what others have left behind and became this one's.
    Returns those that do not end: they hang in the kernel."""
    until_s = time.monotonic() + limit_s
    while left := processes.own_children() - set(spared):
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in left:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if time.monotonic() > until_s:
            return left
        if processes.own_children() - set(spared):
            time.sleep(_STEP_S)
    return set()


__all__ = ["ForkLoop", "kill_group", "sweep"]
