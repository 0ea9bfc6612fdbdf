"""`/files`: sandboxes to look into, to download from and to follow.

It serves what is on the disk, so data that a task has put there outlives it, its executor
and the agent's run; what is in a directory named "published" longest (see the collector).
Tasks own their sandboxes and may plant there what they like: files are opened name by
name beneath the sandbox and no link is followed.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import heapq
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from email.utils import formatdate
from functools import partial
from typing import Final, NamedTuple

from aiohttp import web

from agent.api.http_paths import LATEST, Location, location_of, offset_of
from agent.api.inotify import Changes
from agent.api.opening import opened
from agent.containers import sandbox
from agent.sandboxes.logfile import Cuts, LogFile
from agent.sandboxes.removals import Removals
from mesos_py import logs
from mesos_py.errors import InvalidValue, MesosPyError, NotFound, Refused
from mesos_py.http.answers import not_allowed
from mesos_py.metrics import Metrics

log = logs.get("agent.http")

CHUNK_BYTES: Final = 256 * 1024
MAX_ENTRIES: Final = 10_000
# Each has some descriptors of this process.
MAX_FOLLOWERS: Final = 500
# A follower looks again after this long even if it was told of no change.
LOOK_AGAIN_S: Final = 1.0
_STATUS: Final[dict[type[MesosPyError], int]] = {InvalidValue: 400, NotFound: 404, Refused: 403}
_KINDS: Final = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "link",
}
# What tasks write is theirs: no browser may take it for a page of ours.
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox",
    "Cache-Control": "no-cache",
}


class _Gone(NotFound):
    """It was there, and was removed."""


class InTheWay(Refused):
    """What is no directory of the sandbox, and no file that is served, stands on the path."""

    def __init__(self, message: str, mode: int, *, last: bool) -> None:
        """`mode`: of what stands there; `last`: it is what the path names."""
        super().__init__(message)
        self.is_link = stat.S_ISLNK(mode)
        self.last = last

    def __reduce__(self) -> tuple[object, ...]:
        # Its kind is not known elsewhere.
        return (Refused, (self.message,))


class Opened(NamedTuple):
    """A file or a directory of a sandbox, to be closed."""

    # The container's id.
    run: str
    fd: int
    status: os.stat_result
    # For a file that is to be followed.
    log: LogFile | None = None

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)

    def close(self) -> None:
        if self.log is not None:
            self.log.close()
        else:
            os.close(self.fd)


class SandboxFiles:
    """Serves the sandboxes of one work directory.  Used from one event loop."""

    def __init__(
        self,
        work_dir: str,
        agent_id: Callable[[], str],
        is_live: Callable[[str], bool],
        removals: Removals,
        cuts: Callable[[str, str, int], Cuts],
        metrics: Metrics,
    ) -> None:
        self._cuts = cuts
        self._work_dir = work_dir
        self._agent_id = agent_id
        self._is_live = is_live
        self._removals = removals
        self._answers = metrics.counter(
            "http_answers_total", "Answers of the file server, by status", ("status",)
        )
        self._followers: dict[str, set[asyncio.Event]] = {}
        self._following = 0
        self._closing = False

    def close(self) -> None:
        """Followers stop at the end of what there is."""
        self._closing = True
        for waiting in self._followers.values():
            for changed in waiting:
                changed.set()

    def ended(self, parts: tuple[str, ...]) -> None:
        """The container with this sandbox has ended: followers stop at the end."""
        for changed in self._followers.get(parts[-1], ()):
            changed.set()

    # ---- Answering ----------------------------------------------------------------

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """What GET and HEAD of a path below /files give."""
        if request.method not in ("GET", "HEAD"):
            raise not_allowed(request.method, "GET", "HEAD")
        try:
            answer = await self._answer(request)
        except MesosPyError as error:
            status = 410 if isinstance(error, _Gone) else _status(error)
            answer = _refusal(status, error.code, error.message)
        except OSError as error:
            log.error("a sandbox cannot be read", error=error)
            answer = _refusal(503, "unreadable", f"cannot be read: {error.strerror}")
        self._answers.labels(str(answer.status)).inc()
        return answer

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        location = location_of(request.rel_url.raw_path)
        follow = request.query.get("follow") in ("1", "true", "yes")
        offset = offset_of(request.query.get("offset"))
        found = await opened(partial(self.open, location, follow))
        with contextlib.closing(found):
            if found.is_directory:
                listing = await asyncio.to_thread(_listing, found.fd)
                return web.json_response(listing, headers=_HEADERS)
            headers = file_headers(
                location.parts[-1], found.status, download="download" in request.query
            )
            if found.log is None:
                return await send(request, found, offset, headers)
            if self._following >= MAX_FOLLOWERS:
                return _refusal(503, "unavailable", f"{MAX_FOLLOWERS} others are following")
            self._following += 1
            try:
                return await self._follow(request, found.run, found.log, offset, headers)
            finally:
                self._following -= 1

    async def _follow(
        self, request: web.Request, run: str, file: LogFile, offset: int, headers: dict[str, str]
    ) -> web.StreamResponse:
        answer = web.StreamResponse(headers={**headers, "Accept-Ranges": "none"})
        answer.enable_chunked_encoding()
        await answer.prepare(request)
        if request.method == "HEAD":
            return answer
        changed = asyncio.Event()
        self._followers.setdefault(run, set()).add(changed)
        try:
            with contextlib.ExitStack() as stack:
                # Without a watch it only looks again less often.
                with contextlib.suppress(OSError):
                    stack.enter_context(Changes(changed)).watch(file.fd)
                with contextlib.suppress(ConnectionError):  # the client has gone
                    async for data in self._growing(run, file, offset, changed):
                        await answer.write(data)
        finally:
            self._followers[run].discard(changed)
            if not self._followers[run]:
                del self._followers[run]
        return answer

    async def _growing(
        self, run: str, file: LogFile, offset: int, changed: asyncio.Event
    ) -> AsyncIterator[bytes]:
        first, cut, end = await asyncio.to_thread(file.bounds)
        # As of the file that a plain GET gives; its end may reach into rotated parts.
        at = cut + offset if offset >= 0 else max(first, end + offset)
        while True:
            changed.clear()
            # Asked before reading: what was written before the end is read.
            ended = self._closing or not self._is_live(run)
            _, cut, end = await asyncio.to_thread(file.bounds)
            if end < at:
                at = cut  # it was cut off, and grows again from its start
            while at < end:
                at, data = await asyncio.to_thread(file.read, at, CHUNK_BYTES)
                if not data:
                    break
                yield data
                at += len(data)
            if ended:
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN_S):
                    await changed.wait()

    # ---- Opening: in a thread -------------------------------------------------------

    def open(self, location: Location, follow: bool = False) -> Opened:
        """What is asked for.  Raises MesosPyError and OSError."""
        above = (
            *("agents", self._agent_id(), "frameworks", location.framework_id),
            *("executors", location.executor_id, "runs"),
        )
        with sandbox.opened(self._work_dir) as root:
            try:
                with sandbox.closing(sandbox.open_directory(root, above)) as runs:
                    run = _run(runs, location)
                    directory = sandbox.open_directory(runs, (run,))
            except (FileNotFoundError, NotADirectoryError):
                raise self._missing(location) from None
        with sandbox.closing(directory):
            cuts = partial(self._cuts, run) if follow else None
            return _opened(directory, run, list(location.parts), cuts)

    def _missing(self, location: Location) -> NotFound:
        if location.run == LATEST:
            removal = self._removals.of_executor(location.framework_id, location.executor_id)
        else:
            removal = self._removals.of_container(location.run)
        if removal is not None:
            at = datetime.fromtimestamp(removal.at_wall_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            return _Gone("sandbox", location.run, f"was removed at {at}")
        return NotFound("sandbox", location.run, "is not on this agent")


def _run(runs: int, location: Location) -> str:
    if location.run != LATEST:
        return location.run
    try:
        return sandbox.check_part(os.readlink(LATEST, dir_fd=runs))
    except (OSError, ValueError):
        raise FileNotFoundError(errno.ENOENT, "no latest run", LATEST) from None


def _opened(
    directory: int, run: str, parts: list[str], cuts: Callable[[str, int], Cuts] | None
) -> Opened:
    """With `cuts`: a file to be followed."""
    path = "/".join(parts)
    try:
        try:
            fd = sandbox.open_directory(directory, parts)
        except NotADirectoryError:
            if cuts is not None:
                file = LogFile(directory, parts, cuts)
                return Opened(run, file.fd, os.fstat(file.fd), file)
            fd = sandbox.open_file(directory, parts)
    except FileNotFoundError:
        raise NotFound("file", path, "is not in the sandbox") from None
    except OSError as error:
        message = f"{path!r} cannot be read: {error.strerror}"
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            message = f"{path!r} is or passes a link or a file; links are not followed"
        raise _refused(message, directory, parts) from None
    return Opened(run, fd, os.fstat(fd))


def _refused(message: str, directory: int, parts: list[str]) -> Refused:
    """The error for a path that cannot be opened, with what stands in the way if it is found."""
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        above = directory
        for index, part in enumerate(parts):
            found = os.stat(part, dir_fd=above, follow_symlinks=False)
            if not stat.S_ISDIR(found.st_mode):
                return InTheWay(message, found.st_mode, last=index == len(parts) - 1)
            above = sandbox.open_directory(above, (part,))
            stack.callback(os.close, above)
    return Refused(message)


def _listing(fd: int) -> dict[str, object]:
    """What is in a directory, in order of names."""
    with os.scandir(fd) as entries:
        names = heapq.nsmallest(MAX_ENTRIES + 1, (entry.name for entry in entries))
    return {"entries": list(_rows(fd, names[:MAX_ENTRIES])), "more": len(names) > MAX_ENTRIES}


def _rows(fd: int, names: list[str]) -> Iterator[dict[str, object]]:
    for name in names:
        try:
            found = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except OSError:
            continue  # it has just gone
        yield {
            # JSON has no bytes: what is no text is shown, not usable.
            "name": os.fsencode(name).decode("utf-8", "replace"),
            "kind": _KINDS.get(stat.S_IFMT(found.st_mode), "other"),
            "size": found.st_size,
            "modified": found.st_mtime,
            "mode": stat.filemode(found.st_mode),
        }


# ---- Sending ----------------------------------------------------------------------------


async def send(
    request: web.Request, opened: Opened, offset: int, headers: dict[str, str]
) -> web.StreamResponse:
    """A file, or the part of it that Range (or `offset`) asks for, by sendfile."""
    size = opened.status.st_size
    start, end, status = _start(size, offset), size, 200
    if (
        "Range" in request.headers
        and request.headers.get("If-Range", headers["ETag"]) == headers["ETag"]
    ):
        try:
            wanted = request.http_range
        except ValueError:
            return _unsatisfiable(size)
        start = _start(size, wanted.start if wanted.start is not None else 0)
        end = min(size, wanted.stop) if wanted.stop is not None else size
        if start >= end:
            return _unsatisfiable(size)
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        status = 206
    elif headers["ETag"] in request.headers.get("If-None-Match", ""):
        return web.Response(status=304, headers={"ETag": headers["ETag"]})
    answer = web.StreamResponse(status=status, headers=headers)
    count = answer.content_length = max(0, end - start)
    await answer.prepare(request)
    if request.method == "HEAD" or not count:
        return answer
    transport = request.transport
    with (
        contextlib.suppress(ConnectionError),  # the client has gone
        os.fdopen(os.dup(opened.fd), "rb") as file,
    ):
        if transport is not None:
            sent = await asyncio.get_running_loop().sendfile(transport, file, start, count)
            if sent < count:
                # It was cut off meanwhile; the client must not wait for the rest.
                transport.abort()
    return answer


def _start(size: int, offset: int) -> int:
    return offset if offset >= 0 else max(0, size + offset)


def _unsatisfiable(size: int) -> web.Response:
    answer = _refusal(416, "invalid-value", "Range: nothing of the file is in it")
    answer.headers["Content-Range"] = f"bytes */{size}"
    return answer


def file_headers(name: str, status: os.stat_result, *, download: bool) -> dict[str, str]:
    """Of an answer with a file of that name."""
    headers = {
        **_HEADERS,
        "Accept-Ranges": "bytes",
        "Content-Type": _type(name),
        "ETag": f'"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"',
        "Last-Modified": formatdate(status.st_mtime, usegmt=True),
    }
    if download:
        plain = "".join(
            c if c.isascii() and c.isprintable() and c not in '"\\' else "_" for c in name
        )
        headers["Content-Disposition"] = f'attachment; filename="{plain}"'
    return headers


def _type(name: str) -> str:
    """Logs can be looked at; nothing else is guessed."""
    if name in (sandbox.STDOUT, sandbox.STDERR) or name.endswith((".txt", ".log")):
        return "text/plain; charset=utf-8"
    return "application/octet-stream"


def _status(error: MesosPyError) -> int:
    return next((_STATUS[cls] for cls in type(error).__mro__ if cls in _STATUS), 503)


def _refusal(status: int, code: str, message: str) -> web.Response:
    return web.json_response({"code": code, "message": message}, status=status, headers=_HEADERS)
