"""Fetched files that tasks share, by user and URI.

One at a time fills an entry, the others wait for it; an entry is there for others only
when it is complete.  What somebody reads is not evicted.  Nothing is left from one
start of the agent to the next.  Used from one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from mesos_py import logs

log = logs.get("agent.fetcher")

# Whose, and what: the URI and the checksum that it must have.
Key: TypeAlias = tuple[str, str, tuple[str, str] | None]
_DIRECTORY_MODE: Final = 0o700


class NoRoom(Exception):
    """It cannot be kept: fetch it without the cache."""


class Growing(Protocol):
    """What a filler tells of its progress."""

    def grow(self, size: int) -> None:
        """It has, or will have, so many bytes.  Raises NoRoom."""
        ...


# Writes into the open file; raises NoRoom or whatever makes the fetch fail.
Fill: TypeAlias = Callable[[int, Growing], Awaitable[None]]


class _Entry:
    __slots__ = ("error", "name", "ready", "settled", "size", "stamp", "used_by")

    def __init__(self, name: str) -> None:
        self.name = name
        # While it is filled: what is reserved for it.
        self.size = 0
        self.ready = False
        self.used_by = 0
        self.settled = asyncio.Event()
        # Why it could not be had; None also when its filler was only stopped.
        self.error: Exception | None = None
        # What tells that nobody has written into it since.
        self.stamp = (0, 0)


class Lease:
    """A complete file, open for reading, until `release`."""

    def __init__(self, entry: _Entry, fd: int, *, found: bool) -> None:
        self._entry = entry
        self.fd = fd
        # It was there, or somebody else has just filled it.
        self.found = found
        entry.used_by += 1

    @property
    def size(self) -> int:
        return self._entry.size

    def release(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
            self._entry.used_by -= 1


class Cache:
    """At most `capacity_bytes` in `directory`, which is this cache's alone."""

    def __init__(self, directory: Path, capacity_bytes: int) -> None:
        self._directory = directory
        self.capacity_bytes = capacity_bytes
        # Least recently used first.
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._names = 0
        self.hits = 0
        self.misses = 0

    def clear(self) -> None:
        """Begin with nothing.  Raises OSError."""
        shutil.rmtree(self._directory, ignore_errors=True)
        self._directory.mkdir(parents=True, mode=_DIRECTORY_MODE)

    @property
    def used_bytes(self) -> int:
        return sum(entry.size for entry in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    async def get(self, key: Key, fill: Fill) -> Lease:
        """The file, filled first if it is not there.

        Raises NoRoom, what `fill` raised, or what it raised for somebody who asked for
        the same a moment before.
        """
        while True:
            entry = self._entries.get(key)
            if entry is None:
                return await self._filled(key, fill)
            if not entry.ready:
                await entry.settled.wait()
                if entry.error is not None:
                    raise entry.error
                continue
            lease = self._leased(entry, found=True)
            if lease is not None:
                self.hits += 1
                self._entries.move_to_end(key)
                return lease
            log.warning("cached file has changed; it is fetched again", uri=key[1])
            self._remove(key, entry)

    def discard(self, key: Key) -> None:
        """What is there turned out to be bad: nobody gets it again."""
        entry = self._entries.get(key)
        if entry is not None and entry.ready:
            self._remove(key, entry)

    async def _filled(self, key: Key, fill: Fill) -> Lease:
        self.misses += 1
        self._names += 1
        entry = self._entries[key] = _Entry(str(self._names))
        path = self._directory / entry.name
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                await fill(fd, _Filling(self, entry))
                found = os.fstat(fd)
            finally:
                os.close(fd)
            self._grow(entry, found.st_size)
            entry.stamp = (found.st_size, found.st_mtime_ns)
            entry.ready = True
            lease = self._leased(entry, found=False)
            if lease is None:
                raise NoRoom("the file in the cache has vanished")
            return lease
        except BaseException as error:
            if isinstance(error, OSError):
                error = NoRoom(f"the cache cannot be written: {error.strerror}")
            if isinstance(error, Exception):
                entry.error = error
            entry.ready = False
            self._remove(key, entry)
            raise error from None
        finally:
            entry.settled.set()

    def _leased(self, entry: _Entry, *, found: bool) -> Lease | None:
        try:
            fd = os.open(self._directory / entry.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return None
        status = os.fstat(fd)
        if (status.st_size, status.st_mtime_ns) != entry.stamp:
            os.close(fd)
            return None
        return Lease(entry, fd, found=found)

    def _grow(self, entry: _Entry, size: int) -> None:
        needed = self.used_bytes - entry.size + size - self.capacity_bytes
        for key, other in list(self._entries.items()):
            if needed <= 0:
                break
            if other.ready and not other.used_by:
                needed -= other.size
                self._remove(key, other)
        if needed > 0:
            raise NoRoom("the cache is full of what is in use")
        entry.size = size

    def _remove(self, key: Key, entry: _Entry) -> None:
        if self._entries.get(key) is entry:
            del self._entries[key]
        with contextlib.suppress(FileNotFoundError):
            (self._directory / entry.name).unlink()


class _Filling:
    def __init__(self, cache: Cache, entry: _Entry) -> None:
        self._cache = cache
        self._entry = entry

    def grow(self, size: int) -> None:
        if size > self._entry.size:
            self._cache._grow(self._entry, size)
