"""What goes into the process of a session, and what comes out of it.

Three pipes, or a terminal.  Nothing is kept of what went through them, and a process whose
output nobody takes waits, as it would before any terminal.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import errno
import fcntl
import os
import struct
import termios
from collections.abc import AsyncGenerator, Iterator
from typing import Final, Protocol

from agent.containers.within import Stdio
from agent.core.nested import Size
from mesos_py.errors import Conflict, InvalidValue

PIECE_BYTES: Final = 65_536
MAX_LISTENERS: Final = 16


class Kind(enum.Enum):
    """Which of its outputs."""

    STDOUT = enum.auto()
    STDERR = enum.auto()


class Listener(Protocol):
    """Somebody who is told what comes out, beside the one reader."""

    def heard(self, kind: Kind, data: bytes) -> None: ...

    def ended(self) -> None:
        """That was all."""
        ...


class Session:
    """Used from one event loop.  In the end `close` it, and see to `handed_over`."""

    def __init__(self, terminal: Size | None = None) -> None:
        """`terminal`: its size, if there is to be one; then all that comes out is STDOUT.
        Raises OSError."""
        self.terminal = terminal is not None
        self._listeners: list[Listener] = []
        # Done with `close`.
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # The ends that the process gets, and ours.
        self._theirs: list[int] = []
        self._taken = asyncio.Event()
        self._input = self._held = -1
        self._outputs: dict[Kind, int] = {}
        try:
            if terminal is not None:
                self._open_terminal(terminal)
            else:
                self._open_pipes()
        except BaseException:
            self.close()
            self.handed_over()
            raise
        self._over = self._left = False
        # When it is over: how much may yet be read of each.
        self._rest: dict[Kind, int] = {}
        self._news = asyncio.Event()
        self._writing = False

    def _open_pipes(self) -> None:
        reading, self._input = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._theirs.append(reading)
        for kind in Kind:
            self._outputs[kind], writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            self._theirs.append(writing)

    def _open_terminal(self, size: Size) -> None:
        ours, theirs = os.openpty()
        self._outputs[Kind.STDOUT] = ours
        self._theirs.append(theirs)
        # What the process has closed it can open again: only we say when that is all.
        self._held = os.dup(theirs)
        os.set_blocking(ours, False)
        # A number of its own, since it is waited for in its own way.
        self._input = os.dup(ours)
        if any(size):
            _resize(ours, size)

    def resize(self, size: Size) -> None:
        """Raises InvalidValue if there is no terminal."""
        if not self.terminal:
            raise InvalidValue("process_io.control.type", "TTY_INFO", "the session has no terminal")
        if self._input >= 0:
            _resize(self._input, size)

    def stdio(self, uid: int, gid: int) -> Stdio:
        """Where the process's ends can be opened until `handed_over`; they are this user's,
        who may want to open them once more."""
        if self.terminal:
            # Else whoever is in its group may type, too.
            os.fchmod(self._theirs[0], 0o600)
        for fd in self._theirs:
            if os.fstat(fd).st_uid != uid:
                os.fchown(fd, uid, gid)
        if self.terminal:
            name = os.ttyname(self._theirs[0])
            return name, name, name
        reading, out, err = (f"/proc/{os.getpid()}/fd/{fd}" for fd in self._theirs)
        return reading, out, err

    def handed_over(self) -> None:
        """Whoever was to open the process's ends has done so, or never will: not before, since
        their numbers may be others' files then.  Idempotent."""
        while self._theirs:
            os.close(self._theirs.pop())

    def over(self) -> None:
        """Nothing of it runs any more: what is in the pipes is all."""
        self._over = True
        self._rest = {kind: self._kept(fd) for kind, fd in self._outputs.items()}
        self._let_go()
        self._news.set()
        self._taken.set()
        if self._left:
            self.close()

    def _kept(self, fd: int) -> int:
        """How much is in it, or (of a terminal, which tells only a part) what it can hold."""
        if self.terminal:
            return PIECE_BYTES
        found: int = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, bytes(4)))[0]
        return found

    def leave(self) -> None:
        """Nobody reads it any more: it is closed once it is over, since until then the process
        is to wait, and not to find its output closed."""
        self._left = True

    def close(self) -> None:
        """Our ends: the process reads the end, and can write nothing any more.  Idempotent."""
        if not self.closed.done():
            self.closed.set_result(None)
        while self._listeners:
            self._listeners.pop().ended()
        self._close_input()
        self._let_go()
        for kind in list(self._outputs):
            os.close(self._outputs.pop(kind))

    def _let_go(self) -> None:
        if self._held >= 0:
            os.close(self._held)
            self._held = -1

    # ---- Output --------------------------------------------------------------------

    async def pieces(self) -> AsyncGenerator[tuple[Kind, bytes], None]:
        """What comes out, as it comes, until it is over; for one reader.  Listeners hear of each
        piece first."""
        while True:
            found = False
            for kind, fd in list(self._outputs.items()):
                # What somebody else still writes is none of the container's.
                most = self._rest[kind] if self._over else PIECE_BYTES
                data = _read(fd, most)
                if data is None:
                    continue
                found = True
                if self._over:
                    self._rest[kind] -= len(data)
                if not data:
                    os.close(self._outputs.pop(kind))
                    continue
                for listener in list(self._listeners):
                    listener.heard(kind, data)
                yield kind, data
            if found:
                # Whoever takes it may never have to wait: that is no reason for all others to.
                await asyncio.sleep(0)
                continue
            if self._over:
                break
            await self._some()

    @contextlib.contextmanager
    def told(self, listener: Listener) -> Iterator[None]:
        """Have it told what comes out from now on.  Raises Conflict if too many are."""
        if len(self._listeners) >= MAX_LISTENERS:
            raise Conflict(f"output: {MAX_LISTENERS} others read it already")
        if self.closed.done():
            listener.ended()
        else:
            self._listeners.append(listener)
        try:
            yield
        finally:
            with contextlib.suppress(ValueError):
                self._listeners.remove(listener)

    async def _some(self) -> None:
        loop = asyncio.get_running_loop()
        self._news.clear()
        watched = list(self._outputs.values())
        for fd in watched:
            loop.add_reader(fd, self._news.set)
        try:
            await self._news.wait()
        finally:
            for fd in watched:
                loop.remove_reader(fd)

    # ---- Input ---------------------------------------------------------------------

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """While somebody writes.  Raises Conflict if another one does."""
        if self._writing:
            raise Conflict("input: somebody else writes it already")
        self._writing = True
        try:
            yield
        finally:
            self._writing = False

    async def write(self, data: bytes) -> bool:
        """Write all of it, once the process takes it; False if it takes no more."""
        left = memoryview(data)
        while left:
            if self._input < 0 or self._over:
                return False
            try:
                left = left[os.write(self._input, left) :]
            except BlockingIOError:
                await self._room()
            except OSError as error:
                if error.errno not in (errno.EPIPE, errno.EIO):
                    raise
                return False
        return self._input >= 0

    def end_input(self) -> None:
        """The process reads the end; of a terminal only what is typed says so.  Idempotent."""
        if not self.terminal:
            self._close_input()

    def _close_input(self) -> None:
        if self._input >= 0:
            os.close(self._input)
            self._input = -1
            self._taken.set()

    async def _room(self) -> None:
        loop = asyncio.get_running_loop()
        fd = self._input
        self._taken.clear()
        loop.add_writer(fd, self._taken.set)
        try:
            await self._taken.wait()
        finally:
            loop.remove_writer(fd)


def _read(fd: int, most: int) -> bytes | None:
    """Empty at the end; None: nothing now."""
    if not most:
        return None
    try:
        return os.read(fd, min(most, PIECE_BYTES))
    except BlockingIOError:
        return None
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return b""  # a terminal that nobody has open any more


def _resize(fd: int, size: Size) -> None:
    rows, columns = size
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


__all__ = ["MAX_LISTENERS", "PIECE_BYTES", "Kind", "Listener", "Session"]
