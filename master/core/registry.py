"""What must outlive this master, as the core sees it.

Whatever is only policy (who was admitted, who is gone, weights, maintenance) is held by
nobody else, so it is stored before anything that follows from it is told to anybody:
`write` notes the change and what is to follow, and `stored` lets it follow.  A record is
a key and the bytes of a message of `registry.proto`; `None` removes it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from google.protobuf.message import Message

from master.core.outbox import Outbox
from mesos_py.clock import Now
from mesos_py.errors import TooLarge, shown

AGENT: Final = "agent/"
WEIGHT: Final = "weight/"
ROLE: Final = "role/"
MAINTENANCE: Final = "maintenance"

# A transaction of ZooKeeper has less than a megabyte.  One peer's record that does not fit
# would end every leadership that tries to store it.
MAX_RECORD_BYTES: Final = 512 * 1024
# Of all records, with their keys, that are to be stored together.
MAX_WRITE_BYTES: Final = 640 * 1024

M = TypeVar("M", bound=Message)


def too_large(what: str, size: int, limit: int) -> TooLarge:
    """What to raise for something that is to be stored and cannot."""
    return TooLarge(
        f"{shown(what)}: {size} bytes; at most {limit} can be kept in the registry",
        field=what,
        value=size,
        limit=limit,
    )


@dataclass(frozen=True, slots=True)
class _Waiting:
    number: int
    keys: tuple[str, ...]
    then: Callable[[Now], None]


class Registry:
    """The newest records, stored or on their way, and what waits for the latter.

    With `durable` false nothing is stored, and everything follows at once: a master
    without a place for it.
    """

    def __init__(self, outbox: Outbox, *, durable: bool) -> None:
        self._outbox = outbox
        self._durable = durable
        self._records: dict[str, bytes] = {}
        self._waiting: deque[_Waiting] = deque()
        # The newest write of each key that is not known to be stored.
        self._unsettled: dict[str, int] = {}
        self._number = 0

    def load(self, records: Mapping[str, bytes]) -> None:
        """What the storage holds, at the beginning of a leadership."""
        self._records = dict(records)

    def read(self, key: str, message: M) -> M | None:
        """Fill `message` from the record and return it; None if there is no such record.

        Raises DecodeError for a record that is none of ours.
        """
        value = self._records.get(key)
        if value is None:
            return None
        message.ParseFromString(value)
        return message

    def __contains__(self, key: str) -> bool:
        return key in self._records

    def settled(self, key: str) -> bool:
        """Whether a successor would read of this key what is read here."""
        return key not in self._unsettled

    def keys(self, prefix: str) -> Iterator[str]:
        """The keys that begin with `prefix`, as they are now."""
        return iter([key for key in self._records if key.startswith(prefix)])

    @property
    def waits(self) -> bool:
        """Whether something that was written is not known to be stored yet."""
        return bool(self._waiting)

    def write(
        self, changes: Mapping[str, Message | None], then: Callable[[Now], None], now: Now
    ) -> None:
        """Store `changes`, all or none of them, and call `then` once that is certain.

        `then` is called after those of all earlier writes; at once if nothing changes
        and nothing waits.  It must look anew at what it is about: time has passed.  It
        is never called when the leadership ends before.  Raises TooLarge, and changes
        nothing, for records that no storage is sure to take.
        """
        different: dict[str, bytes | None] = {}
        total = 0
        for key, message in changes.items():
            value = None if message is None else message.SerializeToString(deterministic=True)
            if value is not None and len(value) > MAX_RECORD_BYTES:
                raise too_large(key, len(value), MAX_RECORD_BYTES)
            total += 0 if value is None else len(key) + len(value)
            if total > MAX_WRITE_BYTES:
                raise too_large(f"{len(changes)} records", total, MAX_WRITE_BYTES)
            if value != self._records.get(key):
                different[key] = value
        for key, value in different.items():
            if value is None:
                del self._records[key]
            else:
                self._records[key] = value
        if not self._durable or not (different or self._waiting):
            then(now)
            return
        self._number += 1
        self._waiting.append(_Waiting(self._number, tuple(different), then))
        self._unsettled.update(dict.fromkeys(different, self._number))
        self._outbox.store(self._number, different)

    def stored(self, number: int, now: Now) -> None:
        """The storage has everything up to the write with this number.

        If what follows from one of the writes raises, call it again for the others.
        """
        while self._waiting and self._waiting[0].number <= number:
            waiting = self._waiting.popleft()
            for key in waiting.keys:
                if self._unsettled.get(key) == waiting.number:
                    del self._unsettled[key]
            waiting.then(now)


__all__ = ["AGENT", "MAINTENANCE", "MAX_RECORD_BYTES", "ROLE", "WEIGHT", "Registry", "too_large"]
