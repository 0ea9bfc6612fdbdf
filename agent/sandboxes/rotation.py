"""Keeps stdout and stderr of running tasks from growing without end.

Tasks write into their files directly and know nothing of this.  When a file is larger
than allowed, what is in it is copied to "stdout.1" (older parts move on, the oldest goes),
and then cut off its front.  On ext4 and xfs that is one step in which no byte is lost
(fallocate, COLLAPSE_RANGE); elsewhere the file is truncated right after the last byte was
copied, and what the task writes in between, some microseconds, is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import os
import stat
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from agent.containers import sandbox
from agent.sandboxes.logfile import START, Cuts, Extent, cuts_on_disk, part_name
from mesos_py import logs
from mesos_py.metrics import Metrics

log = logs.get("agent.sandboxes")

SWEEP_EVERY_S: Final = 2.0
CHUNK_BYTES: Final = 1 << 20
# Logs that were rotated or read; older ones are counted anew from what is on the disk.
MAX_KNOWN: Final = 10_000
_COLLAPSE_RANGE: Final = 0x08
_NAMES: Final = (sandbox.STDOUT, sandbox.STDERR)
_COPYING: Final = ".rotating-"
# A part holds at most so many times the size at which a log is rotated.
_MOST: Final = 2
_NO_COPY_RANGE: Final = frozenset(
    {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF}
)


@dataclass(frozen=True)
class Limits:
    """What an operator may choose.  `max_bytes` 0: no rotation."""

    max_bytes: int = 100 << 20
    max_parts: int = 3


class Placed(Protocol):
    """What is known of a live container."""

    def log_places(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The directories beneath the work directory that have a stdout and a stderr of
        it, each with a name that no other one has."""
        ...


class Rotator:
    """Of one work directory.  `sweep` is for a worker thread, one at a time."""

    def __init__(
        self,
        work_dir: str,
        limits: Limits,
        live: Callable[[], Mapping[str, Placed]],
        metrics: Metrics,
    ) -> None:
        self._work_dir = work_dir
        self._limits = limits
        self._live = live
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], Cuts] = OrderedDict()
        # Containers whose logs could not be rotated: said once.
        self._failed: set[str] = set()
        self._rotations = metrics.counter("log_rotations_total", "Logs of tasks rotated")

    def cuts(self, container_id: str, name: str, directory: int) -> Cuts:
        """What was and will be cut off a log; from any thread.  `directory` is its sandbox."""
        key = (container_id, name)
        with self._lock:
            cuts = self._known.get(key)
        if cuts is not None:
            return cuts
        found = cuts_on_disk(directory, name)
        with self._lock:
            # Whoever was faster may have rotated it already.
            cuts = self._known.setdefault(key, found)
            if len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)
        return cuts

    async def run(self) -> None:
        """Until it is cancelled."""
        while self._limits.max_bytes:
            await asyncio.sleep(SWEEP_EVERY_S)
            # A copy: the loop changes it while the thread looks.
            live = dict(place for each in self._live().values() for place in each.log_places())
            try:
                await asyncio.to_thread(self.sweep, live)
            except Exception as error:
                log.exception("rotation of logs failed", error=error)

    def sweep(self, live: Mapping[str, tuple[str, ...]]) -> None:
        """Look at the logs of these containers, and rotate those that are too large."""
        self._failed &= live.keys()
        for container_id, parts in live.items():
            place = "/".join((self._work_dir, *parts))
            for name in _NAMES:
                # All above the sandbox is the agent's: only the name itself may be a link.
                try:
                    found = os.lstat(f"{place}/{name}")
                except OSError:
                    continue
                if stat.S_ISREG(found.st_mode) and found.st_size > self._limits.max_bytes:
                    self._rotate(container_id, parts, name)

    def _rotate(self, container_id: str, parts: tuple[str, ...], name: str) -> None:
        try:
            with (
                sandbox.opened(self._work_dir) as root,
                sandbox.closing(sandbox.open_directory(root, parts)) as directory,
            ):
                rotate(directory, name, self.cuts(container_id, name, directory), self._limits)
        except OSError as error:
            if container_id not in self._failed:
                self._failed.add(container_id)
                log.warning("log cannot be rotated", container=container_id, file=name, error=error)
            return
        self._rotations.inc()
        log.debug("log rotated", container=container_id, file=name)


def rotate(directory: int, name: str, cuts: Cuts, limits: Limits) -> None:
    """Move what the log holds into its parts.  Raises OSError; it is whole then."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with sandbox.closing(os.open(name, flags, dir_fd=directory)) as fd:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise OSError(errno.EACCES, "is no regular file, or has other names", name)
        block = os.fstatvfs(fd).f_bsize
        # Not all of it: the range that is cut out must end before the end.
        whole = (found.st_size - 1) // block * block
        start = max(0, whole - _MOST * limits.max_bytes)
        copying = _COPYING + name
        out = _new(directory, copying, found)
        with sandbox.closing(out):
            try:
                _copy(fd, out, start, whole)
                with contextlib.suppress(OSError):  # not every file system has these
                    os.setxattr(out, START, b"%d" % (cuts.cut + start))
                cuts.version += 1
                try:
                    # Nothing is cut before its copy has its name.
                    _shift(directory, name, cuts, limits.max_parts)
                    _rename(directory, copying, part_name(name, 1))
                    at = whole
                    if not _collapse(fd, whole):
                        at = _copy_to_the_end(fd, out, whole)
                        os.ftruncate(fd, 0)
                    cuts.parts.insert(0, Extent(cuts.cut + start, at - start))
                    cuts.cut += at
                except BaseException:
                    cuts.parts.clear()
                    raise
                finally:
                    cuts.version += 1
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(copying, dir_fd=directory)
                raise


def _new(directory: int, name: str, like: os.stat_result) -> int:
    """A new file that belongs to whom the log does."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=directory)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(name, flags, 0o644, dir_fd=directory)
    try:
        if (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()):
            os.fchown(fd, like.st_uid, like.st_gid)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _copy(fd: int, out: int, at: int, end: int) -> int:
    """Copy from `at` up to `end`, or as far as there is something; how far."""
    while at < end:
        try:
            count = os.copy_file_range(fd, out, min(CHUNK_BYTES, end - at), at)
        except OSError as error:
            if error.errno not in _NO_COPY_RANGE:
                raise
            data = os.pread(fd, min(CHUNK_BYTES, end - at), at)
            count = os.write(out, data) if data else 0
        if not count:
            break
        at += count
    return at


def _copy_to_the_end(fd: int, out: int, at: int) -> int:
    while (end := os.fstat(fd).st_size) > at:
        reached = _copy(fd, out, at, end)
        if reached == at:
            break
        at = reached
    return at


def _collapse(fd: int, length: int) -> bool:
    """Take the first `length` bytes out of the file, all others staying what they are."""
    if not length:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    offset = ctypes.c_int64
    return bool(libc.fallocate(fd, _COLLAPSE_RANGE, offset(0), offset(length)) == 0)


def _shift(directory: int, name: str, cuts: Cuts, keep: int) -> None:
    """Each part becomes the next older one; what is too old goes."""
    del cuts.parts[keep - 1 :]
    for number in range(keep, 1, -1):
        with contextlib.suppress(FileNotFoundError):
            _rename(directory, part_name(name, number - 1), part_name(name, number))


def _rename(directory: int, old: str, new: str) -> None:
    os.rename(old, new, src_dir_fd=directory, dst_dir_fd=directory)
