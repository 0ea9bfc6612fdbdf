"""Files wherever they are (fsspec): what a name means, what is there, and moving a file.

Names are URLs or paths.  A path without a scheme is a file of this machine, or of a file
system that all machines have at the same place.  `hdfs:///path`, without a host, is beneath
the default file system, if one is set: programs written for Hadoop then find their files on
whatever file system the cluster has.
"""

from __future__ import annotations

import errno
import os
import posixpath
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import quote

import msgspec

from frameworks.mapreduce import conf as properties
from mesos_py.errors import AlreadyExists, InvalidValue, MesosPyError, NotFound

DEFAULT_FS: Final = "MESOS_PY_MAPREDUCE_FS"

# The extra of ours that a scheme needs.
_EXTRAS: Final = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gs",
    "gcs": "gs",
    "abfs": "abfs",
    "az": "abfs",
    "hdfs": "hdfs",
    "sftp": "sftp",
    "ssh": "sftp",
}
# A file of these is there when it is complete, and cannot be renamed: moving it is copying it.
OBJECT_STORES: Final = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "az", "adl", "oss"})

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")

# fsspec has no types.
FileSystem = Any
Kind = Literal["file", "directory", "other"]


class Unreadable(MesosPyError):
    """A file that was found cannot be read: `position` is the byte, if there is one, from
    which on (in the file as it lies there, packed or not)."""

    code = "unreadable"

    def __init__(self, url: str, reason: str, position: int | None = None) -> None:
        where = "" if position is None else f" at byte {position}"
        super().__init__(f"input {url}{where}: {reason}", url=url, position=position)
        self.url = url
        self.reason = reason
        self.position = position

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.url, self.reason, self.position))


class Entry(NamedTuple):
    """What is at a path.  size: in bytes, -1 if it is not known before it is read."""

    path: str
    kind: Kind
    size: int

    @property
    def name(self) -> str:
        return self.path.rstrip("/").rpartition("/")[2]


# ---- Names ---------------------------------------------------------------------------------


def default_fs(conf: Mapping[str, str]) -> str:
    """What `hdfs:///` stands for: a URL or path, of a property or else the environment; "" if
    nothing is set: Hadoop's own client then knows it."""
    found = properties.DEFAULT_FS.of(conf) or os.environ.get(DEFAULT_FS, "")
    scheme, _, rest = found.partition(":")
    own = scheme.lower() == "hdfs" and not rest.strip("/")
    return "" if own else found


def absolute(url: str, conf: Mapping[str, str], field: str = "url") -> str:
    """As a URL that means the same on all machines, whatever their directory and environment.

    Globs stay as they are.  Raises InvalidValue naming `field`.
    """
    if not url or "\0" in url:
        raise InvalidValue(field, url, "is not the name of a file")
    scheme = scheme_of(url)
    if scheme == "file":
        return "file://" + _local(url, field)
    rest = url[len(scheme) + 1 :]
    if scheme == "hdfs" and (not rest.startswith("//") or rest[2:3] in ("", "/")):
        return _beneath_default(url, rest, conf, field)
    if "::" in rest:
        raise InvalidValue(field, url, "chains of file systems (::) are not supported")
    return f"{scheme}:{rest}"


def scheme_of(url: str) -> str:
    """`file` for a path."""
    found = _SCHEME.match(url)
    return found[1].lower() if found else "file"


def local_path(url: str) -> str | None:
    """The path of an absolute URL on this machine; None if it is elsewhere."""
    return url.removeprefix("file://") if url.startswith("file:///") else None


def _local(url: str, field: str) -> str:
    path = url
    if _SCHEME.match(url):
        path = url[len("file:") :]
        if path.startswith("//"):
            host, slash, path = path[2:].partition("/")
            if host not in ("", "localhost"):
                raise InvalidValue(field, url, "is a file of another host")
            path = slash + path
    return posixpath.normpath("/" + str(Path(path).absolute()).lstrip("/"))


