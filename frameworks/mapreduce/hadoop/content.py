"""Commands of `fs` that move bytes: cat, text, head, tail, put, get, getmerge."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from frameworks.mapreduce.data import codecs, files
from frameworks.mapreduce.hadoop.places import Place, expanded, place
from frameworks.mapreduce.hadoop.words import NO_SUCH_FILE, Call, PathError

_CHUNK: Final = 1 << 20
_END_BYTES: Final = 1024
_STARTS: Final = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd"}
# What a file is called until it is whole.
COPYING: Final = "._COPYING_"


def chunks(where: Place) -> Iterator[bytes]:
    """Raises PathError for a directory."""
    if where.fs.info(where.path)["type"] == "directory":
        raise PathError(where.shown, "Is a directory")
    with where.fs.open(where.path, "rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk


# ---- To stdout -----------------------------------------------------------------------------


def cat(call: Call) -> None:
    """The bytes as they are."""

    def one(where: Place) -> None:
        for chunk in chunks(where):
            call.streams.stdout.write(chunk)

    call.each(one)


def text(call: Call) -> None:
    """As cat, unpacked."""

    def one(where: Place) -> None:
        for chunk in unpacked(where):
            call.streams.stdout.write(chunk)

    call.each(one)


def unpacked(where: Place) -> Iterator[bytes]:
    """gzip, bzip2 and zstd are told by how the file begins.  Raises PathError."""
    pieces = chunks(where)
    first = next(pieces, b"")
    rest = itertools.chain([first], pieces)
    name = next((name for start, name in _STARTS.items() if first.startswith(start)), None)
    if name is None:
        yield from rest
        return
    try:
        yield from codecs.named("codec", name).unpack(rest, where.shown)
    except files.Unreadable as error:
        raise PathError(where.shown, error.reason) from None


def head(call: Call) -> None:
    """The first kilobyte."""

    def one(where: Place) -> None:
        call.streams.stdout.write(next(chunks(where), b"")[:_END_BYTES])

    call.each(one)


def tail(call: Call) -> None:
    """The last kilobyte."""

    def one(where: Place) -> None:
        if where.fs.info(where.path)["type"] == "directory":
            raise PathError(where.shown, "Is a directory")
        call.streams.stdout.write(where.fs.tail(where.path, _END_BYTES))

    call.each(one)


# ---- From here to there --------------------------------------------------------------------


def put(call: Call) -> None:
    """Files of this machine (`-`: stdin) to where the last path says."""
    *sources, text = call.args or ()
    target = place(text, call.conf)
    into = _is_directory(target)
    if len(sources) > 1 and not into:
        raise PathError(text, NO_SUCH_FILE if target.info() is None else "Is not a directory")
    if text.endswith("/") and not into:
        raise PathError(text, NO_SUCH_FILE)
    for source in sources:
        call.guarded(lambda source=source: _put(call, source, target, into), source)  # type: ignore[misc]


def move_from_local(call: Call) -> None:
    """put, and the files are gone from here."""
    put(call)
    if call.code == 0:
        for source in call.args[:-1]:
            path = Path(source)
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _put(call: Call, source: str, target: Place, into: bool) -> None:
    path = Path(_local(source))
    if source != "-" and not path.exists():
        raise PathError(source, NO_SUCH_FILE)
    where = target
    if into and source != "-":
        where = target.child(f"{target.path.rstrip('/')}/{path.resolve().name}")
    if source != "-" and path.is_dir():
        _put_tree(call, path, where)
    elif source == "-":
        write(where, iter(lambda: call.streams.stdin.read(_CHUNK), b""), force="-f" in call.flags)
    else:
        with path.open("rb") as file:
            write(where, iter(lambda: file.read(_CHUNK), b""), force="-f" in call.flags)


def _put_tree(call: Call, path: Path, where: Place) -> None:
    where.fs.makedirs(where.path, exist_ok=True)
    for each in sorted(path.iterdir()):
        _put(call, str(each), where.child(f"{where.path}/{each.name}"), into=False)


def write(where: Place, data: Iterator[bytes], *, force: bool) -> None:
    """The file is there when it is whole, not before.  Raises PathError."""
    info = where.info()
    if info is not None and (info["type"] == "directory" or not force):
        raise PathError(where.shown, "File exists")
    if where.fs.info(_parent(where.path, where))["type"] != "directory":
        raise PathError(where.shown, "Parent path is not a directory")
    partial = where.path + COPYING
    try:
        with where.fs.open(partial, "wb") as file:
            for chunk in data:
                file.write(chunk)
        if info is not None:
            where.fs.rm(where.path)
        where.fs.mv(partial, where.path)
    except BaseException:
        if where.fs.exists(partial):
            where.fs.rm(partial)
        raise


def _parent(path: str, where: Place) -> str:
    parent: str = where.fs._parent(path)
    if not where.fs.exists(parent):
        raise PathError(where.shown, NO_SUCH_FILE)
    return parent


# ---- From there to here --------------------------------------------------------------------


def get(call: Call) -> None:
    """Files to this machine; the last path says where (`-`: stdout)."""
    args = list(call.args)
    target = args.pop() if len(args) > 1 else "."
    if target == "-":
        call.args = args
        cat(call)
        return
    path = Path(_local(target))
    found = [where for text in args for where in _found(call, text)]
    if len(found) > 1 and not path.is_dir():
        raise PathError(target, NO_SUCH_FILE if not path.exists() else "Is not a directory")
    for where in found:
        to = path / where.name if path.is_dir() else path
        call.guarded(lambda where=where, to=to: _get(call, where, to), where.shown)  # type: ignore[misc]


def _found(call: Call, text: str) -> list[Place]:
    found = expanded(text, call.conf)
    if not found:
        call.failed(PathError(text, NO_SUCH_FILE))
    return found


def _get(call: Call, where: Place, to: Path) -> None:
    if where.fs.info(where.path)["type"] == "directory":
        to.mkdir(exist_ok=True)
        for each in where.children():
            _get(call, each, to / each.name)
        return
    if to.exists() and "-f" not in call.flags:
        raise PathError(str(to), "File exists")
    if not to.absolute().parent.is_dir():
        raise PathError(str(to), NO_SUCH_FILE)
    partial = to.with_name(to.name + COPYING)
    try:
        with partial.open("wb") as file:
            for chunk in chunks(where):
                file.write(chunk)
        partial.replace(to)
    finally:
        partial.unlink(missing_ok=True)


def getmerge(call: Call) -> None:
    """All files of the directories, one after the other, in one of this machine."""
    *sources, target = call.args
    found = [where for text in sources for where in _found(call, text)]
    with Path(_local(target)).open("wb") as file:
        for where in found:
            _merge(call, where, file)


def _merge(call: Call, where: Place, file: BinaryIO) -> None:
    if where.fs.info(where.path)["type"] == "directory":
        for each in where.listing():
            if each["type"] != "directory":
                _merge(call, where.child(str(each["name"])), file)
        return
    size = 0
    for chunk in chunks(where):
        size += file.write(chunk)
    if "-nl" in call.flags and (size or "-skip-empty-file" not in call.flags):
        file.write(b"\n")


def _is_directory(where: Place) -> bool:
    info = where.info()
    return info is not None and info["type"] == "directory"


def _local(text: str) -> str:
    return text.removeprefix("file://") if text.startswith("file:///") else text
