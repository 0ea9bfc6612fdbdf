"""Unpacking archives that nobody vouches for.

Refused, with the name of the member: absolute names and "..", links that lead out,
members that pass through a link, devices, pipes, sockets, setuid and setgid programs,
and what is larger than allowed.  What was written before stays in the sandbox.

Imported by the process that fetches: it must stay small (no mesos_py, no grpc).
"""

from __future__ import annotations

import bz2
import enum
import gzip
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from typing import IO, BinaryIO, Final, NamedTuple, cast

from agent.fetcher.tree import MAX_DEPTH, Full, Tree, Unsafe

CHUNK_BYTES: Final = 256 * 1024
MAX_ENTRIES: Final = 500_000
_MAX_LINK: Final = 4095
_SPECIAL: Final = stat.S_ISUID | stat.S_ISGID


class Kind(enum.Enum):
    TAR = enum.auto()
    ZIP = enum.auto()
    # One file, compressed: unpacked next to it.
    SINGLE = enum.auto()


class Format(NamedTuple):
    kind: Kind
    compression: str
    suffix: str


class BadArchive(Exception):
    """It cannot be read; the text says why."""


_FORMATS: Final = (
    *(Format(Kind.TAR, "", suffix) for suffix in (".tar",)),
    *(Format(Kind.TAR, "gz", suffix) for suffix in (".tar.gz", ".tgz")),
    *(Format(Kind.TAR, "bz2", suffix) for suffix in (".tar.bz2", ".tbz2")),
    *(Format(Kind.TAR, "xz", suffix) for suffix in (".tar.xz", ".txz")),
    *(Format(Kind.TAR, "zst", suffix) for suffix in (".tar.zst", ".tzst")),
    Format(Kind.ZIP, "", ".zip"),
    *(Format(Kind.SINGLE, each, f".{each}") for each in ("gz", "bz2", "xz", "zst")),
)

# Told of what has been unpacked so far: entries, bytes.
Progress = Callable[[int, int], None]


def format_of(name: str) -> Format | None:
    """What a file is by its name; None: nothing that is unpacked."""
    fitting = [each for each in _FORMATS if name.endswith(each.suffix) and name != each.suffix]
    return max(fitting, key=lambda each: len(each.suffix), default=None)


def checked_name(name: str) -> list[str]:
    """The names that a member's path is made of.  Raises Unsafe unless all lead down."""
    if name.startswith("/"):
        raise Unsafe(f"the member {name[:200]!r} has an absolute name")
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise Unsafe(f"the member {name[:200]!r} leads upwards")
    if "\0" in name:
        raise Unsafe(f"the member {name[:200]!r} has a null character in its name")
    if len(parts) > MAX_DEPTH:
        raise Unsafe(f"the member {name[:200]!r} is more than {MAX_DEPTH} directories deep")
    return parts


def unpack(
    source: BinaryIO, form: Format, target: Sequence[str], tree: Tree, progress: Progress
) -> int:
    """Unpack `source`, whose path in the sandbox is or would be `target`; how many entries.

    Raises Unsafe and Full for what is refused, BadArchive for what cannot be read, and
    OSError for what cannot be written.
    """
    writer = _Writer(tree, progress)
    try:
        if form.kind is Kind.ZIP:
            _unpack_zip(source, writer)
        elif form.kind is Kind.TAR:
            with _decompressed(source, form.compression) as plain:
                _unpack_tar(plain, writer)
        else:
            with _decompressed(source, form.compression) as plain:
                name = target[-1].removesuffix(form.suffix)
                writer.file([*target[:-1], name], plain, 0o644)
    except (Unsafe, Full):
        raise
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        lzma.LZMAError,
        zlib.error,
        EOFError,
        NotImplementedError,
        ValueError,
        RuntimeError,
    ) as error:
        raise BadArchive(f"is damaged or no {form.suffix[1:]} file: {error}") from None
    except OSError as error:
        # The decompressors say so of bad data, without a number.
        if error.errno is None:
            text = f"is damaged or no {form.suffix[1:]} file: {error}"
            raise BadArchive(text) from None
        raise
    return writer.entries


