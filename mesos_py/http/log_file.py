"""The file that a daemon logs to, if it does: stderr, where that leads to one."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

_STDERR: Final = 2


class OwnLog:
    """Known to clients of Mesos by a path of its own."""

    def __init__(self, path: str, fd: int = _STDERR) -> None:
        """`path`: what clients call it, such as /master/log."""
        self.path = path
        self._fd = fd

    def real_path(self) -> str | None:
        """Where it is on this machine; None if what is logged goes elsewhere."""
        try:
            if not stat.S_ISREG(os.fstat(self._fd).st_mode):
                return None
            return str(Path(self.link).readlink())
        except OSError:
            return None

    def is_meant_by(self, path: str) -> bool:
        """Whether `path` is its, and it is there."""
        return path == self.path and self.real_path() is not None

    def open(self) -> int:
        """A descriptor to read it from, also when it was moved away.  Raises OSError."""
        return os.open(self.link, os.O_RDONLY | os.O_CLOEXEC)

    @property
    def link(self) -> str:
        """What leads to it, also when it was moved away; within this process only."""
        return f"/proc/self/fd/{self._fd}"


__all__ = ["OwnLog"]
