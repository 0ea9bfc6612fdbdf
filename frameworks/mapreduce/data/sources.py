"""Open files, read at any byte; what can go wrong with them is Unreadable."""

from __future__ import annotations

import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Final

from frameworks.mapreduce.data import files
from frameworks.mapreduce.data.files import Unreadable

# How much is read at once: of a file of this machine, and of one that costs a request.
LOCAL_CHUNK: Final = 1 << 18
REMOTE_CHUNK: Final = 4 << 20


class Source(ABC):
    """url: as it stands in the split.  chunk: how many bytes are well read at once."""

    url: str
    chunk: int

    @abstractmethod
    def at(self, offset: int, size: int) -> bytes:
        """At most `size` bytes, b"" only at the end of the file.  Raises Unreadable."""

    @property
    @abstractmethod
    def size(self) -> int:
        """As it is now, in bytes; -1 if it is not known."""

    @property
    def fd(self) -> int | None:
        """Of a plain file of this machine: the kernel can send it."""
        return None

    @abstractmethod
    def close(self) -> None: ...

    def range(self, begin: int, end: int) -> Iterator[bytes]:
        """The bytes from `begin` up to `end`, or to the end of the file."""
        while begin < end and (found := self.at(begin, min(self.chunk, end - begin))):
            yield found
            begin += len(found)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Local(Source):
    def __init__(self, url: str, path: str, chunk: int) -> None:
        self.url = url
        self.chunk = chunk
        # Without O_NONBLOCK it would wait for somebody to write into a pipe.
        with files.reading(url):
            self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        found = os.fstat(self._fd)
        if not stat.S_ISREG(found.st_mode):
            os.close(self._fd)
            raise Unreadable(url, "is no regular file")
        self._size = found.st_size

    def at(self, offset: int, size: int) -> bytes:
        try:
            return os.pread(self._fd, size, offset)
        except OSError as error:
            raise Unreadable(self.url, files.why(error), offset) from error

    @property
    def size(self) -> int:
        return self._size

    @property
    def fd(self) -> int | None:
        return self._fd

    def close(self) -> None:
        os.close(self._fd)


class _Remote(Source):
    def __init__(self, url: str, fs: Any, path: str, chunk: int) -> None:
        self.url = url
        self.chunk = chunk
        with files.reading(url):
            # Exactly what is asked for: reading ahead would cost more than it saves here.
            self._file = fs.open(path, "rb", cache_type="none")
        size = getattr(self._file, "size", None)
        self._size = size if isinstance(size, int) else -1

    def at(self, offset: int, size: int) -> bytes:
        try:
            self._file.seek(offset)
            found: bytes = self._file.read(size)
        except Exception as error:
            # Each kind of file system raises what it likes.
            raise Unreadable(self.url, files.why(error), offset) from error
        return found

    @property
    def size(self) -> int:
        return self._size

    def close(self) -> None:
        self._file.close()


def opened(url: str, conf: Mapping[str, str], chunk: int | None = None) -> Source:
    """Raises Unreadable, and InvalidValue for a file system that cannot be used here."""
    # A split may have thousands of small files: what they are is clear at a glance, mostly.
    local = files.local_path(url)
    if local is not None:
        return _Local(url, local, chunk or LOCAL_CHUNK)
    fs, path = files.resolve(url, conf, "input")
    if files.is_local(fs):
        return _Local(url, path, chunk or LOCAL_CHUNK)
    return _Remote(url, fs, path, chunk or REMOTE_CHUNK)
