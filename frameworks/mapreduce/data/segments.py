"""Segments of a map's output file: the sorted lines of one partition, packed if so asked.

Lines are kept in the form that `keys.py` makes for sorting.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from frameworks.mapreduce import conf as properties
from frameworks.mapreduce.data import codecs
from frameworks.mapreduce.data.codecs import Codec
from frameworks.mapreduce.job import JobSpec
from frameworks.mapreduce.work import Segment
from mesos_py.errors import MesosPyError

_READ: Final = 1 << 18
NOTHING: Final = Segment(0, 0, 0, 0)


class Damaged(MesosPyError):
    """A segment is not what was written: too short, or other bytes."""

    code = "damaged"


def codec_of(spec: JobSpec) -> Codec | None:
    """How a job packs what maps leave for reduces.  Raises InvalidValue."""
    if not properties.COMPRESS_MAP.of(spec.conf):
        return None
    return codecs.named(properties.MAP_CODEC.name, properties.MAP_CODEC.of(spec.conf))


class SegmentWriter:
    """Writes segments, one after the other, into an empty file."""

    def __init__(self, file: BinaryIO, codec: Codec | None) -> None:
        self._file = file
        self._codec = codec
        self._begin = 0
        self._reset()

    def _reset(self) -> None:
        self._length = self._raw = self._crc = 0
        self._packer = self._codec.compressor() if self._codec else None

    def write(self, block: bytes) -> None:
        self._raw += len(block)
        self._put(self._packer.compress(block) if self._packer else block)

    def _put(self, data: bytes) -> None:
        self._file.write(data)
        self._length += len(data)
        self._crc = zlib.crc32(data, self._crc)

    def end(self) -> Segment:
        """The segment is complete; what is written next is of another.  One without lines takes
        no bytes."""
        if not self._raw:
            return NOTHING
        if self._packer:
            self._put(self._packer.flush())
        found = Segment(self._begin, self._length, self._raw, self._crc)
        self._begin += self._length
        self._reset()
        return found


def read_segment(path: Path, segment: Segment, codec: Codec | None) -> Iterator[bytes]:
    """A segment's lines, as blocks of some size (not of whole lines).  Raises Damaged, at the
    end at the latest; OSError when the file cannot be read."""
    yield from unpacked(checked(read_raw(path, segment), segment, str(path)), segment, codec)


def read_raw(path: Path, segment: Segment, skip: int = 0) -> Iterator[bytes]:
    """The bytes of a segment, but for the first `skip`, as they lie in the file; fewer when it
    is too short."""
    with path.open("rb") as file:
        file.seek(segment.offset + skip)
        left = segment.length - skip
        while left and (data := file.read(min(left, _READ))):
            left -= len(data)
            yield data


def checked(chunks: Iterable[bytes], segment: Segment, where: str) -> Iterator[bytes]:
    """The chunks; Damaged, at their end at the latest, when they are not this segment."""
    length = crc = 0
    for chunk in chunks:
        length += len(chunk)
        crc = zlib.crc32(chunk, crc)
        if length > segment.length:
            break
        yield chunk
    if length != segment.length:
        raise Damaged(f"{where}: {length} bytes came where {segment.length} were due")
    if crc != segment.crc:
        raise Damaged(f"{where}: the checksum of its {length} bytes is wrong")


def unpacked(chunks: Iterable[bytes], segment: Segment, codec: Codec | None) -> Iterator[bytes]:
    """What the chunks of a segment hold.  Raises Damaged when it is not as much as was
    written."""
    raw = 0
    for block in codec.unpack(chunks, "map output") if codec else chunks:
        raw += len(block)
        if raw > segment.raw:
            break
        yield block
    if raw != segment.raw:
        raise Damaged(f"map output: {raw} bytes were unpacked where {segment.raw} were due")
