"""How much a directory and all beneath it take on disk: `du` for trees that nobody trusts.

Whoever owns the tree changes it while it is walked.  So every step goes by an open
directory, no link is followed, no other file system is entered, and of any depth only
the last directories are kept open.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
# What st_blocks counts in, whatever the file system's own blocks are.
_BLOCK: Final = 512
# So many directories above the present one stay open; to others it goes back by "..".
KEPT_OPEN: Final = 32


@dataclass(frozen=True)
class Used:
    """What was found.

    `skipped` directories were moved away or made unreadable while we looked: what is
    in them is not in `bytes`.
    """

    bytes: int
    skipped: int


class Stopped(Exception):
    """Nobody wants to know any more."""


def used_beneath(root: int, stopped: Callable[[], bool] = lambda: False) -> Used:
    """The blocks of the open directory `root` and all beneath it, each file once.

    Raises Stopped soon after `stopped` says so, and OSError if `root` itself cannot be
    read.
    """
    return _Walk(root, stopped).run()


@dataclass(slots=True)
class _Level:
    """A directory on the way from the root to where we are."""

    # -1: not kept open.
    fd: int
    inode: int
    # Directories in it that are still to be visited.
    names: list[str] = field(default_factory=list)


class _Walk:
    def __init__(self, root: int, stopped: Callable[[], bool]) -> None:
        self._root = root
        self._stopped = stopped
        found = os.fstat(root)
        self._device = found.st_dev
        self._inode = found.st_ino
        self._blocks = found.st_blocks
        self._skipped = 0
        # Files with several names that were counted.
        self._linked: set[int] = set()
        self._path: list[_Level] = []

    def run(self) -> Used:
        top = _Level(os.dup(self._root), self._inode)
        self._path.append(top)
        try:
            self._list(top)
            while self._path:
                if self._path[-1].names:
                    self._enter(self._path[-1])
                else:
                    self._leave()
        finally:
            for level in self._path:
                _close(level)
        return Used(self._blocks * _BLOCK, self._skipped)

    def _enter(self, parent: _Level) -> None:
        if self._stopped():
            raise Stopped
        try:
            fd = os.open(parent.names.pop(), _DIRECTORY, dir_fd=parent.fd)
        except (FileNotFoundError, NotADirectoryError):
            return  # it is gone, or something else by now
        except OSError:
            self._skipped += 1
            return
        level = _Level(fd, 0)
        self._path.append(level)
        found = os.fstat(fd)
        level.inode = found.st_ino
        if found.st_dev != self._device:
            return  # mounted since it was listed
        try:
            self._list(level)
        except OSError:
            self._skipped += 1
        far = len(self._path) - 1 - KEPT_OPEN
        if far > 0:  # never the root: from there it goes on when the way back is lost
            _close(self._path[far])

    def _leave(self) -> None:
        """Back to the directory above."""
        level = self._path.pop()
        try:
            if self._path and self._path[-1].fd < 0:
                self._reopen(self._path[-1], level.fd)
        finally:
            _close(level)

    def _reopen(self, parent: _Level, below: int) -> None:
        try:
            fd = os.open("..", _DIRECTORY, dir_fd=below)
        except OSError:
            fd = -1
        if fd >= 0:
            found = os.fstat(fd)
            if (found.st_dev, found.st_ino) == (self._device, parent.inode):
                parent.fd = fd
                return
            os.close(fd)
        # Where we were was moved: ".." would lead us out of the tree.
        while self._path[-1].fd < 0:
            self._skipped += len(self._path.pop().names)

    def _list(self, level: _Level) -> None:
        """Count what is in the directory, and note the directories in it."""
        with os.scandir(level.fd) as entries:
            for entry in entries:
                try:
                    found = entry.stat(follow_symlinks=False)
                except OSError:
                    continue  # it is gone
                if found.st_dev != self._device:
                    continue  # something is mounted there
                if stat.S_ISDIR(found.st_mode):
                    level.names.append(entry.name)
                elif found.st_nlink > 1 and found.st_blocks:
                    if found.st_ino in self._linked:
                        continue
                    self._linked.add(found.st_ino)
                self._blocks += found.st_blocks


def _close(level: _Level) -> None:
    if level.fd >= 0:
        os.close(level.fd)
        level.fd = -1
