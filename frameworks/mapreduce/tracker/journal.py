"""What a tracker writes down before it acts, in files that are written once.

::

    journal/000003/00000000   a tracker has begun: its epoch is 3
    journal/000003/00000001   a snapshot: all that was true then
    journal/000003/00000002   what has happened in one round, and so on
    journal/000003/00000009   another tracker has sealed it: epoch 3 is over

Only the tracker of an epoch adds to it, and each file's name is the next number, created
exclusively.  Whoever takes over first creates that next file himself, as a seal.  So a tracker
that stood still meanwhile, and does not know that it was replaced, cannot write any more: its
next write fails, and with it whatever was to be done after it.  A sealed epoch loses its
files when a later snapshot has what was in them; the seal stays.

A file has a header line, one line per entry (`OWNER JSON`), and a last line with count and
check sum.  Without that it is torn (its writer died): then it was never relied upon.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from frameworks.mapreduce.tracker.place import Place
from mesos_py import logs
from mesos_py.errors import (
    AlreadyExists,
    InvalidValue,
    MesosPyError,
    NotFound,
    Superseded,
    Unavailable,
)

log = logs.get("mapreduce.journal")

# A write that fails is tried again after these pauses, in seconds; then the tracker ends, and
# the next one reads what is true.
PAUSES: Final = (0.1, 0.5, 2.0, 5.0, 10.0)
# A snapshot is made when there are so many files since the last one, or so many bytes, and in
# any case as much as it has itself, so that its cost is spread.
FILES: Final = 1000
BYTES: Final = 64 * 1024 * 1024
# Many more files than this in one directory are slow to list.
MOST_FILES: Final = 20_000


class Entry(NamedTuple):
    """One record as JSON.  owner: the job it is of, or another word without spaces."""

    owner: str
    data: bytes


class _Header(msgspec.Struct, frozen=True):
    kind: Literal["begin", "snapshot", "log", "seal"]
    writer: str


class _File(NamedTuple):
    kind: str
    writer: str
    entries: list[Entry]


class Journal:
    """Of one tracker, from `take_over` until another one takes over."""

    def __init__(
        self, place: Place, writer: str, epoch: int, pause: Callable[[float], None]
    ) -> None:
        self.epoch = epoch
        self._place = place
        self._writer = writer
        self._pause = pause
        self._next = 1
        self._oldest = 0
        self._files = 0
        self._bytes = 0
        self._snapshot_bytes = 0

    @classmethod
    def take_over(
        cls, place: Place, writer: str, pause: Callable[[float], None] = time.sleep
    ) -> tuple[Journal, list[Entry]]:
        """End the epoch of whoever writes to `place`, and begin one; with all that was
        written before.

        writer: a word that nobody else uses.  Call `begin` with what is to be kept of the
        entries, before anything is appended.  Raises InvalidValue for a journal that cannot be
        read, Superseded if another one takes over at the same time and was later.
        """
        epoch = _claim(place, writer)
        return cls(place, writer, epoch, pause), _before(place, writer, epoch)

    def begin(self, entries: Iterable[Entry]) -> None:
        """What is true at the beginning; the epochs before are not needed any more.

        Raises Superseded, and what the file system raises when it goes on failing.
        """
        self._write("snapshot", list(entries))
        for epoch in _epochs(self._place):
            if epoch < self.epoch:
                # The highest is the seal: it keeps the writer of that epoch out.
                for number in _numbers(self._place, epoch)[:-1]:
                    self._place.remove(_name(epoch, number))

    def append(self, entries: Sequence[Entry]) -> None:
        """They are durable when this returns.  Raises as `begin`; then it may be so or not."""
        if entries:
            self._write("log", entries)

    @property
    def is_long(self) -> bool:
        """Whether it is time for `compact`."""
        enough = self._files >= FILES or self._bytes >= BYTES
        return (enough and self._bytes >= self._snapshot_bytes) or self._files >= MOST_FILES

    def compact(self, keep: Callable[[str], bool]) -> None:
        """Put what is kept of all entries, by their owners, into one file.  Raises as
        `begin`."""
        found = _entries(self._place, self.epoch) or []
        number = self._write("snapshot", [one for one in found if keep(one.owner)])
        for old in range(self._oldest, number):
            self._place.remove(_name(self.epoch, old))
        self._oldest = number

    def is_over(self) -> bool:
        """Whether another one has taken over (as a later write would find out)."""
        return _epochs(self._place)[-1] != self.epoch

    # ---- Writing ---------------------------------------------------------------------------

    def _write(self, kind: Literal["snapshot", "log"], entries: Sequence[Entry]) -> int:
        data = _packed(_Header(kind, self._writer), entries)
        number = self._create(data)
        self._next = number + 1
        if kind == "snapshot":
            self._files, self._bytes, self._snapshot_bytes = 0, 0, len(data)
        else:
            self._files += 1
            self._bytes += len(data)
        return number

    def _create(self, data: bytes) -> int:
        """The number that it has got."""
        number = self._next
        for pause in (*PAUSES, None):
            name = _name(self.epoch, number)
            try:
                self._place.create(name, data)
                return number
            except AlreadyExists:
                found = self._place.read(name)
                if found == data:
                    # It had been written, and only the answer was lost.
                    return number
                if not self._is_torn_of_ours(found):
                    raise Superseded(self.epoch, _epochs(self._place)[-1]) from None
                number += 1
            except MesosPyError:
                raise
            except Exception as error:
                # A file system raises what it likes.
                if pause is None:
                    raise
                log.warning(
                    "journal could not be written", url=self._place.url_of(name), error=repr(error)
                )
                self._pause(pause)
        raise Unavailable(f"{self._place.url_of(name)} could not be written", epoch=self.epoch)

    def _is_torn_of_ours(self, data: bytes) -> bool:
        if _whole(data):
            return False
        first = data.partition(b"\n")[0]
        return not first or self._writer.encode() in first


def knows(place: Place, owner: str) -> bool:
    """Whether any entry in it is of this owner, as far as it was written by now; changes
    nothing.  Raises as `take_over`."""
    return any(
        entry.owner == owner
        for epoch in _epochs(place)
        for number in _numbers(place, epoch)
        if (found := _read(place, epoch, number)) is not None
        for entry in found.entries
    )


# ---- Taking over ---------------------------------------------------------------------------


def _claim(place: Place, writer: str) -> int:
    begin = _packed(_Header("begin", writer), ())
    while True:
        epoch = max(_epochs(place), default=0) + 1
        try:
            place.create(_name(epoch, 0), begin)
        except AlreadyExists:
            continue
        return epoch


def _before(place: Place, writer: str, epoch: int) -> list[Entry]:
    """All entries of the epochs before, which are sealed on the way."""
    for earlier in reversed([each for each in _epochs(place) if each < epoch]):
        _seal(place, writer, earlier)
        found = _entries(place, earlier)
        if found is not None:
            return found
        # Its tracker had not got so far: what it began from still holds.
    return []


def _seal(place: Place, writer: str, epoch: int) -> None:
    while True:
        # There may be a directory with nothing in it: whoever made it died then, or goes on.
        last = max(_numbers(place, epoch), default=-1)
        found = _read(place, epoch, last) if last >= 0 else None
        if found is not None and found.kind == "seal":
            return
        try:
            place.create(_name(epoch, last + 1), _packed(_Header("seal", writer), ()))
        except AlreadyExists:
            continue


def _entries(place: Place, epoch: int) -> list[Entry] | None:
    """From the last snapshot on; None if there is none."""
    parts: list[list[Entry]] = []
    for number in reversed(_numbers(place, epoch)):
        found = _read(place, epoch, number)
        if found is None:
            continue
        parts.append(found.entries)
        if found.kind == "snapshot":
            return [entry for part in reversed(parts) for entry in part]
    return None


# ---- Files ---------------------------------------------------------------------------------


def _name(epoch: int, number: int) -> str:
    return f"journal/{epoch:06}/{number:08}"


def _epochs(place: Place) -> list[int]:
    return sorted(int(name) for name in place.names("journal") if name.isdecimal())


def _numbers(place: Place, epoch: int) -> list[int]:
    names = place.names(f"journal/{epoch:06}")
    return sorted(int(name) for name in names if name.isdecimal())


def _packed(header: _Header, entries: Iterable[Entry]) -> bytes:
    lines = [msgspec.json.encode(header)]
    lines += [entry.owner.encode() + b" " + entry.data for entry in entries]
    body = b"\n".join(lines) + b"\n"
    return body + b"end %d %08x\n" % (len(lines) - 1, zlib.crc32(body))


def _whole(data: bytes) -> bool:
    body, last = _parted(data)
    return last == b"end %d %08x\n" % (body.count(b"\n") - 1, zlib.crc32(body))


def _parted(data: bytes) -> tuple[bytes, bytes]:
    at = data.rfind(b"\n", 0, -1) + 1
    return data[:at], data[at:]


def _read(place: Place, epoch: int, number: int) -> _File | None:
    """None if it is torn, or was removed since it was listed."""
    name = _name(epoch, number)
    try:
        data = place.read(name)
    except NotFound:
        return None
    if not _whole(data):
        log.warning("torn file in a journal left out", url=place.url_of(name), size=len(data))
        return None
    header, *lines = _parted(data)[0].removesuffix(b"\n").split(b"\n")
    try:
        found = msgspec.json.decode(header, type=_Header)
        entries = [_entry(line) for line in lines]
    except (msgspec.MsgspecError, ValueError) as error:
        raise InvalidValue(place.url_of(name), header[:100], str(error)) from None
    return _File(found.kind, found.writer, entries)


def _entry(line: bytes) -> Entry:
    owner, space, data = line.partition(b" ")
    if not space:
        raise ValueError(f"not an entry: {line[:100]!r}")
    return Entry(owner.decode(), data)


__all__ = ["Entry", "Journal", "knows"]
