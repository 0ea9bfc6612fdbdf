"""The file service: sandboxes read through the agent, also after their tasks.

Tasks own their sandboxes and may plant there what they like: files are opened name by
name beneath the sandbox, no link is followed, and only regular files are read.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import stat
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import grpc.aio

from agent.api.inotify import Changes
from agent.api.opening import opened
from agent.containers import sandbox
from agent.core.effects import TaskKey
from agent.core.records import Place
from agent.sandboxes.logfile import Cuts, LogFile
from agent.sandboxes.removals import Removals
from mesos_py import logs, rpc
from mesos_py.errors import InvalidValue, MesosPyError, NotFound, Refused, Unavailable
from mesos_py.ids import check_id
from mesos_py.v1 import agent_pb2
from mesos_py.v1.agent_pb2_grpc import AgentFilesServicer

log = logs.get("agent.files")

CHUNK_BYTES: Final = 256 * 1024
MAX_PATH: Final = 4096
# A follower looks again after this long even if it was told of no change.
LOOK_AGAIN_S: Final = 1.0
# So soon while the sandbox is not there yet, and inotify has nothing to hold on to.
NOT_YET_S: Final = 0.1
# A task that a follower asks for may be on its way still: another link brings it.  It is
# looked for so often, and not for so long: on a machine that stood still nothing arrived.
ON_ITS_WAY_LOOKS: Final = 20

Context = grpc.aio.ServicerContext[agent_pb2.ReadLogRequest, agent_pb2.LogChunk]


class FileService(AgentFilesServicer):
    """Reads files of sandboxes for the master, which relays them.

    `find` knows the tasks of this run of the agent that are not forgotten; others are
    looked for where a command task of that id would have its sandbox.
    """

    def __init__(
        self,
        work_dir: str,
        agent_id: Callable[[], str],
        find: Callable[[TaskKey], Place | None],
        removals: Removals,
        cuts: Callable[[str, str, int], Cuts],
    ) -> None:
        self._work_dir = work_dir
        self._removals = removals
        self._cuts = cuts
        self._agent_id = agent_id
        self._find = find
        self._followers: dict[TaskKey, set[asyncio.Event]] = {}

    def task_ended(self, key: TaskKey) -> None:
        """Followers of its files stop at the end of what is there."""
        for changed in self._followers.get(key, ()):
            changed.set()

    async def ReadLog(
        self, request: agent_pb2.ReadLogRequest, context: Context
    ) -> AsyncIterator[agent_pb2.LogChunk]:
        try:
            async for chunk in self._read(request):
                yield chunk
        except MesosPyError as error:
            await rpc.abort(context, error)
        except OSError as error:
            log.error("reading a sandbox failed", error=error)
            await rpc.abort(context, Unavailable(f"the agent cannot read it: {error.strerror}"))

    async def _read(self, request: agent_pb2.ReadLogRequest) -> AsyncIterator[agent_pb2.LogChunk]:
        key = (request.framework_id.value, request.task_id.value)
        check_id("framework_id", key[0])
        check_id("task_id", key[1])
        parts = checked_path(request.path)
        if not request.follow:
            file = await opened(partial(self._open, key, self._find(key), parts))
            try:
                first, _, end = await asyncio.to_thread(file.bounds)
                at = _start(first, end, request.offset)
                async for chunk in _to_the_end(file, at, end, request.length):
                    yield chunk
            finally:
                file.close()
            return
        changed = asyncio.Event()
        followers = self._followers.setdefault(key, set())
        followers.add(changed)
        try:
            async for chunk in self._follow(key, parts, request, changed):
                yield chunk
        finally:
            followers.discard(changed)
            if not followers:
                self._followers.pop(key, None)

    async def _follow(
        self,
        key: TaskKey,
        parts: list[str],
        request: agent_pb2.ReadLogRequest,
        changed: asyncio.Event,
    ) -> AsyncIterator[agent_pb2.LogChunk]:
        file = await self._opened_in_time(key, parts, changed)
        try:
            with contextlib.ExitStack() as stack:
                # Where there are no watches left it only looks again less often.
                with contextlib.suppress(OSError):
                    stack.enter_context(Changes(changed)).watch(file.fd)
                first, _, end = await asyncio.to_thread(file.bounds)
                at = _start(first, end, request.offset)
                left = request.length
                while True:
                    changed.clear()
                    # Asked before reading: what was written before the end is read.
                    ended = self._ended(key)
                    _, cut, end = await asyncio.to_thread(file.bounds)
                    if end < at:
                        at = cut  # it was cut off, and grows again from its start
                    async for chunk in _to_the_end(file, at, end, left):
                        at = chunk.offset + len(chunk.data)
                        yield chunk
                        if left:
                            left -= len(chunk.data)
                            if not left:
                                return
                    if ended:
                        return
                    await _changed(changed, LOOK_AGAIN_S)
        finally:
            file.close()

    async def _opened_in_time(
        self, key: TaskKey, parts: list[str], changed: asyncio.Event
    ) -> LogFile:
        """Open the file, once it is there if the task still runs or may yet arrive."""
        looks = 0
        while True:
            changed.clear()
            place = self._find(key)
            looks += 1
            try:
                return await opened(partial(self._open, key, place, parts))
            except NotFound:
                if place is None and looks < ON_ITS_WAY_LOOKS:
                    pass
                elif place is None or place.ended:
                    raise
            await _changed(changed, NOT_YET_S)

    def _ended(self, key: TaskKey) -> bool:
        place = self._find(key)
        return place is None or place.ended

    def _open(self, key: TaskKey, place: Place | None, parts: list[str]) -> LogFile:
        """In a thread.  Raises MesosPyError that says what is wrong with which path."""
        where = place.sandbox if place is not None else self._usual_place(key)
        with sandbox.opened(self._work_dir) as root:
            try:
                directory = sandbox.open_directory(root, where)
            except FileNotFoundError:
                raise NotFound("task", key[1], self._why_missing(key, place)) from None
            with sandbox.closing(directory):
                if place is None or not place.inner:
                    return _opened(directory, parts, partial(self._cuts, where[-1]))
                return self._open_inner(directory, place, parts)

    def _open_inner(self, directory: int, place: Place, parts: list[str]) -> LogFile:
        try:
            own = sandbox.open_directory(directory, place.inner)
        except OSError:
            text = "is not there: the task has no directory (yet)"
            raise NotFound("file", "/".join(parts), text) from None
        with sandbox.closing(own):
            name = f"{place.sandbox[-1]}/{place.inner[-1]}"
            return _opened(own, parts, partial(self._cuts, name))

    def _usual_place(self, key: TaskKey) -> tuple[str, ...]:
        """The newest sandbox that a command task of this id had."""
        place = ("agents", self._agent_id(), "frameworks", key[0], "executors", key[1], "runs")
        try:
            latest = Path(self._work_dir, *place, sandbox.LATEST).readlink()
        except OSError:
            return (*place, sandbox.LATEST)
        return (*place, latest.name)

    def _why_missing(self, key: TaskKey, place: Place | None) -> str:
        if place is None:
            removal = self._removals.of_executor(*key)
        else:
            removal = self._removals.of_container(place.sandbox[-1])
        if removal is not None:
            return f"its sandbox was removed at {_moment(removal.at_wall_s)}"
        if place is None:
            return "this agent has no sandbox of it"
        if not place.started:
            return "it was not started, so it has no sandbox"
        # A directory that is removed leaves its moment in the one above it.
        for length in range(len(place.sandbox) - 1, -1, -1):
            try:
                above = Path(self._work_dir, *place.sandbox[:length]).stat()
            except OSError:
                continue
            return f"its sandbox was removed at {_moment(above.st_mtime)}"
        return "its sandbox was removed"


def checked_path(text: str) -> list[str]:
    """The names that `text` is made of.  Raises InvalidValue unless all lead downwards."""
    if not text or len(text) > MAX_PATH:
        raise InvalidValue("path", text, f"must have from 1 to {MAX_PATH} characters")
    if text.startswith("/"):
        raise InvalidValue("path", text, "must be relative: it is looked for in the sandbox")
    try:
        return [sandbox.check_part(part) for part in text.split("/")]
    except ValueError:
        raise InvalidValue(
            "path", text, "must not have empty parts, '.', '..' or null characters"
        ) from None


def _opened(directory: int, parts: list[str], cuts: Callable[[str, int], Cuts]) -> LogFile:
    path = "/".join(parts)
    try:
        return LogFile(directory, parts, cuts)
    except FileNotFoundError:
        raise NotFound("file", path, "is not in the sandbox") from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR) and _is_link(directory, parts):
            raise Refused(f"{path!r} is or passes a symbolic link, which is not followed") from None
        if error.errno == errno.ENOTDIR:
            raise NotFound("file", path, "a part of the path is no directory") from None
        raise Refused(f"{path!r} cannot be read: {error.strerror}") from None


def _is_link(directory: int, parts: list[str]) -> bool:
    """Whether a link stands somewhere on the path; for the wording of a refusal only."""
    for length in range(1, len(parts) + 1):
        try:
            with sandbox.closing(sandbox.open_directory(directory, parts[: length - 1])) as above:
                found = os.stat(parts[length - 1], dir_fd=above, follow_symlinks=False)
        except OSError:
            return False
        if stat.S_ISLNK(found.st_mode):
            return True
    return False


def _moment(wall_s: float) -> str:
    return datetime.fromtimestamp(wall_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _start(first: int, end: int, offset: int) -> int:
    """Where to begin: from the start, or (negative) from the end."""
    return offset if offset >= 0 else max(first, end + offset)


async def _to_the_end(
    file: LogFile, at: int, end: int, length: int
) -> AsyncIterator[agent_pb2.LogChunk]:
    """What is there from `at` on, at most `length` bytes (0: all).

    Only up to what is the end now: a file that grows as fast as it is read still ends.
    """
    left = length or max(0, end - at)
    while at < end and left > 0:
        at, data = await asyncio.to_thread(file.read, at, min(CHUNK_BYTES, left))
        if not data:
            return
        yield agent_pb2.LogChunk(offset=at, data=data)
        at += len(data)
        left -= len(data)


async def _changed(changed: asyncio.Event, timeout_s: float) -> None:
    try:
        async with asyncio.timeout(timeout_s):
            await changed.wait()
    except TimeoutError:
        pass
