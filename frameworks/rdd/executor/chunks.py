"""Records on disk in chunks, each with its length and checksum:

u64 length of the pickle, u32 its CRC-32, the pickle of a list of records

One is whole in itself, so that chunks can be put one after the other in any file.
"""

from __future__ import annotations

import itertools
import pickle
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from frameworks.rdd.executor import pickling
from mesos_py.errors import MesosPyError

_HEAD: Final = struct.Struct("<QI")
CHUNK_BYTES: Final = 512 << 10
_MAX_RECORDS: Final = 8192


class Damaged(MesosPyError):
    """Other bytes than were written, or fewer."""

    code = "damaged"


def packed(records: list[Any]) -> bytes:
    data = pickling.dumps(records)
    return _HEAD.pack(len(data), zlib.crc32(data)) + data


def cut(
    records: Iterable[Any], each_bytes: int, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[list[Any]]:
    """Lists that make chunks of some `chunk_bytes`, at most CHUNK_BYTES; each_bytes: about
    what a record takes."""
    size = min(chunk_bytes, CHUNK_BYTES)
    count = max(1, min(size // max(1, each_bytes), _MAX_RECORDS))
    iterator = iter(records)
    while some := list(itertools.islice(iterator, count)):
        yield some


def unpacked(read: Callable[[int], bytes], length: int) -> Iterator[tuple[list[Any], int]]:
    """Each chunk's records, and how many bytes it took, of the next `length` bytes.

    read: gives so many bytes, fewer only at the end.  Raises Damaged.
    """
    while length:
        head = read(_HEAD.size)
        if len(head) < _HEAD.size:
            raise Damaged(f"cut off {length} bytes before its end")
        size, checksum = _HEAD.unpack(head)
        length -= _HEAD.size + size
        if length < 0:
            raise Damaged("a chunk goes beyond the end of its partition")
        data = read(size)
        if len(data) < size:
            raise Damaged(f"cut off {length + size - len(data)} bytes before its end")
        if zlib.crc32(data) != checksum:
            raise Damaged("a checksum does not fit")
        yield pickle.loads(data), _HEAD.size + size
