"""Files that say something to other processes: all or nothing, and whose."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from mesos_py.errors import Conflict, InvalidValue


def write_atomically(path: Path, text: str) -> None:
    """Put `text` at `path` so that a reader sees all of it or nothing.

    The parent folder is made if it is missing.  Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


class DirectoryLock:
    """Holds a directory for one process, by flock: it ends with the process, however.

    The lock file keeps the pid of its holder, for the error that others get.
    """

    NAME = "lock"

    def __init__(self, directory: Path) -> None:
        """Makes the directory if it is missing.

        Raises Conflict naming the directory and the pid of its holder, InvalidValue
        if the directory cannot be used.
        """
        self.directory = directory
        try:
            directory.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._fd = os.open(directory / self.NAME, flags, 0o600)
        except OSError as error:
            raise InvalidValue("work-dir", str(directory), error.strerror or str(error)) from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._fd, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(self._fd)
            raise Conflict(
                f"work directory {directory} is in use by process {holder}",
                field="work-dir",
                value=str(directory),
                pid=holder,
            ) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Give the directory up.  The file stays: removing it would race with a successor."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
