"""Volumes that are shown in a sandbox by symbolic links.

Tasks write into their sandboxes, and who makes the links may be root: every path is walked
name by name from a directory that is open, no link is followed, and nothing that was there
before is changed.  A link itself is only a text: who follows it later is the task, with its
own rights.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from agent.containers.sandbox import closing
from agent.core.sandbox_paths import MAX_DEPTH, Link, names_beneath, names_of_link
from mesos_py.errors import InvalidValue

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Nobody but us gets into what is not given away yet.
_NEW: Final = 0o700
_MADE: Final = 0o755
_ALL: Final = 0o777


@dataclass(frozen=True)
class Place:
    """A sandbox: opened, its path, and to whom belongs what is made in it."""

    fd: int
    path: str
    uid: int
    gid: int


def show(links: Iterable[Link], own: Place, parent: Place | None = None) -> None:
    """Make the links in the sandbox `own`, and what they lead to where it is missing.

    `parent`: the sandbox that links of volumes of the parent lead to.  Raises InvalidValue
    for one that cannot be made; those before it are left.
    """
    for link in links:
        place = parent if link.of_parent else own
        assert place is not None
        make_source(place.fd, link.path, place.uid, place.gid, field=link.path_field)
        target = "/".join((place.path, *names_beneath(link.path_field, link.path)))
        at = f"{link.where}.container_path"
        link_volume(own.fd, link.container_path, target, own.uid, own.gid, field=at)


def link_volume(
    sandbox: int,
    container_path: str,
    target: str,
    uid: int,
    gid: int,
    *,
    field: str = "container_path",
) -> None:
    """Put a symbolic link to `target` into the open directory `sandbox`, at `container_path`.

    Directories above it that are missing are made, and belong to `uid` and `gid`.  The
    link may be there already.  Raises InvalidValue, with `field`, if anything else is
    there, if the path leads elsewhere or over a link or file, or cannot be made.
    """
    names = names_of_link(field, container_path)
    with _told(field, container_path), closing(_made(sandbox, names[:-1], uid, gid)) as parent:
        try:
            os.symlink(target, names[-1], dir_fd=parent)
        except FileExistsError:
            if not leads_to(parent, names[-1], target):
                raise
            # An earlier start has come as far as this.


def make_source(
    sandbox: int, path: str, uid: int, gid: int, *, field: str = "source.sandbox_path.path"
) -> None:
    """See to it that something is at `path` beneath the open directory `sandbox`.

    What is missing is made: directories that belong to `uid` and `gid`.  The last name may be
    anything, also a link (to a persistent volume): it is not looked into.  Raises as
    `link_volume`.
    """
    names = names_beneath(field, path)
    with _told(field, path), closing(_made(sandbox, names[:-1], uid, gid)) as parent:
        with contextlib.suppress(FileNotFoundError):
            os.stat(names[-1], dir_fd=parent, follow_symlinks=False)
            return
        # Who has made something else meanwhile has made it there.
        os.close(_entered(parent, names[-1], uid, gid))


@contextlib.contextmanager
def _told(field: str, path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno == errno.EEXIST:
            text = "something else is there already"
        elif error.errno in (errno.ELOOP, errno.ENOTDIR):
            text = "leads over a link or a file"
        else:
            text = f"cannot be made: {error.strerror}"
        raise InvalidValue(field, path, text) from None


def _made(root: int, names: tuple[str, ...], uid: int, gid: int) -> int:
    """The directory, opened."""
    fd = os.dup(root)
    for name in names:
        try:
            below = _entered(fd, name, uid, gid)
        finally:
            os.close(fd)
        fd = below
    return fd


def _entered(parent: int, name: str, uid: int, gid: int) -> int:
    """A directory, opened; made and given away if it was not there."""
    try:
        os.mkdir(name, _NEW, dir_fd=parent)
    except FileExistsError:
        return os.open(name, _DIRECTORY, dir_fd=parent)
    fd = os.open(name, _DIRECTORY, dir_fd=parent)
    try:
        found = os.fstat(fd)
        # A task may have put another one in its place, which is not ours to give away: one
        # like this, of ours and closed to all others, it cannot get hold of elsewhere.  It
        # may have inherited a bit for its group's sake.
        if (found.st_uid, found.st_mode & _ALL) == (os.geteuid(), _NEW):
            if (found.st_uid, found.st_gid) != (uid, gid):
                os.fchown(fd, uid, gid)
            os.fchmod(fd, _MADE)
    except BaseException:
        os.close(fd)
        raise
    return fd


def leads_to(parent: int, name: str, target: str) -> bool:
    """Whether it is a link to `target`, by whatever way: the agent's directory may have been
    named otherwise when it was made."""
    try:
        found = os.readlink(name, dir_fd=parent)
    except OSError:
        return False
    return found == target or os.path.realpath(found) == os.path.realpath(target)


__all__ = [
    "MAX_DEPTH",
    "Place",
    "leads_to",
    "link_volume",
    "make_source",
    "names_beneath",
    "names_of_link",
    "show",
]
