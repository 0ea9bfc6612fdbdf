"""inotify: to be told when a file grows or is moved away, in place of asking again."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
from types import TracebackType
from typing import Final

_IN_MODIFY: Final = 0x00000002
_IN_ATTRIB: Final = 0x00000004
_IN_CREATE: Final = 0x00000100
_IN_MOVED_TO: Final = 0x00000080
_IN_DELETE_SELF: Final = 0x00000400
_IN_MOVE_SELF: Final = 0x00000800
_IN_NONBLOCK: Final = os.O_NONBLOCK
_IN_CLOEXEC: Final = os.O_CLOEXEC

_CHANGES: Final = (
    _IN_MODIFY | _IN_ATTRIB | _IN_CREATE | _IN_MOVED_TO | _IN_DELETE_SELF | _IN_MOVE_SELF
)


class Changes:
    """Sets `seen` whenever one of the watched files or directories changes.

    For use in `with`, on an event loop.  Raises OSError where the system has no more
    watches to give.
    """

    def __init__(self, seen: asyncio.Event) -> None:
        self._seen = seen
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.inotify_init1(_IN_NONBLOCK | _IN_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def watch(self, fd: int) -> None:
        """Watch what is open as `fd`: that very file, whatever its name leads to now."""
        path = os.fsencode(f"/proc/self/fd/{fd}")
        if self._libc.inotify_add_watch(self._fd, path, _CHANGES) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def __enter__(self) -> Changes:
        asyncio.get_running_loop().add_reader(self._fd, self._readable)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        os.close(self._fd)

    def _readable(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._fd, 65536)
        self._seen.set()
