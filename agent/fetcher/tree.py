"""Writing beneath the sandbox, name by name, following no link.

Imported by the process that fetches: it must stay small (no mesos_py, no grpc).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from typing import Final

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
MAX_DEPTH: Final = 64


class Unsafe(Exception):
    """It would lead out of the sandbox, or through a link; the text says what."""


class Full(Exception):
    """The limit on what may be written is reached."""


class Tree:
    """A directory that is open, and the bytes that may still be written beneath it."""

    def __init__(self, root: int, max_bytes: int) -> None:
        self._root = root
        self._max_bytes = max_bytes
        self._left = max_bytes

    def charge(self, count: int) -> None:
        """`count` bytes are about to be written.  Raises Full."""
        self._left -= count
        if self._left < 0:
            raise Full(f"more than the {self._max_bytes} bytes that a task may fetch and unpack")

    def file(self, parts: Sequence[str], mode: int = 0o644) -> int:
        """A new file for writing, in place of any other; directories above are made."""
        parent = self.directory(parts[:-1])
        try:
            self._clear(parent, parts)
            fd = os.open(parts[-1], _NEW, 0o600, dir_fd=parent)
        finally:
            os.close(parent)
        try:
            os.fchmod(fd, mode)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def symlink(self, parts: Sequence[str], target: str) -> None:
        """A link whose target is beneath the root, whatever is there.  Raises Unsafe."""
        self._check_link(parts, target)
        parent = self.directory(parts[:-1])
        try:
            self._clear(parent, parts)
            os.symlink(target, parts[-1], dir_fd=parent)
        finally:
            os.close(parent)

    def hardlink(self, parts: Sequence[str], target: Sequence[str]) -> None:
        """Another name for a regular file that is there.  Raises Unsafe and OSError."""
        if list(parts) == list(target):
            return
        source = self._opened(target[:-1])
        try:
            found = os.stat(target[-1], dir_fd=source, follow_symlinks=False)
            if not stat.S_ISREG(found.st_mode):
                raise Unsafe(f"{_path(parts)!r} links to {_path(target)!r}, no regular file")
            parent = self.directory(parts[:-1])
            try:
                self._clear(parent, parts)
                os.link(
                    target[-1],
                    parts[-1],
                    src_dir_fd=source,
                    dst_dir_fd=parent,
                    follow_symlinks=False,
                )
            finally:
                os.close(parent)
        finally:
            os.close(source)

    def directory(self, parts: Sequence[str], mode: int = 0o755) -> int:
        """The directory, opened; made where it is missing.  Raises Unsafe."""
        if len(parts) > MAX_DEPTH:
            raise Unsafe(f"{_path(parts)!r} is more than {MAX_DEPTH} directories deep")
        fd = os.dup(self._root)
        try:
            for depth, part in enumerate(parts, start=1):
                try:
                    os.mkdir(part, mode | 0o700, dir_fd=fd)
                except FileExistsError:
                    pass
                below = self._entered(fd, parts[:depth])
                os.close(fd)
                fd = below
        except BaseException:
            os.close(fd)
            raise
        return fd

    def read(self, parts: Sequence[str]) -> int:
        """A regular file beneath the root for reading."""
        parent = self._opened(parts[:-1])
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            return os.open(parts[-1], flags, dir_fd=parent)
        finally:
            os.close(parent)

    def remove(self, parts: Sequence[str]) -> None:
        """Remove a file that `file` has made."""
        parent = self._opened(parts[:-1])
        try:
            os.unlink(parts[-1], dir_fd=parent)
        finally:
            os.close(parent)

    def _opened(self, parts: Sequence[str]) -> int:
        fd = os.dup(self._root)
        try:
            for depth in range(1, len(parts) + 1):
                below = self._entered(fd, parts[:depth])
                os.close(fd)
                fd = below
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _entered(self, above: int, parts: Sequence[str]) -> int:
        try:
            return os.open(parts[-1], _DIRECTORY, dir_fd=above)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise Unsafe(f"{_path(parts)!r} is a link or a file, not a directory") from None
            raise

    def _clear(self, parent: int, parts: Sequence[str]) -> None:
        """What is there under the name makes room: a link itself, not what it names."""
        try:
            os.unlink(parts[-1], dir_fd=parent)
        except FileNotFoundError:
            pass
        except IsADirectoryError:
            raise Unsafe(f"{_path(parts)!r} is there already, as a directory") from None

    def _check_link(self, parts: Sequence[str], target: str) -> None:
        # The link's own directory is a real one, so ".." at the start leads where it
        # seems to; behind another name it may be a link's ".." and lead anywhere.
        steps = [part for part in target.split("/") if part not in ("", ".")]
        up = 0
        while up < len(steps) and steps[up] == "..":
            up += 1
        leads_out = target.startswith("/") or up > len(parts) - 1 or ".." in steps[up:]
        if not target or "\0" in target or leads_out:
            text = f"{_path(parts)!r} links to {target!r}, which leads out of the sandbox"
            raise Unsafe(text)


def _path(parts: Sequence[str]) -> str:
    return "/".join(parts)
