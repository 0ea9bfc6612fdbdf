"""Opening what a URI leads to, as a stream of bytes; mostly by fsspec.

Imported by the process that fetches: it must stay small until it is known what is
needed (no mesos_py, no grpc).
"""

from __future__ import annotations

import errno
import importlib
import os
import stat
from collections.abc import Iterable
from typing import Any, BinaryIO, Final, NamedTuple, Protocol, cast
from urllib.parse import unquote, urlsplit

# What is read, and the extra of ours that it needs.
SCHEMES: Final = {
    "file": "",
    "http": "",
    "https": "",
    "ftp": "",
    "s3": "s3",
    "s3a": "s3",
    "gs": "gs",
    "abfs": "abfs",
    "hdfs": "hdfs",
    "webhdfs": "",
    "sftp": "sftp",
}


class SourceError(Exception):
    """It cannot be had; the text says why, without the URI."""


class Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...

    def close(self) -> object: ...


class Opened(NamedTuple):
    stream: Stream
    # How many bytes it has, if that is told.
    total: int | None


def prepare(uris: Iterable[str]) -> None:
    """Load what is needed to open them: later, as another user, it may be out of reach.

    Raises SourceError naming what is not installed.
    """
    for scheme in {_scheme(uri) for uri in uris}:
        if scheme == "file":
            continue
        try:
            import fsspec

            importlib.import_module("encodings.idna")
            fsspec.get_filesystem_class(scheme)
        except ImportError as error:
            raise SourceError(
                f"this agent reads no {scheme}: URIs: {error} "
                f"(its operator can install mesos-py[{SCHEMES[scheme]}])"
            ) from None


def open_uri(uri: str) -> Opened:
    """Raises SourceError, or whatever the file system behind it raises."""
    scheme = _scheme(uri)
    if scheme == "file":
        return _open_local(unquote(urlsplit(uri).path, errors="surrogateescape"))
    if scheme in ("http", "https"):
        return _open_http(uri)
    import fsspec

    system, path = fsspec.core.url_to_fs(uri, skip_instance_cache=True)
    details = system.info(path)
    if details.get("type") == "directory":
        raise SourceError("is a directory")
    size = details.get("size")
    # One read after another: nothing is to be kept for later.
    file = system.open(path, "rb", cache_type="readahead")
    return Opened(cast(Stream, file), size if isinstance(size, int) else None)


def why(error: Exception) -> str:
    """An error of any file system in words."""
    if isinstance(error, SourceError):
        return str(error)
    status = getattr(error, "status", None)
    if isinstance(status, int):
        return f"the server answered {status} {getattr(error, 'message', '')}".rstrip()
    if isinstance(error, FileNotFoundError):
        return "is not there"
    if isinstance(error, PermissionError):
        return "may not be read (permission denied)"
    if isinstance(error, IsADirectoryError):
        return "is a directory"
    if isinstance(error, OSError) and error.errno and error.strerror:
        return error.strerror
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _scheme(uri: str) -> str:
    return uri.partition(":")[0].lower()


def _open_local(path: str) -> Opened:
    # Not by fsspec: it would wait for ever for somebody to write into a pipe.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(fd)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(found.st_mode):
            raise SourceError("is no regular file")
        return Opened(os.fdopen(fd, "rb", buffering=0), found.st_size)
    except BaseException:
        os.close(fd)
        raise


def _open_http(uri: str) -> Opened:
    import aiohttp
    import fsspec

    options: dict[str, Any] = {
        # The agent watches the time; bytes come as they are, not unpacked on the way;
        # proxies are those of the environment.
        "timeout": aiohttp.ClientTimeout(total=None),
        "auto_decompress": False,
        "trust_env": True,
        "headers": {"Accept-Encoding": "identity"},
    }
    system = fsspec.filesystem(
        _scheme(uri), client_kwargs=options, encoded=True, skip_instance_cache=True
    )
    try:
        # A size keeps it from asking for that first: some servers know no HEAD.
        file = system.open(uri, "rb", block_size=0, size=1)
    except FileNotFoundError:
        raise SourceError("the server answered 404 Not Found") from None
    answer = file.r
    if answer.status != 200:
        # Mesos: nothing else will do.
        raise SourceError(f"the server answered {answer.status} {answer.reason}".rstrip())
    length = answer.headers.get("Content-Length", "")
    return Opened(_Http(file), int(length) if length.isdigit() else None)


class _Http:
    """fsspec's stream; its reads give what has come, and nothing at the end only."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, size: int, /) -> bytes:
        return cast(bytes, self._file.read(size))

    def close(self) -> None:
        self._file.close()


def as_binary(fd: int) -> BinaryIO:
    """An open file, read from its start; closed with the result."""
    os.lseek(fd, 0, os.SEEK_SET)
    return cast(BinaryIO, os.fdopen(fd, "rb"))
