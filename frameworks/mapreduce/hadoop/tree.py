"""Commands of `fs` that change what there is: mkdir, rm, rmdir, mv, cp, touchz."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from frameworks.mapreduce.hadoop.content import chunks, write
from frameworks.mapreduce.hadoop.places import Place, expanded, place
from frameworks.mapreduce.hadoop.words import NO_SUCH_FILE, Call, PathError


def mkdir(call: Call) -> None:
    """Directories; with -p also those above, and it does not matter if they are there."""
    for text in call.args:
        where = place(text, call.conf)
        call.guarded(lambda where=where: _mkdir(call, where), where.shown)  # type: ignore[misc]


def _mkdir(call: Call, where: Place) -> None:
    info = where.info()
    if info is not None:
        if "-p" in call.flags and info["type"] == "directory":
            return
        raise PathError(where.shown, "File exists")
    parent = posixpath.dirname(where.path)
    if "-p" not in call.flags and not where.fs.isdir(parent):
        raise PathError(where.shown, NO_SUCH_FILE)
    where.fs.makedirs(where.path, exist_ok=True)


def rm(call: Call) -> None:
    """Files, and with -r directories.  With -f what is not there is no fault."""
    recursive = bool({"-r", "-R"} & set(call.flags))

    def one(where: Place) -> None:
        if where.path.rstrip("/") == "" or where.path == place("/", call.conf).path:
            raise PathError(where.shown, "is the root directory, which is not removed")
        if where.fs.info(where.path)["type"] == "directory" and not recursive:
            raise PathError(where.shown, "Is a directory")
        where.fs.rm(where.path, recursive=recursive)
        call.say(f"Deleted {where.shown}")

    for text in call.args:
        if "-f" not in call.flags or expanded(text, call.conf):
            call.each(one, [text])


def rmr(call: Call) -> None:
    """The old name of rm -r."""
    call.streams.complain("rmr: DEPRECATED: Please use '-rm -r' instead.")
    call.flags = {**call.flags, "-r": ""}
    rm(call)


def rmdir(call: Call) -> None:
    """Directories that are empty."""

    def one(where: Place) -> None:
        if where.fs.info(where.path)["type"] != "directory":
            raise PathError(where.shown, "Is not a directory")
        if where.listing():
            if "--ignore-fail-on-non-empty" in call.flags:
                return
            raise PathError(where.shown, "Directory is not empty")
        where.fs.rmdir(where.path)

    call.each(one)


def touchz(call: Call) -> None:
    """Empty files; one that is there must be empty."""
    for text in call.args:
        where = place(text, call.conf)
        call.guarded(lambda where=where: _touchz(where), where.shown)  # type: ignore[misc]


def _touchz(where: Place) -> None:
    info = where.info()
    if info is None:
        write(where, iter(()), force=False)
    elif info["type"] == "directory":
        raise PathError(where.shown, "Is a directory")
    elif info.get("size"):
        raise PathError(where.shown, "Not a zero-length file")
    else:
        where.fs.touch(where.path)


def mv(call: Call) -> None:
    """To another name, or into a directory."""
    for source, target in _pairs(call):
        call.guarded(lambda a=source, b=target: _mv(a, b), source.shown)  # type: ignore[misc]


def _mv(source: Place, target: Place) -> None:
    if target.info() is not None:
        raise PathError(target.shown, "File exists")
    if type(source.fs) is not type(target.fs):
        raise PathError(source.shown, "Does not match target filesystem")
    if f"{target.path}/".startswith(f"{source.path}/"):
        raise PathError(source.shown, f"cannot be moved below itself, to {target.shown}")
    source.fs.mv(source.path, target.path, recursive=True)


def cp(call: Call) -> None:
    """Files and directories to another name, or into a directory."""
    for source, target in _pairs(call):
        call.guarded(lambda a=source, b=target: _cp(call, a, b), source.shown)  # type: ignore[misc]


def _cp(call: Call, source: Place, target: Place) -> None:
    if f"{target.path}/".startswith(f"{source.path}/"):
        raise PathError(source.shown, f"cannot be copied below itself, to {target.shown}")
    if source.fs.info(source.path)["type"] != "directory":
        write(target, chunks(source), force="-f" in call.flags)
        return
    target.fs.makedirs(target.path, exist_ok=True)
    for each in source.children():
        _cp(call, each, target.child(f"{target.path}/{each.name}"))


def _pairs(call: Call) -> Iterator[tuple[Place, Place]]:
    """What each source is to become.  Raises PathError."""
    *texts, last = call.args
    target = place(last, call.conf)
    info = target.info()
    into = info is not None and info["type"] == "directory"
    found = list(call.places(texts))
    if len(found) > 1 and not into:
        raise PathError(last, NO_SUCH_FILE if info is None else "Is not a directory")
    if not into and not target.fs.isdir(posixpath.dirname(target.path)):
        raise PathError(last, NO_SUCH_FILE)
    for source in found:
        yield source, target.child(f"{target.path.rstrip('/')}/{source.name}") if into else target