class _Writer:
    """Puts members into the tree, and counts."""

    def __init__(self, tree: Tree, progress: Progress) -> None:
        self._tree = tree
        self._progress = progress
        self.entries = 0
        self.bytes = 0
        # Directories get their modes at the end: one may forbid writing.
        self._modes: dict[tuple[str, ...], int] = {}

    def count(self) -> None:
        self.entries += 1
        if self.entries > MAX_ENTRIES:
            raise Full(f"more than {MAX_ENTRIES} entries in one archive")
        self._progress(self.entries, self.bytes)

    def file(self, parts: Sequence[str], source: IO[bytes] | BinaryIO, mode: int) -> None:
        self.count()
        if not parts:
            raise Unsafe("a member that is a file has no name")
        fd = self._tree.file(parts, mode)
        try:
            while data := source.read(CHUNK_BYTES):
                self._tree.charge(len(data))
                write_all(fd, data)
                self.bytes += len(data)
                self._progress(self.entries, self.bytes)
        finally:
            os.close(fd)

    def directory(self, parts: Sequence[str], mode: int) -> None:
        self.count()
        os.close(self._tree.directory(parts))
        if parts:
            self._modes[tuple(parts)] = mode & 0o777 | 0o700

    def symlink(self, parts: Sequence[str], target: str) -> None:
        self.count()
        if not parts or len(target) > _MAX_LINK:
            raise Unsafe(f"the member {'/'.join(parts)!r} is no usable link")
        self._tree.symlink(parts, target)

    def hardlink(self, parts: Sequence[str], target: str) -> None:
        self.count()
        below = checked_name(target)
        if not parts or not below:
            raise Unsafe(f"the member {'/'.join(parts)!r} is no usable link")
        self._tree.hardlink(parts, below)

    def skip(self, count: int) -> None:
        self._tree.charge(count)
        self._progress(self.entries, self.bytes)

    def finish(self) -> None:
        for parts, mode in self._modes.items():
            try:
                fd = self._tree.directory(parts)
            except Unsafe:
                continue  # a later member took its place
            try:
                os.fchmod(fd, mode)
            finally:
                os.close(fd)


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _decompressed(source: BinaryIO, compression: str) -> BinaryIO:
    if compression == "gz":
        return cast(BinaryIO, gzip.GzipFile(fileobj=source, mode="rb"))
    if compression == "bz2":
        return cast(BinaryIO, bz2.BZ2File(source, "rb"))
    if compression == "xz":
        return cast(BinaryIO, lzma.LZMAFile(source, "rb"))
    if compression == "zst":
        import zstandard

        reader = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        return cast(BinaryIO, _Zstd(reader.stream_reader(source, read_across_frames=True)))
    return source


class _Zstd:
    """zstandard has an error of its own, which is no ValueError, and ends early in silence."""

    def __init__(self, inner: BinaryIO) -> None:
        import zstandard

        self._inner = inner
        self._error: type[Exception] = zstandard.ZstdError

    def read(self, size: int = -1) -> bytes:
        try:
            return self._inner.read(size)
        except self._error as error:
            raise EOFError(str(error)) from None

    def __enter__(self) -> _Zstd:
        return self

    def __exit__(self, *_: object) -> None:
        self._inner.close()


def _unpack_tar(source: BinaryIO, writer: _Writer) -> None:
    # As a stream: members come in order, and nothing is looked up in what follows.
    with tarfile.open(fileobj=source, mode="r|", errorlevel=2, errors="surrogateescape") as archive:
        for member in archive:
            parts = checked_name(member.name)
            if member.isdir():
                writer.directory(parts, member.mode)
            elif member.isfile():
                if member.mode & _SPECIAL:
                    raise Unsafe(f"the member {member.name!r} is a setuid or setgid program")
                content = archive.extractfile(member)
                assert content is not None
                writer.file(parts, content, member.mode & 0o777 | 0o600)
            elif member.issym():
                writer.symlink(parts, member.linkname)
            elif member.islnk():
                writer.hardlink(parts, member.linkname)
            else:
                raise Unsafe(f"the member {member.name!r} is a device, pipe or other special file")
            # It keeps all members, which a long archive need not have.
            archive.members = []  # type: ignore[attr-defined]
    # To its end: only there a compressed file shows whether it is whole.
    while data := source.read(CHUNK_BYTES):
        writer.skip(len(data))
    writer.finish()


def _unpack_zip(source: BinaryIO, writer: _Writer) -> None:
    with zipfile.ZipFile(source) as archive:
        for member in archive.infolist():
            parts = checked_name(member.filename)
            # Archives made elsewhere have no modes.
            mode = member.external_attr >> 16 if member.create_system == 3 else 0
            kind = stat.S_IFMT(mode)
            if member.is_dir():
                writer.directory(parts, mode & 0o777 or 0o755)
            elif kind == stat.S_IFLNK:
                if member.file_size > _MAX_LINK:
                    raise Unsafe(f"the member {member.filename!r} is no usable link")
                with archive.open(member) as content:
                    target = content.read(_MAX_LINK + 1)
                writer.symlink(parts, os.fsdecode(target))
            elif kind in (0, stat.S_IFREG):
                if mode & _SPECIAL:
                    raise Unsafe(f"the member {member.filename!r} is a setuid or setgid program")
                with archive.open(member) as content:
                    writer.file(parts, content, mode & 0o777 | 0o600 if mode else 0o644)
            else:
                text = f"the member {member.filename!r} is a device, pipe or other special file"
                raise Unsafe(text)
    writer.finish()
