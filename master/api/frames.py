"""Batches that are never made: an event is serialized once, when it is queued.

On the wire a repeated field is a tag, a length and the entry, over and over, so that
entries one after the other are the batch.  Beside queueing messages and copying them
into a message per batch this costs a third, a queue's bound counts what is really
there, and nobody can change what is queued.
"""

from __future__ import annotations

from typing import Final

from google.protobuf.message import Message

# Field 1, with a length: `events` in the Events of both services.
_TAG: Final = 1 << 3 | 2


def _head(size: int) -> bytes:
    head = bytearray([_TAG])
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    head.append(size)
    return bytes(head)


_HEADS: Final = tuple(map(_head, range(1024)))


def entry(event: Message) -> bytes:
    """The event as one entry of `events`."""
    data = event.SerializeToString()
    size = len(data)
    return (_HEADS[size] if size < len(_HEADS) else _head(size)) + data
