"""Functions that travel with the names and the texts of the files that they are from.

cloudpickle leaves out from what file code is; tracebacks of users must say it, and show the
lines, also where there is no such file.
"""

from __future__ import annotations

import linecache
import types
from collections.abc import Iterable
from typing import IO, Any, Final

import cloudpickle

# What cloudpickle has instead of the name of a file; larger files do not go along.
_NO_FILE: Final = "<dynamic-code>"
_MAX_TEXT: Final = 256 * 1024


class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """files: the names of those that code was from, so far."""

    def __init__(self, file: IO[bytes], **options: Any) -> None:
        super().__init__(file, **options)
        self.files: set[str] = set()

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is not types.CodeType:
            return super().reducer_override(obj)
        self.files.add(obj.co_filename)
        made, parts = cloudpickle.Pickler.dispatch_table[types.CodeType](obj)
        return made, tuple(obj.co_filename if part == _NO_FILE else part for part in parts)


class Texts:
    """Is pickled as a dict of the texts of a pickler's files: after the functions, so that the
    files are known.  ours: those whose names begin so do not go along."""

    def __init__(self, files: set[str], ours: str = "\0") -> None:
        self._files = files
        self._ours = ours

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (_texts(name for name in self._files if not name.startswith(self._ours)),)


def remember(texts: dict[str, str]) -> None:
    """For tracebacks in this process; a file of that name here need not be the same."""
    for name, text in texts.items():
        known = linecache.cache.get(name)
        if known is not None and known[0] == len(text):
            continue
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)


def _texts(names: Iterable[str]) -> dict[str, str]:
    texts = {name: "".join(linecache.getlines(name)) for name in sorted(names)}
    return {name: text for name, text in texts.items() if len(text) <= _MAX_TEXT}


__all__ = ["Pickler", "Texts", "remember"]
