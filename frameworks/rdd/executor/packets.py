"""Between the parent and a worker: one record in one packet, of any size, with open files.

A Unix socket of packets keeps records apart and each with its files.  What is too big for a
packet goes into a file in memory, which is sent instead.
"""

from __future__ import annotations

import os
import pickle
import socket
from collections.abc import Sequence
from typing import Any, Final

_PLAIN: Final = b"P"
_IN_FILE: Final = b"F"
# Well below what the kernel's default lets a socket hold (some 200 kB).
_INLINE: Final = 32 << 10
_FILES: Final = 8
_READ: Final = _INLINE + 64


def pair() -> tuple[socket.socket, socket.socket]:
    """Both ends.  Neither is inherited by programs that are executed."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def memory_file(name: str) -> int:
    """A file that is in memory only, and gone with its last descriptor."""
    return os.memfd_create(name, os.MFD_CLOEXEC)


def write_all(fd: int, data: bytes | bytearray | memoryview, offset: int) -> None:
    view = memoryview(data).cast("B")
    while view:
        # The kernel writes at most 2 GB at once.
        written = os.pwrite(fd, view[: 1 << 30], offset)
        view = view[written:]
        offset += written


def read_all(fd: int, size: int, offset: int = 0) -> bytes:
    """Raises EOFError if there is less."""
    parts = []
    while size:
        part = os.pread(fd, min(size, 1 << 30), offset)
        if not part:
            raise EOFError(f"{size} bytes are missing")
        parts.append(part)
        size -= len(part)
        offset += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


class Packed:
    """A record ready to be sent; owns the file that it may be in, not those given."""

    def __init__(self, record: Any, fds: Sequence[int] = ()) -> None:
        data = pickle.dumps(record, protocol=5)
        self._own: list[int] = []
        self._given = list(fds)
        self.data = _PLAIN + data
        if len(data) > _INLINE:
            self._own.append(memory_file("record"))
            write_all(self._own[0], data, 0)
            self.data = _IN_FILE

    def keep_files(self) -> None:
        """It is sent later: those given may be closed meanwhile."""
        self._own += [os.dup(fd) for fd in self._given]
        self._given.clear()

    def send(self, link: socket.socket) -> None:
        """Raises OSError; BlockingIOError if it does not fit now, and then nothing was sent."""
        socket.send_fds(link, [self.data], [*self._own, *self._given])

    def close(self) -> None:
        while self._own:
            os.close(self._own.pop())


def send(link: socket.socket, record: Any, fds: Sequence[int] = ()) -> None:
    """Raises OSError if the other end is gone."""
    packed = Packed(record, fds)
    try:
        packed.send(link)
    finally:
        packed.close()


def receive(link: socket.socket) -> tuple[Any, list[int]] | None:
    """The next record and its files, which are the caller's to close; None at the end.

    Raises BlockingIOError if the socket does not block and nothing is there.
    """
    try:
        data, fds, _, _ = socket.recv_fds(link, _READ, _FILES, socket.MSG_CMSG_CLOEXEC)
    except ConnectionError:
        return None
    if not data:
        return None
    if data[:1] == _PLAIN:
        return pickle.loads(memoryview(data)[1:]), fds
    own, *others = fds
    try:
        return pickle.loads(read_all(own, os.fstat(own).st_size)), others
    finally:
        os.close(own)


def copy(source: int, target: int, size: int) -> None:
    """The first `size` bytes of a file, to the same place of another.  Raises EOFError if there
    are not so many."""
    done = 0
    while done < size:
        part = os.pread(source, min(size - done, 1 << 20), done)
        if not part:
            raise EOFError(f"{size - done} bytes are missing")
        write_all(target, part, done)
        done += len(part)
