"""Files and directories by path or URL, on whatever file system fsspec knows."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any, Final

from mesos_py.errors import InvalidValue

_HIDDEN: Final = ("_", ".")


@dataclass(frozen=True, slots=True)
class File:
    """path: as its file system has it; `url` says which that is, for people and for tasks."""

    url: str
    size: int


def opened(url: str) -> tuple[Any, str]:
    """The file system of a path or URL, and the path there."""
    from fsspec.core import url_to_fs

    # Hadoop's way to write a local one.
    if url.startswith("file:/") and not url.startswith("file://"):
        url = url.removeprefix("file:")
    try:
        fs, path = url_to_fs(url)
    except (ValueError, ImportError) as error:
        raise InvalidValue("path", url, str(error)) from None
    return fs, str(path)


def url_of(fs: Any, path: str) -> str:
    """As `opened` takes it.  Local ones as Hadoop writes them: file:/directory/name."""
    full = str(fs.unstrip_protocol(path))
    return f"file:{full.removeprefix('file://')}" if full.startswith("file:///") else full


def is_local(url: str) -> bool:
    return url.startswith("file:/")


def listed(paths: str) -> list[File]:
    """What these paths, with commas between, stand for: files, those in directories, and
    those that patterns (`*`, `?`, `[ab]`, `{a,b}`) match; by name within each.  Names that
    begin with `_` or `.` are left out, unless they are given as they are.

    Raises InvalidValue for a path where nothing is, and for a directory in a directory.
    """
    found: list[File] = []
    for path in _separate(paths):
        found += _one(path)
    return found


def _separate(paths: str) -> list[str]:
    """At commas that are not within braces."""
    parts, depth, begin = [], 0, 0
    for at, letter in enumerate(paths):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth <= 0:
            parts.append(paths[begin:at])
            begin = at + 1
    return [*parts, paths[begin:]]


def _one(given: str) -> list[File]:
    fs, path = opened(given)
    if any(sign in path for sign in "*?[{"):
        matched: list[dict[str, Any]] = []
        for pattern in _alternatives(path):
            matched += fs.glob(pattern, detail=True).values()
        matched = [each for each in matched if not _is_hidden(each["name"])]
    else:
        try:
            matched = [fs.info(path)]
        except FileNotFoundError:
            matched = []
    if not matched:
        raise InvalidValue("path", given, "Input path does not exist")
    found: dict[str, File] = {}
    for each in sorted(matched, key=_name):
        if each["type"] == "directory":
            found |= {file.url: file for file in _within(fs, each["name"])}
        else:
            url = url_of(fs, each["name"])
            found[url] = File(url, each["size"] or 0)
    return list(found.values())


def _within(fs: Any, directory: str) -> list[File]:
    files = []
    for each in sorted(fs.ls(directory, detail=True), key=_name):
        if _is_hidden(each["name"]) or each["name"].rstrip("/") == directory.rstrip("/"):
            continue
        if each["type"] == "directory":
            raise InvalidValue(
                "path", directory, f"has a directory in it, not only files: {each['name']}"
            )
        files.append(File(url_of(fs, each["name"]), each["size"] or 0))
    return files


def _alternatives(pattern: str) -> list[str]:
    """The patterns that one with {a,b} stands for."""
    begin = pattern.find("{")
    end = pattern.find("}", begin)
    if begin < 0 or end < 0:
        return [pattern]
    return [
        each
        for option in pattern[begin + 1 : end].split(",")
        for each in _alternatives(pattern[:begin] + option + pattern[end + 1 :])
    ]


def _is_hidden(name: str) -> bool:
    return name.rstrip("/").rsplit("/", 1)[-1].startswith(_HIDDEN)


def _name(info: Mapping[str, Any]) -> str:
    return str(info["name"])


# ---- Compression -----------------------------------------------------------------------------


def _zstd(file: Any, mode: str) -> Any:
    import zstandard

    return zstandard.open(file, mode, closefd=False)


# The extension -> what wraps an open file.
_PACKED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    ".gz": lambda file, mode: gzip.GzipFile(fileobj=file, mode=mode),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": _zstd,
}

# Hadoop's classes, by their names without the package.
_CODECS: Final = {"GzipCodec": ".gz", "BZip2Codec": ".bz2", "ZStandardCodec": ".zst"}


def is_packed(url: str) -> bool:
    """By its extension: such a file can only be read from its beginning."""
    return url.endswith(tuple(_PACKED))


def wrapped(file: IO[bytes], url: str, mode: str) -> IO[bytes]:
    """The file, packed or unpacked as its extension says.  Closing it leaves `file` open."""
    for extension, wrap in _PACKED.items():
        if url.endswith(extension):
            packed: IO[bytes] = wrap(file, mode)
            return packed
    return file


def extension_of(codec: str | None) -> str:
    """For the name of one of Hadoop's classes; "" for None.  Raises InvalidValue."""
    if codec is None:
        return ""
    extension = _CODECS.get(codec.rsplit(".", 1)[-1])
    if extension is None:
        raise InvalidValue("compressionCodecClass", codec, f"is none of {', '.join(_CODECS)}")
    return extension