def _beneath_default(url: str, path: str, conf: Mapping[str, str], field: str) -> str:
    # What is mapped must not lead out of the root, whoever wrote the name.
    if ".." in path.split("/"):
        raise InvalidValue(field, url, "must not have .. in it")
    root = default_fs(conf)
    path = posixpath.normpath("/" + path.lstrip("/"))
    if not root:
        return f"hdfs://{path}"
    return absolute(root, {}, properties.DEFAULT_FS.name).removesuffix("/") + path


# ---- File systems --------------------------------------------------------------------------


def resolve(url: str, conf: Mapping[str, str], field: str = "url") -> tuple[FileSystem, str]:
    """The file system and the path in it.

    Raises InvalidValue: a scheme that nobody knows, or that needs what is not installed.
    """
    import fsspec
    from fsspec.implementations.local import LocalFileSystem

    full = absolute(url, conf, field)
    path = local_path(full)
    if path is not None:
        return LocalFileSystem(), path
    scheme = scheme_of(full)
    try:
        fs, path = fsspec.core.url_to_fs(full, **_options(scheme))
    except (ImportError, ValueError) as error:
        extra = _EXTRAS.get(scheme)
        hint = f"; install mesos-py[{extra}]" if extra else ""
        raise InvalidValue(field, url, f"{scheme}: cannot be used: {error}{hint}") from None
    except Exception as error:
        # The package behind a scheme raises what it likes.
        raise InvalidValue(field, url, f"{scheme}: cannot be used: {why(error)}") from error
    return fs, path


def _options(scheme: str) -> dict[str, object]:
    options: dict[str, object] = {}
    if scheme in OBJECT_STORES:
        # Others write there, too: a listing of before is worth nothing.
        options["use_listings_cache"] = False
    if scheme in ("http", "https"):
        options["encoded"] = True
        # What is read is what the server has: not unpacked on the way.
        options["client_kwargs"] = {
            "auto_decompress": False,
            "trust_env": True,
            "headers": {"Accept-Encoding": "identity"},
        }
    return options


def url_of(url: str, path: str, fs: FileSystem) -> str:
    """The URL of another path on the file system of the absolute `url`."""
    if url.startswith("file:///"):
        return f"file://{path}"
    bare = url.rstrip("/")
    own = fs._strip_protocol(bare)
    # Some file systems have the host in their paths, others have not.
    if bare.endswith(own):
        return bare.removesuffix(own) + path
    return str(fs.unstrip_protocol(path))


def is_local(fs: FileSystem) -> bool:
    return bool(getattr(fs, "local_file", False))


def is_http(fs: FileSystem) -> bool:
    """Whether names are URLs of a web server: no globs, and directories end with a slash."""
    return "http" in fs.protocol


def why(error: BaseException) -> str:
    """An error of any file system in words, on one line."""
    if isinstance(error, MesosPyError):
        return error.message
    status = getattr(error, "status", None)
    if isinstance(status, int):
        return f"the server answered {status} {getattr(error, 'message', '')}".rstrip()
    if isinstance(error, FileNotFoundError):
        return "is not there"
    if isinstance(error, PermissionError):
        return "permission denied"
    if isinstance(error, OSError) and error.errno and error.strerror:
        return error.strerror
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


@contextmanager
def reading(url: str) -> Iterator[None]:
    """Whatever a file system raises inside becomes Unreadable; what is ours stays."""
    try:
        yield
    except MesosPyError:
        raise
    except Exception as error:
        raise Unreadable(url, why(error)) from error


# ---- What is there -------------------------------------------------------------------------


