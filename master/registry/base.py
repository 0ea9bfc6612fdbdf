"""The registry's storage: what is common to all places where it may be.

A storage holds records (a key and bytes; see `master/core/registry.py`) and an *epoch*.
A leadership begins with `claim`, which raises the epoch; from then on nothing that an
earlier leadership still has on its way can change anything.  So what a claim has read
stays true until its own leadership writes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mesos_py.errors import InternalError, TooLarge, shown

# What must become true all at once: new values by key; None removes the record.
Operation = Mapping[str, bytes | None]

# A place may allow less.
MAX_RECORD_BYTES: Final = 16 * 1024 * 1024
MAX_KEY_BYTES: Final = 4096
# Epochs are numbers of 64 bits on the wire and in files.
MAX_EPOCH: Final = 2**62


@dataclass(frozen=True, slots=True)
class Claimed:
    """A leadership that has begun: its epoch, and all that was stored by then."""

    epoch: int
    records: dict[str, bytes]


class Storage(ABC):
    """Used from one event loop by one owner, with one call under way at a time.

    Every call but `close` may raise Unavailable: the place could not be reached within
    its limit or refused the write (a full disk).  Nobody knows then whether the change
    was made, so the owner's leadership is over: whoever claims next reads which it was.
    """

    @abstractmethod
    async def claim(self, at_least: int = 0) -> Claimed:
        """Begin a leadership, with an epoch above the stored one and above `at_least`.

        Raises Superseded if another has begun before all was read, InvalidValue if what
        is stored is damaged or of a newer version; its text names the place.
        """

    @abstractmethod
    async def write(self, operations: Sequence[Operation]) -> None:
        """Do all operations, in order; each is done as a whole or not at all.

        When it returns, all of them will be read by every claim to come.  If it raises,
        the first few of them may have been done.  Raises Superseded if another
        leadership has begun, and TooLarge naming a record that is too big for the place.
        """

    @abstractmethod
    async def raise_epoch(self, at_least: int) -> int:
        """Go on with a new epoch, above the present one and above `at_least`; return it.

        For a leadership that finds out that its peers have seen newer epochs than the
        storage, which somebody has emptied.  Raises Superseded as `write` does.
        """

    @abstractmethod
    async def close(self) -> None:
        """Let go of the place.  Idempotent; nothing may be called afterwards."""


def next_epoch(stored: int, at_least: int) -> int:
    """The epoch that follows both.  Raises InternalError when there is none any more."""
    epoch = max(stored, at_least) + 1
    if not 0 < epoch < MAX_EPOCH:
        raise InternalError(f"there is no epoch after {max(stored, at_least)}")
    return epoch


def check(operations: Sequence[Operation]) -> None:
    """Raises TooLarge for the first record that no place takes."""
    for operation in operations:
        for key, value in operation.items():
            if len(key.encode()) > MAX_KEY_BYTES:
                raise too_large(key, len(key.encode()), MAX_KEY_BYTES, "a key")
            if value is not None and len(value) > MAX_RECORD_BYTES:
                raise too_large(key, len(value), MAX_RECORD_BYTES, "a record")


def too_large(key: str, size: int, limit: int, what: str) -> TooLarge:
    return TooLarge(
        f"registry: record {shown(key)}: {size} bytes; {what} has at most {limit}",
        record=key,
        bytes=size,
        limit=limit,
    )


def size_of(operations: Sequence[Operation]) -> int:
    """Bytes of all keys and values."""
    return sum(
        len(key) + (0 if value is None else len(value))
        for operation in operations
        for key, value in operation.items()
    )


def fold(operations: Sequence[Operation]) -> dict[str, bytes | None]:
    """All operations as one."""
    folded: dict[str, bytes | None] = {}
    for operation in operations:
        folded.update(operation)
    return folded
