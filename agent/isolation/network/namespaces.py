"""Network namespaces, without files that pin them.

A namespace lives as long as a descriptor of it is open or a process is in it.  The agent
holds a descriptor until the container's first process has entered; after that the
container's processes keep it, also when the agent is gone, and with the last of them it
goes by itself, and what is in it.

Which namespace a thread is in is its own affair: so each step is a short-lived thread,
and the agent's other threads notice nothing.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

_CLONE_NEWNET: Final = 0x40000000
# Of the calling thread, which need not be in the namespace of the process.
_OWN: Final = "/proc/thread-self/ns/net"

_libc: Final = ctypes.CDLL(None, use_errno=True)


def create() -> int:
    """A new namespace, as a descriptor.  Raises OSError."""

    def work() -> int:
        if _libc.unshare(_CLONE_NEWNET) != 0:
            raise _last_error("unshare")
        return os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)

    return in_thread(work)


def own() -> int:
    """The namespace that this thread is in, as a descriptor."""
    return os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)


def inside(namespace: int, work: Callable[[], T]) -> T:
    """Call `work` in the namespace.  Raises what it raises, and OSError."""

    def enter() -> T:
        if _libc.setns(namespace, _CLONE_NEWNET) != 0:
            raise _last_error("setns")
        return work()

    return in_thread(enter)


def path_of(namespace: int) -> str:
    """By which another process of this machine can open what the descriptor is of."""
    return f"/proc/{os.getpid()}/fd/{namespace}"


def in_thread(work: Callable[[], T]) -> T:
    """Call `work` in a thread of its own, which ends with it."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="network-namespace")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _last_error(call: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{call}: {os.strerror(number)}")
