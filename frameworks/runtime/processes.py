"""Processes of an attempt: forked or executed, each with a group of its own."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ClassVar, Final, NoReturn

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_OWN_CHILDREN: Final = Path("/proc/thread-self/children")


class Child:
    """A child process of this one that leads a process group."""

    # Those that nobody else may wait for.
    unreaped: ClassVar[set[int]] = set()

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.unreaped.add(pid)
        self.pidfd = os.pidfd_open(pid)
        self._code: int | None = None

    def ended(self, *, wait: bool = False) -> int | None:
        """Its exit code, negative for a signal; None while it runs, unless `wait`."""
        if self._code is None:
            pid, status = os.waitpid(self.pid, 0 if wait else os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
                self.unreaped.discard(pid)
                self.close()
        return self._code

    def kill(self) -> None:
        """With all of its group, at once; then it has ended."""
        for send in (os.killpg, os.kill):
            # The group is gone with its last process, the process once it was waited for.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if self._code is None or send is os.killpg:
                    send(self.pid, signal.SIGKILL)
        self.ended(wait=True)

    def close(self) -> None:
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1


def forked(run: Callable[[], int], *, fds: Iterable[int], std: tuple[int, int, int]) -> Child:
    """A copy of this process that calls `run` and ends with the code that it returns.

    fds: what it keeps open, beside `std`: what are its stdin, stdout and stderr.  Only for
    processes with one thread.  What `run` raises is written to its stderr, and the code is 1.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _be_child(run, set(fds), std)
    with contextlib.suppress(OSError):
        # As in the child: whichever comes first.
        os.setpgid(pid, pid)
    return Child(pid)


def _be_child(run: Callable[[], int], fds: set[int], std: tuple[int, int, int]) -> NoReturn:
    code = 1
    try:
        os.setpgid(0, 0)
        set_parent_death_signal()
        _keep_only(fds, std)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        code = run()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            sys.stderr.write(f"{error.code}\n")
    except BaseException:
        # BrokenPipeError of our own stderr and the like: nobody is left to tell.
        with contextlib.suppress(BaseException):
            sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(BaseException):
                stream.flush()
        os._exit(code & 0xFF)


def _keep_only(fds: set[int], std: tuple[int, int, int]) -> None:
    # First out of the way of 0, 1 and 2, so that none is overwritten before it is copied.
    copies = [os.dup(fd) for fd in std]
    moved = [fd if fd > 2 else os.dup(fd) for fd in copies]
    for target, fd in enumerate(moved):
        os.dup2(fd, target, inheritable=True)
    for entry in list(Path("/proc/self/fd").iterdir()):
        fd = int(entry.name)
        if fd > 2 and fd not in fds:
            with contextlib.suppress(OSError):
                os.close(fd)


def set_parent_death_signal() -> None:
    """The kernel kills this process when its parent ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def become_subreaper() -> None:
    """Orphans among the descendants become children of this process, not of init."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def own_children() -> set[int]:
    """Process ids of the children of this thread, also of those that wait to be reaped."""
    try:
        return {int(pid) for pid in _OWN_CHILDREN.read_text().split()}
    except FileNotFoundError:
        # A kernel without CONFIG_PROC_CHILDREN.
        import psutil

        return {child.pid for child in psutil.Process().children()}


def reap_orphans() -> None:
    """Wait for what programs have left behind and has ended: a program that starts others by the
    thousand would use up the process ids.  What is in the group of this process is its own."""
    group = os.getpgrp()
    for pid in own_children() - Child.unreaped:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            if os.getpgid(pid) != group:
                os.waitpid(pid, os.WNOHANG)


__all__ = [
    "Child",
    "become_subreaper",
    "forked",
    "own_children",
    "reap_orphans",
    "set_parent_death_signal",
]
