"""Sandboxes and the agent's own log by the paths that clients of Mesos have for them.

How they are opened is the business of `agent.api.http.sandboxes`: beneath the sandbox, name
by name, and no link is followed.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import grp
import heapq
import os
import posixpath
import pwd
from collections.abc import Callable, Iterator
from typing import Final

from agent.api.http.sandboxes import MAX_ENTRIES, InTheWay, Opened
from agent.api.http_paths import Location
from agent.api.opening import opened
from agent.api.virtual_paths import located, virtual_of
from agent.core.state import AgentState
from mesos_py.errors import InvalidValue, NotFound, Refused, Unavailable
from mesos_py.http.file_queries import part_of
from mesos_py.http.log_file import OwnLog
from mesos_py.v1 import types_pb2 as pb

OWN_LOG: Final = "/slave/log"

_NS: Final = 10**9


class _NoFile(InvalidValue):
    """A pipe, a socket or the like: it is there, and has nothing to be read."""


class VirtualFiles:
    """Reads for whoever asks.  Raises MesosPyError."""

    def __init__(
        self,
        work_dir: str,
        agent_id: Callable[[], str],
        open_sandbox: Callable[[Location], Opened],
        own_log: OwnLog | None = None,
    ) -> None:
        """`open_sandbox` opens what is in a sandbox; blocks."""
        self._work_dir = work_dir
        self._agent_id = agent_id
        self._open_sandbox = open_sandbox
        self._own_log = own_log if own_log is not None else OwnLog(OWN_LOG)

    async def opened(self, path: str) -> Opened:
        """What the path names.  The caller closes it."""
        return await opened(lambda: self._open(path))

    async def entries(self, path: str) -> list[pb.FileInfo]:
        """What is in a directory, in order of names; of a file: nothing."""
        try:
            found = await self.opened(path)
        except _NoFile:
            return []
        with contextlib.closing(found):
            if not found.is_directory:
                return []
            return await asyncio.to_thread(lambda: list(_entries(path, found.fd)))

    async def read(self, path: str, offset: int | None, length: int | None) -> tuple[int, bytes]:
        """The size of a file, and what is there from `offset` on (None: nothing)."""
        found = await self.opened(path)
        with contextlib.closing(found):
            if found.is_directory:
                raise InvalidValue("path", path, "is a directory, which cannot be read")
            size = found.status.st_size
            return size, await asyncio.to_thread(part_of, found.fd, size, offset, length)

    def table(self, s: AgentState) -> dict[str, str]:
        """The directory that each path leads to."""
        made: dict[str, str] = {}
        own_log = self.own_log()
        if own_log is not None:
            made[OWN_LOG] = own_log
        for executor in (*s.past, *s.executors.values()):
            real = posixpath.join(s.settings.work_dir, *executor.sandbox)
            latest = posixpath.join(posixpath.dirname(real), "latest")
            made[real] = made[latest] = made[virtual_of(*executor.key)] = real
        return made

    def own_log(self) -> str | None:
        """The file that the agent logs to; None if it is none."""
        return self._own_log.real_path()

    def _open(self, path: str) -> Opened:
        if self._own_log.is_meant_by(path):
            fd = self._own_log.open()
            return Opened("", fd, os.fstat(fd))
        location = located(path, self._work_dir, self._agent_id())
        try:
            return self._open_sandbox(location)
        except InTheWay as error:
            if error.is_link:
                raise InvalidValue("path", path, f"is inaccessible: {error.message}") from None
            if not error.last:
                raise NotFound("path", path, "passes a file, beneath which nothing is") from None
            raise _NoFile("path", path, f"is inaccessible: {error.message}") from None
        except Refused as error:
            # 403 would say that somebody else may read it.
            raise InvalidValue("path", path, f"is inaccessible: {error.message}") from None
        except OSError as error:
            raise Unavailable(f"path: {path!r}: cannot be read: {error.strerror}") from None


def _entries(path: str, fd: int) -> Iterator[pb.FileInfo]:
    with os.scandir(fd) as entries:
        names = heapq.nsmallest(MAX_ENTRIES, (entry.name for entry in entries))
    for name in names:
        try:
            found = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except OSError:
            continue  # it has just gone
        # What is no text is shown, not usable.
        shown = os.fsencode(posixpath.join(path, name)).decode("utf-8", "replace")
        yield pb.FileInfo(
            path=shown,
            nlink=min(found.st_nlink, 2**31 - 1),
            size=found.st_size,
            mtime=pb.TimeInfo(nanoseconds=int(found.st_mtime) * _NS),
            mode=found.st_mode,
            uid=_user(found.st_uid),
            gid=_group(found.st_gid),
        )


@functools.cache
def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


@functools.cache
def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


__all__ = ["OWN_LOG", "VirtualFiles"]
