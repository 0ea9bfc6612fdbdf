"""Files from which blocks are served."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mesos_py.errors import InvalidValue

_PIECE_BYTES: Final = 1 << 20


def named_and_sized(path: str) -> tuple[str, int]:
    """The name of a local file, and its size.  Raises InvalidValue if it cannot be read."""
    name = Path(path).name
    if not name:
        raise InvalidValue("path", path, "names no file")
    try:
        with io.FileIO(path) as file:
            return name, os.fstat(file.fileno()).st_size
    except OSError as error:
        raise InvalidValue("path", path, f"cannot be read: {error}") from error


class Content(Iterator[bytes]):
    """Some of a file in pieces.  Once this is made the file may be closed: another that gets its
    number is not read instead.  To be closed, read or not."""

    def __init__(self, fd: int, size: int, start: int = 0) -> None:
        self._next, self._end = start, start + size
        self._fd = -1
        self._fd = os.dup(fd)

    def __next__(self) -> bytes:
        if self._fd < 0 or self._next >= self._end:
            raise StopIteration
        piece = os.pread(self._fd, min(self._end - self._next, _PIECE_BYTES), self._next)
        if not piece:
            raise StopIteration
        self._next += len(piece)
        return piece

    def close(self) -> None:
        """May be called twice."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


__all__ = ["Content", "named_and_sized"]
