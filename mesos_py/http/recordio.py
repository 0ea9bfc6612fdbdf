"""RecordIO: each record is its length in decimal digits, a line feed, and so many bytes."""

from __future__ import annotations

from typing import Final

from mesos_py.errors import InvalidValue, TooLarge

MAX_RECORD_BYTES: Final = 64 * 1024 * 1024
_MAX_DIGITS: Final = 20


def framed(record: bytes) -> bytes:
    """The record as it goes out.  It must not be empty: there is no such record."""
    if not record:
        raise InvalidValue("record", record, "is empty")
    return b"%d\n%b" % (len(record), record)


class Reader:
    """Takes a stream in pieces of any size; gives the records that are complete.

    After an error the stream cannot be read any further: each `feed` raises it again.
    """

    def __init__(self, max_record_bytes: int = MAX_RECORD_BYTES) -> None:
        self._max_record_bytes = max_record_bytes
        self._buffer = bytearray()
        # Of the record that is being read; None: its length is.
        self._size: int | None = None
        self._failed: InvalidValue | TooLarge | None = None

    @property
    def within(self) -> bool:
        """Whether a record has begun that is not complete."""
        return bool(self._buffer) or self._size is not None

    def feed(self, data: bytes) -> list[bytes]:
        """Raises InvalidValue for what is no length, TooLarge for a record over the bound."""
        if self._failed is not None:
            raise self._failed
        self._buffer += data
        records: list[bytes] = []
        try:
            while (record := self._next()) is not None:
                records.append(record)
        except (InvalidValue, TooLarge) as error:
            self._failed = error
            raise
        return records

    def _next(self) -> bytes | None:
        if self._size is None:
            self._size = self._length()
            if self._size is None:
                return None
        if len(self._buffer) < self._size:
            return None
        record = bytes(self._buffer[: self._size])
        del self._buffer[: self._size]
        self._size = None
        return record

    def _length(self) -> int | None:
        end = self._buffer.find(b"\n", 0, _MAX_DIGITS + 1)
        digits = bytes(self._buffer[:end] if end >= 0 else self._buffer[: _MAX_DIGITS + 1])
        if (digits and not digits.isdigit()) or end == 0 or len(digits) > _MAX_DIGITS:
            raise InvalidValue("record", digits, "is not the length of a record")
        if end < 0:
            return None
        size = int(digits)
        if size == 0:
            raise InvalidValue("record", digits, "is not the length of a record")
        if size > self._max_record_bytes:
            raise TooLarge(
                f"record: of {size} bytes; allowed are {self._max_record_bytes}", size=size
            )
        del self._buffer[: end + 1]
        return size


__all__ = ["MAX_RECORD_BYTES", "Reader", "framed"]
