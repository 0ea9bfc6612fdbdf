"""Compression: gzip, bzip2 and zstd, by name, by Hadoop's class, or by a file's extension."""

from __future__ import annotations

import bz2
import difflib
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol

import zstandard

from frameworks.mapreduce.data.files import Unreadable
from mesos_py.errors import InvalidValue

# How much is unpacked at once, about.
BLOCK: Final = 1 << 20


class Compressor(Protocol):
    """Takes bytes, gives packed bytes; after `flush` it is at its end."""

    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


class Member(ABC):
    """Unpacks one member (gzip), stream (bzip2) or frame (zstd)."""

    @abstractmethod
    def take(self, data: bytes) -> bytes:
        """Unpack some; b"" may mean that more is needed, or that `left` has to be given."""

    @property
    @abstractmethod
    def ended(self) -> bool: ...

    @property
    @abstractmethod
    def left(self) -> bytes:
        """What of the data given was not used: to be given again; what follows, at the end."""

    @property
    def has_more(self) -> bool:
        """Whether `take(b"")` gives more, since it has kept data itself."""
        return False


class _Gzip(Member):
    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    def take(self, data: bytes) -> bytes:
        return self._inner.decompress(data, BLOCK)

    @property
    def ended(self) -> bool:
        return self._inner.eof

    @property
    def left(self) -> bytes:
        return self._inner.unused_data if self._inner.eof else self._inner.unconsumed_tail


class _Bzip2(Member):
    def __init__(self) -> None:
        self._inner = bz2.BZ2Decompressor()

    def take(self, data: bytes) -> bytes:
        return self._inner.decompress(data, BLOCK)

    @property
    def ended(self) -> bool:
        return self._inner.eof

    @property
    def left(self) -> bytes:
        return self._inner.unused_data if self._inner.eof else b""

    @property
    def has_more(self) -> bool:
        return not self._inner.eof and not self._inner.needs_input


class _Zstd(Member):
    # It unpacks all that it is given, and 4 bytes can stand for 128 KiB: so it is given little,
    # and more while that does not become much.
    LEAST: Final = 64
    MOST: Final = 4096

    def __init__(self) -> None:
        # No limit on the window: what people make with --long is to be read.
        self._inner: Any = zstandard.ZstdDecompressor(max_window_size=2**31).decompressobj()
        self._step = self.LEAST
        self._left = b""

    def take(self, data: bytes) -> bytes:
        parts: list[bytes] = []
        size = at = 0
        while at < len(data) and size < BLOCK and not self._inner.eof:
            found = self._inner.decompress(data[at : at + self._step])
            at += self._step
            much = len(found) > BLOCK // 2
            self._step = self.LEAST if much else min(self._step * 2, self.MOST)
            parts.append(found)
            size += len(found)
        self._left = (self._inner.unused_data if self._inner.eof else b"") + data[at:]
        return b"".join(parts)

    @property
    def ended(self) -> bool:
        return bool(self._inner.eof)

    @property
    def left(self) -> bytes:
        return self._left


class Codec(ABC):
    """One kind of compression.  name: as people call it; extension: of files, with the dot."""

    name: str
    extension: str

    @abstractmethod
    def compressor(self) -> Compressor:
        """Same bytes in, same bytes out: no times, no names."""

    @abstractmethod
    def member(self) -> Member: ...

    def pack(self, data: bytes) -> bytes:
        """All at once."""
        packer = self.compressor()
        return packer.compress(data) + packer.flush()

    def unpack(self, chunks: Iterable[bytes], url: str) -> Iterator[bytes]:
        """Unpacked blocks, none empty, of about a megabyte at most.  Members that follow one
        another are as one; zeros after the last are padding.

        Raises Unreadable naming `url` and the byte: data of another kind, damaged, or cut off.
        """
        member: Member | None = None
        at = 0
        for chunk in chunks:
            data = chunk
            while data or (member is not None and member.has_more):
                if member is None:
                    if not (data.lstrip(b"\0") if at else data):
                        at += len(data)
                        break
                    member = self.member()
                try:
                    found = member.take(data)
                except (zlib.error, OSError, EOFError, zstandard.ZstdError) as error:
                    raise Unreadable(url, f"is no {self.name} data: {error}", at) from None
                at += len(data) - len(member.left)
                data = member.left
                if member.ended:
                    member = None
                if found:
                    yield found
        if member is not None:
            raise Unreadable(url, f"is cut off: its {self.name} data has no end", at)


class Gzip(Codec):
    name = "gzip"
    extension = ".gz"

    def compressor(self) -> Compressor:
        return zlib.compressobj(6, zlib.DEFLATED, 31)

    def member(self) -> Member:
        return _Gzip()


class Bzip2(Codec):
    name = "bzip2"
    extension = ".bz2"

    def compressor(self) -> Compressor:
        return bz2.BZ2Compressor()

    def member(self) -> Member:
        return _Bzip2()


class Zstd(Codec):
    name = "zstd"
    extension = ".zst"

    def compressor(self) -> Compressor:
        return zstandard.ZstdCompressor(write_checksum=True).compressobj()

    def member(self) -> Member:
        return _Zstd()


ALL: Final[tuple[Codec, ...]] = (Gzip(), Bzip2(), Zstd())

# What is packed, but not in a way that is known here: as lines it would be rubbish.
UNKNOWN: Final = (".deflate", ".lz4", ".lzo", ".lzma", ".snappy", ".xz")

_NAMES: Final = {
    **{codec.name: codec for codec in ALL},
    "gz": ALL[0],
    "bz2": ALL[1],
    "zst": ALL[2],
    "zstandard": ALL[2],
    "org.apache.hadoop.io.compress.gzipcodec": ALL[0],
    "org.apache.hadoop.io.compress.bzip2codec": ALL[1],
    "org.apache.hadoop.io.compress.zstandardcodec": ALL[2],
}


def named(field: str, text: str) -> Codec:
    """By name or Hadoop's class.  Raises InvalidValue naming `field`."""
    found = _NAMES.get(text.strip().lower())
    if found is None:
        known = [codec.name for codec in ALL]
        near = difflib.get_close_matches(text.lower(), known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InvalidValue(field, text, f"is not one of {', '.join(known)}{hint}")
    return found


def by_extension(url: str) -> Codec | None:
    """None: it is read as it is.  Raises InvalidValue for packed files of other kinds."""
    if url.endswith(UNKNOWN):
        known = ", ".join(codec.extension for codec in ALL)
        raise InvalidValue("input", url, f"is packed in a way that is not known here ({known} are)")
    return next((codec for codec in ALL if url.endswith(codec.extension)), None)
