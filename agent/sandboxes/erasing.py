"""Removing what tasks have left, whatever they have put there.

Everything goes by open directories and names in them: no link is followed.  What is to
be removed is moved into a directory of the agent's own first, in one step, so that an
agent that ends in the middle goes on there with the next one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agent.containers.sandbox import check_part

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Deeper directories are moved up first: a task can nest more than there are descriptors.
_MAX_DEPTH: Final = 32
# ioctl_iflags(2).
_GET_FLAGS: Final = 0x80086601
_SET_FLAGS: Final = 0x40086602
_IMMUTABLE: Final = 0x10 | 0x20  # and append-only

# Of what is moved into a trash: threads that use the same one never choose the same name.
_NUMBERS: Final = itertools.count()


class Trash:
    """What is about to be removed: a directory `name` beneath `root`."""

    def __init__(self, root: int, name: str) -> None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=root)
        self._fd = os.open(name, _DIRECTORY, dir_fd=root)
        # What was moved here by this object, and is not removed.
        self._taken: list[str] = []

    def close(self) -> None:
        os.close(self._fd)

    def take(self, parent: int, name: str) -> None:
        """Move `name` of the open directory `parent` here.  Raises OSError, and ValueError
        for what is no name: a path might lead elsewhere, over a link of a task's."""
        check_part(name)
        target = self._free_name(name)
        try:
            os.rename(name, target, src_dir_fd=parent, dst_dir_fd=self._fd)
        except PermissionError:
            soften(parent, name)
            os.rename(name, target, src_dir_fd=parent, dst_dir_fd=self._fd)
        self._taken.append(target)

    def empty_taken(self) -> list[OSError]:
        """Remove what was moved here by this object, and leave others what is theirs; what
        stood in the way."""
        problems: list[OSError] = []
        while self._taken:
            # What is moved up from deep below is appended.
            self._remove(self._fd, self._taken.pop(), 0, problems)
        return problems

    def empty(self) -> list[OSError]:
        """Remove all that is here; what stood in the way of the rest."""
        problems: list[OSError] = []
        self._taken.clear()
        # What is moved up from deep below comes into the next round.
        while True:
            names = _names(self._fd)
            before = len(problems)
            for name in names:
                self._remove(self._fd, name, 0, problems)
            left = _names(self._fd)
            if not left or len(problems) > before:
                return problems

    def _remove(self, parent: int, name: str, depth: int, problems: list[OSError]) -> None:
        try:
            if not self._unlinked(parent, name):
                self._remove_directory(parent, name, depth, problems)
        except FileNotFoundError:
            pass
        except OSError as error:
            problems.append(error)

    def _unlinked(self, parent: int, name: str) -> bool:
        try:
            try:
                os.unlink(name, dir_fd=parent)
            except PermissionError:
                soften(parent, name)
                os.unlink(name, dir_fd=parent)
        except IsADirectoryError:
            return False
        return True

    def _remove_directory(
        self, parent: int, name: str, depth: int, problems: list[OSError]
    ) -> None:
        if depth >= _MAX_DEPTH:
            self.take(parent, name)
            return
        fd = _opened(parent, name)
        try:
            if os.fstat(fd).st_dev != os.fstat(self._fd).st_dev:
                raise OSError(errno.EXDEV, "another file system is mounted there", name)
            for each in _names(fd):
                self._remove(fd, each, depth + 1, problems)
        finally:
            os.close(fd)
        try:
            os.rmdir(name, dir_fd=parent)
        except PermissionError:
            soften(parent, name)
            os.rmdir(name, dir_fd=parent)

    def _free_name(self, name: str) -> str:
        for number in _NUMBERS:
            # Bytes are counted, and a name may be of as many as there can be.
            target = os.fsdecode(os.fsencode(f"{number}-{name}")[:200])
            try:
                os.stat(target, dir_fd=self._fd, follow_symlinks=False)
            except FileNotFoundError:
                return target
        raise AssertionError("there is always a next number")


def mounted_beneath(directory: Path) -> set[str]:
    """Where something is mounted beneath `directory`, in full.

    Another mount of the same file system cannot be told by its device.
    """
    base = os.path.realpath(directory).rstrip("/") + "/"
    found: set[str] = set()
    for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
        # Blanks and the like are written as octal numbers.
        escaped = line.split(b" ")[4]
        place = os.fsdecode(escaped.decode("unicode_escape").encode("latin-1"))
        if place.startswith(base):
            found.add(place)
    return found


def _names(fd: int) -> list[str]:
    with os.scandir(fd) as entries:
        return [entry.name for entry in entries]


def _opened(parent: int, name: str) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=parent)
    except PermissionError:
        # Its owner, without root's rights, may not look into it but change that.
        with _path_only(parent, name) as fd:
            Path(f"/proc/self/fd/{fd}").chmod(0o700)
        return os.open(name, _DIRECTORY, dir_fd=parent)


def soften(parent: int, name: str) -> None:
    """Take from a file or directory, and from what it is in, what forbids removing it."""
    for fd in _pliable(parent, name):
        with contextlib.suppress(OSError):
            packed = fcntl.ioctl(fd, _GET_FLAGS, struct.pack("l", 0))
            flags = struct.unpack("l", packed)[0]
            if flags & _IMMUTABLE:
                fcntl.ioctl(fd, _SET_FLAGS, struct.pack("l", flags & ~_IMMUTABLE))
        status = os.fstat(fd)
        if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid():
            with contextlib.suppress(OSError):
                os.fchmod(fd, stat.S_IMODE(status.st_mode) | 0o700)


def _pliable(parent: int, name: str) -> Iterator[int]:
    yield parent
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(name, flags, dir_fd=parent)
    except OSError:
        return  # a link, a pipe, a device: these have no flags
    try:
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def _path_only(parent: int, name: str) -> Iterator[int]:
    fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent)
    try:
        yield fd
    finally:
        os.close(fd)
