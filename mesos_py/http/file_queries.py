"""What `/files/browse`, `/files/read` and `/files/download` are asked, and what they say."""

from __future__ import annotations

import os
import re
from typing import Final

from aiohttp import web

from mesos_py.errors import InvalidValue

# One answer has at most so much of a file: sixteen pages of memory, as in Mesos.
MAX_READ_BYTES: Final = 16 * 4096

_NUMBER: Final = re.compile(r"-?[0-9]{1,18}", re.ASCII)


def path_of(request: web.Request) -> str:
    """Raises InvalidValue."""
    path = request.query.get("path", "")
    if not path:
        raise InvalidValue("path", path, "is missing: path=VALUE")
    return path


def number_of(request: web.Request, name: str) -> int | None:
    """None for -1, which says as much as nothing.  Raises InvalidValue."""
    text = request.query.get(name)
    if text is None:
        return None
    if not _NUMBER.fullmatch(text):
        raise InvalidValue(name, text, "is no whole number")
    number = int(text)
    if number < -1:
        raise InvalidValue(name, text, "must not be negative")
    return None if number == -1 else number


def part_of(fd: int, size: int, offset: int | None, length: int | None) -> bytes:
    """What is in a file of that size from `offset` on (None: nothing).  Raises OSError."""
    if offset is None or offset >= size:
        return b""
    most = MAX_READ_BYTES if length is None else min(length, MAX_READ_BYTES)
    return os.pread(fd, most, offset)


def shape_of(size: int, offset: int | None, data: bytes) -> dict[str, object]:
    """The answer to `read`: without an offset the size of the file in its place."""
    # JSON has no bytes: what is no text is shown, not usable.
    return {
        "data": data.decode("utf-8", "replace"),
        "offset": size if offset is None else offset,
    }


__all__ = ["MAX_READ_BYTES", "number_of", "part_of", "path_of", "shape_of"]
