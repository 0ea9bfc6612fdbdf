"""Sandboxes: the directories of tasks, beneath the agent's work directory.

Tasks can write into their sandboxes, and the agent may be root: so every path is
walked name by name from a directory that is open, and no link is ever followed.

The warden imports this module: it must stay small (no mesos_py, no grpc).
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from typing import Final

MODE: Final = 0o750
STDOUT: Final = "stdout"
STDERR: Final = "stderr"
LATEST: Final = "latest"
# Where the tasks of a group are in their executor's sandbox, and where the containers are
# that were launched within another.
TASKS: Final = "tasks"
CONTAINERS: Final = "containers"

_CREATE_TRIES: Final = 5

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND: Final = (
    os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
)
# Non-blocking: opening a pipe that a task has put there must not hang.
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def check_part(part: str) -> str:
    """`part` if it names something in a directory, and only there.  Else ValueError."""
    if not part or part in (".", "..") or "/" in part or "\0" in part:
        raise ValueError(f"{part!r} is no name beneath a directory")
    return part


@contextlib.contextmanager
def opened(path: str) -> Iterator[int]:
    """A directory of the operator's, by any path."""
    with closing(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as fd:
        yield fd


@contextlib.contextmanager
def closing(fd: int) -> Iterator[int]:
    """`fd`, closed at the end."""
    try:
        yield fd
    finally:
        os.close(fd)


def create(root: int, parts: Iterable[str], uid: int, gid: int) -> int:
    """Make the sandbox `parts` beneath the open directory `root`; return it opened.

    All but the last are the agent's; the last belongs to `uid` and `gid`.  Beside it the
    link "latest" names it, unless it is in another sandbox, among such of any name.  What
    is there already is used, if it is a directory.
    """
    names = [check_part(part) for part in parts]
    for _ in range(_CREATE_TRIES - 1):
        # Directories that were empty may be removed just now, between two steps.
        with contextlib.suppress(FileNotFoundError):
            return _created(root, names, uid, gid)
    return _created(root, names, uid, gid)


def _created(root: int, names: list[str], uid: int, gid: int) -> int:
    *above, name = names
    parent = os.dup(root)
    try:
        for part in above:
            parent = _swap(parent, _made(parent, part, 0o755))
        fd = _made(parent, name, MODE)
        try:
            _give(fd, uid, gid)
            if above[-1:] not in ([TASKS], [CONTAINERS]):
                _point(parent, LATEST, name)
        except BaseException:
            os.close(fd)
            raise
        return fd
    finally:
        os.close(parent)


def open_output(sandbox: int, name: str, uid: int, gid: int) -> int:
    """Open a file that a task's output is appended to, made if it is not there.

    One of somebody else that was linked in is refused with EACCES: it would be given away.
    """
    fd = os.open(check_part(name), _APPEND, 0o644, dir_fd=sandbox)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "is no regular file", name)
        if found.st_nlink > 1 and (found.st_uid, found.st_gid) != (uid, gid):
            raise OSError(errno.EACCES, "is a link to somebody else's file", name)
        _give(fd, uid, gid)
        # The task expects a file that blocks.
        os.set_blocking(fd, True)
    except BaseException:
        os.close(fd)
        raise
    return fd


def open_directory(root: int, parts: Iterable[str]) -> int:
    """Open the directory `parts` beneath `root`, following no link.  Raises OSError."""
    fd = os.dup(root)
    for part in parts:
        try:
            fd = _swap(fd, os.open(check_part(part), _DIRECTORY, dir_fd=fd))
        except BaseException:
            os.close(fd)
            raise
    return fd


def make_directory(root: int, parts: Iterable[str], uid: int, gid: int) -> int:
    """As `open_directory`, and what is missing is made, for `uid` and `gid`."""
    fd = os.dup(root)
    for part in parts:
        try:
            fd = _swap(fd, _made(fd, check_part(part), MODE))
            _give(fd, uid, gid)
        except BaseException:
            os.close(fd)
            raise
    return fd


def open_file(sandbox: int, parts: list[str]) -> int:
    """Open the regular file `parts` beneath the sandbox for reading.

    Raises OSError, with ELOOP or ENOTDIR where a link stands, and ValueError for
    parts that lead elsewhere.  Other kinds of files, and files of somebody else that
    were linked in, are refused with EACCES.
    """
    parent = open_directory(sandbox, parts[:-1])
    try:
        fd = os.open(check_part(parts[-1]), _READ, dir_fd=parent)
    finally:
        os.close(parent)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EACCES, "is no regular file", parts[-1])
        if found.st_nlink > 1 and found.st_uid != os.fstat(sandbox).st_uid:
            raise OSError(errno.EACCES, "is a link to somebody else's file", parts[-1])
    except BaseException:
        os.close(fd)
        raise
    return fd


def _made(parent: int, name: str, mode: int) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=parent)
    except FileNotFoundError:
        # Another one may make it at the same moment.
        with contextlib.suppress(FileExistsError):
            return new_directory(parent, name, mode)
        return os.open(name, _DIRECTORY, dir_fd=parent)


def new_directory(parent: int, name: str, mode: int) -> int:
    """Make a directory of this mode, whatever the umask of the agent; it is returned opened.

    `parent` is the agent's own.  Raises OSError, FileExistsError among them.
    """
    os.mkdir(name, mode, dir_fd=parent)
    fd = os.open(name, _DIRECTORY, dir_fd=parent)
    try:
        os.fchmod(fd, mode)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _give(fd: int, uid: int, gid: int) -> None:
    found = os.fstat(fd)
    if (found.st_uid, found.st_gid) != (uid, gid):
        os.fchown(fd, uid, gid)


def _point(parent: int, link: str, target: str) -> None:
    try:
        os.symlink(target, link, dir_fd=parent)
    except FileExistsError:
        temporary = f".{link}-{target}"
        with contextlib.suppress(FileExistsError):
            os.symlink(target, temporary, dir_fd=parent)
        os.replace(temporary, link, src_dir_fd=parent, dst_dir_fd=parent)


def _swap(old: int, new: int) -> int:
    os.close(old)
    return new
