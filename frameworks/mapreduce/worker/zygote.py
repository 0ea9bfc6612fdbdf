"""The zygote: has everything loaded and no thread, and forks an attempt in milliseconds.

Whoever holds the other end of its socket (`Zygote`) asks it to start and to kill attempts, and
is told when one has ended; with the holder, all end.  An attempt is its process and whatever
came from it: orphans become children of the attempt or, once that is gone, of the zygote,
which kills them before it says that the attempt has ended.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final, NoReturn

import msgspec

from frameworks.runtime import processes
from frameworks.runtime.forkloop import ForkLoop, kill_group, sweep

# What was killed and does not end hangs in the kernel (a dead file server): told all the same.
_SWEEP_S: Final = 10.0
_MESSAGE: Final = 1 << 16
_THREADS: Final = "OPENBLAS_NUM_THREADS"
_MODULE: Final = "frameworks.mapreduce.worker.zygote"


class Start(msgspec.Struct, frozen=True, tag=True):
    """With a socket for the attempt's channel.  The directories are made."""

    root: str
    files_url: str
    attempt: str


class Kill(msgspec.Struct, frozen=True, tag=True):
    attempt: str


class Gone(msgspec.Struct, frozen=True, tag=True):
    """code: as subprocess has it; nothing of the attempt runs any more."""

    attempt: str
    code: int


_Order = Start | Kill


class Zygote:
    """The holder's side.  Not thread-safe."""

    def __init__(self) -> None:
        """Raises OSError if no process can be started."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                self._process = subprocess.Popen(
                    # -P: a numpy.py in the directory of whoever starts a job is not ours.
                    [sys.executable, "-P", "-m", _MODULE, str(theirs.fileno())],
                    pass_fds=(theirs.fileno(),),
                    stdin=subprocess.DEVNULL,
                    # A Ctrl-C at the terminal is for the holder, which then ends it.
                    start_new_session=True,
                )
            except BaseException:
                ours.close()
                raise
        self._link = ours

    def fileno(self) -> int:
        """To be read from: then call `gone`, which waits otherwise."""
        return self._link.fileno()

    def start(self, root: Path, files_url: str, attempt: str) -> socket.socket:
        """The attempt's channel.  Raises OSError if the zygote is gone."""
        ours, theirs = socket.socketpair()
        with theirs:
            order = msgspec.json.encode(Start(str(root), files_url, attempt))
            try:
                socket.send_fds(self._link, [order], [theirs.fileno()])
            except BaseException:
                ours.close()
                raise
        return ours

    def kill(self, attempt: str) -> None:
        """No harm if it has ended.  `gone` tells when nothing of it is left."""
        self._link.send(msgspec.json.encode(Kill(attempt)))

    def gone(self) -> Gone | None:
        """The next attempt that has ended; None when the zygote itself has."""
        try:
            data = self._link.recv(_MESSAGE)
        except ConnectionError:
            return None
        return msgspec.json.decode(data, type=Gone) if data else None

    def ended_how(self) -> int:
        """The exit code of one that has ended, or is about to, as subprocess has it."""
        self._link.close()
        return self._waited()

    def close(self) -> None:
        """All attempts are killed; returns when they have ended."""
        self._link.close()
        self._waited()

    def _waited(self) -> int:
        try:
            return self._process.wait(timeout=2 * _SWEEP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


class _Server:
    """In the zygote's process."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._attempts: dict[int, str] = {}
        self._loop = ForkLoop(link)

    def serve(self) -> None:
        """Until the holder closes its end."""
        self._loop.run(self._obey, self._reap)

    def end(self) -> None:
        for pid in self._attempts:
            kill_group(pid)
        sweep(_SWEEP_S)

    def _obey(self) -> bool:
        try:
            data, fds, _, _ = socket.recv_fds(self._link, _MESSAGE, 1)
        except ConnectionError:
            return False
        if not data:
            return False
        order: _Order = msgspec.json.decode(data, type=_Order)
        if isinstance(order, Start):
            self._fork(order, fds[0])
        else:
            for pid, attempt in self._attempts.items():
                if attempt == order.attempt:
                    kill_group(pid)
        return True

    def _fork(self, order: Start, fd: int) -> None:
        try:
            pid = os.fork()
        except OSError:
            # No more processes or memory: as if it had ended at once.
            self._say(Gone(order.attempt, -int(signal.SIGKILL)))
            os.close(fd)
            return
        if pid == 0:
            self._be_attempt(order, fd)
        os.close(fd)
        self._attempts[pid] = order.attempt

    def _be_attempt(self, order: Start, fd: int) -> NoReturn:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            code = _attempt(order, fd, self._loop.fds)
        finally:
            os._exit(code)

    def _reap(self) -> None:
        ended: list[Gone] = []
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if not pid:
                break
            attempt = self._attempts.pop(pid, None)
            if attempt is not None:
                kill_group(pid)
                ended.append(Gone(attempt, os.waitstatus_to_exitcode(status)))
        if ended:
            # What they have left behind.
            sweep(_SWEEP_S, self._attempts)
        for gone in ended:
            self._say(gone)

    def _say(self, gone: Gone) -> None:
        with contextlib.suppress(OSError):
            self._link.send(msgspec.json.encode(gone))


def _attempt(order: Start, fd: int, close: tuple[int, ...]) -> int:
    """In the attempt's process."""
    from frameworks.mapreduce.worker import attempt, channel
    from frameworks.mapreduce.worker.place import Place

    for other in close:
        os.close(other)
    os.setsid()
    processes.set_parent_death_signal()
    processes.become_subreaper()
    place = Place(Path(order.root), order.files_url).attempt(order.attempt)
    log = os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    attempt.main(place, channel.for_attempt(socket.socket(fileno=fd)))
    return 0


def _load() -> None:
    """What attempts need, so that none has to load it."""
    # numpy's library for matrices starts threads when it is loaded, unless told not to; programs
    # are not told.
    before = os.environ.get(_THREADS)
    os.environ[_THREADS] = "1"
    import numpy  # noqa: F401

    del os.environ[_THREADS]
    if before is not None:
        os.environ[_THREADS] = before

    import cloudpickle  # noqa: F401
    import fsspec.implementations.local  # noqa: F401

    from frameworks.mapreduce.worker import attempt, maps, reduces  # noqa: F401


def main() -> None:
    """`python -m frameworks.mapreduce.worker.zygote FD`."""
    processes.become_subreaper()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _load()
    gc.collect()
    gc.freeze()
    server = _Server(socket.socket(fileno=int(sys.argv[1])))
    try:
        server.serve()
    finally:
        server.end()


if __name__ == "__main__":
    main()

__all__ = ["Gone", "Zygote"]
