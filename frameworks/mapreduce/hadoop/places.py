"""Paths as the `fs` command takes them, and shows them again.

`hdfs:///a` is path /a of the default file system (`data.files` says where that is), `/a`
the same, and `a` is /user/NAME/a.  Other URLs are what they say.  Whatever a path was
given as, what is found below it is shown in the same way.
"""

from __future__ import annotations

import getpass
import itertools
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from frameworks.mapreduce.data import files

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^/]*)(/.*)?", re.DOTALL)
_MAGIC: Final = re.compile(r"[*?\[{]")
_BRACES: Final = re.compile(r"\{([^{}]*)\}")
HDFS: Final = "hdfs://"


@dataclass(frozen=True, slots=True)
class Place:
    """fs, path: for fsspec.  shown: as people see it.

    below: how much of `path` `shown` stands for, so that names below can be shown.
    """

    fs: Any
    path: str
    shown: str

    def child(self, path: str) -> Place:
        """Of the same file system, below this one."""
        rest = path[len(self.path.rstrip("/")) :].lstrip("/")
        shown = f"{self.shown.rstrip('/')}/{rest}" if self.shown else rest
        return replace(self, path=path, shown=shown)

    @property
    def name(self) -> str:
        return posixpath.basename(self.path.rstrip("/"))

    def info(self) -> Mapping[str, Any] | None:
        """None if there is nothing."""
        try:
            found: Mapping[str, Any] = self.fs.info(self.path)
        except FileNotFoundError:
            return None
        return found

    def children(self) -> list[Place]:
        """What is in the directory, by name."""
        return [self.child(str(each["name"]).rstrip("/")) for each in self.listing()]

    def listing(self) -> list[Mapping[str, Any]]:
        """What is in the directory, by name, as fsspec tells it."""
        found = self.fs.ls(self.path, detail=True)
        return sorted(found, key=lambda each: str(each["name"]))


def place(text: str, conf: Mapping[str, str]) -> Place:
    """Raises InvalidValue for a file system that there is not."""
    fs, path = files.resolve(qualified(text), conf)
    return Place(fs, path.rstrip("/") or "/", text.rstrip("/") or "/")


def qualified(text: str) -> str:
    """With the file system in it: as a path of the default one if it says none."""
    found = _SCHEME.fullmatch(text)
    if found is not None:
        return text
    logical = text if text.startswith("/") else posixpath.join("/user", getpass.getuser(), text)
    return HDFS + posixpath.normpath(logical)


def expanded(text: str, conf: Mapping[str, str]) -> list[Place]:
    """What the path names: itself if it exists, or what its pattern matches; [] if nothing."""
    if not _MAGIC.search(text):
        found = place(text, conf)
        return [found] if found.info() is not None else []
    return list(itertools.chain.from_iterable(_matches(each, conf) for each in alternatives(text)))


def alternatives(text: str) -> Iterator[str]:
    """`a{b,c}` -> `ab`, `ac`."""
    found = _BRACES.search(text)
    if found is None:
        yield text
        return
    for word in found.group(1).split(","):
        yield from alternatives(text[: found.start()] + word + text[found.end() :])


def _matches(text: str, conf: Mapping[str, str]) -> Iterator[Place]:
    if not _MAGIC.search(text):
        found = place(text, conf)
        if found.info() is not None:
            yield found
        return
    # Shown below the part that has no pattern in it.
    head, _, _ = text[: _MAGIC.search(text).start()].rpartition("/")  # type: ignore[union-attr]
    start = text.find("://")
    if start >= 0 and len(head) < start + 3:
        head = text[: start + 3]
    root = place(head or ("/" if text.startswith("/") else "."), conf)
    pattern = place(text, conf)
    shown = "" if not head and not text.startswith("/") else root.shown
    for path in sorted(root.fs.glob(pattern.path)):
        yield replace(root, shown=shown).child(str(path).rstrip("/"))
