"""Text to count and to sort: the machine's own, repeated to size."""

from __future__ import annotations

import hashlib
import os
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.processes import BenchFailed

# Texts of Debian packages: what they are, under which terms, how to use them.
_SHARED: Final = Path("/usr/share")
_NAMES: Final = ("copyright", "AUTHORS", "NEWS", "README")
_KINDS: Final = (".md", ".rst", ".txt")
# Third parties' packages differ from machine to machine, and come and go.
_LEFT_OUT: Final = ("site-packages", "__pycache__")


@dataclass(frozen=True)
class Corpus:
    """files: of about the same size, in the order in which they are one text.
    own_size: bytes before repetition.  digest: SHA-256 of the text, in hex."""

    files: tuple[Path, ...]
    size: int
    own_size: int
    digest: str


def write(directory: Path, size: int, files: int) -> Corpus:
    """`size` bytes (less by a line per file at most) in `files` files of a new directory."""
    directory.mkdir()
    sources = list(_sources())
    own_size = sum(path.stat().st_size for path in sources)
    if not own_size:
        raise BenchFailed("this machine has no text to count")
    digest = hashlib.sha256()
    paths = []
    texts = _endless(sources)
    text = b""
    for number in range(files):
        paths.append(directory / f"text-{number:03}")
        room = size // files
        with paths[-1].open("wb") as file:
            while room:
                text = text or next(texts)
                cut = len(text) if len(text) <= room else text.rfind(b"\n", 0, room) + 1
                part, text = text[:cut], text[cut:]
                digest.update(part)
                file.write(part)
                room = room - cut if not text else 0
    made = sum(path.stat().st_size for path in paths)
    return Corpus(tuple(paths), made, own_size, digest.hexdigest())


def _sources() -> Iterator[Path]:
    yield from _beneath(Path(sysconfig.get_path("stdlib")), (), (".py",))
    yield from _beneath(_SHARED, _NAMES, _KINDS)


def _beneath(top: Path, names: tuple[str, ...], kinds: tuple[str, ...]) -> Iterator[Path]:
    for directory, below, files in os.walk(top):
        below[:] = sorted(set(below).difference(_LEFT_OUT))
        for name in sorted(files):
            path = Path(directory, name)
            wanted = name in names or path.suffix in kinds
            if wanted and path.is_file() and not path.is_symlink() and os.access(path, os.R_OK):
                yield path


def _endless(sources: list[Path]) -> Iterator[bytes]:
    """The text of each, which ends with a newline; over and over."""
    while True:
        for path in sources:
            text = path.read_bytes()
            if text:
                yield text if text.endswith(b"\n") else text + b"\n"