def entry(fs: FileSystem, path: str) -> Entry | None:
    """None if nothing is there.  Links are followed."""
    try:
        if is_local(fs):
            return _of_stat(path, Path(path).stat())
        return _of_info(fs.info(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def listing(fs: FileSystem, path: str) -> list[Entry]:
    """What is in a directory, by name (as bytes).  Links are followed; one that leads
    nowhere is an entry of kind "other"."""
    if is_local(fs):
        found = list(_scan(path))
    elif is_http(fs):
        found = list(_served(fs, path))
    else:
        own = path.rstrip("/")
        # A store may list the marker object of a directory with what is in it.
        found = [
            one for one in map(_of_info, fs.ls(path, detail=True)) if one.path.rstrip("/") != own
        ]
    return sorted(found, key=lambda one: os.fsencode(one.name))


def _scan(path: str) -> Iterator[Entry]:
    with os.scandir(path) as found:
        for one in found:
            try:
                yield _of_stat(one.path, one.stat())
            except FileNotFoundError:
                if one.is_symlink():
                    yield Entry(one.path, "other", 0)


def _served(fs: FileSystem, url: str) -> Iterator[Entry]:
    # What an agent says of a directory of a sandbox (docs/sandboxes.md).
    try:
        found = msgspec.json.decode(fs.cat_file(url), type=_Directory)
    except msgspec.MsgspecError:
        raise InvalidValue("url", url, "is no directory of an agent's file server") from None
    if found.more:
        raise InvalidValue("url", url, f"has more than {len(found.entries)} entries")
    for one in found.entries:
        yield Entry(f"{url.rstrip('/')}/{quote(one.name)}", _kind(one.kind), one.size)


class _Served(msgspec.Struct):
    name: str
    kind: str
    size: int


class _Directory(msgspec.Struct):
    entries: list[_Served]
    more: bool = False


def _of_stat(path: str, found: os.stat_result) -> Entry:
    if stat.S_ISREG(found.st_mode):
        return Entry(path, "file", found.st_size)
    return Entry(path, "directory" if stat.S_ISDIR(found.st_mode) else "other", 0)


def _of_info(info: Mapping[str, Any]) -> Entry:
    size = info.get("size")
    return Entry(str(info["name"]), _kind(info["type"]), size if isinstance(size, int) else -1)


def _kind(text: str) -> Kind:
    if text == "file":
        return "file"
    return "directory" if text == "directory" else "other"


# ---- Moving --------------------------------------------------------------------------------


def move(fs: FileSystem, src: str, dst: str) -> None:
    """`src` becomes `dst`, which is replaced; its directory is made.  Durable when it returns,
    on local file systems.

    It may be said again, done or not: if `src` is gone and `dst` is there, nothing happens.
    Whoever dies in it, or fails, leaves `src` whole until `dst` is: a `dst` of before may be gone
    by then (not on local file systems), and where files are copied, which are not renamed, one
    may be half there (not in object stores).  To say it again puts that right.
    Raises NotFound if neither is there, and what the file system raises.
    """
    if is_local(fs):
        _move_local(src, dst)
        return
    if not fs.exists(src):
        if fs.exists(dst):
            return
        raise NotFound("file", src, "is not there")
    directory = dst.rstrip("/").rpartition("/")[0]
    if directory:
        fs.makedirs(directory, exist_ok=True)
    if fs.isdir(dst):
        raise AlreadyExists(f"{dst} is a directory", path=dst)
    if not _is_store(fs) and fs.exists(dst):
        # Not every file system replaces a file by renaming another.
        fs.rm_file(dst)
    fs.mv(src, dst)
    if not fs.exists(dst):
        # Some only answer that they have not, which nobody has read.
        raise OSError(errno.EIO, "was moved by the file system, and is not there", dst)


def _move_local(src: str, dst: str) -> None:
    target = Path(dst)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        Path(src).replace(target)
    except FileNotFoundError:
        if target.exists():
            return
        raise NotFound("file", src, "is not there") from None
    sync_directory(target.parent)


def sync_directory(path: Path) -> None:
    """What has been named in it stays so when the machine stops now."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _is_store(fs: FileSystem) -> bool:
    names = fs.protocol if isinstance(fs.protocol, tuple) else (fs.protocol,)
    return not OBJECT_STORES.isdisjoint(names)


def writes_whole(fs: FileSystem) -> bool:
    """Whether a file that is being written is there only when it is complete."""
    return _is_store(fs)
