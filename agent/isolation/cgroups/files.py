"""All that touches the files of control groups.  Nothing else in this package does.

The files are the kernel's: each write is one system call with the whole value, and
nothing is ever created by a write.  Errors name the file, and the value if there was one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
from pathlib import Path
from typing import Final

from mesos_py.errors import MesosPyError, shown

PROCS: Final = "cgroup.procs"
_EFD_CLOEXEC: Final = os.O_CLOEXEC
_EFD_NONBLOCK: Final = os.O_NONBLOCK
_GONE: Final = frozenset({errno.ENOENT, errno.ENODEV})
MOUNTINFO: Final = Path("/proc/self/mountinfo")
OWN: Final = Path("/proc/self/cgroup")


class CgroupError(MesosPyError):
    """The kernel refused something; `number` is its errno."""

    code = "cgroup"

    def __init__(self, what: str, path: str, number: int, value: str | None = None) -> None:
        text = f"cannot {what} {path}: "
        if value is not None:
            text += f"{shown(value)}: "
        text += os.strerror(number)
        super().__init__(text, file=path, value=value, errno=number)
        self.what = what
        self.path = path
        self.number = number
        self.value = value

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.what, self.path, self.number, self.value))

    @property
    def gone(self) -> bool:
        """Whether the group or the file is not there."""
        return self.number in _GONE


class Group:
    """One directory of a hierarchy."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"Group({self.path!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)

    def child(self, *names: str) -> Group:
        """What is beneath it, there or not; a name may have slashes."""
        return type(self)("/".join((self.path, *names)))

    def file(self, name: str) -> str:
        return f"{self.path}/{name}"

    # ---- Directories ----------------------------------------------------------------

    def exists(self) -> bool:
        return Path(self.path).is_dir()

    def has(self, name: str) -> bool:
        return Path(self.path, name).exists()

    def make(self) -> None:
        """Make the directory; fine if it is there.  Its parent must be."""
        try:
            os.mkdir(self.path, 0o755)  # noqa: PTH102 (the path is a text)
        except FileExistsError:
            pass
        except OSError as error:
            raise CgroupError("make", self.path, error.errno or errno.EIO) from None

    def remove(self) -> bool:
        """Remove the directory; False if it is in use.  Fine if it is not there."""
        try:
            os.rmdir(self.path)  # noqa: PTH106 (the path is a text)
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno in (errno.EBUSY, errno.ENOTEMPTY):
                return False
            raise CgroupError("remove", self.path, error.errno or errno.EIO) from None
        return True

    def children(self) -> list[str]:
        """The names of the groups beneath it; none if it is not there."""
        try:
            with os.scandir(self.path) as entries:
                return [each.name for each in entries if each.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise CgroupError("list", self.path, error.errno or errno.EIO) from None

    def tree(self) -> list[Group]:
        """Itself and everything beneath it, what is deepest first."""
        found = [each for name in self.children() for each in self.child(name).tree()]
        return [*found, self]

    def delegated(self) -> bool:
        """Whether whoever manages the groups has given this one away (systemd's mark)."""
        for name in ("user.delegate", "trusted.delegate"):
            with contextlib.suppress(OSError):
                if os.getxattr(self.path, name) == b"1":
                    return True
        return False

    # ---- Files ----------------------------------------------------------------------

    def read(self, name: str) -> str:
        path = self.file(name)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                pieces = []
                while piece := os.read(fd, 65536):
                    pieces.append(piece)
            finally:
                os.close(fd)
        except OSError as error:
            raise CgroupError("read", path, error.errno or errno.EIO) from None
        return b"".join(pieces).decode("utf-8", "replace")

    def read_or_none(self, name: str) -> str | None:
        """Its text, None if it cannot be had: for figures, which may be missing."""
        try:
            return self.read(name)
        except CgroupError:
            return None

    def write(self, name: str, value: str | int) -> None:
        path = self.file(name)
        try:
            fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
            try:
                os.write(fd, str(value).encode())
            finally:
                os.close(fd)
        except OSError as error:
            raise CgroupError("write", path, error.errno or errno.EIO, str(value)) from None

    def pids(self) -> list[int]:
        """The processes in it; none if it is not there."""
        try:
            return [int(pid) for pid in self.read(PROCS).split()]
        except CgroupError as error:
            if error.gone:
                return []
            raise


# ---- To be told of changes -----------------------------------------------------------


class Notice:
    """A descriptor for epoll that shows when the kernel has something to tell of a group."""

    def __init__(self, fd: int, mask: int, *, counter: bool) -> None:
        self.fd = fd
        self.mask = mask
        self._counter = counter

    def rearm(self) -> bool:
        """Take what was told, to be told again; False: the group is gone."""
        try:
            if self._counter:
                os.read(self.fd, 8)
            else:
                os.pread(self.fd, 4096, 0)
        except BlockingIOError:
            pass
        except OSError:
            return False
        return True

    def close(self) -> None:
        os.close(self.fd)


def notice_by_eventfd(group: Group, name: str) -> Notice:
    """v1: an event of the control file `name`, registered in cgroup.event_control."""
    path = group.file(name)
    try:
        fd = os.eventfd(0, _EFD_CLOEXEC | _EFD_NONBLOCK)
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                group.write("cgroup.event_control", f"{fd} {file}")
            finally:
                os.close(file)  # the kernel has taken hold of what it needs
        except BaseException:
            os.close(fd)
            raise
    except OSError as error:
        raise CgroupError("watch", path, error.errno or errno.EIO) from None
    return Notice(fd, select.EPOLLIN, counter=True)


def notice_by_poll(group: Group, name: str) -> Notice:
    """v2: the file `name` itself tells, by POLLPRI, that it has changed."""
    path = group.file(name)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise CgroupError("watch", path, error.errno or errno.EIO) from None
    notice = Notice(fd, select.EPOLLPRI, counter=False)
    notice.rearm()
    return notice


# ---- Processes ----------------------------------------------------------------------------

_PF_EXITING: Final = 0x4
_SIGKILL_BIT: Final = 1 << (signal.SIGKILL - 1)


def is_dying(pid: int) -> bool:
    """Whether a process (or thread) that is still there was sent KILL, or is on its way out.

    One that the kernel has killed for memory may take long to give that back.
    """
    try:
        # The name in parentheses may hold anything, parentheses too.
        stat = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        status = Path(f"/proc/{pid}/status").read_bytes()
    except OSError:
        return True
    if int(stat[6]) & _PF_EXITING:
        return True
    return any(
        int(line.split()[1], 16) & _SIGKILL_BIT
        for line in status.splitlines()
        if line.startswith((b"SigPnd:", b"ShdPnd:"))
    )


# ---- Devices ----------------------------------------------------------------------------


def device_beneath(path: str) -> str:
    """MAJOR:MINOR of the disk that holds `path`, the whole disk and not a partition of it.

    Raises CgroupError where that is no disk (a file system over the network, tmpfs).
    """
    try:
        number = os.stat(path).st_dev  # noqa: PTH116 (the path is a text)
    except OSError as error:
        raise CgroupError("find the disk of", path, error.errno or errno.EIO) from None
    found = f"{os.major(number)}:{os.minor(number)}"
    entry = Path("/sys/dev/block", found)
    if not entry.exists():
        raise CgroupError("find the disk of", path, errno.ENOTBLK)
    if (entry / "partition").exists():
        return (entry.resolve().parent / "dev").read_text().strip()
    return found
