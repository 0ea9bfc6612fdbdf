"""Files that users add for their tasks."""

from __future__ import annotations

from pathlib import PurePosixPath

import fsspec

from frameworks.rdd.backend import CHUNK_BYTES
from mesos_py.errors import InvalidValue


def read_file(path: str) -> tuple[str, list[bytes]]:
    """The name that tasks find it by, and its content in chunks.

    path: a local file, or a URI that fsspec knows.  Raises InvalidValue if it cannot be read.
    """
    name = PurePosixPath(path.rstrip("/")).name
    if not name:
        raise InvalidValue("path", path, "names no file")
    chunks: list[bytes] = []
    try:
        with fsspec.open(path, "rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                chunks.append(chunk)
    except Exception as error:
        raise InvalidValue("path", path, f"cannot be read: {error}") from error
    return name, chunks


__all__ = ["read_file"]
