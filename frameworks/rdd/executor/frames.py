"""Elements in a file, in batches, so that big buffers (numpy's arrays) are used where they are.

A batch is a pickle of protocol 5 of a list, and the buffers that pickle left out:

    u64 length of the pickle, u64 number of buffers, their lengths (u64 each), the pickle,
    each buffer at the next multiple of 64 bytes, zeros up to the next multiple of 64

All positions count from the beginning of the file.  Whoever maps the file gets objects whose
big buffers are read-only views of it, without a copy.
"""

from __future__ import annotations

import itertools
import mmap
import os
import pickle
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from frameworks.rdd.executor import pickling, rows

ALIGNMENT: Final = 64
# Smaller buffers are copied into the pickle: a view costs more than that.
_OWN_BUFFER: Final = rows.MAX_BYTES
_HEAD: Final = struct.Struct("<QQ")
_MAX_BATCH: Final = 4096
_BATCH_BYTES: Final = 256 << 10

# (bytes, position in the file)
Write = Callable[[bytes | memoryview, int], None]
# As pickling.dumps.
Dumps = Callable[[Any, pickling.Buffers], bytes]


class _Buffers:
    def __init__(self) -> None:
        self.views: list[memoryview] = []

    def __call__(self, buffer: pickle.PickleBuffer) -> bool:
        """Whether it stays in the pickle."""
        try:
            view = buffer.raw()
        except BufferError:
            # Not contiguous.
            return True
        if view.nbytes < _OWN_BUFFER:
            view.release()
            return True
        self.views.append(view)
        return False

    def restart(self) -> None:
        self.views.clear()


def batch(values: Any, start: int, dumps: Dumps = pickling.dumps) -> list[bytes | memoryview]:
    """The parts of a batch that begins at `start`, a multiple of 64, and ends at one."""
    buffers = _Buffers()
    data = dumps(values, buffers)
    sizes = [view.nbytes for view in buffers.views]
    head = _HEAD.pack(len(data), len(sizes)) + struct.pack(f"<{len(sizes)}Q", *sizes)
    parts: list[bytes | memoryview] = [head, data]
    end = start + len(head) + len(data)
    for view in buffers.views:
        parts.append(bytes(-end % ALIGNMENT))
        parts.append(view)
        end += -end % ALIGNMENT + view.nbytes
    parts.append(bytes(-end % ALIGNMENT))
    return parts


def one(value: Any, dumps: Dumps = pickling.dumps) -> bytes:
    """A file of one batch that is not a list of elements but one value: see `read_one`."""
    return b"".join(batch(value, 0, dumps))


class Sink:
    """Writes batches one after the other."""

    def __init__(self, write: Write) -> None:
        """write: what it raises ends `add`; then `size` is as before, and `add` may be
        called again after whatever was wrong has been mended."""
        self._write = write
        self.size = 0
        self.elements = 0

    def add(self, values: list[Any]) -> None:
        parts = batch(rows.packed(values), self.size)
        end = self.size
        for part in parts:
            length = len(part) if isinstance(part, bytes) else part.nbytes
            if length:
                self._write(part, end)
            end += length
        self.size = end
        self.elements += len(values)


def batches(elements: Iterable[Any], size: Callable[[], int]) -> Iterator[list[Any]]:
    """`elements` in lists whose pickles are of some 256 kB, as far as the last ones tell.

    size: how many bytes all batches that were given out so far have become.
    """
    iterator = iter(elements)
    count, before = 1, size()
    while values := list(itertools.islice(iterator, count)):
        yield values
        grown, before = size() - before, size()
        fits = _BATCH_BYTES * len(values) // max(grown, 1)
        count = max(1, min(fits, 2 * count, _MAX_BATCH))


def mapped(fd: int) -> memoryview:
    """All of a file, read-only.  The mapping lasts as long as any view of it; fd may be closed."""
    size = os.fstat(fd).st_size
    if not size:
        return memoryview(b"")
    return memoryview(mmap.mmap(fd, size, prot=mmap.PROT_READ))


def read(view: memoryview, end: int | None = None) -> Iterator[list[Any]]:
    """The batches of a file, or of its first `end` bytes.  Raises EOFError if it was cut off."""
    start = 0
    end = len(view) if end is None else end
    while start < end:
        values, start = _read_batch(view, start)
        yield values


def read_one(view: memoryview) -> Any:
    """What `one` was given."""
    return _read_batch(view, 0)[0]


def _read_batch(view: memoryview, start: int) -> tuple[Any, int]:
    try:
        length, count = _HEAD.unpack_from(view, start)
        position = start + _HEAD.size
        sizes = struct.unpack_from(f"<{count}Q", view, position)
    except struct.error:
        raise EOFError(f"no batch at {start} of {len(view)} bytes") from None
    position += 8 * count
    data = view[position : position + length]
    position += length
    buffers = []
    for size in sizes:
        position += -position % ALIGNMENT
        buffers.append(view[position : position + size])
        position += size
    if position > len(view):
        raise EOFError(f"the batch at {start} ends at {position} of {len(view)} bytes")
    return pickle.loads(data, buffers=buffers), position + -position % ALIGNMENT
