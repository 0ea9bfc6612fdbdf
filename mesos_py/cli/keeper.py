"""A parent that leaves nothing behind: starts processes, waits, ends them all.

It is the "subreaper" of everything below it (prctl): whatever loses its parent, such
as a task whose agent was killed, becomes its child.  So at the end it can find and
end every process that came from it, wherever it moved.  Its own children get SIGTERM
from the kernel should the keeper itself be killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_SI_KERNEL: Final = 0x80
_SWEEP_S: Final = 5.0
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_libc: Final = ctypes.CDLL(None, use_errno=True)


@dataclass
class Child:
    """A process that the keeper has started."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path | None = None

    @property
    def code(self) -> int | None:
        """Its return code, once known: Popen learns of it in several ways."""
        return self.process.returncode

    @property
    def alive(self) -> bool:
        return self.code is None

    def signal(self, number: int) -> None:
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)

    def ending(self) -> str:
        """How it ended, in words."""
        if self.code is None:
            return "is running"
        if self.code >= 0:
            return f"ended with exit status {self.code}"
        try:
            return f"was ended by {signal.Signals(-self.code).name}"
        except ValueError:
            return f"was ended by signal {-self.code}"


class Keeper:
    """Made once, in the main thread of a process of its own.

    `control_fd` is the reading end of a pipe whose writer is whoever wants all this:
    each byte is a signal to act on, and its end of file (also when the writer is
    killed) means to stop.
    """

    def __init__(self, control_fd: int) -> None:
        self.children: list[Child] = []
        # The signal that asked for the end, once one has.
        self.asked: int | None = None
        # Ours to act on: None while somebody else in the terminal's foreground does.
        self.on_terminal_signal: Callable[[int], None] = self._ask
        self.on_signal: Callable[[int], None] = self._ask
        self._control_fd: int | None = control_fd
        self._wakeup_fd, wakeup_write = os.pipe()
        os.set_blocking(self._wakeup_fd, False)
        os.set_blocking(wakeup_write, False)
        for number in (*_ENDING, signal.SIGCHLD):
            # Handlers, since ignored signals would stay ignored in the children.
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (*_ENDING, signal.SIGCHLD))
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def start(
        self,
        name: str,
        argv: Sequence[str],
        *,
        log: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Child:
        """Start a process; with `log`, in the background with its output there."""
        keeper = os.getpid()

        def before_exec() -> None:
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
            if os.getppid() != keeper:  # it died before the line above
                os.kill(os.getpid(), signal.SIGTERM)

        sys.stdout.flush()
        if log is None:
            process = subprocess.Popen(argv, env=env, preexec_fn=before_exec)  # noqa: PLW1509 (no threads here)
        else:
            with log.open("ab") as out:
                process = subprocess.Popen(
                    argv,
                    env=env,
                    preexec_fn=before_exec,  # noqa: PLW1509 (no threads here)
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    # Ctrl-C in a terminal is for the foreground: daemons are told by us.
                    process_group=0,
                )
        child = Child(name, process, log)
        self.children.append(child)
        return child

    def wait(self, done: Callable[[], bool]) -> None:
        """Handle events until `done()`, which is asked after each of them."""
        while not done():
            self._events(None)

    def wait_within(
        self, done: Callable[[], bool], seconds: float, *, poll_s: float = math.inf
    ) -> bool:
        """`wait`, but not longer than `seconds`, and asking also every `poll_s`.

        Returns whether it is done.
        """
        until = time.monotonic() + seconds
        while not done():
            left = until - time.monotonic()
            if left <= 0:
                return False
            self._events(min(left, poll_s))
        return True

    def end(self, children: Sequence[Child], grace_s: float) -> None:
        """SIGTERM to all of them together, and SIGKILL to those left after `grace_s`."""
        for child in children:
            child.signal(signal.SIGTERM)
        if not self.wait_within(lambda: not any(c.alive for c in children), grace_s):
            for child in children:
                child.signal(signal.SIGKILL)
            self.wait_within(lambda: not any(c.alive for c in children), _SWEEP_S)

    def sweep(self) -> None:
        """SIGKILL to whatever is still below us, until nothing is."""
        until = time.monotonic() + _SWEEP_S
        while below := _children_of_this_process():
            for pid in below:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > until:
                return
            self._events(0.05)

    # ---- Events ----------------------------------------------------------

    def _ask(self, number: int) -> None:
        if self.asked is None:
            self.asked = number

    def _events(self, timeout_s: float | None) -> None:
        watched = [self._wakeup_fd]
        if self._control_fd is not None:
            watched.append(self._control_fd)
        ready, _, _ = select.select(watched, [], [], timeout_s)
        if self._wakeup_fd in ready:
            for number in os.read(self._wakeup_fd, 4096):
                if number == signal.SIGCHLD:
                    self._reap()
                elif number in _ENDING:
                    self.on_terminal_signal(number)
        if self._control_fd in ready and self._control_fd is not None:
            told = os.read(self._control_fd, 64)
            for number in told:
                self.on_signal(number)
            if not told:
                self._control_fd = None
                self._ask(signal.SIGTERM)

    def _reap(self) -> None:
        ours = {child.process.pid: child for child in self.children if child.alive}
        while True:
            try:
                # Looks without taking: the code of one of ours belongs to its Popen.
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None:
                return
            child = ours.get(ended.si_pid)
            if child is not None:
                child.process.wait()
            else:
                os.waitpid(ended.si_pid, 0)


def _children_of_this_process() -> list[int]:
    found = []
    for listing in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(pid) for pid in listing.read_text().split()]
    return found


def kept(body: Callable[[int], int]) -> int:
    """Run `body`, which makes a Keeper of the descriptor that it is given, in a child.

    This process only passes signals on, so that it can be killed in any way and the
    keeper still cleans up.  Returns in both processes, with the exit code.
    """
    signals = {*_ENDING, signal.SIGCHLD}
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # Blocked from here on: the keeper unblocks them when it has its handlers, and
    # this process takes them one by one.
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    control, write = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        os.close(write)
        return body(control)
    os.close(control)
    while True:
        info = signal.sigwaitinfo(signals)
        if info.si_signo == signal.SIGCHLD:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
        elif info.si_signo != signal.SIGINT or info.si_code != _SI_KERNEL:
            # A terminal's Ctrl-C goes to the whole foreground group by itself; that it
            # has been closed is told to the session's leader only, which may be us.
            with contextlib.suppress(BrokenPipeError):
                os.write(write, bytes([info.si_signo]))
