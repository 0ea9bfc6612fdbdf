"""Sockets in the network of a task: made there, used from here."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_CLONE_NEWNET: Final = 0x40000000
_libc: Final = ctypes.CDLL(None, use_errno=True)


class CannotLook(Exception):
    """There is no socket to try it with: that says nothing of the task."""


def network_of(pid: int) -> tuple[str, ...]:
    """The network of a process, if that is not the agent's own.  Raises CannotLook."""
    network = Path(f"/proc/{pid}/ns/net")
    try:
        own = network.readlink() == Path("/proc/self/ns/net").readlink()
    except OSError as error:
        # It has just ended, or is not ours to see.
        raise CannotLook(f"the task's network: {error}") from None
    return () if own else (str(network),)


def open_socket(family: int, namespaces: Sequence[str]) -> socket.socket:
    """A non-blocking TCP socket in the network namespace among `namespaces`.

    Without one there it is in our own network.  A socket stays in the network that it
    was made in, so a thread goes there for a moment and ends.  Raises CannotLook.
    """
    if not namespaces:
        try:
            return _socket(family)
        except OSError as error:
            raise CannotLook(f"no socket: {error}") from None
    made: list[socket.socket | OSError] = []

    def work() -> None:
        try:
            for file in namespaces:
                _enter_network(file)
            made.append(_socket(family))
        except OSError as error:
            made.append(error)

    thread = threading.Thread(target=work, name="dial")
    thread.start()
    thread.join()
    (result,) = made
    if isinstance(result, OSError):
        raise CannotLook(f"no socket in the task's network: {result}")
    return result


def _socket(family: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    made.setblocking(False)
    return made


def _enter_network(file: str) -> None:
    """Only this thread goes; a namespace of another kind is passed over."""
    fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _libc.setns(fd, _CLONE_NEWNET) != 0 and ctypes.get_errno() != errno.EINVAL:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), file)
    finally:
        os.close(fd)
